"""Any encoder as a pymoo problem, with its variation as one mating step: bring your own pymoo algorithm.

>>> from pymoo.algorithms.moo.nsga2 import NSGA2                              # doctest: +SKIP
>>> from pymoo.optimize import minimize                                        # doctest: +SKIP
>>> encoded = EncodedProblem(encoders.build(problem))                          # doctest: +SKIP
>>> algorithm = NSGA2(sampling=Sample(), mating=Variation(), eliminate_duplicates=False)   # doctest: +SKIP
>>> minimize(encoded, algorithm, ("n_eval", 50_000), seed=1)                   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pymoo.core.infill import InfillCriterion
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from placeopt.encoders import Encoder


class EncodedProblem(Problem):
    """An encoder as a pymoo problem; a whole population is evaluated at once.

    Parameters
    ----------
    encoder : Encoder
    evaluate : callable, optional
        Instead of ``encoder.evaluate``, such as one that counts; returns (F, G).

    Notes
    -----
    F is divided by the range of the first population, as pymoo's NSGA-III takes differences below 1e-3 for nothing.
    """

    def __init__(
        self,
        encoder: Encoder,
        evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None,
    ):
        super().__init__(
            n_var=encoder.num_genes,
            n_obj=len(encoder.objectives),
            n_ieq_constr=encoder.num_constraints,
            xl=encoder.lower,
            xu=encoder.upper,
            vtype=int,
        )
        self.encoder = encoder
        self._call = evaluate or encoder.evaluate
        self.scale: np.ndarray | None = None

    def _evaluate(self, x: np.ndarray, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        F, G = self._call(np.asarray(x, dtype=np.int64))
        if self.scale is None:
            spread = F.max(axis=0) - F.min(axis=0)
            self.scale = np.where(spread > 0, spread, 1.0)
        out["F"], out["G"] = F / self.scale, G


class Sample(Sampling):
    """Random vectors of the encoder."""

    def _do(self, problem: EncodedProblem, n_samples: int, *args: Any, random_state: Any = None, **kwargs: Any) -> np.ndarray:
        return problem.encoder.sample(random_state, n_samples)


class Variation(InfillCriterion):
    """Binary tournaments by feasibility, then rank and crowding where the survival gave them, and the encoder's own variation.

    Ties are broken by the run's own generator; pymoo 0.6.2 breaks those of NSGA-III by the global one, so that its runs do not
    repeat.
    """

    def __init__(self) -> None:
        super().__init__(eliminate_duplicates=None, n_max_iterations=1)

    def _do(self, problem: EncodedProblem, pop: Population, n_offsprings: int, *args: Any, random_state: Any = None, **kwargs: Any) -> Population:
        X = pop.get("X").astype(np.int64, copy=False)
        order = _standing(pop, random_state)
        pairs = random_state.integers(0, len(pop), size=(2 * n_offsprings, 2))
        winners = np.where(order[pairs[:, 0]] <= order[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
        children = problem.encoder.vary(random_state, X[winners[:n_offsprings]], X[winners[n_offsprings:]])
        return Population.new("X", children)


def _standing(pop: Population, random_state: Any) -> np.ndarray:
    """Return for every individual its place when sorted from best to worst, ties in random order."""
    keys = [random_state.random(len(pop))]
    crowding, rank = pop.get("crowding"), pop.get("rank")
    if rank[0] is not None:
        if crowding[0] is not None:
            keys.append(-crowding.astype(float))
            keys.append(rank.astype(float))
    keys.append(pop.get("CV")[:, 0])
    place = np.empty(len(pop), dtype=np.int64)
    place[np.lexsort(keys)] = np.arange(len(pop))
    return place
