"""Edge-cloud bounds against every other method, and a grid of limits with starts."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.edge_cloud.arrays import node_loads
from placeopt.edge_cloud.bounds import bound
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.prices import Relaxation, ascend, new_ascent
from placeopt.exact import epsilon_constraint
from placeopt.exact.oracles import Oracle
from placeopt.registry import method
from placeopt.rollout import rollout


def random_instance(seed: int) -> EdgeCloud:
    """A small instance at one of three loads."""
    rng = np.random.default_rng(seed)
    sizes = {
        "applications": int(rng.integers(2, 9)),
        "near": int(rng.integers(2, 6)),
        "far": int(rng.integers(1, 3)),
        "cloud": 1,
    }
    return EdgeCloud.generate(seed, load=float(rng.choice([0.4, 1.0, 2.0])), **sizes)


def covered(values: np.ndarray, bounds: tuple[tuple[float, ...], ...]) -> bool:
    """Return whether a bound vector dominates each row weakly, up to rounding."""
    return all((np.array(bounds) <= row + 1e-9).all(axis=1).any() for row in values)


@pytest.mark.parametrize("seed", range(3))
def test_no_method_finds_less_than_is_proven(seed):
    """No plan lies below the bound set or below a proven weighted sum, whatever the method."""
    problem = random_instance(seed)
    proof = bound(Task(problem, problem.objectives, Budget(evaluations=2000), 0), parts=9)
    facts = proof.runs[0].parameters
    names = (
        "greedy",
        "rollout",
        "lns",
        "moead",
        ("nsga2", "nsga3", "mspso")[seed % 3],
    )
    fronts = [
        method(name).load("edge-cloud")(
            Task(problem, problem.objectives, Budget(evaluations=1000), seed)
        )
        for name in names
    ]
    fronts.append(
        epsilon_constraint.run(Task(problem, problem.objectives, Budget(seconds=3)), grid=4)
    )
    fronts.append(
        rollout.run(Task(problem, problem.objectives, Budget()), horizon=float("inf"), parts=4)
    )
    for front in fronts:
        assert covered(front.values, proof.bounds)
        for weight, least in zip(facts["weights"], facts["weighted_bounds"], strict=True):
            assert (front.values @ [weight, 1 - weight] >= least - 1e-9).all()
    if fronts[-2].bounds:  # and the other way round, where time sufficed for any
        assert covered(proof.values, fronts[-2].bounds)


def test_points_of_a_grid_start_from_their_neighbours(monkeypatch):
    """Once a plan within the limits is known the solver starts from it."""
    problem = EdgeCloud.generate(5, applications=6, near=3, far=2, cloud=1, load=1.0)
    asked: list[tuple[bool, bool]] = []
    found: list[tuple[float, ...]] = []
    minimise = Oracle.minimise

    def listen(self, objective, limits, **settings):
        within = any(
            all(v <= limit for v, limit in zip(values, limits, strict=True)) for values in found
        )
        asked.append((within, settings["start"] is not None and settings["start"].x is not None))
        answer = minimise(self, objective, limits, **settings)
        if answer.values is not None:
            found.append(answer.values)
        return answer

    monkeypatch.setattr(Oracle, "minimise", listen)
    front = epsilon_constraint.run(Task(problem, problem.objectives, Budget(seconds=30)), grid=6)
    assert all(within for within, given in asked if given)
    assert sum(given for _, given in asked) >= 1
    assert len(front) >= 3 and all(p.status == "optimal" or p.gap is not None for p in front.points)


def test_the_prices_do_not_depend_on_what_was_asked_before():
    """A bound for a weight is the same alone and from a relaxation that has served another."""
    problem, relaxations = EdgeCloud.generate(3, applications=200), []
    for weights in ((0.01,), (0.9, 0.01)):
        relaxation = Relaxation(problem)
        relaxations.append([relaxation.ascend(w, Budget(evaluations=60), 40) for w in weights][-1])
    assert relaxations[0].bound == relaxations[1].bound and np.array_equal(
        relaxations[0].price, relaxations[1].price
    )


@pytest.mark.parametrize("seed", [1, 4])
def test_good_prices_become_better(seed):
    """An ascent that begins with good prices loses nothing, and goes on from them."""
    relaxation = Relaxation(EdgeCloud.generate(seed, applications=60))
    good = relaxation.ascend(0.1, Budget(evaluations=1000), 22)
    better = relaxation.ascend(0.1, Budget(evaluations=1000), 40, good.price)
    assert better.bound > good.bound


def test_an_ascent_ends_where_prices_are_final():
    """Long before its steps are used up; what it proves is what 2,000 steps of whole ones do."""
    relaxation = Relaxation(EdgeCloud.generate(2, applications=60))
    budget = Budget(evaluations=10**6)
    found = relaxation.ascend(0.1, budget, 1000)
    assert budget.evaluations < 300
    ascent = new_ascent(found.price * relaxation.unit)
    highest = found.bound
    for step in range(2000):
        highest = max(highest, relaxation.bound(0.1, ascent.price / relaxation.unit))
        slope = node_loads(relaxation.instance, relaxation.hosts) - relaxation.instance.capacity
        ascend(ascent, slope / relaxation.unit, 0.02 * 0.01 ** (step / 2000))
    assert found.bound == pytest.approx(highest, rel=5e-4)


def test_prices_begin_near_where_they_end():
    """Prices of layers prove most of what prices of nodes do, where all of the edge is scarce."""
    problem = EdgeCloud.generate(1, applications=300, load=1.0)
    early, late = (
        Relaxation(problem).ascend(0.01, Budget(evaluations=10**6), steps).bound
        for steps in (1, 200)
    )
    assert 0.95 * late < early <= late
