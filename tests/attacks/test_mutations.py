"""Seeded mutations of every file type: refused by one line, or answered; never a traceback."""

from __future__ import annotations

from pathlib import Path

import attack_inputs
import numpy as np
import pytest

from placeopt.registry import specs


@pytest.mark.parametrize("row", attack_inputs.ROWS)
def test_attacks_are_refused_or_answered(row: str, tmp_path: Path) -> None:
    """A few of every row; the number of the attack gives it again."""
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = attack_inputs.ROWS[row](np.random.default_rng([1, number]), folder)
        found = attack_inputs.outcome(arguments)
        assert not found.failed, (number, arguments, found)


def test_the_judge_sees_what_is_wrong() -> None:
    """Tracebacks, long silence, other exit codes, more than one line."""
    judged = attack_inputs.judged
    assert judged(2, "", "warning: odd\nerror: x: y; z\n", 0.1).verdict == "refused"
    assert judged(0, "{}", "", 0.1).verdict == judged(3, "", "no plan", 0.1).verdict == "answered"
    for code, err, seconds in (
        (1, "Traceback (most recent call last):", 0.1),
        (0, "", attack_inputs.LONGEST + 1),
        (2, "error: a\nerror: b\n", 0.1),
        (2, "Usage: placeopt", 0.1),
        (-11, "", 0.1),
    ):
        assert judged(code, "", err, seconds).failed


def test_every_problem_is_attacked() -> None:
    """By instances, fronts and plans; a new problem is covered as soon as it is listed."""
    for kind in specs():
        assert {f"{what}, {kind}" for what in ("instance", "front", "plan")} <= set(
            attack_inputs.ROWS
        )
