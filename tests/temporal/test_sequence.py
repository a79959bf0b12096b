"""The temporal problem one decision at a time: what an episode costs is what the referee says."""

from __future__ import annotations

import numpy as np

from placeopt.core.interfaces import build_sequence
from placeopt.temporal.instance import Temporal


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
