"""Commands: ``import kubernetes``, ``export kubernetes``, ``verify`` and ``consolidate``."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import CLUSTERS, add, epilog
from placeopt.cli.completion import beginning, cluster_names, instance_names, words
from placeopt.cli.plans import plan_in
from placeopt.cli.screen import (
    Output,
    Plans,
    Quiet,
    deliver,
    emit,
    for_people,
    plain,
    say,
    warn,
    width_of,
)
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find, find_cluster, find_prices
from placeopt.core.fronts.words import counted
from placeopt.kubernetes.moving import PRICES, Ask
from placeopt.kubernetes.names import DUMP
from placeopt.kubernetes.options import asks, options_of

if TYPE_CHECKING:
    from placeopt.core.fronts.values import Plan
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.consolidate.answer import ConsolidationAnswer
    from placeopt.kubernetes.consolidate.situation import Situation
    from placeopt.kubernetes.importing import Imported
    from placeopt.kubernetes.origin import Origin


def register(app: typer.Typer, imports: typer.Typer, exports: typer.Typer) -> None:
    """Add the commands to those of ``placeopt``, ``placeopt import`` and ``placeopt export``."""
    shop = "placeopt import kubernetes shop --prices shop --to rolling-update -o shop.json"
    piped = f"{DUMP} | placeopt import kubernetes - --to rolling-update -o mine.json"
    add(imports, import_kubernetes, shop, piped, name="kubernetes")
    imports.info.epilog = epilog(shop)
    solved = "placeopt solve shop -o plans.json"
    script = "placeopt export kubernetes plans.json --point 0 -o steps.sh"
    steps = "placeopt export kubernetes plans.json --point 0 --format json -o steps.json"
    checked = "placeopt verify steps.json --cluster shop"
    add(app, verify_steps, solved, steps, checked, group=CLUSTERS, name="verify")
    add(exports, export_kubernetes, solved, script, name="kubernetes")
    exports.info.epilog = epilog(solved, script)
    asked = "placeopt consolidate shop --prices shop"
    nightly = f"{DUMP} | placeopt consolidate - -o out --fail-above 100"
    add(app, consolidate, asked, nightly, group=CLUSTERS, name="consolidate")


def next_steps(front: str, instance: Path | None, point: str) -> list[tuple[str, str]]:
    """Return what may follow a solve, where the instance was imported: (what, command).

    Parameters
    ----------
    front : str
        The front's file and the options that name its instance, as words of a shell.
    instance : Path, optional
        The instance's file.
    point : str
        The number of the plan.
    """
    from placeopt.kubernetes.origin import beside

    if instance is None or not beside(instance).exists():
        return []
    script = f"placeopt export kubernetes {front} --point {point} -o steps.sh"
    return [("steps as a script for kubectl", script)]


def import_targets(incomplete: str) -> list[str]:
    """Return the problems that a cluster becomes an instance of."""
    from placeopt.kubernetes.importing import TARGETS

    return beginning(incomplete, TARGETS)


def export_formats(incomplete: str) -> list[str]:
    """Return what a plan becomes, for any problem."""
    from placeopt.kubernetes.export import FORMATS

    forms = dict.fromkeys(form for forms in FORMATS.values() for form in forms)
    return beginning(incomplete, forms)


# -- import ----------------------------------------------------------------------------------------

#: Options that are paths of files.
_FILES = ("commitments", "new_requests", "execution")

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE...",
        help="JSON of kubectl get or cluster-info dump, YAML manifests, a folder, - for stdin, or "
        "`shop`, which comes with placeopt.",
        autocompletion=cluster_names,
    ),
]
Overlays = Annotated[
    list[str] | None,
    Option(
        "--overlay",
        metavar="PATTERN=CHANGE",
        help="Change prices, such as 'm5.*=-20%' or 'us-east-1/*:spot=+0.01'. Percentages come "
        "first, then amounts. Repeatable.",
    ),
]
PriceFiles = Annotated[
    list[Path] | None,
    Option(
        "--prices",
        help="Prices: on-demand table, spot advisor, OpenCost, CSV, or `shop`. Repeatable.",
        autocompletion=cluster_names,
        rich_help_panel=PRICES,
    ),
]
Report = Annotated[
    Path | None, Option(help="Write what was assumed, pinned and left out: .json or .md.")
]


ToOption = Annotated[
    str,
    Option(
        metavar="PROBLEM",
        help="rolling-update, edge-cloud, rescheduling or temporal.",
        autocompletion=import_targets,
    ),
]
NodesOption = Annotated[
    Path | None,
    Option(help="CSV of nodes: name, cpu, memory; optional: zone, region, layer, price, count ..."),
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option(
        help="rolling-update: machines that a plan may buy. CSV (machine_type, cpu, memory, zone, "
        "on_demand_usd_per_hour, spot_usd_per_hour, count ...) or NodePools of Karpenter.",
        rich_help_panel=PRICES,
    ),
]
LatencyOption = Annotated[
    Path | None,
    Option(
        help="CSV in ms, by node, zone or region: one row per origin, one column per destination.",
        rich_help_panel=PRICES,
    ),
]
OutputOption = Annotated[
    Path | None,
    Option("-o", "--output", help="Instance to write; its .origin.json is written beside it."),
]


@asks()
def import_kubernetes(
    files: Files,
    to: ToOption,
    nodes: NodesOption = None,
    candidates: CandidatesOption = None,
    prices: PriceFiles = None,
    overlay: Overlays = None,
    latency: LatencyOption = None,
    output: OutputOption = None,
    report: Report = None,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Import what kubectl or helm template prints.

    It contacts neither your cluster nor the network. Options decide what the files leave open.

    --report lists everything that was assumed, pinned or left out.
    """
    from placeopt.core.errors import Faults
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes.importing import import_files
    from placeopt.kubernetes.machines import overlay as read_overlay

    tables = (nodes, candidates, latency, *(given[name] for name in _FILES))
    beside = None if output is None else origins.beside(output)
    require_outputs(output, beside, report, inputs=(*files, *(prices or ()), *tables))
    faults = Faults()  # told with what the import finds
    name = given["name"] or (output.stem if output else "cluster")
    done = import_files(
        [find_cluster(file) for file in files],
        to,
        options_of(given, faults, name=name),
        nodes=nodes,
        candidates=candidates,
        prices=[find_prices(file) for file in prices or ()],
        latency=latency,
        overlays=[read_overlay(text) for text in overlay or []],
        faults=faults,
    )
    _write(done, output, report)


