"""``placeopt check``, ``generate`` and ``import``: instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import SOLVE, add, epilog
from placeopt.cli.completion import problem_names
from placeopt.cli.screen import (
    AsJson,
    InstanceFile,
    Output,
    deliver,
    emit_json,
    emit_sentence,
    pairs,
    show,
    warn,
)
from placeopt.core.errors import (
    DocumentError,
    UnsupportedError,
    UsageError,
    did_you_mean,
    require_known,
)
from placeopt.core.files.paths import require_outputs

if TYPE_CHECKING:
    from pydantic import BaseModel

    from placeopt.core.problem import Problem

#: How hard `check` looks for a feasible plan: evaluations and seconds.
_LOOK_EVALUATIONS, _LOOK_SECONDS = 2000, 1.0


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    add(app, check, "placeopt check toy", group=SOLVE)
    drawn = "placeopt generate temporal --size requests=50 --size horizon=100 --seed 7 -o mine.json"
    trace = "placeopt generate trace --size days=7 --seed 1 -o trace.json"
    add(app, generate, drawn, trace, group=SOLVE)


def register_imports(imports: typer.Typer) -> None:
    """Add the commands to ``placeopt import``, behind those of doors."""
    workmodel = "placeopt import mubench workmodel.json --replicas 3 -o mine.json"
    add(imports, import_mubench, workmodel, name="mubench")
    if not isinstance(imports.info.epilog, str):
        imports.info.epilog = epilog(workmodel)


# -- check -----------------------------------------------------------------------------------------


def check(
    instance: InstanceFile,
    as_json: AsJson = False,
) -> None:
    """Check that an instance is valid and has a plan.

    If it has none, it says why, request by request. It warns of values that look like mistakes.

    Exit code 0: valid, and a plan may exist. 2: not valid. 3: no plan can exist.
    """
    from placeopt import registry
    from placeopt.core.kernels.compile import interpret

    interpret()
    problem = registry.read(instance)
    verdict = _verdict(problem)
    if as_json:
        emit_json({"file": str(instance), **verdict})
    else:
        _tell(problem, verdict)
    if verdict["feasible"] is False:
        raise typer.Exit(3)


def _verdict(problem: Problem) -> dict[str, Any]:
    reasons = problem.infeasibility()
    feasible, clues = (False, ()) if reasons else _look_for_a_plan(problem)
    return {
        "problem": problem.problem,
        "name": problem.name,
        "sha256": problem.instance_name.sha256,
        "valid": True,
        "feasible": feasible,
        "reasons": list(reasons),
        "clues": list(clues),
        "warnings": list(problem.warnings()),
    }


def _look_for_a_plan(problem: Problem) -> tuple[bool | None, tuple[str, ...]]:
    """Return whether a quick method finds a feasible plan, and clues why not.

    None: it found none, and one may exist.
    """
    import numpy as np

    from placeopt import api, registry

    method = registry.quick(problem)
    try:
        with np.errstate(over="ignore"):  # hashes wrap around, compiled or not
            front = api.solve(problem, method, evaluations=_LOOK_EVALUATIONS, seconds=_LOOK_SECONDS)
    except UnsupportedError as error:
        return None, (f"no search was made: {error}",)
    if front.points:
        return True, ()
    return None, ("a quick search found no plan; its best plan breaks:", *front.reasons)


def _tell(problem: Problem, verdict: dict[str, Any]) -> None:
    sizes = {
        field: len(value)
        for field in type(problem).model_fields
        if isinstance(value := getattr(problem, field), tuple)
    }
    emit_sentence(
        f"{problem.name}: a valid {problem.problem} instance, "
        + ", ".join(f"{n} {what}" for what, n in sizes.items())
    )
    goals = (
        f"{o.name} in {o.unit}" + ("" if o.step is None else f", steps of {show(o.step)}")
        for o in problem.objectives
    )
    emit_sentence("objectives: " + "; ".join(goals))
    if verdict["feasible"]:
        emit_sentence("feasible: yes, a plan was found")
    elif verdict["feasible"] is None:
        emit_sentence("feasible: not known; nothing rules it out:")
    else:
        emit_sentence("feasible: no, and no plan can exist:")
    for sentence in (*verdict["reasons"], *verdict["clues"]):
        emit_sentence(f"  {sentence}")
    for warning in verdict["warnings"]:
        emit_sentence(f"warning: {warning}")


# -- generate --------------------------------------------------------------------------------------


def generate(
    problem: Annotated[
        str,
        Argument(
            metavar="PROBLEM|trace",
            help="A problem, such as temporal; or trace, for backtest.",
            autocompletion=problem_names,
        ),
    ],
    size: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="Size, such as requests=50. Repeatable. An unknown name prints the valid ones.",
        ),
    ] = None,
    seed: Annotated[int, Option(help="The same seed gives the same instance.")] = 0,
    name: Annotated[str | None, Option(help="Name of the instance.")] = None,
    output: Output = None,
) -> None:
    """Make a random instance, or the trace of a random cluster."""
    from placeopt.core.files.documents import layout
    from placeopt.core.problem import keyword_defaults
    from placeopt.registry import problem_class, specs

    function = (generators := _generators()).get(problem)
    require_known("problem", problem, [*specs(), *generators])
    defaults = keyword_defaults(function) if function else problem_class(problem).sizes()
    if seed < 0:
        raise UsageError(f"--seed is {seed}; give a whole number of at least 0")
    sizes = _sizes(pairs(size, "--size"), defaults)
    require_outputs(output)
    draw = partial(_drawn_behind_a_door, function) if function else _drawn_instance
    deliver(layout(draw(problem, seed, sizes, name)), output)


def _generators() -> dict[str, Callable[..., BaseModel]]:
    """Return what doors can draw, by the word of the command."""
    from placeopt.core.spec import load
    from placeopt.doors import doors

    return {word: load(entry) for door in doors() for word, entry in door.generators.items()}


def _drawn_instance(kind: str, seed: int, sizes: dict[str, Any], name: str | None) -> Any:
    from placeopt.registry import from_document, problem_class

    document = problem_class(kind).generate(seed, **sizes).to_document()
    return document if name is None else from_document(document | {"name": name}).to_document()


def _drawn_behind_a_door(
    function: Callable[..., BaseModel],
    word: str,
    seed: int,
    sizes: dict[str, Any],
    name: str | None,
) -> Any:
    from placeopt.core.files.documents import validate
    from placeopt.core.parameters import checked

    drawn = function(seed, **checked(function, word, sizes))
    document = drawn.model_dump(mode="json", exclude_defaults=True)
    if name is not None:
        document["name"] = name
        validate(type(drawn), document)
    return document


def _sizes(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    legal = [f"{key}={value}" for key, value in defaults.items()]
    for key, value in given.items():
        if key not in defaults:
            raise UsageError(
                f"unknown size {key!r}; {did_you_mean(key, defaults)} "
                f"(defaults: {', '.join(legal)})"
            )
        wanted = type(defaults[key])
        fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if defaults[key] is not None and not fits and not (wanted is float and type(value) is int):
            kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
            raise UsageError(
                f"size {key} is {value!r}; give {kinds.get(wanted, 'a value like the default')}, "
                f"such as {key}={defaults[key]}"
            )
    return given


# -- import ----------------------------------------------------------------------------------------


def import_mubench(
    workmodel: Annotated[Path, Argument(metavar="WORKMODEL", help="A workmodel.json of muBench.")],
    name: Annotated[
        str | None, Option(help="Name of the instance (default: that of the file).")
    ] = None,
    gateway: Annotated[
        str | None,
        Option(help="Service that users call (default: the first that no other calls)."),
    ] = None,
    replicas: Annotated[int, Option(min=1, help="Number of replicas of every service.")] = 1,
    seed: Annotated[
        int, Option(min=0, help="Random seed: the same seed puts replicas on the same nodes.")
    ] = 0,
    output: Output = None,
) -> None:
    """Import a call graph of muBench as a rescheduling instance on six machines."""
    from placeopt.core.files.documents import layout, with_line
    from placeopt.registry import from_document
    from placeopt.rescheduling.mubench import read

    require_outputs(output, inputs=(workmodel,))
    try:
        document = read(
            workmodel,
            name=workmodel.stem if name is None else name,
            gateway=gateway,
            replicas=replicas,
            seed=seed,
        )
    except DocumentError as error:
        raise with_line(error, workmodel) from None
    try:
        problem = from_document(document)
    except DocumentError as error:
        raise error.in_file(str(workmodel)) from None
    deliver(layout(document), output)
    warn(problem.warnings())
