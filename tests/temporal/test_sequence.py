"""The temporal problem one decision at a time: what an episode costs is what the referee says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.temporal.instance import Temporal


def random_instance(seed: int) -> Temporal:
    """An instance with absent prices, limited machines and an odd slot length."""
    rng = np.random.default_rng(seed)
    sizes = {
        "requests": int(rng.integers(1, 12)),
        "horizon": int(rng.integers(5, 60)),
        "places": int(rng.integers(1, 6)),
    }
    document = Temporal.generate(seed, **sizes).to_document()
    document["slot_hours"] = float(rng.choice([1.0, 0.25]))
    for offer in document["offers"]:
        absent = rng.choice(
            [None, "on_demand_usd_per_hour", "reserved_usd_per_hour", "spot_usd_per_hour"]
        )
        if absent:
            offer.pop(absent)
        if rng.random() < 0.3:
            offer["max_instances"] = int(rng.integers(0, 4))
    return Temporal.from_document(document)


def play(face: DecisionSequence, rng: np.random.Generator) -> tuple[object, np.ndarray]:
    """One episode of random legal actions: its last state and the sum of its costs."""
    state, total = face.reset(rng), np.zeros(len(face.objectives))
    while not face.done(state):
        total += face.step(state, int(rng.choice(np.flatnonzero(face.mask(state)))))
    return state, total


@given(st.integers(0, 10**6))
def test_costs_of_an_episode_sum_to_the_referee(seed):
    """Complete episodes are feasible and cost what the referee says.

    Dead ends are reported, and nothing else is broken.
    """
    problem = random_instance(seed)
    face = build_sequence(problem)
    state, total = play(face, np.random.default_rng(seed))
    verdict = problem.evaluate(face.plan(state))
    if face.remaining(state) == 0:
        assert verdict.feasible, verdict.violations
        assert total == pytest.approx(verdict.values, rel=1e-9, abs=1e-12)
    else:
        assert not face.mask(state).any()
        assert {v.kind for v in verdict.violations} <= {"replica-placement", "not-scheduled"}
        assert verdict.violations


@given(st.integers(0, 10**6))
def test_costs_says_what_step_does(seed):
    """`costs` are those of each step, infinite exactly where the mask forbids it."""
    problem = random_instance(seed)
    face = build_sequence(problem, (problem.objectives[1], problem.objectives[0]))
    rng = np.random.default_rng(seed)
    state = face.reset(rng)
    while not face.done(state):
        expected = DecisionSequence.costs(face, state)
        assert np.array_equal(np.isfinite(expected).all(axis=1), face.mask(state))
        np.testing.assert_allclose(face.costs(state), expected)
        face.step(state, int(rng.choice(np.flatnonzero(face.mask(state)))))


def test_decisions_and_copies():
    """A complete episode has `decisions` steps, and a copy does not change with the original."""
    problem = Temporal.generate(seed=1, requests=6, horizon=60)
    face = build_sequence(problem)
    rng = np.random.default_rng(0)
    state, steps = face.reset(rng), 0
    while not face.done(state):
        assert face.remaining(state) == face.decisions - steps
        twin, before = face.copy(state), face.plan(state)
        face.step(state, int(rng.choice(np.flatnonzero(face.mask(state)))))
        assert face.plan(twin) == before
        steps += 1
    assert steps == face.decisions == 6 + sum(r.replicas for r in problem.requests)


def test_features_have_a_row_for_each_action():
    """Features are within [-1, 1], 0 for illegal actions, and tell the kinds of decision apart."""
    face = build_sequence(Temporal.generate(seed=2, requests=4, horizon=60))
    state = face.reset()
    rng = np.random.default_rng(0)
    while not face.done(state):
        table, mask = face.features(state), face.mask(state)
        assert table.shape == (face.num_actions, face.num_features) and table.dtype == np.float32
        assert np.abs(table).max() <= 1 and not table[~mask].any()
        assert (table[mask, 0] + table[mask, 1] == 1).all()
        face.step(state, int(rng.choice(np.flatnonzero(mask))))


def test_reserved_machines_are_chosen_where_cheaper():
    """A machine that is busy all the time is reserved, one that is hardly busy is on demand."""
    offer = {
        "location": "x",
        "size": "s",
        "cpu_cores": 1.0,
        "memory_gib": 1.0,
        "on_demand_usd_per_hour": 1.0,
        "reserved_usd_per_hour": 0.5,
    }
    size = {"cpu_cores": 1.0, "memory_gib": 1.0, "replicas": 1, "origin": "x"}
    requests = [
        {"name": name, "duration_slots": slots, **size} for name, slots in (("a", 10), ("b", 2))
    ]
    document = {
        "problem": "temporal",
        "name": "two",
        "horizon_slots": 10,
        "latency_ms": {"x": {"x": 1.0}},
        "offers": [offer],
        "requests": requests,
    }
    problem = Temporal.from_document(document)
    face = build_sequence(problem)
    state = face.reset()
    for _ in range(4):
        face.step(state, 0)
    plan = face.plan(state)
    assert sorted(i["pricing"] for i in plan["instances"]) == ["on-demand", "reserved"]
    assert problem.evaluate(plan).values[1] == 7.0


def test_an_illegal_pool_is_refused():
    """Stepping into a pool that the mask forbids is an error, not a broken plan."""
    face = build_sequence(Temporal.generate(seed=3, requests=2, horizon=60))
    state = face.reset()
    face.step(state, 0)
    for action in np.flatnonzero(~face.mask(state)):
        with pytest.raises(UsageError, match="mask"):
            face.step(state, int(action))
