"""``placeopt export``: plans for what runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from placeopt.cli.screen import Output, Plans, deliver, halves, say, warn
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files import require_outputs
from placeopt.core.shipped import find, find_cluster

if TYPE_CHECKING:
    from placeopt.core.front import Plan
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    exports = typer.Typer(no_args_is_help=True, help="Turn plans into what a cluster understands.")
    example = "placeopt export kubernetes front.json --instance shop.json --point knee -o steps.sh"
    exports.command("kubernetes", epilog=f"Example: {example}")(export_kubernetes)
    verify = "placeopt verify steps.json --cluster cluster.json"
    app.command("verify", epilog=f"Example: {verify}")(verify_steps)
    app.add_typer(exports, name="export", epilog=f"Example: {example}")


def export_kubernetes(
    plans: Plans,
    instance: Annotated[
        Path | None,
        Option(
            help="The instance; that of a front is looked for beside it and among those that come "
            "with placeopt."
        ),
    ] = None,
    origin: Annotated[
        Path | None,
        Option(
            help="What the names are in the cluster; INSTANCE.origin.json, if there, by default."
        ),
    ] = None,
    point: Annotated[
        str | None,
        Option(metavar="K|knee", help="The point of a front; the knee by default."),
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "--format",
            metavar="commands|json|node-groups|node-pools|karmada",
            help="commands or json for steps, node-groups (JSON) or node-pools (of Karpenter) for "
            "what to buy, karmada for policies; by problem by default.",
        ),
    ] = None,
    bought: Annotated[
        list[str] | None,
        Option(
            metavar="CANDIDATE=NODE",
            help="commands: the node that was bought for a candidate; repeatable.",
        ),
    ] = None,
    node_class: Annotated[
        str | None,
        Option(
            metavar="GROUP/KIND/NAME",
            help="node-pools: node class; karpenter.k8s.aws/EC2NodeClass/default by default.",
        ),
    ] = None,
    namespace: Annotated[
        str, Option(help="karmada: namespace of workloads without an origin.")
    ] = "default",
    output: Output = None,
) -> None:
    """Turn a plan into a script of kubectl commands, its steps as JSON, or Karmada policies.

    Nothing is sent to a cluster.
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
    names = dict(halves(item, "=", "--bought", "CANDIDATE=NODE") for item in bought or ())
    text = export(
        problem,
        plan,
        known,
        form=form,
        namespace=namespace,
        bought=names,
        node_class=node_class,
    )
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
    from placeopt.core.documents import read_json
    from placeopt.core.front import Front
    from placeopt.plot import instance_file

    document = read_json(plans)
    file = None
    if isinstance(document, dict) and document.get("format") == "placeopt/front@1":
        file = instance_file(Front.from_document(document, plans), plans)
    if file is None:
        raise UsageError(f"the instance of {str(plans)!r} is not known: give --instance")
    return file


def _require_schedulable(problem: Problem, plan: Plan, origin: Origin) -> None:
    """Raise if kube-scheduler would refuse a step, as far as the imported files are still there."""
    from placeopt.core.documents import validate
    from placeopt.kubernetes.export.steps_document import StepsDocument, document
    from placeopt.kubernetes.verify import verify_files

    files = [Path(find_cluster(file)) for file in origin.files]
    if not files or not all(file.is_file() for file in files):
        say(
            "Scheduler check skipped: pass the cluster file with "
            "`placeopt verify STEPS --cluster FILE`."
        )
        return
    refused = verify_files(validate(StepsDocument, document(problem, plan, origin)), files)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise DocumentError(
            f"kube-scheduler would refuse a copy: {refused[0].text}{more}",
            remedy="import again from files of one moment; `placeopt verify` names all",
        )


def verify_steps(
    steps: Annotated[Path, Argument(help="Steps, as export writes them with --format json.")],
    cluster: Annotated[
        list[str],
        Option(help="JSON of kubectl get, YAML; what was imported. Repeatable; - for stdin."),
    ],
) -> None:
    """Ask the filters of kube-scheduler at every step of a plan: would it run each copy there?

    Asked are resources, pods of a node, taints, affinity, spread, volumes and ports; and whether
    stops leave PodDisruptionBudgets too few pods.

    Prints what would be refused or broken, and why. Exit code 0 if nothing is, else 3.
    """
    from placeopt.core.documents import read_json, validate
    from placeopt.kubernetes.export.steps_document import StepsDocument
    from placeopt.kubernetes.manifests import load
    from placeopt.kubernetes.verify import budgets_broken, verify

    document = validate(StepsDocument, read_json(steps), file=str(steps))
    objects = load([find_cluster(file) for file in cluster])
    refused, broken = verify(document, objects), budgets_broken(document, objects)
    for text in (*(refusal.text for refusal in refused), *broken):
        typer.echo(text)
    count = f"{len(document.steps)} steps, {len(refused)} that kube-scheduler would refuse"
    say(count + (f", {len(broken)} that break a PodDisruptionBudget" if broken else ""))
    if refused or broken:
        raise typer.Exit(3)


def _warnings(text: str) -> list[str]:
    """Return the warnings of an exported script or of steps as JSON."""
    if text.startswith("{"):
        return list(json.loads(text)["warnings"])
    head = "# WARNING: "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


def plan_in(path: Path, problem: Problem, point: str | None) -> Plan:
    """Return the plan of a front, of a point or of a plan file.

    Raises
    ------
    DocumentError
        The file holds none, or its front answers another instance.
    """
    from placeopt.cli.fronts import index_of
    from placeopt.core.documents import read_json, what_is
    from placeopt.core.front import Front

    document = read_json(path)
    if isinstance(document, dict) and document.get("format") == "placeopt/front@1":
        front = Front.from_document(document, path)
        front.require(problem.instance_name, str(path))
        return front.points[index_of(front, point or "knee")].plan
    if point is not None:
        raise UsageError(f"--point chooses from a front, and {str(path)!r} is a plan; leave it out")
    if isinstance(document, dict) and document.get("format") == "placeopt/steps@1":
        from placeopt.kubernetes.export.steps_document import replay

        return replay(document, file=str(path))[0]
    plan = document.get("plan", document) if isinstance(document, dict) else document
    if not isinstance(plan, dict) or (what := what_is(document)) is not None:
        remedy = (
            "give a front, a point as `placeopt pick` prints it, or a plan; "
            f"see `placeopt schema {problem.problem} --plan`"
        )
        raise DocumentError(
            "not a plan" if not isinstance(plan, dict) else f"this is {what}, not a plan",
            file=str(path),
            remedy=remedy,
        )
    return plan
