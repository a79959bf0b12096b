"""What ``placeopt solve`` says when it is done."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from placeopt.cli.front_view import proof_in_words, view
from placeopt.cli.screen import emit, emit_sentence, say, show, width_of
from placeopt.cli.tables import table

if TYPE_CHECKING:
    from placeopt.core.front import Front
    from placeopt.core.problem import Problem


def show_front(
    front: Front, kept: Front, problem: Problem | None, commands: list[tuple[str, str]]
) -> None:
    """Print a front for a person, on stdout: `kept` is what was written, or would be."""
    emit(f"{headline(front)}\n\n{view(kept, problem, width_of(sys.stdout))}\n")
    for sentence in sentences(front, kept):
        emit_sentence(sentence)
    emit("")
    emit(next_commands(commands, width_of(sys.stdout)))


def summarise(front: Front, kept: Front) -> None:
    """Print a front in short, on stderr: where stdout has the front itself, or is no terminal."""
    knee = kept.pick().values
    ranges = zip(kept.objectives, kept.ideal, knee, kept.nadir, strict=True)
    rows = [
        (o.name, o.unit, show(low), show(middle), show(high)) for o, low, middle, high in ranges
    ]
    columns = ("objective", "unit", "best", "knee", "worst")
    say(headline(front) + "\n")
    say(table(columns, rows, left=2, width=width_of(sys.stderr)) + "\n")
    for sentence in sentences(front, kept):
        say(sentence)


def say_infeasible(front: Front, output: Path | None) -> None:
    """Say why there is no plan."""
    say(f"no feasible plan of {front.instance.name!r} was found")
    for reason in front.reasons:
        say(f"  {reason}")
    if output is not None:
        say(f"{output} has the plan that breaks least, as `rejected`")


def headline(front: Front) -> str:
    """Return what was run, in a line."""
    run = front.runs[0]
    counts = [(run.evaluations, "evaluations"), (run.solver_calls, "solver calls")]
    facts = [f"{run.seconds:.2f} s", *(f"{n:,} {what}" for n, what in counts if n)]
    seed = "" if run.seed is None else f", seed {run.seed}"
    return f"{front.instance.name} by {run.method}{seed}: {', '.join(facts)}"


def sentences(front: Front, kept: Front) -> list[str]:
    """Return how many plans there are, how good they are, and what is proven of them."""
    from placeopt.core.gap import gap_in_words

    written = f" {len(kept):,} of them are written." if len(kept) < len(front) else ""
    told = [proof_in_words(front.points) + written, quality(kept)]
    if front.bounds:
        told.append(f"The front: {gap_in_words(front)}.")
        if len(kept) < len(front):
            told.append(f"The plans written: {gap_in_words(kept)}.")
    return told


def quality(front: Front) -> str:
    """Return the hypervolume and its reference point; `placeopt compare` prints the same."""
    from placeopt.core.gap import up_to

    corner = front.reference().tolist()
    share = front.hypervolume(corner, plain=True)
    within = up_to(front.objectives, corner)
    return f"Quality (hypervolume): {share:.4f} of the box {within} (1.1 x the worst values)."


def next_commands(commands: list[tuple[str, str]], width: int | None) -> str:
    """Return commands to go on with, and what each is for; below each other where they are long.

    >>> print(next_commands([("keep it", "placeopt solve toy -o front.json")], 80))
    Next:
      placeopt solve toy -o front.json   keep it
    """
    longest = max(len(command) for _, command in commands)
    beside = width is None or all(longest + len(what) + 5 <= width for what, _ in commands)
    lines = ["Next:"]
    for what, command in commands:
        if beside:
            lines.append(f"  {command:<{longest}}   {what}")
        else:
            lines += [f"  {what}:", f"    {command}"]
    return "\n".join(lines)


def about_plan(
    front: Front, index: int, file: Path, instance: Path | None
) -> list[tuple[str, str]]:
    """Return commands about a plan of a front, which is in a file, as its instance may be."""
    from placeopt.kubernetes.origin import beside

    name, origin = shlex.quote(str(file)), instance is not None and beside(instance).exists()
    if instance is not None and instance.resolve().parent == file.resolve().parent:
        instance = None  # it is found there
    found = []
    if limit := example_limit(front):
        found.append(("another plan, within a limit", f"placeopt pick {name} --budget {limit}"))
    known = "" if instance is None else f" --instance {shlex.quote(str(instance))}"
    found.append(("a page about it", f"placeopt report {name}{known} --point {index}"))
    if origin:
        script = f"placeopt export kubernetes {name}{known} --point {index} -o steps.sh"
        found.append(("its steps for kubectl", script))
    return found


def example_limit(front: Front) -> str:
    """Return a limit that some plans of a front keep and others do not; empty where none is.

    >>> from placeopt.core.front import Front, InstanceName, Objective, Point
    >>> points = (Point((1.0, 9.0), {}), Point((4.0, 2.0), {}))
    >>> goals = (Objective("latency_ms", "ms"), Objective("cost", "USD"))
    >>> example_limit(Front(InstanceName("temporal", "toy", ""), goals, points))
    'latency_ms=2.5'
    """
    for objective, best, worst in zip(front.objectives, front.ideal, front.nadir, strict=True):
        middle = float(f"{(best + worst) / 2:.3g}")
        if objective.sign * best <= objective.sign * middle < objective.sign * worst:
            return f"{objective.name}={middle:g}"
    return ""
