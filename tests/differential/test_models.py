"""`placeopt.enumerate` on small models of many kinds, against every vector that they can reach.

`benchmarks/enumeration/random_models.py` tries thousands.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from effort import tries

sys.path.insert(0, str(Path(__file__).parent))
import placeopt
from models import KINDS, answered, drawn, faults, is_refused
from placeopt.core.errors import UsageError

#: Models of each kind, by solver.
SEEDS = {"highs": range(tries(3, 8)), "scip": range(8, 8 + tries(1, 4))}
#: How a search may end.
SURE = {"complete", "extreme", "grid", "infeasible"}


@pytest.mark.parametrize("solver", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_front_is_true(kind, solver):
    for seed in SEEDS[solver]:
        case = drawn(kind, seed)
        try:
            front, false = answered(case, solver=solver)
        except UsageError as error:
            assert is_refused(case, error), seed
            continue
        assert front.runs[0].parameters["status"] in SURE, seed
        assert not false, seed


def test_what_is_false_is_found():
    """The judge itself: a lost point, a wrong value, a wrong status."""
    from dataclasses import replace

    case = drawn("binary", 0)
    front = placeopt.enumerate(case.model())
    assert len(front) > 1
    assert any("lost" in fault for fault in faults(case, replace(front, points=front.points[1:])))
    wrong = replace(front.points[0], values=tuple(v + 1 for v in front.points[0].values))
    found = faults(case, replace(front, points=(wrong, *front.points[1:])))
    assert any("is no vector" in fault for fault in found)
    none = replace(front.runs[0], parameters={"status": "infeasible", "reason": ""})
    assert faults(case, replace(front, points=(), runs=(none,))) == ["infeasible"]
