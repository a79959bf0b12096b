"""How much the tests try: what a suite of minutes allows, or, by `make thorough`, all of it."""

from __future__ import annotations

import os
from pathlib import Path

THOROUGH = os.environ.get("PLACEOPT_THOROUGH", "0") not in ("", "0")
#: What compares many random cases with something slow.
HEAVY = {
    "attacks",
    "differential",
    "machine_reassignment",
    "rl",
    "test_cluster.py",
    "test_peers.py",
}
#: What tests the judges of all else is never left out: `benchmarks/mutants.py`.
JUDGES = {
    "test_judges.py",
    "test_dominance.py",
    "test_gap.py",
    "test_limit_rules.py",
    "test_budget.py",
    "test_budget_rules.py",
    "test_money.py",
    "test_verify.py",
    "test_verify_filters.py",
}


def tries(few: int, many: int) -> int:
    """Return how many cases a test tries."""
    return many if THOROUGH else few


def every(path: Path) -> int:
    """Return that each fourth case of a file is tried, each tenth, or each.

    Cases of one test differ in numbers alone; the first is always tried.
    """
    if path.name in JUDGES:
        return 1
    return 10 if path.parts[0] in HEAVY else 4
