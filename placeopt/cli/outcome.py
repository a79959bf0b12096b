"""What ``placeopt solve`` says when it is done."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placeopt.cli.advice import next_commands
from placeopt.cli.front_view import proof_in_words, view
from placeopt.cli.screen import emit, emit_sentence, say, show, width_of
from placeopt.cli.tables import table

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem


def show_front(
    front: Front,
    kept: Front,
    problem: Problem | None,
    commands: list[tuple[str, str]],
    more: Sequence[str] = (),
) -> None:
    """Print a front for a person, on stdout: `kept` is what was written, or would be.

    `more` sentences follow.
    """
    emit(f"{headline(front)}\n\n{view(kept, problem, width_of(sys.stdout))}\n")
    for sentence in (*sentences(front, kept), *more):
        emit_sentence(sentence)
    emit("")
    emit(next_commands(commands, width_of(sys.stdout)))


def summarise(front: Front, kept: Front, more: Sequence[str] = ()) -> None:
    """Print a front in short, on stderr: where stdout has the front itself, or is no terminal.

    `more` sentences follow.
    """
    knee = kept.pick().values
    ranges = zip(kept.objectives, kept.ideal, knee, kept.nadir, strict=True)
    rows = [
        (o.name, o.unit, show(low), show(middle), show(high)) for o, low, middle, high in ranges
    ]
    columns = ("objective", "unit", "best", "knee", "worst")
    say(headline(front) + "\n")
    say(table(columns, rows, left=2, width=width_of(sys.stderr)) + "\n")
    for sentence in (*sentences(front, kept), *more):
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
    from placeopt.core.fronts.gap import gap_in_words

    verb = "is" if len(kept) == 1 else "are"
    written = f" {len(kept):,} of them {verb} written." if len(kept) < len(front) else ""
    told = [proof_in_words(front.points) + written]
    if all(objective.sense == "min" for objective in kept.objectives):
        told.append(quality(kept))
    if front.bounds:
        told.append(f"The front: {gap_in_words(front)}.")
        if len(kept) < len(front):
            told.append(f"The plans written: {gap_in_words(kept)}.")
    return told


def quality(front: Front) -> str:
    """Return the hypervolume and its reference point; `placeopt compare` prints the same."""
    from placeopt.core.fronts.gap import up_to

    corner = front.reference().tolist()
    share = front.hypervolume(corner, plain=True)
    within = up_to(front.objectives, corner)
    return f"Quality (hypervolume): {share:.4f} of the box {within} (1.1 x the worst values)."
