"""Any encoder as a jMetalPy problem, with batch evaluation: bring your own jMetalPy algorithm.

>>> from jmetal.algorithm.multiobjective.nsgaii import NSGAII                # doctest: +SKIP
>>> problem = EncodedIntegerProblem(build_encoder(instance))                 # doctest: +SKIP
>>> NSGAII(problem, population_evaluator=BatchEvaluator(), ...).run()        # doctest: +SKIP
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

_root = logging.getLogger()
_level, _handlers = _root.level, list(_root.handlers)

from jmetal.core.problem import IntegerProblem  # noqa: E402
from jmetal.core.solution import IntegerSolution  # noqa: E402
from jmetal.util.evaluator import Evaluator  # noqa: E402

# jMetalPy configures the root logger when it is imported; a library must not.
_root.setLevel(_level)
for _handler in [h for h in _root.handlers if h not in _handlers]:
    _root.removeHandler(_handler)

from placeopt.core.interfaces import Encoder  # noqa: E402


class EncodedIntegerProblem(IntegerProblem):
    """An encoder as a jMetalPy problem.

    jMetalPy counts a constraint as violated where it is negative, so that it gets minus G.
    """

    def __init__(self, encoder: Encoder, seed: int = 1):
        super().__init__()
        self.encoder = encoder
        self.lower_bound = encoder.lower.tolist()
        self.upper_bound = encoder.upper.tolist()
        self.obj_directions = [self.MINIMIZE] * len(encoder.objectives)
        self.obj_labels = [o.name for o in encoder.objectives]
        self._rng = np.random.default_rng(seed)

    def number_of_variables(self) -> int:
        """Return the number of genes."""
        return self.encoder.num_genes

    def number_of_objectives(self) -> int:
        """Return the number of objectives."""
        return len(self.encoder.objectives)

    def number_of_constraints(self) -> int:
        """Return the number of columns of G."""
        return self.encoder.num_constraints

    def name(self) -> str:
        """Return the name of the instance."""
        return self.encoder.problem.name

    def create_solution(self) -> IntegerSolution:
        """Return a random vector."""
        solution = IntegerSolution(
            self.lower_bound,
            self.upper_bound,
            self.number_of_objectives(),
            self.number_of_constraints(),
        )
        solution.variables = self.encoder.sample(self._rng, 1)[0].tolist()
        return solution

    def evaluate(self, solution: IntegerSolution) -> IntegerSolution:
        """Evaluate one solution in place."""
        return self.evaluate_all([solution])[0]

    def evaluate_all(self, solutions: list[IntegerSolution]) -> list[IntegerSolution]:
        """Evaluate solutions in place, in one call of the encoder."""
        F, G = self.encoder.evaluate(np.array([s.variables for s in solutions], dtype=np.int64))
        for solution, f, g in zip(solutions, F.tolist(), (-G).tolist(), strict=True):
            solution.objectives, solution.constraints = f, g
        return solutions


class BatchEvaluator(Evaluator):
    """Evaluates a whole jMetalPy population in one call of the encoder."""

    def evaluate(self, solution_list: list[Any], problem: EncodedIntegerProblem) -> list[Any]:
        """Evaluate the population in place and return it."""
        return problem.evaluate_all(solution_list)
