"""Columns: what is known of applications, and prices that ascend among it, against slow code."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import random_instance

from placeopt.edge_cloud.arrays import EdgeCloudArrays, Placement, node_loads
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import prices as climbs
from placeopt.edge_cloud.search import prices as columns
from placeopt.edge_cloud.search.placement import BIG, plan_value
from placeopt.edge_cloud.search.prices import KEPT, Columns, homes, new_ascent, no_homes

WEIGHT = 0.3


def nodes_of(known: Columns, instance: EdgeCloudArrays, application: int) -> list[tuple[int, ...]]:
    """Return the columns of an application."""
    size = instance.first[application + 1] - instance.first[application]
    used = known.chosen[application] > 0
    return [tuple(row) for row in known.nodes[application, used, :size].tolist()]


def filled(problem: EdgeCloud, count: int, seed: int) -> tuple[Columns, np.ndarray]:
    """Return columns of random placements, and the placements, (count, microservices)."""
    instance, rng = problem.arrays, np.random.default_rng(seed)
    known, everyone = columns.no_columns(instance), np.arange(len(instance.source))
    plans = rng.integers(len(instance.capacity), size=(count, len(instance.demand)))
    for hosts in plans:
        columns.remember(instance, WEIGHT, hosts, everyone, known)
    return known, plans


@pytest.mark.parametrize("seed", range(5))
def test_the_latest_placements_are_known_once_each(seed: int) -> None:
    """With the referee's values; one that was not chosen for longest makes room for another."""
    problem = EdgeCloud.generate(seed, applications=5, near=2, far=1, cloud=1)
    instance, (known, plans) = problem.arrays, filled(problem, 40, seed)
    for application in range(5):
        first, last = instance.first[application], instance.first[application + 1]
        latest = list(dict.fromkeys(tuple(row) for row in plans[::-1, first:last].tolist()))
        found = nodes_of(known, instance, application)
        assert sorted(found) == sorted(latest[:KEPT])
        for k, nodes in enumerate(found):
            hosts = np.full(len(instance.demand), -1)
            hosts[first:last] = nodes
            values = np.array(problem.evaluate(problem.plan(hosts)).values)
            assert known.value[application, k] == pytest.approx(values @ [WEIGHT, 1 - WEIGHT])


