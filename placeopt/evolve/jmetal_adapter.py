"""Any encoder as a jMetalPy problem, with batch evaluation: bring your own jMetalPy algorithm.

>>> from jmetal.algorithm.multiobjective.nsgaii import NSGAII                # doctest: +SKIP
>>> problem = EncodedIntegerProblem(build_encoder(instance))                 # doctest: +SKIP
>>> NSGAII(problem, population_evaluator=BatchEvaluator(), ...).run()        # doctest: +SKIP
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

import numpy as np

from placeopt.core.errors import MissingExtraError, UsageError, shown
from placeopt.core.interfaces import Encoder
from placeopt.core.numbers import checked_seed, numbers

_root = logging.getLogger()
_level, _handlers = _root.level, list(_root.handlers)

if find_spec("jmetal") is None:
    raise MissingExtraError("jMetalPy's problem", "jmetal")
from jmetal.core.problem import FloatProblem, IntegerProblem  # noqa: E402
from jmetal.core.solution import FloatSolution, IntegerSolution  # noqa: E402
from jmetal.util.evaluator import Evaluator  # noqa: E402

# jMetalPy configures the root logger when it is imported; a library must not.
_root.setLevel(_level)
for _handler in [h for h in _root.handlers if h not in _handlers]:
    _root.removeHandler(_handler)

# It logs every step of a run.
logging.getLogger("jmetal.core.algorithm").setLevel(logging.WARNING)


class _Encoded:
    """What the two kinds of jMetalPy problems take from an encoder.

    jMetalPy counts a constraint as violated where it is negative, so that it gets minus G.
    """

    MINIMIZE: int
    #: The class of its solutions, and the type of their variables.
    solution_class: type
    number: type

    def __init__(self, encoder: Encoder, seed: int = 1, constraints: int | None = None):
        if not isinstance(encoder, Encoder):
            raise UsageError(
                f"encoder is {shown(encoder)}; give an Encoder, such as build_encoder(problem)"
            )
        super().__init__()
        self.encoder = encoder
        self._constraints = encoder.num_constraints if constraints is None else constraints
        self.lower_bound: list[Any] = encoder.lower.tolist()
        self.upper_bound: list[Any] = encoder.upper.tolist()
        self.obj_directions = [self.MINIMIZE] * len(encoder.objectives)
        self.obj_labels = [o.name for o in encoder.objectives]
        self._rng = np.random.default_rng(checked_seed(seed))

    def number_of_variables(self) -> int:
        """Return the number of genes."""
        return self.encoder.num_genes

    def number_of_objectives(self) -> int:
        """Return the number of objectives."""
        return len(self.encoder.objectives)

    def number_of_constraints(self) -> int:
        """Return the number of columns of G."""
        return self._constraints

    def name(self) -> str:
        """Return the name of the instance."""
        return self.encoder.problem.name

    def create_solution(self) -> Any:
        """Return a random vector."""
        sizes = self.number_of_objectives(), self.number_of_constraints()
        solution = self.solution_class(self.lower_bound, self.upper_bound, *sizes)
        solution.variables = self.encoder.sample(self._rng, 1)[0].astype(self.number).tolist()
        return solution

    def evaluate(self, solution: Any) -> Any:
        """Evaluate one solution in place."""
        return self.evaluate_all([solution])[0]

    def evaluate_all(self, solutions: list[Any]) -> list[Any]:
        """Evaluate solutions in place, in one call of the encoder."""
        F, G = self.encoder.evaluate(self.vectors([s.variables for s in solutions]))
        for solution, f, g in zip(solutions, F.tolist(), (-G).tolist(), strict=True):
            solution.objectives, solution.constraints = f, g
        return solutions

    def vectors(self, rows: Any) -> np.ndarray:
        """Return variables of solutions as vectors of the encoder, int64 of (k, num_genes).

        Raises
        ------
        UsageError
            A value is not a whole number within its bounds.
        """
        return self.encoder.checked(rows)


class EncodedIntegerProblem(_Encoded, IntegerProblem):
    """An encoder as a jMetalPy problem."""

    solution_class, number = IntegerSolution, int


class EncodedFloatProblem(_Encoded, FloatProblem):
    """An encoder as a problem among real numbers, which are rounded: for SMPSO and its like."""

    solution_class, number = FloatSolution, float

    def vectors(self, rows: Any) -> np.ndarray:
        """Return variables of solutions, rounded, as vectors of the encoder."""
        wanted = f"vectors of shape (k, {self.encoder.num_genes})"
        return self.encoder.checked(np.rint(numbers(rows, wanted)))


class BatchEvaluator(Evaluator):
    """Evaluates a whole jMetalPy population in one call of the encoder."""

    def evaluate(self, solution_list: list[Any], problem: _Encoded) -> list[Any]:
        """Evaluate the population in place and return it."""
        return problem.evaluate_all(solution_list)
