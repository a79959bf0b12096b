"""The adapters: an encoder as a pymoo and as a jMetalPy problem."""

from __future__ import annotations

import logging
import pickle
import random

import numpy as np
import pytest

import placeopt
from placeopt.core.fronts.dominance import minimal
from placeopt.core.interfaces import build_encoder
from placeopt.temporal.problem import Temporal


@pytest.fixture(scope="module")
def encoder():
    document = Temporal.generate(11, requests=6).to_document()
    document["offers"][0]["max_instances"] = 1
    return build_encoder(Temporal.from_document(document))


def test_a_pymoo_algorithm_of_ones_own(encoder):
    """NSGA-II with the encoder's variation runs, repeats, and reports the encoder's values."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize

    from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation

    results = []
    for _ in range(2):
        problem = EncodedProblem(encoder)
        algorithm = NSGA2(
            pop_size=20, sampling=Sample(), mating=Variation(), eliminate_duplicates=False
        )
        results.append(minimize(problem, algorithm, ("n_eval", 400), seed=4))
    np.testing.assert_array_equal(results[0].X, results[1].X)
    F, G = encoder.evaluate(results[0].X.astype(np.int64))
    np.testing.assert_allclose(results[0].F * problem.scale, F)
    assert (G <= 0).all()
    front = placeopt.front_of(results[0])
    np.testing.assert_allclose(front.values, minimal(F))
    assert [v.values for v in placeopt.evaluate(encoder.problem, front)] == [
        point.values for point in front
    ]
    (run,) = front.runs
    assert (run.method, run.seed, run.evaluations) == ("NSGA2", 4, 400) and run.seconds > 0
    assert {(p.method, p.seed) for p in front} == {("NSGA2", 4)} and "pymoo" in run.versions
    assert front.instance == encoder.problem.instance_name


def test_a_pymoo_algorithm_for_some_of_the_goals(encoder):
    """One goal, which pymoo answers with one vector; plain operators of pymoo."""
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import IntegerRandomSampling
    from pymoo.optimize import minimize

    from placeopt.evolve.pymoo_adapter import EncodedProblem

    cost = build_encoder(encoder.problem, encoder.problem.select(["cost_usd"]))
    algorithm = GA(
        pop_size=20,
        sampling=IntegerRandomSampling(),
        crossover=SBX(repair=RoundingRepair()),
        mutation=PM(repair=RoundingRepair()),
    )
    front = placeopt.front_of(minimize(EncodedProblem(cost), algorithm, ("n_eval", 400), seed=2))
    assert [o.name for o in front.objectives] == ["cost_usd"] and len(front) == 1


def test_a_result_without_a_feasible_vector(encoder):
    """The front has the least-violating plan and says what it breaks."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize

    from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation

    document = encoder.problem.to_document()
    document["offers"] = [offer | {"max_instances": 1} for offer in document["offers"][:1]]
    document["latency_ms"] = {
        origin: {document["offers"][0]["location"]: 1.0} for origin in document["latency_ms"]
    }
    tight = build_encoder(Temporal.from_document(document))
    algorithm = NSGA2(pop_size=8, sampling=Sample(), mating=Variation(), eliminate_duplicates=False)
    result = minimize(EncodedProblem(tight), algorithm, ("n_eval", 16), seed=1)
    assert result.X is None
    front = placeopt.front_of(result)
    assert not front.points and front.rejected is not None and front.reasons


def test_a_pymoo_algorithm_that_is_stepped_by_hand(encoder):
    """Between two steps and at the end: the algorithm, its result, and its populations."""
    from pymoo.algorithms.moo.nsga2 import NSGA2

    from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation

    problem = EncodedProblem(encoder)
    algorithm = NSGA2(
        pop_size=20, sampling=Sample(), mating=Variation(), eliminate_duplicates=False
    )
    algorithm.setup(problem, termination=("n_gen", 4), seed=1)
    with pytest.raises(placeopt.PlaceoptError, match="has no population; let the algorithm run"):
        placeopt.front_of(algorithm)
    while algorithm.has_next():
        algorithm.next()
        front = placeopt.front_of(algorithm)
        best = algorithm.opt.get("F") * problem.scale
        np.testing.assert_allclose(front.values, minimal(best[algorithm.opt.get("FEAS")[:, 0]]))
    assert front.runs[0].method == "NSGA2" and front.runs[0].seed == 1
    assert front.runs[0].evaluations == 80
    front_values = front.values.tolist()
    algorithm = pickle.loads(pickle.dumps(algorithm))
    for given in (algorithm, algorithm.result()):
        assert placeopt.front_of(given).values.tolist() == front_values
    for given in (algorithm.opt, list(algorithm.opt), algorithm.pop, algorithm.opt[0]):
        assert placeopt.front_of(given, problem).points
        with pytest.raises(
            placeopt.PlaceoptError, match=r"which problem .* front_of\(result, prob"
        ):
            placeopt.front_of(given)
    with pytest.raises(
        placeopt.PlaceoptError, match=r"the problem of .* is an object of .*NSGA2; give"
    ):
        placeopt.front_of(algorithm, NSGA2())


