"""The printed integer program: where it has no solution, and where it has one."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
from placeopt_papers.rolling_printed import build_printed

from placeopt.core.errors import UnsupportedError
from placeopt.rolling_update.problem import RollingUpdate


def answer(problem: RollingUpdate, *, one_sum: bool) -> tuple[str, float | None]:
    """Return how HiGHS ends, and the cost."""
    model = build_printed(problem, one_sum=one_sum)
    solver = pyo.SolverFactory("appsi_highs")
    solver.config.load_solution = False
    found = solver.solve(model, load_solutions=False)
    ended = str(found.solver.termination_condition)
    if ended != "optimal":
        return ended, None
    solver.load_vars()
    return ended, float(pyo.value(model.node_cost))


def roomy(applications: int, **more: float) -> RollingUpdate:
    """Two microservices an application on six nodes, of which most is free."""
    return RollingUpdate.generate(
        3, applications=applications, microservices=2, clusters=2, nodes=6, occupancy=0.2, **more
    )


def test_one_application_with_room_for_all_copies_has_a_solution() -> None:
    """Its cost is not below that of the corrected model: (3) keeps all old copies."""
    ended, cost = answer(roomy(1), one_sum=False)
    assert ended == "optimal" and cost is not None


def test_two_applications_have_none_by_the_printed_sum() -> None:
    """(7) for every application and (6) contradict each other; one sum over all does not."""
    assert answer(roomy(2), one_sum=False)[0] == "infeasible"
    assert answer(roomy(2), one_sum=True)[0] == "optimal"


def test_a_crowded_start_has_none_even_with_one_sum() -> None:
    """(3) counts new copies against what is free while every old copy is still there."""
    problem = RollingUpdate.generate(
        1, applications=3, microservices=3, clusters=2, nodes=4, occupancy=0.8
    )
    assert answer(problem, one_sum=True)[0] == "infeasible"
    assert not problem.infeasibility()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_papers_size_has_none(seed: int) -> None:
    """25 reschedulable of fifty, 80 % occupancy: what arrives exceeds all that is free, (3)."""
    problem = RollingUpdate.generate(seed, reschedulable=5)
    a = problem.arrays
    free = (a.capacity - a.initial_load).clip(0).sum(axis=0)
    assert a.movable.sum() == 25
    assert (a.new[a.movable].sum(axis=0) > free).any()
    assert not problem.infeasibility()


def test_what_the_program_does_not_know_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="added or removed"):
        build_printed(roomy(2, added=1))
    document = roomy(2).to_document()
    limit = {"name": "l", "amounts": {document["nodes"][0]["name"]: 1}, "most": 1}
    with pytest.raises(UnsupportedError, match="no limits of nodes"):
        build_printed(RollingUpdate.from_document(document | {"limits": [limit]}))