def test_an_application_without_a_place_adds_no_column() -> None:
    """Nor do applications that are not asked for."""
    instance = EdgeCloud.generate(1, applications=3).arrays
    known, hosts = columns.no_columns(instance), np.zeros(len(instance.demand), dtype=int)
    hosts[instance.first[1] : instance.first[2]] = -1
    columns.remember(instance, WEIGHT, hosts, np.arange(2), known)
    assert [len(nodes_of(known, instance, a)) for a in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_columns_under_prices_are_placed(seed: int) -> None:
    """Against a list of all; what was discarded is not, and a climb's first value is their sum."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    instance, (known, _) = problem.arrays, filled(problem, 10, seed)
    everyone, rng = np.arange(len(instance.source)), np.random.default_rng(seed)
    price, room = rng.random(instance.capacity.shape), instance.capacity // 2
    columns.discard(
        instance, Placement(np.full(len(instance.demand), -1), room.copy()), everyone, known
    )
    hosts = np.zeros(len(instance.demand), dtype=int)
    no_charge = np.zeros((len(everyone), 1))
    columns.place(instance, price, no_charge, everyone, known, hosts)
    total, half = 0.0, problem_with(problem, room)
    for application in everyone:
        first, last = instance.first[application], instance.first[application + 1]
        costs = [np.inf]
        for nodes in nodes_of(known, instance, application):
            alone = np.full(len(instance.demand), -1)
            alone[first:last] = nodes
            if legal(half, alone):
                charged = float((price * node_loads(instance, alone)).sum())
                costs.append(value_of(problem, alone, application) + charged)
        if np.isfinite(min(costs)):
            charged = (price[hosts[first:last]] * instance.demand[first:last]).sum()
            alone = np.full(len(instance.demand), -1)
            alone[first:last] = hosts[first:last]
            assert value_of(problem, alone, application) + charged == pytest.approx(min(costs))
            total += min(costs)
        else:
            assert (hosts[first:last] == -1).all()
    ascents, unit = (new_ascent(price), new_ascent(no_charge)), np.ones(2)
    arrays = instance, unit, everyone, known, no_homes()
    highest, best, _ = climbs.climb(*arrays, *ascents, 1, 0.1)
    assert highest == pytest.approx(total - (price * instance.capacity).sum())
    assert np.array_equal(best, price)


def problem_with(problem: EdgeCloud, room: np.ndarray) -> EdgeCloudArrays:
    """Return the arrays with other capacities."""
    return problem.arrays._replace(capacity=room)


def legal(instance: EdgeCloudArrays, hosts: np.ndarray) -> bool:
    """Return whether what is placed keeps all limits, by rules written anew."""
    if (node_loads(instance, hosts) > instance.capacity).any():
        return False
    for service in np.flatnonzero(hosts >= 0):
        source = instance.source[instance.application_of[service]]
        if not np.isfinite(instance.delay[source, hosts[service]]):
            return False
        for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
            other = hosts[instance.flow_other[flow]]
            if instance.delay[other, hosts[service]] > instance.flow_limit[flow]:
                return False
    return True


def value_of(problem: EdgeCloud, hosts: np.ndarray, application: int) -> float:
    """Return the weighted sum of one application that is placed alone."""
    return plan_value(problem.arrays, WEIGHT, hosts, 0.0)


def test_shares_are_those_of_the_latest_steps() -> None:
    """Where prices stay, one column has it all; all others fade."""
    problem = EdgeCloud.generate(2, applications=4, load=0.01)
    instance, (known, _) = problem.arrays, filled(problem, 5, 0)
    everyone, unit = np.arange(4), np.ones(2)
    known.share[:] = 0.5
    prices = new_ascent(np.zeros(instance.capacity.shape))
    charges = new_ascent(np.zeros((4, 1)))
    climbs.climb(instance, unit, everyone, known, no_homes(), prices, charges, 10, 0.1)
    best = known.value.argmin(axis=1)
    faded = 0.5 * columns._SHARE_DECAY**10
    for application in everyone:
        expected = np.full(KEPT, faded)
        expected[best[application]] += 1 - columns._SHARE_DECAY**10
        assert known.share[application] == pytest.approx(expected)
        assert known.chosen[application, best[application]] == known.step[0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("charged", [False, True])
def test_a_climb_never_ends_below_its_begin(seed: int, charged: bool) -> None:
    """Its prices and charges have the value that it says, and mostly a higher one."""
    problem = EdgeCloud.generate(seed, applications=40, load=1.0)
    instance, (known, _) = problem.arrays, filled(problem, 12, seed)
    home = instance.source[instance.application_of]
    columns.remember(instance, WEIGHT, home, np.arange(40), known)
    assert known.home.sum() >= 40
    arrays = instance, np.ones(2), np.arange(40), known, homes(instance) if charged else no_homes()

    def climb(price: np.ndarray, charge: np.ndarray, steps: int) -> tuple:
        return climbs.climb(*arrays, new_ascent(price), new_ascent(charge), steps, 0.1)

    zero, no_charge = np.zeros(instance.capacity.shape), np.zeros((40, 1))
    begin, _, _ = climb(zero, no_charge, 1)
    highest, price, charge = climb(zero, no_charge, 200)
    again, _, _ = climb(price, charge, 1)
    assert highest == pytest.approx(again) and highest > begin
    assert (price >= 0).all() and (known.value[known.chosen == 0] == BIG).all()
    assert charge.any() == charged
    assert not charged or not charge[homes(instance).free].any()
