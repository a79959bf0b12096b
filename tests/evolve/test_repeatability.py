"""The same seed gives the same front, whatever ran in the process before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from effort import tries

import placeopt
from placeopt.temporal.problem import Temporal

FRESH = """
import sys

import placeopt

front = placeopt.solve(sys.argv[1], sys.argv[2], evaluations=600, seed=1)
print(sorted(point.values for point in front.points))
"""
CONSTRAINED = Path(__file__).parents[2] / "instances" / "rolling-update" / "repack-10x5.json"
#: An instance whose vectors are all feasible.
UNLIMITED = Temporal.generate(1, requests=5, horizon=16, places=2, max_replicas=2)


@pytest.mark.parametrize("method", ["nsga3", "nsga2"][: tries(1, 2)])
def test_same_front_after_another_problem_and_in_a_fresh_process(method):
    """An encoder without constraints before one with constraints changes nothing."""

    def front():
        return placeopt.solve(CONSTRAINED, method, evaluations=600, seed=1)

    command = [sys.executable, "-c", FRESH, str(CONSTRAINED), method]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before = front()
    placeopt.solve(UNLIMITED, method, evaluations=600)
    after = front()
    assert before.points == after.points
    assert shown.strip() == str(sorted(point.values for point in after.points))


def test_pymoos_default_operators_are_left_alone():
    """pymoo gives all of its NSGA-II algorithms one survival; nobody may change it."""
    from pymoo.algorithms.moo.nsga2 import NSGA2

    shared = NSGA2().survival
    assert shared is NSGA2().survival
    known = dict(vars(shared))
    placeopt.solve(UNLIMITED, "nsga2", evaluations=300)
    assert vars(shared) == known and shared.filter_infeasible
