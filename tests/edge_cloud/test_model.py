"""The edge-cloud model: all forms, both solvers, brute force and the referee agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries
from placeopt_papers import edge_printed

from placeopt import models
from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.dominance import minimal
from placeopt.core.task import Task
from placeopt.edge_cloud.arrays import possible_nodes
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.exact import epsilon_constraint, solvers
from placeopt.exact.compiled_model import CompiledModel

SMALL = {"near": 3, "far": 2, "cloud": 1, "load": 1.0}


def optimum(
    problem: EdgeCloud, weight: float, solver: str = "highs", **printed: bool
) -> tuple[float, dict]:
    """The least weighted sum by the model, and its plan; equations may be as printed."""
    model = edge_printed.build(problem, **printed) if printed else models.edge_cloud.build(problem)
    compiled = CompiledModel(model, problem.objectives)
    steps = compiled.units.tolist()
    c = weight * steps[0] * compiled.costs[0] + (1 - weight) * steps[1] * compiled.costs[1]
    program = solvers.Program(**{**vars(compiled.program), "c": c})
    found = solvers.solve(program, solver, seconds=30, absolute_gap=1e-7)
    assert found.status == "optimal" and found.x is not None
    compiled.load(found.x)
    plan = models.edge_cloud.extract(model)
    claimed = [value * step for value, step in zip(compiled.values(found.x), steps, strict=True)]
    verdict = problem.evaluate(plan)
    assert verdict.feasible and verdict.values == pytest.approx(claimed, abs=1e-5)
    assert (pyo.value(model.cost), pyo.value(model.latency_ms)) == pytest.approx(
        verdict.values, abs=1e-5
    )
    assert sum(
        w * v for w, v in zip((weight, 1 - weight), verdict.values, strict=True)
    ) == pytest.approx(found.objective, abs=1e-5)
    return found.objective, plan


def every_plan(problem: EdgeCloud) -> np.ndarray:
    """The values of all feasible plans, shape (plans, 2)."""
    choices = [np.flatnonzero(row) for row in possible_nodes(problem.arrays)]
    verdicts = (
        problem.evaluate(problem.plan(np.array(hosts))) for hosts in itertools.product(*choices)
    )
    return np.array([v.values for v in verdicts if v.feasible]).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(9))
def test_all_forms_and_solvers_have_one_optimum(seed):
    """The compact model has the optimum of the printed one, by HiGHS and by SCIP."""
    problem = EdgeCloud.generate(seed, applications=3, **SMALL)
    weight = (0.01, 0.3, 0.9)[seed % 3]
    compact, _ = optimum(problem, weight)
    for solver, printed in (
        ("scip", {}),
        ("highs", {"flows": True, "latency": True}),
        ("scip", {"flows": True, "latency": False}),
    ):
        assert optimum(problem, weight, solver, **printed)[0] == pytest.approx(compact, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_brute_force(seed):
    """The optimum and the epsilon-constraint front are those of trying all plans."""
    problem = EdgeCloud.generate(
        seed, applications=2, near=2, far=1, cloud=1, load=(1.0, 2.0)[seed % 2]
    )
    if sum(len(a.microservices) for a in problem.applications) > 6:
        problem = EdgeCloud.from_document(
            {**problem.to_document(), "applications": problem.to_document()["applications"][:1]}
        )
    values = every_plan(problem)
    for weight in (0.01, 0.5):
        assert optimum(problem, weight)[0] == pytest.approx(
            (values @ [weight, 1 - weight]).min(), abs=1e-5
        )
    front = epsilon_constraint.run(
        Task(problem, problem.objectives, Budget(seconds=60)), solver=("highs", "scip")[seed % 2]
    )
    np.testing.assert_allclose(front.values, minimal(values), atol=1e-9)
    assert {p.status for p in front.points} == {"optimal"} and front.runs[0].completed


def test_levels_are_sharper_than_the_printed_form():
    """The relaxation by levels is clearly above the printed one where the near edge is scarce."""
    problem = EdgeCloud.generate(1, applications=12, load=1.0)
    relaxed = []
    for printed in (False, True):
        model = edge_printed.build(problem, flows=False, latency=printed)
        compiled = CompiledModel(model, problem.objectives)
        program = solvers.Program(
            **{**vars(compiled.program), "c": compiled.costs[1], "integrality": np.array(False)}
        )
        relaxed.append(solvers.solve(program).objective)
    assert relaxed[0] > 1.2 * relaxed[1]


def test_a_grid_of_limits_gives_gaps():
    """With a grid every point is proven or has a gap, and bounds lie below all points."""
    problem = EdgeCloud.generate(5, applications=tries(4, 6), **SMALL)
    front = epsilon_constraint.run(Task(problem, problem.objectives, Budget(seconds=30)), grid=5)
    assert 2 <= len(front) and all(p.status == "optimal" or p.gap is not None for p in front.points)
    assert all((np.array(front.bounds) <= p.values).all(axis=1).any() for p in front.points)
    again = epsilon_constraint.run(
        Task(problem, problem.objectives, Budget(seconds=30), start=front), grid=5
    )
    assert len(again) >= len(front)


def test_places_out_of_reach_are_left_out():
    """Places without a delay between them are not used together, in all forms."""
    document = EdgeCloud.generate(3, applications=3, **SMALL).to_document()
    del document["delay_ms"]["near-1"]["cloud-1"], document["delay_ms"]["far-1"]["far-2"]
    problem = EdgeCloud.from_document(document)
    forms = itertools.product((False, True), (False, True))
    values = {
        round(optimum(problem, 0.9, flows=flows, latency=latency)[0], 5) for flows, latency in forms
    }
    assert len(values) == 1


def test_assign_and_weighted_sum():
    """The values of a plan satisfy every constraint; equation (1) has its weight."""
    problem = EdgeCloud.generate(2, applications=4, **SMALL)
    model = models.edge_cloud.build(problem)
    _, plan = optimum(problem, 0.5)
    assert models.edge_cloud.assign(model, plan) and models.edge_cloud.extract(model) == plan
    for row in model.component_data_objects(pyo.Constraint, active=True):
        assert pyo.value(row.body) <= (math.inf if row.ub is None else row.ub + 1e-9)
        assert pyo.value(row.body) >= (-math.inf if row.lb is None else row.lb - 1e-9)
    models.edge_cloud.minimise_weighted(model, 0.25)
    cost, latency = problem.evaluate(plan).values
    active = list(model.component_data_objects(pyo.Objective, active=True))
    assert [pyo.value(o) for o in active] == pytest.approx([0.25 * cost + 0.75 * latency])
    document = problem.to_document()
    document["nodes"][0]["cpu_cores"] = 0.0  # no placement there, so nothing to assign
    elsewhere = problem.plan(np.zeros(len(problem.arrays.demand), dtype=int))
    assert not models.edge_cloud.assign(
        models.edge_cloud.build(EdgeCloud.from_document(document)), elsewhere
    )


def test_what_cannot_be_built_says_why():
    """Infeasible instances are refused; the size of the model is estimated."""
    document = EdgeCloud.generate(1, applications=2, **SMALL).to_document()
    document["applications"][0]["microservices"][0]["cpu_cores"] = 1e4
    with pytest.raises(InfeasibleInstanceError, match="m1"):
        models.edge_cloud.build(EdgeCloud.from_document(document))
    problem = EdgeCloud.generate(1, applications=20)
    compiled = CompiledModel(models.edge_cloud.build(problem), problem.objectives)
    assert 0.3 < compiled.program.A.nnz / models.edge_cloud.size(problem) < 1.5
