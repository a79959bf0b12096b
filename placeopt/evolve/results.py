"""From the result of somebody else's algorithm to a front: pymoo, jMetalPy, or plain vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.front import Front, Run
from placeopt.core.interfaces import Encoder
from placeopt.core.task import Candidate, Task, versions


def front_of(result: Any, problem: Any = None) -> Front:
    """Return the judged front of what an algorithm of your own found on a problem of placeopt.

    Every vector is decoded to a plan, and the referee judges every plan. Where none is feasible,
    the front has the least-violating one.

    Parameters
    ----------
    result : pymoo Result, jMetalPy Algorithm that has run, sequence of solutions, or array
        An array has the shape (k, num_genes).
    problem : EncodedProblem or EncodedIntegerProblem, optional
        The problem that the algorithm was given; results and algorithms know theirs.

    Raises
    ------
    UsageError
        The problem is not of `placeopt.evolve`, or the vectors do not fit it.

    Examples
    --------
    >>> result = pymoo.optimize.minimize(encoded, algorithm, ("n_eval", 9_000))  # doctest: +SKIP
    >>> placeopt.front_of(result).write("mine.json")                             # doctest: +SKIP
    """
    X, run = _vectors(result)
    if problem is None and hasattr(result, "problem"):
        problem = result.problem
    encoder = _encoder(problem)
    if X.shape[1:] != (encoder.num_genes,):
        raise UsageError(
            f"these vectors have the shape {X.shape}; the problem wants (k, {encoder.num_genes})"
        )
    task = Task(encoder.problem, encoder.objectives)
    plans = (Candidate(encoder.decode(genes)) for genes in np.unique(X, axis=0))
    front = task.front(plans, method=run.method)
    points = tuple(replace(point, seed=run.seed) for point in front.points)
    return replace(front, points=points, runs=(run,))


def _encoder(problem: Any) -> Encoder:
    if not (hasattr(problem, "encoder") and isinstance(problem.encoder, Encoder)):
        raise UsageError(
            f"the problem is {problem!r:.80}; give the EncodedProblem or EncodedIntegerProblem "
            "that the algorithm ran on"
        )
    return problem.encoder


def _vectors(result: Any) -> tuple[np.ndarray, Run]:
    """Return the vectors of a result, shape (k, num_genes), and the facts of the run."""
    if hasattr(result, "pop") and hasattr(result, "algorithm"):
        return _of_pymoo(result)
    if hasattr(result, "result") and hasattr(result, "get_name"):
        run = Run(
            result.get_name(),
            None,
            float(result.total_computing_time),
            int(result.evaluations),
            versions=versions(("jmetalpy",)),
        )
        return _of_solutions(result.result()), run
    return _of_solutions(result), Run("own", None, 0.0)


def _of_pymoo(result: Any) -> tuple[np.ndarray, Run]:
    """Return the optima of a pymoo result, or its population where nothing is feasible."""
    algorithm = result.algorithm
    X = result.pop.get("X") if result.X is None else result.X
    seed = algorithm.seed
    run = Run(
        type(algorithm).__name__,
        None if seed is None else int(seed),
        float(result.exec_time or 0.0),
        int(algorithm.evaluator.n_eval),
        versions=versions(("pymoo",)),
    )
    return np.atleast_2d(np.asarray(X)).astype(np.int64), run


def _of_solutions(found: Any) -> np.ndarray:
    """Return vectors that are given as such, or as jMetalPy solutions, one or several."""
    several = found if isinstance(found, (list, tuple, np.ndarray)) else [found]
    rows = [s.variables if hasattr(s, "variables") else s for s in several]
    try:
        return np.atleast_2d(np.array(rows, dtype=float)).astype(np.int64)
    except (TypeError, ValueError):
        raise UsageError(
            f"the result is {found!r:.80}; give a pymoo Result, a jMetalPy algorithm that has run, "
            "its solutions, or an array of vectors"
        ) from None
