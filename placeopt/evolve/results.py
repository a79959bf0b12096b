"""From the result of somebody else's algorithm to a front: pymoo's, or plain vectors."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Run
from placeopt.core.interfaces import Encoder
from placeopt.core.numbers import numbers
from placeopt.core.spec import load
from placeopt.core.task import Candidate, Task, versions

#: What `front_of` takes, in the words of its errors.
_LEGAL = (
    "a pymoo Result, Algorithm or Population, or an array of vectors; of jMetalPy "
    "[solution.variables for solution in algorithm.result()]"
)


def front_of(result: Any, problem: Any = None) -> Front:
    """Return the judged front of what an algorithm of your own found on a problem of placeopt.

    Every vector is decoded to a plan, and the referee judges every plan. Where none is feasible,
    the front has the least-violating one.

    Parameters
    ----------
    result : pymoo Result, Algorithm or Population, or array
        A pymoo algorithm may have been stepped by hand, and be between two steps. An array has the
        shape (k, num_genes); its values are whole numbers within the encoder's bounds. Of jMetalPy
        give ``[solution.variables for solution in algorithm.result()]``.
    problem : EncodedProblem, EncodedIntegerProblem or EncodedFloatProblem, optional
        The problem that the algorithm was given. Results and algorithms of pymoo know theirs;
        populations and arrays do not.

    Raises
    ------
    UsageError
        The problem is not of `placeopt.evolve`, or the vectors do not fit it.

    Examples
    --------
    >>> result = pymoo.optimize.minimize(encoded, algorithm, ("n_eval", 9_000))  # doctest: +SKIP
    >>> placeopt.front_of(result).write("mine.json")                             # doctest: +SKIP
    """
    outcome = _read(result)
    encoded = outcome.problem if problem is None else problem
    encoder = _encoder(encoded, outcome.what)
    X = numbers(outcome.X, f"vectors of shape (k, {encoder.num_genes})")
    X = encoded.vectors(np.atleast_2d(X) if X.size else X)
    task = Task(encoder.problem, encoder.objectives)
    plans = (Candidate(encoder.decode(genes)) for genes in np.unique(X, axis=0))
    front = task.front(plans, method=outcome.run.method)
    points = tuple(replace(point, seed=outcome.run.seed) for point in front.points)
    return replace(front, points=points, runs=(outcome.run,))


@dataclass(frozen=True)
class _Found:
    """The vectors of a result, the facts of its run, and the problem where the result knows it."""

    X: Any
    what: str
    run: Run
    problem: Any = None


def _encoder(problem: Any, what: str) -> Encoder:
    if hasattr(problem, "encoder") and hasattr(problem, "vectors"):
        encoder = problem.encoder
        if isinstance(encoder, Encoder):
            return encoder
    wanted = "the EncodedProblem, EncodedIntegerProblem or EncodedFloatProblem"
    if problem is None:
        raise UsageError(
            f"{what} does not say which problem it is of; give {wanted} of placeopt.evolve as "
            "well: front_of(result, problem)"
        )
    raise UsageError(
        f"the problem of {what} is {_shown(problem)}; give {wanted} that the algorithm ran on"
    )


def _is(value: Any, entry: str) -> bool:
    """Return whether a value is of a class, ``"module:name"``; a library is not imported for it."""
    return entry.partition(":")[0] in sys.modules and isinstance(value, load(entry))


def _read(result: Any) -> _Found:
    """Return what is in a result of any library."""
    if _is(result, "pymoo.core.algorithm:Algorithm"):
        return _of_pymoo(result, result, 0.0)
    if _is(result, "pymoo.core.result:Result"):
        return _of_pymoo(result, result.algorithm, float(result.exec_time or 0.0))
    return _Found(_variables(result), _shown(result), Run("own", None, 0.0))


def _of_pymoo(result: Any, algorithm: Any, seconds: float) -> _Found:
    """Return the optima of pymoo, or the population where nothing is feasible.

    A result has its algorithm if pymoo's ``minimize`` made it; one that an algorithm made between
    two steps has none.
    """
    best = result.pop if result.opt is None or len(result.opt) == 0 else result.opt
    if best is None or len(best) == 0:
        raise UsageError(f"{_shown(result)} has no population; let the algorithm run first")
    seed = None if algorithm is None else algorithm.seed
    run = Run(
        "pymoo" if algorithm is None else type(algorithm).__name__,
        None if seed is None else int(seed),
        seconds,
        0 if algorithm is None else int(algorithm.evaluator.n_eval),
        versions=versions(("pymoo",)),
    )
    return _Found(best.get("X"), _shown(result), run, result.problem)


def _variables(found: Any) -> Any:
    """Return vectors that are given as such, or as individuals of pymoo."""
    several = found if isinstance(found, (list, tuple)) else [found]
    if several and all(_is(one, "pymoo.core.individual:Individual") for one in several):
        return [one.X for one in several]
    if _is(found, "pymoo.core.population:Population"):
        return [one.X for one in found]
    if isinstance(found, (list, tuple)) or hasattr(found, "__array__"):
        return found
    raise UsageError(f"the result is {_shown(found)}; give {_LEGAL}")


def _shown(value: Any) -> str:
    """Return what a result is, in a few words."""
    if isinstance(value, (str, bytes, int, float, type(None))):
        return f"{value!r:.60}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"
