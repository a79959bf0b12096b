"""The two-phase heuristic of the re-orchestration paper, on instances small enough to follow."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from placeopt_papers.two_phase import MoveOrder, two_phase, two_phase_plan

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.task import Task
from placeopt.rolling_update.problem import RollingUpdate


def instance(nodes: list[Any], apps: dict[str, Any], flows: Any = ()) -> RollingUpdate:
    """Nodes are (name, cluster, cpu, memory, price); a microservice is (name, node, cpu, memory,
    new cpu, more); flows of application a are (from, to, most ms).
    """
    sizes = ("name", "node", "cpu_millicores", "memory_mib", "new_cpu_millicores")
    node = ("name", "cluster", "cpu_millicores", "memory_mib", "price")
    applications = [
        {
            "name": name,
            "microservices": [
                dict(zip(sizes, m[:5], strict=False)) | dict(*m[5:]) for m in members
            ],
            "flows": [
                {"from": x, "to": y, "max_latency_ms": ms}
                for x, y, ms in (flows if name == "a" else ())
            ],
        }
        for name, members in apps.items()
    ]
    return RollingUpdate.from_document(
        {
            "problem": "rolling-update",
            "name": "t",
            "nodes": [dict(zip(node, n, strict=True)) for n in nodes],
            "applications": applications,
            "cluster_latency_ms": {"c0": {"c1": 50.0}},
        }
    )


def test_the_two_readings_of_the_cluster_choice() -> None:
    """The text takes the empty cluster, the literal argmin the loaded one."""
    nodes = [("n0", "c0", 10, 10, 1.0), ("n1", "c1", 10, 10, 1.0)]
    apps = {"fixed": [("f", "n0", 4, 4)], "a": [("x", "n0", 2, 2, 2), ("y", "n0", 2, 2, 2)]}
    document = instance(nodes, apps, [("x", "y", 20.0)]).to_document()
    document["applications"][0]["reschedulable"] = False
    problem = RollingUpdate.from_document(document)
    rng = np.random.default_rng(0)
    assert {s["to"] for s in two_phase_plan(problem, rng, "text")["steps"]} == {"n1"}
    assert two_phase_plan(problem, rng, "argmin")["steps"] == []
    with pytest.raises(UsageError, match=r"reading of two-phase is 'txt'.*legal: text, argmin"):
        placeopt.solve(problem, "two-phase", reading="txt")


def test_algorithm_1_as_printed_forgets_tight_microservices_without_room() -> None:
    """The chosen cluster holds x alone; y joins the rest, or runs on as it is."""
    nodes = [("n0", "c0", 10, 10, 1.0), ("n1", "c1", 3, 3, 1.0)]
    apps = {"fixed": [("f", "n0", 4, 4)], "a": [("x", "n0", 3, 3, 2), ("y", "n0", 3, 3, 2)]}
    document = instance(nodes, apps, [("x", "y", 20.0)]).to_document()
    document["applications"][0]["reschedulable"] = False
    problem = RollingUpdate.from_document(document)
    rng = np.random.default_rng(0)
    for unplaced, moved in (("join", ["x", "y"]), ("leave", ["x"])):
        plan = two_phase_plan(problem, rng, unplaced=unplaced)
        assert sorted(step["microservice"] for step in plan["steps"]) == moved
    forgotten = [v for v in problem.evaluate(plan).violations if v.kind != "latency"]
    assert forgotten, "y is not at its new size"


@pytest.mark.parametrize("order", ["paper", "random", "random-strict"])
def test_the_ordering_phase_stops_what_blocks(order: MoveOrder) -> None:
    """Two full nodes that the allocation makes swap."""
    nodes = [("n0", "c0", 10, 8, 1.0), ("n1", "c0", 10, 10, 1.0)]
    apps = {
        "a": [("m", "n0", 6, 2, 6, {"new_memory_mib": 9})],
        "b": [("m", "n1", 6, 9, 6, {"new_memory_mib": 2})],
    }
    problem = instance(nodes, apps)
    front = two_phase(Task(problem, problem.objectives, Budget(), 1), order=order)
    assert [p.values for p in front.points] == [(2.0, 2.0, 1.0)]


def test_a_strict_random_order_stops_what_does_not_fit_at_its_turn() -> None:
    """Moves that fit only after others: Algorithm 2 waits, the fixed order stops them."""
    orders = get_args(MoveOrder)
    stopped = dict.fromkeys(orders, 0)
    for seed in range(5):
        problem = RollingUpdate.generate(seed, clusters=4)
        for order in orders:
            rng = np.random.default_rng(seed)
            plan = two_phase_plan(problem, rng, "text", order)
            verdict = problem.evaluate(plan)
            assert verdict.feasible
            stopped[order] += int(verdict.values[2])
    assert stopped["random-strict"] > 3 * max(stopped["paper"], stopped["random"])


@pytest.mark.parametrize("seed", range(3))
def test_it_keeps_all_limits_of_the_papers_instances(seed: int) -> None:
    problem = RollingUpdate.generate(seed, clusters=4)
    verdict = problem.evaluate(two_phase_plan(problem, np.random.default_rng(seed)))
    assert verdict.feasible and 8 <= verdict.values[0] <= 12


def test_the_method_comes_with_the_distribution() -> None:
    front = placeopt.solve(RollingUpdate.generate(0), "two-phase", seed=0)
    assert front.runs[0].method == "two-phase" and front.runs[0].evaluations == 1
