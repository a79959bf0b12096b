"""The adapters: an encoder as a pymoo and as a jMetalPy problem."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from placeopt.core.interfaces import build_encoder
from placeopt.temporal.instance import Temporal


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


def test_a_jmetal_algorithm_of_ones_own(encoder):
    """jMetalPy's NSGA-II runs on it, in batches; violations have jMetalPy's sign."""
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


def test_importing_the_adapter_leaves_logging_alone():
    """jMetalPy sets up the root logger when it is imported; in a fresh process ours undoes that."""
    import subprocess
    import sys

    code = (
        "import logging, placeopt.evolve.jmetal_adapter; "
        "root = logging.getLogger(); print(len(root.handlers), root.level)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["0", "30"]
