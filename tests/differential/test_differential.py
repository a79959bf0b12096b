"""Every method on tiny instances, against every plan there is.

The brute force shares no code with placeopt.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from effort import tries

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Document, Values, attainable
from drawn import DRAW, draw
from faults import faults

import placeopt
from placeopt import registry
from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.front import Front

SEEDS = tries(4, 9)
#: So many of a problem's instances have several plans, or none.
DRAWN = 9
POLICIES = {"multi-cluster": "multi-cluster-fixed-rate5", "rescheduling": "rescheduling-testbed"}
CASES = [
    (m.name, kind)
    for m in registry.methods().values()
    for kind in m.problems
    if m.installed and (m.name != "policy" or kind in POLICIES)
]
#: Methods made of methods that are tried on their own: a third of the instances is enough.
COMPOSED = ("auto", "ensemble")


@cache
def known(kind: str, seed: int) -> tuple[Document, set[Values]]:
    document = draw(kind, seed, 1)
    return document, attainable(document)


def answer(document: Document, method: str, certify: bool) -> Front:
    """Answer with a small budget: what is checked is that the claims are true."""
    own = {"policy": POLICIES[document["problem"]]} if method == "policy" else {}
    problem = registry.from_document(document)
    return placeopt.solve(problem, method, evaluations=60, seed=1, certify=certify, **own)


@pytest.mark.parametrize(("method", "kind"), CASES)
def test_every_claim_is_true(method: str, kind: str) -> None:
    answered = 0
    # A proof is the same, whatever front it belongs to: each fourth method's is enough.
    proves = kind in registry.certified() and CASES.index((method, kind)) % tries(4, 1) == 0
    for seed in range(0, SEEDS, 3 if method in COMPOSED else 1):
        document, values = known(kind, seed)
        try:
            front = answer(document, method, proves and seed % 5 == 0)
        except UnsupportedError:  # such as bin plans with max_instances
            continue
        found = list(faults(document, front, values))
        assert not found, f"{kind}, seed {seed}: {found}"
        answered += 1
    assert answered >= SEEDS // 4


@pytest.mark.parametrize("kind", DRAW)
def test_the_instances_are_worth_it(kind: str) -> None:
    """Fronts of several points; and, where a problem can be infeasible, some that are."""
    sizes = [len(known(kind, seed)[1]) for seed in range(DRAWN)]
    assert sum(size > 1 for size in sizes) >= DRAWN // 3
    if kind in ("temporal", "edge-cloud", "rolling-update"):
        assert 0 in sizes


def test_false_claims_are_found() -> None:
    """The check itself: a better value, a broken plan, a bound above a plan, a false proof."""
    document, values = known("temporal", 1)
    true = answer(document, "epsilon-constraint", False)
    first, *others = true.points
    better = replace(first, values=tuple(x / 2 for x in first.values))
    broken = replace(first, plan={**first.plan, "instances": []})
    false = {
        "a plan said to have": replace(true, points=(better,)),
        "breaks the instance": replace(true, points=(broken,)),
        "no bound lies below": replace(true, bounds=((99.0, 99.0, 99.0),)),
        "called complete": replace(true, points=tuple(others)),
    }
    assert others
    assert not list(faults(document, true, values))
    for text, front in false.items():
        assert any(text in fault for fault in faults(document, front, values)), text


def test_bounds_end_where_rounding_leaves_nothing_at_stake() -> None:
    """Rectangles of negative volume were once looked at for ever."""
    problem = registry.from_document(draw("temporal", 31, 1))
    assert placeopt.solve(problem, "bound", seconds=20).runs[0].completed