def test_vectors_of_any_library(encoder):
    """With the problem that they were made for; what cannot be a result is refused."""
    from placeopt.evolve.pymoo_adapter import EncodedProblem

    X = encoder.sample(np.random.default_rng(3), 50)
    F, G = encoder.evaluate(X)
    front = placeopt.front_of(X, EncodedProblem(encoder))
    feasible = (G <= 0).all(axis=1)
    np.testing.assert_allclose(front.values, minimal(F[feasible]))
    with pytest.raises(placeopt.PlaceoptError, match="give the EncodedProblem"):
        placeopt.front_of(X)
    with pytest.raises(placeopt.PlaceoptError, match=r"the shape \(50, 1\); wanted is \(k, "):
        placeopt.front_of(X[:, :1], EncodedProblem(encoder))
    with pytest.raises(placeopt.PlaceoptError, match="give a pymoo Result"):
        placeopt.front_of("result", EncodedProblem(encoder))


def test_a_jmetal_algorithm_of_ones_own(encoder):
    """jMetalPy's NSGA-II runs on it, in batches; violations have jMetalPy's sign."""
    pytest.importorskip("jmetal", reason="jMetalPy is not installed")
    before = logging.getLogger().handlers[:]
    from jmetal.algorithm.multiobjective.nsgaii import NSGAII
    from jmetal.operator.crossover import IntegerSBXCrossover
    from jmetal.operator.mutation import IntegerPolynomialMutation
    from jmetal.util.comparator import DominanceWithConstraintsComparator
    from jmetal.util.termination_criterion import StoppingByEvaluations

    from placeopt.evolve.jmetal_adapter import BatchEvaluator, EncodedIntegerProblem

    assert logging.getLogger().handlers == before or len(logging.getLogger().handlers) >= len(
        before
    )
    random.seed(1)  # jMetalPy draws from the global generator
    problem = EncodedIntegerProblem(encoder)
    algorithm = NSGAII(
        problem=problem,
        population_size=20,
        offspring_population_size=20,
        mutation=IntegerPolynomialMutation(probability=0.1, distribution_index=20),
        crossover=IntegerSBXCrossover(probability=0.9, distribution_index=20),
        termination_criterion=StoppingByEvaluations(max_evaluations=200),
        population_evaluator=BatchEvaluator(),
        dominance_comparator=DominanceWithConstraintsComparator(),
    )
    algorithm.run()
    for solution in algorithm.result():
        F, G = encoder.evaluate(np.array([solution.variables]))
        np.testing.assert_allclose(solution.objectives, F[0])
        np.testing.assert_allclose(solution.constraints, -G[0])
    front = placeopt.front_of([s.variables for s in algorithm.result()], problem)
    objectives = [s.objectives for s in algorithm.result() if min(s.constraints) >= 0]
    np.testing.assert_allclose(front.values, minimal(np.round(objectives, 9)))  # sums differ last
    with pytest.raises(placeopt.PlaceoptError, match=r"of jMetalPy \[solution.variables"):
        placeopt.front_of(algorithm)


def test_importing_the_adapter_leaves_logging_alone():
    """jMetalPy sets up the root logger when it is imported; in a fresh process ours undoes that."""
    pytest.importorskip("jmetal", reason="jMetalPy is not installed")
    import subprocess
    import sys

    code = (
        "import logging, placeopt.evolve.jmetal_adapter; "
        "root = logging.getLogger(); print(len(root.handlers), root.level)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["0", "30"]
