"""The time-indexed model: all direct orders, both solvers, the referee's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.core.task import Task
from placeopt.exact import epsilon_constraint, solvers
from placeopt.exact.compiled_model import CompiledModel
from placeopt.rolling_update import model as models
from placeopt.rolling_update.model import static_size
from placeopt.rolling_update.problem import RollingUpdate


def two_full_nodes(**more: Any) -> RollingUpdate:
    """Two nodes that can only swap."""
    sizes = ({"memory_mib": 2, "new_memory_mib": 9}, {"memory_mib": 9, "new_memory_mib": 2})
    document = {
        "problem": "rolling-update",
        "name": "swap",
        "nodes": [
            {
                "name": f"n{k}",
                "cluster": "c0",
                "cpu_millicores": 10,
                "memory_mib": 8 + 2 * k,
                "price": 1.0,
            }
            for k in range(2)
        ],
        "applications": [
            {
                "name": f"a{k}",
                "microservices": [{"name": "m", "node": f"n{k}", "cpu_millicores": 6, **sizes[k]}],
                "flows": [],
            }
            for k in range(2)
        ],
    }
    return RollingUpdate.from_document(document | more)


def optimum(
    problem: RollingUpdate, name: str, solver: str = "highs"
) -> tuple[solvers.Outcome, dict[str, Any] | None]:
    model = models.build(problem)
    compiled = CompiledModel(model, problem.select([name]))
    outcome = solvers.solve(compiled.within(0, [np.inf]), solver, seconds=60, absolute_gap=0.9)
    if outcome.x is None:
        return outcome, None
    compiled.load(outcome.x)
    return outcome, models.extract(model)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_swap_has_no_direct_order(solver: str) -> None:
    """What the time-indexed model calls infeasible, the packing without time does not."""
    problem = two_full_nodes()
    assert optimum(problem, "node_cost", solver)[0].status == "infeasible"
    static = CompiledModel(models.build_static(problem), problem.objectives)
    found = solvers.solve(static.within(0, [np.inf] * 3), solver, absolute_gap=0.9)
    assert found.status == "optimal"
    static.load(found.x)  # type: ignore[arg-type]
    assert models.target(static.model).tolist() == [1, 0]


@pytest.mark.parametrize("semantics", ["stay", "strict"])
def test_an_optimal_plan_is_the_referees(semantics: str) -> None:
    problem = RollingUpdate.generate(
        2, applications=2, microservices=3, clusters=2, nodes=4, semantics=semantics, occupancy=0.6
    )
    outcome, plan = optimum(problem, "node_cost")
    assert outcome.status == "optimal" and plan is not None
    verdict = problem.evaluate(plan)
    assert verdict.feasible
    assert verdict.values[0] == outcome.objective * (problem.objectives[0].step or 1)
    if semantics == "strict":
        assert verdict.values[1] == 6


def test_plans_can_be_given_to_the_model() -> None:
    """A plan of the model satisfies all rows of the model; plans with stops or hops are refused."""
    problem = RollingUpdate.generate(
        2, applications=2, microservices=3, clusters=2, nodes=4, occupancy=0.6, downscaled=0.5
    )
    _, plan = optimum(problem, "starts")
    model = models.build(problem)
    assert plan is not None and models.assign(model, plan)
    compiled = CompiledModel(model, problem.objectives)
    assert compiled.program.broken(compiled.read()) == 0
    assert (
        pyo.value(model.node_cost),
        pyo.value(model.starts),
        pyo.value(model.disruptions),
    ) == problem.evaluate(plan).values
    first = plan["steps"][0]
    assert not models.assign(model, {"steps": [first | {"to": None}, *plan["steps"]]})
    assert not models.assign(model, {"steps": [*plan["steps"], first]})


def test_faults_are_named() -> None:
    problem = two_full_nodes()
    with pytest.raises(UsageError, match="slots is 1; 2 microservices must be restarted"):
        models.build(problem, slots=1)
    document = problem.to_document()
    document["nodes"][1]["memory_mib"] = 2
    with pytest.raises(InfeasibleInstanceError, match="all microservices together need"):
        models.build_static(RollingUpdate.from_document(document))


def test_the_shared_driver_finds_the_same_front_with_fewer_slots() -> None:
    problem = RollingUpdate.generate(
        5, applications=2, microservices=3, clusters=2, nodes=4, occupancy=0.6
    )
    pair = problem.select(["node_cost", "starts"])
    every = epsilon_constraint.run(Task(problem, pair, Budget()))
    few = epsilon_constraint.run(
        Task(problem, pair, Budget()), slots=int(max(p.values[1] for p in every.points))
    )
    assert [p.values for p in every.points] == [p.values for p in few.points]
    assert models.size(problem) > static_size(problem) > 0
    assert not every.bounds, "plans with hops and stops are outside of this model"
