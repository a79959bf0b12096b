"""Kernels, encoder, model, bounds and search against the referee."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_reassignment import annealing
from machine_reassignment.annealing import Annealing
from machine_reassignment.bounds import least_costs
from machine_reassignment.encoder import ReassignmentEncoder
from machine_reassignment.instance import MachineReassignment
from machine_reassignment.kernels import State, begin, change_of, move, shift_kept
from machine_reassignment.referee import judge
from machine_reassignment.search import anneal

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs import run_directory
from placeopt.core.runs.run_directory import Checkpoint
from placeopt.core.task import Task


def small(seed: int) -> MachineReassignment:
    """Return an instance whose assignments can be enumerated."""
    return MachineReassignment.generate(seed, machines=3, processes=8, services=4, locations=2)


@pytest.fixture(scope="module")
def fleet() -> MachineReassignment:
    """Return an instance with all rules."""
    return MachineReassignment.generate(3, machines=10, processes=50, services=16)


def costs_of(state: object, problem: MachineReassignment) -> list[int]:
    """Return load, balance and moves of a state."""
    load, balance, moves, most = state.costs  # type: ignore[attr-defined]
    return [load, balance, moves + most * problem.arrays.service_weight[0]]


@given(st.integers(0, 1000))
def test_states_changes_and_rules_equal_the_referee(seed: int) -> None:
    problem = MachineReassignment.generate(seed % 7, machines=8, processes=40, services=15)
    a, rng, change = problem.arrays, np.random.default_rng(seed), np.zeros(3, dtype=np.int64)
    state = begin(a, a.home)
    for _ in range(60):
        p, q, m = *rng.integers(40, size=2).tolist(), int(rng.integers(8))
        before = np.array(judge(a, state.machine)[0])
        if m != state.machine[p]:
            change_of(a, state, p, m, -1, change)
            target = state.machine.copy()
            target[p] = m
            costs, broken = judge(a, target)
            assert change.tolist() == (costs - before).tolist()
            assert shift_kept(a, state, p, m) == (not broken)
            if not broken:
                move(a, state, p, m)
        elif state.machine[p] != state.machine[q]:
            change_of(a, state, p, state.machine[q], q, change)
            target = state.machine.copy()
            target[p], target[q] = target[q], target[p]
            assert change.tolist() == (np.array(judge(a, target)[0]) - before).tolist()
        anew = begin(a, state.machine)
        for name in set(State._fields) - {"members", "slot", "row"}:
            assert (getattr(state, name) == getattr(anew, name)).all()
    assert costs_of(state, problem) == list(judge(a, state.machine)[0])


def test_annealing_keeps_rules_and_costs_and_repeats(fleet: MachineReassignment) -> None:
    results = []
    for _ in range(2):
        search = Annealing(fleet.arrays, np.ones(3), fleet.arrays.home, seed=5)
        search.run(Budget(400_000))
        costs, broken = judge(fleet.arrays, search.best)
        assert not broken
        assert search.costs == costs
        results.append(search.least)
    assert results[0] == results[1] < sum(judge(fleet.arrays, fleet.arrays.home)[0])


@pytest.mark.parametrize("seed", range(3))
def test_annealing_and_the_model_find_the_best_of_all_assignments(seed: int) -> None:
    problem = small(seed)
    every = np.array(list(itertools.product(range(3), repeat=8)))
    judged = [judge(problem.arrays, row) for row in every]
    values = np.array([costs for costs, broken in judged if not broken])
    kept = {tuple(v) for v in values.tolist() if not _beaten(v, values)}
    exact = placeopt.solve(problem, "epsilon-constraint")
    assert {tuple(map(int, point)) for point in exact.values.tolist()} == kept
    search = Annealing(problem.arrays, np.ones(3), problem.arrays.home, seed=1)
    search.run(Budget(300_000))
    assert search.least == values.sum(axis=1).min()
    assert (np.array(least_costs(problem.arrays)) <= values.min(axis=0)).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_assignment_that_keeps_the_rules_leaves_the_listed_machines(seed: int) -> None:
    a = small(seed).arrays
    places, at = annealing._places(a, few=True)
    listed = [set(places[at[p] : at[p + 1]].tolist()) for p in range(8)]
    every = itertools.product(range(3), repeat=8)
    kept = [row for row in every if not judge(a, np.array(row))[1]]
    assert all({row[p] for row in kept} <= listed[p] for p in range(8))
    assert sum(map(len, listed)) < 3 * 8


@pytest.mark.parametrize("within", [0.0, 1.0])
def test_exchanges_and_swaps_within_services_keep_rules_and_costs(
    fleet: MachineReassignment, within: float
) -> None:
    """Annealing by one kind of moves alone: each move of several processes is judged anew."""
    a = fleet.arrays
    search = Annealing(a, np.ones(3), a.home, seed=1)
    fixed = search._fixed._replace(odds=np.array([0, 0, 0, 0, within]))
    taken = 0
    for _ in range(300):
        taken += anneal(a, search.state, fixed, search.unit, 20, search._random)
        costs, broken = judge(a, search.state.machine)
        assert not broken
        assert costs_of(search.state, fleet) == list(costs)
    assert taken > 100


def _beaten(value: list[int], values: np.ndarray) -> bool:
    """Return whether another value is nowhere worse."""
    return bool(((values <= value).all(axis=1) & (values < value).any(axis=1)).any())


def test_children_of_feasible_vectors_are_feasible(fleet: MachineReassignment) -> None:
    encoder = ReassignmentEncoder(fleet, fleet.objectives)
    rng = np.random.default_rng(1)
    X = encoder.sample(rng, 12)
    F, G = encoder.evaluate(np.concatenate((X, encoder.vary(rng, X, X[::-1]))))
    assert not G.any()
    assert len(np.unique(F, axis=0)) > 6
    plan = encoder.decode(X[0])
    assert fleet.evaluate(plan).values == tuple(F[0])
    assert (encoder.encode(plan) == X[0]).all()


@pytest.mark.parametrize("method", ["annealing", "nsga2", "nsga3", "moead", "rollout", "auto"])
def test_methods_serve_it(fleet: MachineReassignment, method: str) -> None:
    front = placeopt.solve(fleet, method, evaluations=2000, certify=True)
    assert len(front) > 1
    assert front.bounds
    assert front.gap() is not None


def test_a_goal_with_the_name_of_a_member_of_models_is_refused() -> None:
    """The goals of this problem were called load, balance and moves at first."""
    import pyomo.environ as pyo

    from placeopt.core.errors import UnsupportedError
    from placeopt.exact.goals import declare

    with pytest.raises(UnsupportedError, match="load_cost"):
        declare(pyo.ConcreteModel(), {"load": 1.0})


def test_a_sweep_and_an_environment_serve_it() -> None:
    import gymnasium

    import placeopt.environments

    instances = [{"problem": "machine-reassignment", "seed": 1, "processes": 20, "services": 8}]
    study = {"instances": instances, "methods": ["nsga2", "annealing"], "evaluations": [300]}
    table = placeopt.sweep(study | {"name": "both", "seeds": [1, 2]})
    assert len(table.fronts) == 4
    name = placeopt.environments.ENVIRONMENTS["machine-reassignment"]
    env, ended = gymnasium.make(name, processes=12, services=6), False
    _, info = env.reset(seed=1)
    while not ended:
        *_, ended, _, info = env.step(int(info["action_mask"].argmax()))
    assert info["feasible"]


def test_a_run_goes_on_where_it_was_killed(
    fleet: MachineReassignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weightings that have ended are not annealed again."""
    whole = annealing.run(Task(fleet, budget=Budget(60_000)))
    anneals, calls = Annealing.run, list[int]()

    def killed(search: Annealing, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        anneals(search, *arguments)

    monkeypatch.setattr(Annealing, "run", killed)
    checkpoint = Checkpoint(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        annealing.run(Task(fleet, budget=Budget(60_000), checkpoint=checkpoint))
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    again = annealing.run(Task(fleet, budget=Budget(60_000), checkpoint=checkpoint))
    assert len(calls) == 4 + len(annealing.FRONT) - 3
    assert again.values.tolist() == whole.values.tolist()
