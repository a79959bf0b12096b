"""The peers' model of machine reassignment: right on small instances."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_reassignment.instance import MachineReassignment

pytest.importorskip("ortools")


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    yield import_module("peers.machine_reassignment")
    for name in [name for name in sys.modules if name.split(".")[0] == "peers"]:
        del sys.modules[name]


def least(problem: MachineReassignment) -> float:
    """Return the least sum of all plans."""
    machines = range(len(problem.machines))
    plans = itertools.product(machines, repeat=len(problem.processes))
    judged = (problem.evaluate({"machines": list(plan)}) for plan in plans)
    return min(sum(one.values) for one in judged if one.feasible)


def cost(problem: MachineReassignment, hosts: np.ndarray) -> float:
    judged = problem.evaluate({"machines": hosts.tolist()})
    assert judged.feasible, judged.violations
    return sum(judged.values)


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_model_ends_with_the_least_cost(peer: Any, seed: int) -> None:
    problem = MachineReassignment.generate(seed, processes=6, machines=3)
    for reached in (peer.cp_sat(problem.arrays, 20.0), peer.highs(problem.arrays, 20.0)):
        best = least(problem)
        assert cost(problem, reached["hosts"]) == best
        assert reached["bound"] == pytest.approx(best, rel=1e-6, abs=1e-3)


def test_neighbourhoods_keep_all_rules(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "WHOLE", 0)
    monkeypatch.setattr(peer, "PART", 60)
    monkeypatch.setattr(peer, "SECONDS", 0.3)
    problem = MachineReassignment.generate(1, processes=40, machines=8)
    reached = peer.cp_sat(problem.arrays, 1.0)
    assert reached["rounds"] > 1
    assert cost(problem, reached["hosts"]) < cost(problem, problem.arrays.home)
