"""pymoo as it is, on placeopt's encoder: textbook operators on whole numbers, a random start."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling

from placeopt.core.fronts.dominance import minimal

POPULATION = 200


class _Encoded(Problem):  # type: ignore[misc]
    """An encoder as a problem of pymoo, with an archive of all that was evaluated."""

    def __init__(self, encoder: Any, goals: int):
        self.encoder, self.archive = encoder, np.zeros((0, goals))
        super().__init__(
            n_var=encoder.num_genes,
            n_obj=goals,
            n_ieq_constr=encoder.num_constraints,
            xl=encoder.lower,
            xu=encoder.upper,
            vtype=int,
        )

    def _evaluate(self, X: np.ndarray, out: Any, *_: Any, **__: Any) -> None:
        F, G = self.encoder.evaluate(X.astype(np.int64))
        out["F"], out["G"] = F, G
        legal = F[(G <= 0).all(axis=1)] if G.shape[1] else F
        self.archive = minimal(np.vstack((self.archive, legal)))


def nsga2(encoder: Any, goals: int, seconds: float, seed: int) -> list[tuple[float, Any]]:
    """Return CPU seconds and the archive after each of about forty parts of the time."""
    problem, taken = _Encoded(encoder, goals), []
    algorithm = NSGA2(
        pop_size=POPULATION,
        sampling=IntegerRandomSampling(),
        crossover=SBX(vtype=float, repair=RoundingRepair()),
        mutation=PM(vtype=float, repair=RoundingRepair()),
    )
    encoder.evaluate(encoder.sample(np.random.default_rng(seed), 2))  # compiles
    algorithm.setup(problem, termination=("n_gen", 10**9), seed=seed)
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        algorithm.next()
        if len(taken) < 40 * spent / seconds:
            taken.append((time.process_time() - began, problem.archive.tolist()))
    return [*taken, (spent, problem.archive.tolist())]