def _write(done: Imported, output: Path | None, report: Path | None) -> None:
    """Write an imported instance, its origin and the report."""
    from placeopt.core.files.documents import layout, write_text
    from placeopt.kubernetes import origin
    from placeopt.kubernetes.importing import report_text

    deliver(layout(done.document), output)
    if output is not None:
        origin.write(origin.beside(output), done.origin)
        say(f"wrote {origin.beside(output)}")
    if report is not None:
        write_text(report, report_text(done, report) + "\n")
        say(f"wrote {report}")
    for line in done.notes.summary():
        say(plain(line))


# -- export and verify -----------------------------------------------------------------------------


def export_kubernetes(
    plans: Plans,
    instance: Annotated[
        Path | None,
        Option(
            help="Instance of the plan (default for a front: found beside it, or among the shipped "
            "ones).",
            autocompletion=instance_names,
        ),
    ] = None,
    origin: Annotated[
        Path | None,
        Option(help="File that maps names to cluster objects (default: INSTANCE.origin.json)."),
    ] = None,
    point: Annotated[
        str | None,
        Option(
            metavar="K|knee",
            help="Plan of a front: its number (default: the knee).",
            autocompletion=words("knee"),
        ),
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "--format",
            metavar="commands|json|node-groups|karmada",
            help="commands (kubectl script), json (steps), node-groups (JSON) to buy, karmada "
            "(policies). The default depends on the problem.",
            autocompletion=export_formats,
        ),
    ] = None,
    namespace: Annotated[
        str, Option(help="karmada: namespace of workloads without an origin.")
    ] = "default",
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Turn a plan into a kubectl script, steps as JSON, machines to buy or Karmada policies.

    It contacts neither your cluster nor the network.
    """
    from placeopt import registry
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes.export import export

    file = _instance_of(plans) if instance is None else find(instance)
    beside = origins.beside(file) if origin is None else origin
    require_outputs(output, inputs=(plans, file, beside))
    problem = registry.read(file)
    plan = plan_in(plans, problem, point)
    known = origins.read(beside) if origin is not None or beside.exists() else None
    text = export(problem, plan, known, form=form, namespace=namespace)
    if known is not None and problem.problem in ("rolling-update", "rescheduling"):
        _require_schedulable(problem, plan, known)
    deliver(text, output)
    if output is not None and output.is_file() and text.startswith("#!"):
        output.chmod(output.stat().st_mode | 0o111)
    warn(_warnings(text))


def _instance_of(plans: Path) -> Path:
    """Return the instance of a front.

    Raises
    ------
    UsageError
        The file is no front, or its instance is not found.
    """
    from placeopt.core.files.documents import read_json
    from placeopt.core.fronts.front import Front
    from placeopt.plot import instance_file

    document = read_json(plans)
    file = None
    if isinstance(document, dict) and document.get("format") == "placeopt/front@1":
        file = instance_file(Front.from_document(document, plans), plans)
    if file is None:
        raise UsageError(f"the instance of {str(plans)!r} is not known: give --instance")
    return file


def _require_schedulable(problem: Problem, plan: Plan, origin: Origin) -> None:
    """Raise if kube-scheduler would refuse a step because the cluster is not what was imported.

    The instance has the rules by which kube-scheduler would refuse a step, so that nothing is asked
    anew where the imported files are as they were.
    """
    from placeopt.core.files.documents import validate
    from placeopt.kubernetes.export.script import StepsDocument, document
    from placeopt.kubernetes.origin import digest
    from placeopt.kubernetes.verify import verify_files

    files = [Path(find_cluster(file)) for file in origin.files]
    if not files or not all(file.is_file() for file in files):
        say(
            "The plan keeps the rules of the cluster as it was imported. If it may have changed "
            "since, `placeopt verify STEPS --cluster FILE` asks them anew."
        )
        return
    digests = origin.digests or [""] * len(files)
    changed = [str(f) for f, known in zip(files, digests, strict=True) if digest(f) != known]
    if not changed:
        return
    refused = verify_files(validate(StepsDocument, document(problem, plan, origin)), files)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise DocumentError(
            f"kube-scheduler would refuse a pod: {refused[0].text}{more}",
            remedy=f"import again: changed since it was imported: {', '.join(changed)}; "
            "`placeopt verify` names all",
        )


def verify_steps(
    steps: Annotated[
        Path,
        Argument(metavar="STEPS", help="Steps that `placeopt export --format json` wrote."),
    ],
    cluster: Annotated[
        list[str],
        Option(
            metavar="FILE",
            help="Cluster that was imported: JSON of kubectl get, YAML, - for stdin, or `shop`. "
            "Repeatable.",
            autocompletion=cluster_names,
        ),
    ],
) -> None:
    """Check every step of a plan against kube-scheduler's rules.

    Checks resources, pods per node, taints, affinity, spread, volumes, ports, disruption budgets.

    Prints what would be refused or broken, and why. Exit code 0 if nothing is, else 3.
    """
    from placeopt.core.files.documents import read_json, validate
    from placeopt.kubernetes.export.script import StepsDocument
    from placeopt.kubernetes.manifests import load
    from placeopt.kubernetes.verify import budgets_broken, verify

    document = validate(StepsDocument, read_json(steps), file=str(steps))
    objects = load([find_cluster(file) for file in cluster])
    refused, broken = verify(document, objects), budgets_broken(document, objects)
    for text in (*(refusal.text for refusal in refused), *broken):
        typer.echo(text)
    count = (
        f"{counted(len(document.steps), 'step')}, {len(refused)} that kube-scheduler would refuse"
    )
    say(count + (f", {len(broken)} that break a PodDisruptionBudget" if broken else ""))
    if refused or broken:
        raise typer.Exit(3)


def _warnings(text: str) -> list[str]:
    """Return the warnings of an exported script or of steps as JSON."""
    if text.startswith("{"):
        return list(json.loads(text)["warnings"])
    head = "# WARNING: "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


# -- consolidate -----------------------------------------------------------------------------------

_FORMATS = ("table", "markdown", "json")
#: Fields of the options of an import that are asked for here.
_ASKED = (
    "policy",
    "namespaces",
    "fixed_namespaces",
    "move_empty_dir",
    "pins",
    "expendable",
    "drain_cordoned",
    "any_architecture",
    "missing_prices",
    "commitments",
    "region",
)


@asks(
    *_ASKED,
    policy=Ask(
        "What containers without requests need: limits, default=100m,128Mi or error (default: "
        "nothing, as kube-scheduler counts them).",
        name="missing_requests",
        words=("error", "limits", "default="),
        shown="POLICY",
        is_text=True,
    ),
)
def consolidate(
    files: Files,
    prices: PriceFiles = None,
    overlay: Overlays = None,
    candidates: CandidatesOption = None,
    allow_stops: Annotated[
        bool,
        Option(
            "--allow-stops",
            help="Let a plan stop pods before their new copy runs; it names each budget that it "
            "breaks.",
        ),
    ] = False,
    name: Annotated[
        str | None, Option(help="Name of the cluster (default: that of the first file).")
    ] = None,
    by: Annotated[
        str | None,
        Option(
            metavar="LABEL",
            help="Label of pods, such as team, by which costs are told (default: the namespace).",
        ),
    ] = None,
    max_moves: Annotated[
        int | None, Option(min=0, help="Pods that may move: the plan frees fewer nodes.")
    ] = None,
    min_saving_per_move: Annotated[
        float,
        Option(
            min=0,
            metavar="AMOUNT",
            help="What a plan saves a month for each pod that it moves, at least, and by each node "
            "that it frees.",
        ),
    ] = 0.0,
    restart_cost: Annotated[
        float | None,
        Option(
            min=0,
            metavar="AMOUNT",
            help="What one restart of a pod costs, in USD: the answer says in how many days the "
            "plan has paid for its restarts.",
        ),
    ] = None,
    remove: Annotated[
        str | None,
        Option(
            metavar="NODE",
            help="Ask for this node alone: can it go, where do its pods go, what refuses?",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Seed of the search.")] = 1,
    fail_above: Annotated[
        float | None,
        Option(
            min=0,
            metavar="AMOUNT",
            help="Exit code 3 if the plan saves more than so much a month (without prices: so many "
            "nodes).",
        ),
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "--format",
            metavar="table|markdown|json",
            help="Default: table on a terminal, else json.",
            autocompletion=words(*_FORMATS),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            help="Folder for the answer, front, steps, script and report.",
        ),
    ] = None,
    quiet: Quiet = False,
    **said: Any,
) -> None:
    """Say how small a cluster could be, and why each node stays.

    It reads a dump of kubectl get and changes nothing. The plan stops no pod: every new copy runs
    before the old one ends.

    Exit code 3 where the plan saves more than --fail-above.
    """
    from placeopt.core.errors import Faults
    from placeopt.kubernetes.capacity import require_node
    from placeopt.kubernetes.consolidate import pages as folder
    from placeopt.kubernetes.importing import import_files
    from placeopt.kubernetes.machines import overlay as read_overlay

    if form is not None and form not in _FORMATS:
        raise UsageError(f"--format {form!r}; legal: {', '.join(_FORMATS)}")
    if output is not None and output.exists() and not output.is_dir():
        raise UsageError(f"-o {str(output)!r} is a file; give a folder")
    inputs = (*files, *(prices or ()), said["commitments"], candidates)
    names = (output / name for name in folder.FILES) if output and output.is_dir() else ()
    require_outputs(*names, inputs=inputs)
    faults = Faults()  # told with what the import finds
    said["missing_requests"] = said["missing_requests"] or ["default=0,0"]
    named = name or (Path(files[0]).name[:253] if files[0] != "-" else "cluster")
    options = options_of(said, faults, leave_out=True, only=remove or "", name=named)
    if remove is not None and candidates is not None:
        raise UsageError("--remove asks for room on other nodes; leave out --candidates")
    imported = import_files(
        [find_cluster(file) for file in files],
        "rolling-update",
        options,
        candidates=candidates,
        prices=[find_prices(file) for file in prices or ()],
        overlays=[read_overlay(text) for text in overlay or []],
        faults=faults,
    )
    if remove is not None:
        require_node("--remove", remove, imported.cluster.objects.nodes)
    few = math.inf if max_moves is None else max_moves, min_saving_per_move
    base, result = _answered(imported, allow_stops, few, seed, named, by or "")
    if restart_cost is not None:
        result = result.paying(restart_cost)
    _show(result, form or ("table" if for_people() else "json"))
    say(_every_night(files))
    if output is not None:
        warn(folder.write(output, base, result))
        say(f"wrote {output}: {', '.join(name for name in folder.FILES)}")
    if fail_above is not None and result.saving > fail_above:
        say(f"the plan saves {result.saving:g} {result.unit}, more than {fail_above:g}")
        raise typer.Exit(3)


def _every_night(files: Sequence[str]) -> str:
    """Return how to play such plans on what was recorded, where it is: on the folder of dumps."""
    from placeopt.kubernetes.manifests import has_several

    folder = Path(files[0]).parent
    known = len(files) == 1 and Path(files[0]).is_file() and has_several(folder)
    name = shlex.quote(str(folder)) if known else "FOLDER"
    more = "" if known else ", of dumps taken every ten minutes"
    return (
        f"what nightly plans would have saved: placeopt import trace {name} -o trace.json && "
        f"placeopt backtest trace.json --policy none --policy placeopt:interval=24h{more}"
    )


def _answered(
    imported: Imported, stops: bool, few: tuple[float, float], seed: int, name: str, by: str
) -> tuple[Situation, ConsolidationAnswer]:
    """Return the cluster with its plan, and the answer."""
    from placeopt.kubernetes.consolidate.answer import answer, why_nodes_stay
    from placeopt.kubernetes.consolidate.lifts import lifted
    from placeopt.kubernetes.consolidate.preferred import limited, preferred
    from placeopt.kubernetes.consolidate.situation import planned, solved
    from placeopt.kubernetes.consolidate.wishes import lifts_of
    from placeopt.kubernetes.importing import no_collection
    from placeopt.rolling_update.repack import WORK

    if not any(unit.node for unit in imported.cluster.units):
        raise UsageError("no pod of the files runs: consolidate is about running clusters")
    with no_collection():
        whole = preferred(planned(imported, stops=stops, seed=seed))
        base, stopping = limited(whole, *few), None
        if not stops and base is whole:  # most of its searches would meet what those before met
            work = WORK // 10
            stopping = solved(base.imported, stops=True, base=base, work=work, seed=seed)
        lifts = lifted(whole, lifts_of(whole), seed=seed)
        nodes = why_nodes_stay(whole, lifts, part=base)
        return base, answer(base, nodes, lifts, stopping, name=name, by=by)


def _show(found: ConsolidationAnswer, form: str) -> None:
    import sys

    from placeopt.cli.screen import on_screen
    from placeopt.core.files.documents import layout
    from placeopt.kubernetes.consolidate.pages import blocks, markdown

    if form == "json":
        deliver(layout(found.model_dump(mode="json")), None)
    else:
        emit(
            markdown(found)
            if form == "markdown"
            else on_screen(blocks(found), width_of(sys.stdout))
        )
