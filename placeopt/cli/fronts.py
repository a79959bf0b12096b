"""``placeopt evaluate``, ``merge``, ``compare``, ``pick`` and ``plot``: fronts."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import LOOK, add
from placeopt.cli.completion import instance_names, words
from placeopt.cli.front_view import about_plan, next_commands, page_of
from placeopt.cli.plans import index_of, plan_in
from placeopt.cli.screen import (
    AsJson,
    InstanceFile,
    Output,
    Plans,
    Quiet,
    corner_of,
    deliver,
    deliver_front,
    emit,
    emit_json,
    emit_sentence,
    emit_table,
    for_people,
    names,
    numbers_of,
    say,
    show,
    width_of,
)
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find
from placeopt.core.fronts.words import counted

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Objective, Plan, Point
    from placeopt.core.problem import Problem

Fronts = Annotated[list[Path], Argument(metavar="FRONT...", help="Fronts of one instance.")]
OneFront = Annotated[Path, Argument(metavar="FRONT", help="Front file.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    add(
        app,
        pick,
        "placeopt pick front.json",
        "placeopt pick front.json --knee -o plan.json",
        group=LOOK,
    )
    add(
        app,
        plot,
        "placeopt plot front.json",
        "placeopt plot front.json --point knee -o plan.png",
        group=LOOK,
    )
    solved = [f"placeopt solve toy --method {name} -o {name}.json" for name in ("nsga3", "moead")]
    add(app, compare, *solved, "placeopt compare nsga3.json moead.json", group=LOOK)
    add(app, merge, *solved, "placeopt merge nsga3.json moead.json -o all.json", group=LOOK)
    add(app, evaluate, "placeopt evaluate toy front.json", group=LOOK)


# -- evaluate --------------------------------------------------------------------------------------


def evaluate(instance: InstanceFile, plans: Plans, as_json: AsJson = False) -> None:
    """Check plans against an instance.

    It prints the values of each plan and the rules that it breaks.

    Exit code 3: a plan breaks the instance. 2: a front claims values that its plans do not have.
    """
    from placeopt import registry
    from placeopt.core.files.documents import read_json, what_is
    from placeopt.core.fronts.front import Front

    problem = registry.read(instance)
    document = read_json(plans)
    if what_is(document) == "a front":
        front = Front.from_document(document, plans)
        front.require(problem.instance_name, str(plans))
        verdicts = [
            _claim(problem, front.objectives, p, f"{plans}: points[{k}].plan")
            for k, p in enumerate(front.points)
        ]
        if front.rejected is not None:
            verdicts.append(_verdict(problem, front.rejected.plan, f"{plans}: rejected.plan"))
        document = {"instance": problem.name, "points": verdicts}
    else:
        verdicts = [_verdict(problem, plan_in(plans, problem, None), str(plans))]
        document = verdicts[0]
    if for_people(as_json):
        _show_verdicts(problem, verdicts)
    else:
        emit_json(document)
    wrong = [k for k, verdict in enumerate(verdicts) if not verdict.get("confirmed", True)]
    if not all(verdict["feasible"] for verdict in verdicts):
        raise typer.Exit(3)
    if wrong:
        problem_text = f"the referee does not confirm these values (points like this: {len(wrong)})"
        raise DocumentError(
            problem_text, file=str(plans), path=f"points[{wrong[0]}].values", remedy="solve again"
        )


def _verdict(problem: Problem, plan: Plan, where: str) -> dict[str, Any]:
    try:
        evaluation = problem.evaluate(plan)
    except DocumentError as error:
        raise error.in_file(where) from None
    return {
        "values": dict(zip((o.name for o in problem.objectives), evaluation.values, strict=True)),
        "feasible": evaluation.feasible,
        "violations": [asdict(violation) for violation in evaluation.violations],
    }


def _claim(
    problem: Problem, objectives: tuple[Objective, ...], point: Point, where: str
) -> dict[str, Any]:
    verdict = _verdict(problem, point.plan, where)
    claimed = dict(zip((o.name for o in objectives), point.values, strict=True))
    return verdict | {
        "claimed": claimed,
        "confirmed": all(verdict["values"].get(name) == value for name, value in claimed.items()),
    }


def _show_verdicts(problem: Problem, verdicts: list[dict[str, Any]]) -> None:
    """Print what was found of each plan, for a person."""
    rows = [
        (
            str(k),
            "yes" if v["feasible"] else "no",
            *(show(x) for x in v["values"].values()),
            v["violations"][0]["message"] if v["violations"] else "",
        )
        for k, v in enumerate(verdicts)
    ]
    goals = (f"{o.name}" for o in problem.objectives)
    columns = ("plan", "feasible", *goals, "first broken rule")
    emit_table(columns, rows, text=(len(columns) - 1,))


# -- merge, compare --------------------------------------------------------------------------------


def merge(
    fronts: Fronts, output: Output = None, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Merge fronts of one instance.

    Each point of the merged front names all methods that found it.
    """
    from placeopt.cli.front_view import view
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.front import merge as merged
    from placeopt.plot import find_instance

    require_outputs(output, inputs=fronts)
    whole = merged([Front.read(path) for path in fronts])
    if whole.points and for_people(as_json, output):
        emit(view(whole, find_instance(whole, fronts[0]), width_of(sys.stdout)) + "\n")
    else:
        deliver_front(whole, output)
    finders = Counter(name for point in whole.points for name in point.found_by)
    counts = ", ".join(f"{name} {finders[name]}" for name in sorted(finders))
    say(counted(len(whole), "point") + (f"; found by: {counts}" if counts else ""))


