"""``placeopt export kubernetes`` and ``verify``: steps for a cluster, and would it take them?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from placeopt.cli.commands import CLUSTERS, add, epilog
from placeopt.cli.completion import cluster_names, instance_names, words
from placeopt.cli.plans import plan_in
from placeopt.cli.screen import Output, Plans, Quiet, deliver, say, warn
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find, find_cluster
from placeopt.core.fronts.words import counted
from placeopt.kubernetes.commands.asking import export_formats

if TYPE_CHECKING:
    from placeopt.core.fronts.values import Plan
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin


def register(app: typer.Typer, exports: typer.Typer) -> None:
    """Add ``verify`` to `app` and ``kubernetes`` to `exports`."""
    solved = "placeopt solve shop -o plans.json"
    script = "placeopt export kubernetes plans.json --point 0 -o steps.sh"
    steps = "placeopt export kubernetes plans.json --point 0 --format json -o steps.json"
    checked = "placeopt verify steps.json --cluster shop"
    add(app, verify_steps, solved, steps, checked, group=CLUSTERS, name="verify")
    add(exports, export_kubernetes, solved, script, name="kubernetes")
    exports.info.epilog = epilog(solved, script)


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
