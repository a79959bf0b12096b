"""Karpenter's consolidation and the descheduler on cases whose answer can be seen; buying nodes."""

from __future__ import annotations

from typing import Any

import pytest

import placeopt
from placeopt.core.errors import DocumentError
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.schemes import descheduler_plan, karpenter_plan
from placeopt.rolling_update.views import by_machine, fleet_change

Json = dict[str, Any]


def instance(
    sizes: dict[str, list[int]], nodes: list[tuple[str, int, float, bool]], **more: Any
) -> RollingUpdate:
    """Return an instance: node -> milli-CPU of what runs there; (name, cpu, price, candidate)."""
    services = [
        {"name": f"{node}-{k}", "node": node, "cpu_millicores": cpu, "memory_mib": 1}
        for node, mine in sizes.items()
        for k, cpu in enumerate(mine)
    ]
    document = {
        "problem": "rolling-update",
        "name": "fleet",
        "price_unit": "USD/h",
        "nodes": [
            {
                "name": name,
                "cluster": "c",
                "cpu_millicores": cpu,
                "memory_mib": 1000,
                "price": price,
                "machine_type": f"type-{cpu}",
                **({"candidate": True} if candidate else {}),
            }
            for name, cpu, price, candidate in nodes
        ],
        "applications": [{"name": "a", "microservices": services}],
        **more,
    }
    return RollingUpdate.from_document(document)


def test_karpenter_deletes_several_nodes_and_evicts() -> None:
    """Three nodes of 300 fit on one of 1000: two end, each pod is stopped once."""
    nodes = [(f"n{k}", 1000, 1.0, False) for k in range(3)]
    problem = instance({"n0": [300], "n1": [300], "n2": [300]}, nodes)
    judged = problem.evaluate(karpenter_plan(problem))
    assert judged.feasible
    assert judged.values == (1.0, 2.0, 2.0)


def test_karpenter_replaces_two_nodes_by_one_that_is_cheaper() -> None:
    nodes = [("n0", 1000, 1.0, False), ("n1", 1000, 1.0, False)]
    nodes += [("buy-1", 1600, 1.5, True), ("buy-2", 1600, 1.5, True)]
    problem = instance({"n0": [800], "n1": [700]}, nodes)
    judged = problem.evaluate(karpenter_plan(problem))
    assert judged.feasible
    assert judged.values[0] == 1.5


def test_karpenter_buys_nothing_that_costs_more_than_what_ends() -> None:
    nodes = [("n0", 1000, 1.0, False), ("n1", 1000, 1.0, False), ("buy-1", 1600, 2.0, True)]
    problem = instance({"n0": [800], "n1": [700]}, nodes)
    assert karpenter_plan(problem) == {"steps": []}


def test_one_replacement_is_not_enough_where_two_small_nodes_would_be() -> None:
    """Karpenter launches one node at a time; repack buys two for one that ends."""
    nodes = [("n0", 2000, 3.0, False), ("buy-1", 1000, 1.0, True), ("buy-2", 1000, 1.0, True)]
    problem = instance({"n0": [900, 900]}, nodes)
    assert problem.evaluate(karpenter_plan(problem)).values[0] == 3.0
    front = placeopt.solve(problem, "repack", seed=1)
    point = min(front.points, key=lambda p: p.values[0])
    assert point.values == (2.0, 2.0, 0.0)
    assert front.bounds[0][0] == 2.0


def test_the_descheduler_empties_nodes_below_the_threshold_only() -> None:
    nodes = [(f"n{k}", 1000, 1.0, False) for k in range(3)]
    problem = instance({"n0": [100], "n1": [500], "n2": [600]}, nodes)
    assert problem.evaluate(descheduler_plan(problem, 20.0, 10)).values == (2.0, 1.0, 1.0)
    assert descheduler_plan(problem, 10.0, 10) == {"steps": []}  # none is below
    assert descheduler_plan(problem, 90.0, 10) == {"steps": []}  # all are


def test_the_fullest_node_takes_what_is_evicted() -> None:
    nodes = [(f"n{k}", 1000, 1.0, False) for k in range(3)]
    problem = instance({"n0": [100], "n1": [500], "n2": [600]}, nodes)
    plan = descheduler_plan(problem, 20.0, 10)
    assert [step["to"] for step in plan["steps"]] == [None, "n2"]


def test_rules_hold_in_both() -> None:
    """Two that may not share a node: neither scheme puts them together."""
    nodes = [(f"n{k}", 1000, 1.0, False) for k in range(3)]
    problem = instance({"n0": [100], "n1": [150], "n2": [600]}, nodes)
    document = problem.to_document()
    for service in document["applications"][0]["microservices"][:2]:
        service["groups"] = ["g"]
    document["rules"] = [{"kind": "apart", "group": "g"}]
    ruled = RollingUpdate.from_document(document)
    for plan in (karpenter_plan(ruled), descheduler_plan(ruled, 20.0, 10)):
        judged = ruled.evaluate(plan)
        assert judged.feasible
        assert judged.values[0] == 2.0


def test_whole_nodes_of_each_kind_are_counted() -> None:
    """1500 milli-CPU on nodes of 1000 at 1 and of 4000 at 3: two small ones, not 1.125."""
    nodes = [("n0", 4000, 3.0, False), ("s1", 1000, 1.0, True), ("s2", 1000, 1.0, True)]
    problem = instance({"n0": [750, 750]}, nodes)
    assert lower_bound(problem) / problem.arrays.price_scale == 2.0


def test_what_is_bought_and_freed() -> None:
    nodes = [("n0", 2000, 3.0, False), ("buy-1", 1000, 1.0, True), ("buy-2", 1000, 1.0, True)]
    problem = instance({"n0": [900, 900]}, nodes)
    steps = [("n0-0", "buy-1"), ("n0-1", "buy-2")]
    plan = {"steps": [{"application": "a", "microservice": m, "to": n} for m, n in steps]}
    change = fleet_change(problem, plan)
    assert (change.buy, change.free) == (("buy-1", "buy-2"), ("n0",))
    assert change.is_hourly
    assert change.saved_a_month == 730.0
    assert by_machine(problem, change.buy) == [("type-1000", "c", 1.0, 2)]


def test_nothing_runs_on_a_candidate() -> None:
    with pytest.raises(DocumentError, match="which is a candidate: not there yet"):
        instance({"n0": [1]}, [("n0", 1000, 1.0, True)])


def test_the_unit_of_prices_is_that_of_the_objective() -> None:
    problem = instance({"n0": [1]}, [("n0", 1000, 1.0, False)])
    assert problem.objectives[0].unit == "USD/h"


def test_of_several_replacements_the_cheapest_with_room_is_launched() -> None:
    """The cheapest of all is too small; a dearer one comes first in the document."""
    nodes = [("n0", 1000, 1.0, False), ("n1", 1200, 1.4, False)]
    offers = [("buy-1", 1300, 1.3, True), ("buy-2", 1200, 1.1, True), ("buy-3", 900, 0.5, True)]
    problem = instance({"n0": [600], "n1": [500, 100]}, [*nodes, *offers])
    judged = problem.evaluate(karpenter_plan(problem))
    assert judged.feasible
    assert judged.values[0] == 1.1