def compare(
    fronts: Fronts,
    reference: Annotated[
        str | None,
        Option(
            metavar="A,B,C",
            help="Reference point (default: a little beyond the worst values of all fronts).",
        ),
    ] = None,
    best_known: Annotated[
        Path | None,
        Option(help="The best front known, such as one of benchmarks/library."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare fronts of one instance.

    The table has points, hypervolume, sparsity, gap and seconds.

    For an instance that comes with placeopt it also says what is missing of the best known front.
    """
    from placeopt.core.fronts.front import Front, shares
    from placeopt.core.fronts.front import merge as merged
    from placeopt.core.fronts.words import up_to

    read = [Front.read(path) for path in fronts]
    union = merged(read)
    corner = _reference(read, reference)
    volumes = shares(read, corner) if union.points else [0.0] * len(read)
    kept = {p.values for p in union.points}
    known = _best_known(union, best_known)
    rows: list[dict[str, Any]] = [
        {
            "front": str(path),
            "points": len(front),
            "points_on_merged_front": sum(p.values in kept for p in front.points),
            "hypervolume": volume,
            "sparsity": front.sparsity(),
            "gap": front.gap(corner),
            "gap_to_best_known": None if known is None else _behind(front, known),
            "seconds": _seconds(front),
        }
        for path, front, volume in zip(fronts, read, volumes, strict=True)
    ]
    if as_json:
        emit_json({"reference": corner, "fronts": rows})
        return
    to_best = () if known is None else ("gap_to_best_known",)
    measures = ("hypervolume", "sparsity", "gap", *to_best, "seconds")
    cells = [
        (
            r["front"],
            str(r["points"]),
            str(r["points_on_merged_front"]),
            *(show(r[m]) for m in measures),
        )
        for r in rows
    ]
    columns = ("front", "points", "on merged", *(m.replace("_", " ") for m in measures))
    emit_table(columns, cells)
    within = up_to(union.objectives, corner)
    emit_sentence(f"hypervolume: share of the box from the best values of all fronts {within}")
    if any(row["gap"] is not None for row in rows):
        most = "at most this share of the attainable hypervolume is missing"
        emit_sentence(f"gap: {most}, {within}")
    if known is not None:
        emit_sentence(
            "gap to best known: share of the hypervolume of the best known front that is missing "
            f"({counted(len(known), 'point')}), "
            f"{up_to(known.objectives, known.reference().tolist())}"
        )


def _best_known(front: Front, named: Path | None) -> Front | None:
    """Return the best front known of the same instance and goals; None where none is.

    That of a shipped instance is found by its name.
    """
    from placeopt.core.files.shipped import best_known
    from placeopt.core.fronts.front import Front

    path = best_known(front.instance.name) if named is None else named
    known = None if path is None else Front.read(path)
    if known is None:
        return None
    names = [[o.name for o in one.objectives] for one in (known, front)]
    if known.instance == front.instance and names[0] == names[1]:
        return known
    if named is None:
        return None
    raise UsageError(
        f"--best-known {named} is a front of {known.instance.name!r} with the goals "
        f"{', '.join(names[0])}; give one of {front.instance.name!r} with {', '.join(names[1])}"
    )


def _behind(front: Front, known: Front) -> float:
    """Return the share of the best known front's hypervolume that a front lacks."""
    corner = known.reference().tolist()
    return 1 - front.hypervolume(corner) / known.hypervolume(corner)


def _reference(fronts: list[Front], text: str | None) -> list[float]:
    """Return the reference point given, else one beyond the worst values of all fronts."""
    from placeopt.core.fronts.front import common_reference

    width = len(fronts[0].objectives)
    corner = corner_of(text, width)
    if corner is not None:
        return corner
    return common_reference(fronts) or [1.0] * width


def _seconds(front: Front) -> float:
    """Return the seconds of all runs; parts of a method made of methods are within its own."""
    parts = {
        (method, run.seed)
        for run in front.runs
        if run.method in ("ensemble", "auto")
        for method in run.parameters.get("methods", ())
    }
    return sum(run.seconds for run in front.runs if (run.method, run.seed) not in parts)


# -- pick, plot ------------------------------------------------------------------------------------


def pick(
    front: OneFront,
    knee: Annotated[bool, Option("--knee", help="Choose the knee; this is the default.")] = False,
    budget: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Choose among the plans within this limit. Repeatable.",
        ),
    ] = None,
    lex: Annotated[
        str | None,
        Option(
            metavar="A,B",
            help="Choose the best in the first objective, then in the second, and so on.",
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Choose the point closest to this target. Repeatable.",
        ),
    ] = None,
    pseudo_weights: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=WEIGHT",
            help="Relative importance of each goal (pseudo-weights). Repeatable.",
        ),
    ] = None,
    topsis: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=WEIGHT",
            help="Relative importance of each goal (TOPSIS). Repeatable.",
        ),
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Choose one plan of a front.

    --budget can be combined with any other rule.
    """
    from placeopt.core.files.documents import layout
    from placeopt.core.fronts.front import Front

    rules = {
        "reference": numbers_of(reference, "--reference"),
        "pseudo_weights": numbers_of(pseudo_weights, "--pseudo-weights"),
        "topsis": numbers_of(topsis, "--topsis"),
    }
    chosen = [name for name, rule in rules.items() if rule]
    if knee + (lex is not None) + len(chosen) > 1:
        raise UsageError(
            "--knee, --lex, --reference, --pseudo-weights and --topsis are rules; give one of them"
        )
    limits = numbers_of(budget, "--budget")
    require_outputs(output, inputs=(front,))
    whole = Front.read(front)
    rule = {name: rules[name] for name in chosen}
    point = whole.pick(budget=limits, lexicographic=names(lex), **rule)
    index = whole.points.index(point)
    if for_people(as_json, output):
        _show_plan(whole, index, front)
        return
    values = dict(zip((o.name for o in whole.objectives), point.values, strict=True))
    facts = {
        "status": point.status,
        "gap": point.gap,
        "method": point.method,
        "seed": point.seed,
        "index": index,
    }
    deliver(layout({"values": values, **facts, "plan": point.plan}), output)


def _show_plan(front: Front, index: int, file: Path) -> None:
    """Print a plan of a front for a person."""
    from placeopt.cli.front_view import plan_in_words
    from placeopt.core.fronts.words import origin_of
    from placeopt.plot import instance_file
    from placeopt.registry import read

    width, instance = width_of(sys.stdout), instance_file(front, file)
    emit(plan_in_words(front, index, None if instance is None else read(instance), width))
    emit_sentence(f"  {origin_of(front.points[index])}\n")
    emit(next_commands(about_plan(front, index, file, instance), width))


def plot(
    fronts: Fronts,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            help="File to write: .html (interactive), .png, .pdf or .svg (default: beside the "
            "front).",
        ),
    ] = None,
    point: Annotated[
        str | None,
        Option(
            metavar="K|knee",
            help="Draw plan K instead of the front.",
            autocompletion=words("knee"),
        ),
    ] = None,
    instance: Annotated[
        Path | None,
        Option(
            help="Instance of the front (default: found beside it, or among the shipped ones).",
            autocompletion=instance_names,
        ),
    ] = None,
    convergence: Annotated[
        bool,
        Option(
            "--convergence",
            help="Draw hypervolume and best values over the run, for all fronts.",
        ),
    ] = False,
    over: Annotated[
        str | None,
        Option(
            metavar="evaluations|seconds",
            help="--convergence: horizontal axis.",
            autocompletion=words("evaluations", "seconds"),
        ),
    ] = None,
) -> None:
    """Draw fronts over each other, a plan, or how runs converged."""
    from placeopt import plot as drawing
    from placeopt.core.fronts.front import Front

    _check_plot(fronts, point, convergence, over)
    ending = ".html" if point is None else f".{point}.png"
    if convergence or len(fronts) > 1:
        ending = ".convergence.html" if convergence else ".fronts.html"
    target = output or fronts[0].with_suffix(ending)
    require_outputs(target, inputs=(*fronts, instance))
    drawing.require(target)
    if convergence or len(fronts) > 1:
        read = [Front.read(path) for path in fronts]
        names = [path.stem for path in fronts]
        if len(set(names)) < len(names):
            names = [str(path.with_suffix("")) for path in fronts]
        if convergence:
            named = names if len(fronts) > 1 else None
            drawing.plot_convergence(read, target, names=named, over=over)  # type: ignore[arg-type]
        else:
            drawing.plot_fronts(read, target, names)
        emit(str(target))
        return
    whole, problem, file = front_and_instance(fronts[0], instance)
    if point is None:
        drawing.plot_front(whole, target, problem=problem, **page_of(fronts[0], instance or file))
    else:
        drawing.plot_plan(whole, index_of(whole, point), target, problem=problem)
    emit(str(target))


def _check_plot(fronts: list[Path], point: str | None, convergence: bool, over: str | None) -> None:
    if len(fronts) > 1 and point is not None:
        raise UsageError(f"{len(fronts)} fronts: --point draws a plan of one; give one front")
    if convergence and point is not None:
        raise UsageError("--convergence draws runs and --point draws a plan; give one of them")
    if over is not None and not convergence:
        raise UsageError("--over is for --convergence; leave it out")
    if over not in (None, "evaluations", "seconds"):
        raise UsageError(f"--over is {over!r}; give evaluations or seconds")


def front_and_instance(
    path: Path, instance: Path | None
) -> tuple[Front, Problem | None, Path | None]:
    """Read a front and its instance: the given one, else one beside it or that comes with placeopt.

    Returns
    -------
    Front
    Problem or None
    Path or None
        The file of the instance.

    Raises
    ------
    DocumentError
        The front answers another instance.
    """
    from placeopt import registry
    from placeopt.core.fronts.front import Front
    from placeopt.core.task import require_fitting
    from placeopt.plot import instance_file

    front = Front.read(path)
    file = instance_file(front, path) if instance is None else find(instance)
    if file is None:
        return front, None, None
    problem = registry.read(file)
    require_fitting(problem, front, str(path))
    return front, problem, file
