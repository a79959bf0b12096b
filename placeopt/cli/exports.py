"""``placeopt export``: plans for what runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.screen import Output, Plans, deliver, warn
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files import require_outputs

if TYPE_CHECKING:
    from placeopt.core.problem import Problem


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    exports = typer.Typer(no_args_is_help=True, help="Turn plans into what a cluster understands.")
    example = "placeopt export kubernetes front.json --instance shop.json --point knee -o steps.sh"
    exports.command("kubernetes", epilog=f"Example: {example}")(export_kubernetes)
    app.add_typer(exports, name="export", epilog=f"Example: {example}")


def export_kubernetes(
    plans: Plans,
    instance: Annotated[Path, typer.Option(help="The instance file.")],
    origin: Annotated[
        Path | None,
        typer.Option(
            help="What the names are in the cluster; INSTANCE.origin.json, if there, by default."
        ),
    ] = None,
    point: Annotated[
        str | None,
        typer.Option(metavar="K|knee", help="The point of a front; the knee by default."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="commands|json|karmada",
            help="commands or json for steps, karmada for policies; by problem by default.",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="karmada: namespace of workloads without an origin.")
    ] = "default",
    output: Output = None,
) -> None:
    """Turn a plan into a script of kubectl commands, its steps as JSON, or Karmada policies.

    Nothing is sent to a cluster.
    """
    from placeopt import registry
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes.export import export

    beside = origins.beside(instance) if origin is None else origin
    require_outputs(output, inputs=(plans, instance, beside))
    problem = registry.read(instance)
    plan = plan_in(plans, problem, point)
    known = origins.read(beside) if origin is not None or beside.exists() else None
    text = export(problem, plan, known, form=form, namespace=namespace)
    deliver(text, output)
    if output is not None and output.is_file() and text.startswith("#!"):
        output.chmod(output.stat().st_mode | 0o111)
    warn(_warnings(text))


def _warnings(text: str) -> list[str]:
    """Return the warnings of an exported script or of steps as JSON."""
    if text.startswith("{"):
        return list(json.loads(text)["warnings"])
    head = "# WARNING: "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


def plan_in(path: Path, problem: Problem, point: str | None) -> dict[str, Any]:
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
