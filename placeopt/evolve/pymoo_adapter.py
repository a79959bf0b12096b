"""Any encoder as a pymoo problem, with its variation as one mating step.

Bring your own pymoo algorithm:

>>> from pymoo.algorithms.moo.nsga2 import NSGA2                              # doctest: +SKIP
>>> from pymoo.optimize import minimize                                       # doctest: +SKIP
>>> encoded = EncodedProblem(build_encoder(problem))                          # doctest: +SKIP
>>> operators = {"sampling": Sample(), "mating": Variation()}                 # doctest: +SKIP
>>> algorithm = NSGA2(**operators, eliminate_duplicates=False)                # doctest: +SKIP
>>> minimize(encoded, algorithm, ("n_eval", 50_000), seed=1)                  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pymoo.core.infill import InfillCriterion
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from placeopt.core.errors import UsageError, shown
from placeopt.core.fronts.dominance import nondominated
from placeopt.core.interfaces import Encoder
from placeopt.core.numbers import numbers


class EncodedProblem(Problem):
    """An encoder as a pymoo problem; a whole population is evaluated at once.

    Parameters
    ----------
    encoder : Encoder
    evaluate : callable, optional
        Instead of ``encoder.evaluate``, such as one that counts; returns (F, G).
    constraints : int, optional
        Columns of G, where they are not those of the encoder.

    Notes
    -----
    F is divided by the range of the first population: pymoo's NSGA-III ignores differences below
    1e-3.
    """

    def __init__(
        self,
        encoder: Encoder,
        evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None,
        constraints: int | None = None,
    ):
        if not isinstance(encoder, Encoder) or not (evaluate is None or callable(evaluate)):
            raise UsageError(
                f"encoder is {shown(encoder)} and evaluate {shown(evaluate)}; give an Encoder, "
                "such as build_encoder(problem), and a function or nothing"
            )
        super().__init__(
            n_var=encoder.num_genes,
            n_obj=len(encoder.objectives),
            n_ieq_constr=encoder.num_constraints if constraints is None else constraints,
            xl=encoder.lower,
            xu=encoder.upper,
            vtype=int,
        )
        self.encoder = encoder
        self._call = evaluate or encoder.evaluate
        self.scale: np.ndarray | None = None

    def evaluate(self, X: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        """Evaluate vectors as pymoo does; the shape is checked here, values in `values`."""
        result = numbers(X, f"vectors of shape (k, {self.n_var})")
        if result.ndim not in (1, 2) or result.shape[-1] != self.n_var:
            raise UsageError(
                f"these vectors have the shape {result.shape}; the problem wants (k, {self.n_var})"
            )
        return super().evaluate(result, *args, **kwargs)

    def _evaluate(self, x: np.ndarray, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out.update(self.values(x))

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return scaled F, and G, of vectors that may come from any operator."""
        F, G = self._call(self.vectors(x))
        if self.scale is None and len(F):
            spread = F.max(axis=0) - F.min(axis=0)
            self.scale = np.where(spread > 0, spread, 1.0)
        return {"F": F if self.scale is None else F / self.scale, "G": G}

    def vectors(self, x: ArrayLike) -> np.ndarray:
        """Return pymoo's vectors as the encoder's, int64 of shape (k, num_genes).

        Raises
        ------
        UsageError
            A value is not a whole number within its bounds: an operator wants a repair.
        """
        return self.encoder.checked(x)


class Sample(Sampling):
    """Random vectors of the encoder."""

    def _do(
        self,
        problem: EncodedProblem,
        n_samples: int,
        *args: Any,
        random_state: Any = None,
        **kwargs: Any,
    ) -> np.ndarray:
        return problem.encoder.sample(random_state, n_samples)


class Variation(InfillCriterion):
    """Binary tournaments, then the encoder's own variation.

    Tournaments go by feasibility, then by rank and crowding where the survival gave them. The run's
    own generator breaks ties. pymoo 0.6.2 breaks those of NSGA-III by the global one, so that its
    runs do not repeat.
    """

    def __init__(self) -> None:
        super().__init__(eliminate_duplicates=None, n_max_iterations=1)

    def _do(
        self,
        problem: EncodedProblem,
        pop: Population,
        n_offsprings: int,
        *args: Any,
        random_state: Any = None,
        **kwargs: Any,
    ) -> Population:
        return Population.new("X", self.children(problem, pop, n_offsprings, random_state))

    def children(
        self, problem: EncodedProblem, pop: Population, n_offsprings: int, random_state: Any
    ) -> np.ndarray:
        """Return the vectors of children, shape (n_offsprings, num_genes)."""
        X = problem.vectors([individual.X for individual in pop])
        order = _standing(problem, pop, random_state)
        pairs = random_state.integers(0, len(pop), size=(2 * n_offsprings, 2))
        winners = np.where(order[pairs[:, 0]] <= order[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
        return problem.encoder.vary(
            random_state, X[winners[:n_offsprings]], X[winners[n_offsprings:]]
        )


class ScreenedVariation(Variation):
    """Evaluates the children and returns only those that can survive.

    Once no member of a population dominates another, a child that a member dominates comes last in
    the non-dominated sorting of both NSGAs and is cut. pymoo makes no object for a child that is
    left out; these objects are most of the time of a run.
    """

    def _do(
        self,
        problem: EncodedProblem,
        pop: Population,
        n_offsprings: int,
        *args: Any,
        random_state: Any = None,
        **kwargs: Any,
    ) -> Population:
        X = self.children(problem, pop, n_offsprings, random_state)
        values = problem.values(X)
        F, old = values["F"], pop.get("F")
        feasible = (values["G"] <= 0).all(axis=1)
        feasible_before = values["G"].shape[1] == 0 or (pop.get("CV")[:, 0] <= 0).all()
        settled = feasible_before and nondominated(np.unique(old, axis=0)).all()
        keep = np.ones(len(X), dtype=bool)
        if settled:
            keep = nondominated(np.concatenate((old, F)))[len(old) :] & feasible
        children = Population.new(
            X=X[keep], F=F[keep], G=values["G"][keep], H=np.empty((int(keep.sum()), 0))
        )
        for child in children:
            child.evaluated = {"F", "G", "H"}
        return children


def _standing(problem: EncodedProblem, pop: Population, random_state: Any) -> np.ndarray:
    """Return every individual's place from best to worst, ties in random order, shape (n,)."""
    keys = [random_state.random(len(pop))]
    crowding, rank = pop.get("crowding"), pop.get("rank")
    if rank[0] is not None and crowding[0] is not None:
        keys += [-crowding.astype(float), rank.astype(float)]
    if problem.n_ieq_constr:
        keys.append(pop.get("CV")[:, 0])
    place = np.empty(len(pop), dtype=np.int64)
    place[np.lexsort(keys)] = np.arange(len(pop))
    return place
