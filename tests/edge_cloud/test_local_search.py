"""The state of the large neighbourhood search stays consistent."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import random_instance

from placeopt.core.budget import Budget
from placeopt.edge_cloud.arrays import node_loads
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import placement as exact_placement
from placeopt.edge_cloud.search import placement as neighbourhoods
from placeopt.edge_cloud.search.lns import PlanBuilder
from placeopt.edge_cloud.search.prices import Relaxation


def listed(state: neighbourhoods.LnsState, node: int) -> list[int]:
    """Return the microservices in the list of a node."""
    found, service = [], int(state.head[node])
    while service >= 0:
        found.append(service)
        service = int(state.after[service])
    return found


@pytest.mark.parametrize("seed", range(10))
def test_room_lists_and_values_are_those_of_the_plan(seed):
    """After many steps nothing of the state has drifted from the plan, and the best is the best."""
    problem, rng = random_instance(seed), np.random.default_rng(seed)
    instance, relaxation = problem.arrays, Relaxation(problem)
    prices = relaxation.ascend(0.3, Budget(evaluations=40), 40)
    start = PlanBuilder(relaxation, rng).build(prices)
    task = neighbourhoods.lns_task(
        instance,
        rng,
        weight=0.3,
        price=prices.price,
        alone=relaxation.costs_alone(0.3, prices.price),
        unplaced=1e6,
        max_removed=4,
        strength=0.8,
    )
    state = neighbourhoods.lns_state(task, start, rng)
    first_value = state.totals[0]
    neighbourhoods.improve(task, state, relaxation.search, 500, 1.0, 300)
    assert np.array_equal(state.room, instance.capacity - node_loads(instance, state.hosts))
    for node in range(len(problem.nodes)):
        assert sorted(listed(state, node)) == np.flatnonzero(state.hosts == node).tolist()
    for hosts, total in zip((state.hosts, state.best), state.totals, strict=True):
        verdict = problem.evaluate(problem.plan(hosts))
        missing = (hosts[instance.first[:-1]] < 0).sum()
        value = verdict.values @ np.array([0.3, 0.7]) + 1e6 * missing
        assert total == pytest.approx(value)
        assert {v.kind for v in verdict.violations} <= {"not-placed"}
    assert state.totals[1] <= min(first_value, state.totals[0]) + 1e-6
    assert (relaxation.search.hosts == -1).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_value_that_no_placement_betters_is_returned_as_it_was(seed):
    """A search from below the least value of an application returns that start, to the last bit.

    Nodes with room for one microservice each make the search try what then does not fit.
    """
    problem, rng = EdgeCloud.generate(seed, applications=30, load=0.4), np.random.default_rng(seed)
    instance, search = problem.arrays, Relaxation(problem).search
    price, weight = rng.uniform(0, 1, instance.capacity.shape), 0.01
    room = np.minimum(instance.capacity, instance.demand.max(axis=0))
    for application in range(30):

        def from_start(start: float, application: int = application) -> float:
            given = instance, weight, price, 0.0, room, search, application
            return exact_placement.place_best(*given, start, 10_000)[0]

        least = from_start(exact_placement.BIG)
        for start in rng.uniform(0.8 * least, least, 200):
            assert from_start(start) == start
