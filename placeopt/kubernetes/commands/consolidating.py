"""``placeopt consolidate``: a dump of a cluster in, an answer out; nothing is changed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from placeopt.cli.commands import CLUSTERS, add
from placeopt.cli.completion import words
from placeopt.cli.screen import Quiet, deliver, emit, for_people, say, warn, width_of
from placeopt.core.errors import UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find_cluster, find_prices
from placeopt.kubernetes.capacity import require_node
from placeopt.kubernetes.commands import importing as given
from placeopt.kubernetes.commands.asking import asks, options_of
from placeopt.kubernetes.moving import Ask
from placeopt.kubernetes.names import DUMP

if TYPE_CHECKING:
    from placeopt.kubernetes.consolidate.answer import ConsolidationAnswer
    from placeopt.kubernetes.consolidate.situation import Situation
    from placeopt.kubernetes.importing import Imported

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


def register(app: typer.Typer) -> None:
    """Add ``consolidate`` to `app`."""
    add(
        app,
        consolidate,
        "placeopt consolidate shop --prices shop",
        f"{DUMP} | placeopt consolidate - -o out --fail-above 100",
        group=CLUSTERS,
        name="consolidate",
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
    files: given.Files,
    prices: given.PriceFiles = None,
    overlay: given.Overlays = None,
    candidates: given.CandidatesOption = None,
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
    from placeopt.kubernetes.consolidate import pages as folder
    from placeopt.kubernetes.importing import import_files
    from placeopt.kubernetes.prices import overlay as read_overlay

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
    from placeopt.kubernetes.moments import has_several

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
