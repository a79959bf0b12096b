"""The facts of every round of a training, in a file beside its checkpoint: for those who look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from placeopt.core.files.documents import read_json, validate, write_json
from placeopt.core.files.paths import AnyPath


class TrainingRound(BaseModel):
    """One round: steps and CPU seconds so far, the share that is over, means of its episodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int
    share: float
    seconds: float
    facts: dict[str, float]


class TrainingRounds(BaseModel):
    """The rounds of one training."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["placeopt/rounds@1"] = "placeopt/rounds@1"
    problem: str
    seed: int
    rounds: tuple[TrainingRound, ...]


def file_of(checkpoint: AnyPath) -> Path:
    """Return the file of the rounds of a training that keeps this checkpoint.

    Examples
    --------
    >>> file_of("out/run.npz").name
    'run.rounds.json'
    """
    return Path(checkpoint).with_suffix(".rounds.json")


def read(path: AnyPath) -> TrainingRounds:
    """Read a file of rounds.

    Raises
    ------
    DocumentError
        It is none.
    """
    known: TrainingRounds = validate(TrainingRounds, read_json(path), file=str(path))
    return known


def before(resume: AnyPath | None) -> tuple[TrainingRound, ...]:
    """Return the rounds before a checkpoint; none where their file is not there."""
    if resume is None or not file_of(resume).exists():
        return ()
    return read(file_of(resume)).rounds


def write(
    checkpoint: AnyPath, problem: str, seed: int, rounds: Sequence[TrainingRound], last: Any
) -> tuple[TrainingRound, ...]:
    """Write the rounds of a training with the facts `last`; return them."""
    row = TrainingRound.model_validate(vars(last))
    kept = (*(one for one in rounds if one.steps < row.steps), row)
    document = TrainingRounds(problem=problem, seed=seed, rounds=kept)
    write_json(file_of(checkpoint), document.model_dump(mode="json"))
    return kept
