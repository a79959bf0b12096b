"""Indicators of sets of vectors, alone, beside a better one, or of several runs; all minimised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.weights import lattice

#: Fineness of the lattice of weights of `r2` for three or more objectives: thousands of weights,
#: whose mean is within about two per cent of the integral.
_R2_FINENESS = 4.0


def scaled(values: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both sets, shapes (n, m) and (k, m), scaled so that `best` spans 0 to 1."""
    ideal, spread = best.min(axis=0), np.ptp(best, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return (values - ideal) / spread, (best - ideal) / spread


def igd_plus(values: np.ndarray, best: np.ndarray) -> float:
    """Return IGD+ (Ishibuchi et al., EMO 2015, equation 18): the mean way of `best` to `values`.

    Only what is worse counts in a way.
    """
    if best.shape[1] == 1:  # moocore wants two objectives or more
        return _behind(values, best)
    import moocore

    return float(moocore.igd_plus(values, ref=best))


def epsilon(values: np.ndarray, best: np.ndarray) -> float:
    """Return the additive epsilon indicator (Zitzler et al., 2003).

    By so much every value has to improve until `values` weakly dominates `best`.
    """
    if best.shape[1] == 1:
        return _behind(values, best)
    import moocore

    return float(moocore.epsilon_additive(values, ref=best))


def _behind(values: np.ndarray, best: np.ndarray) -> float:
    return max(0.0, float(values.min() - best.min()))


def r2(values: np.ndarray, ideal: np.ndarray) -> float:
    """Return R2 (Hansen and Jaszkiewicz, 1998): the mean Tchebycheff value over all weights.

    For a weight vector w it is the least ``max_i w_i (f_i - ideal_i)`` of a point. Two objectives
    are integrated exactly; more are averaged over a lattice of weights.
    """
    if values.shape[1] == 2:
        import moocore

        return float(moocore.r2_exact(values, ref=ideal))
    weights = lattice(values.shape[1], _R2_FINENESS)  # (k, m)
    least = [float((row * (values - ideal)).max(axis=1).min()) for row in weights]
    return float(np.mean(least))


def contributions(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return by how much each point raises the hypervolume, shape (points,)."""
    if values.shape[1] == 1:
        return np.maximum(0.0, reference - values).ravel() if len(values) == 1 else np.zeros(0)
    import moocore

    return np.asarray(moocore.hv_contributions(values, ref=reference), dtype=float)


# -- several runs ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Vorobev:
    """The front that is typical of several runs, and how far runs are from it.

    Attributes
    ----------
    expectation : ndarray, shape (points, objectives)
        The Vorob'ev expectation: what `threshold` per cent of the runs attain, at which share it
        has the mean hypervolume of the runs.
    threshold : float
        Per cent.
    deviation : float
        Mean volume that a run and the expectation do not share.
    volume : float
        Mean hypervolume of the runs.
    """

    expectation: np.ndarray
    threshold: float
    deviation: float
    volume: float


def attainment(runs: Sequence[np.ndarray], percentiles: Sequence[float]) -> np.ndarray:
    """Return the surfaces that shares of runs attain, shape (points, objectives + 1).

    The last column is the share in per cent (V. Grunert da Fonseca et al., EMO 2001).
    """
    import moocore

    return np.asarray(moocore.eaf(*_joined(runs), percentiles=list(percentiles)))


def vorobev(runs: Sequence[np.ndarray], reference: np.ndarray) -> Vorobev:
    """Return Vorob'ev expectation and deviation (M. Binois et al., EJOR 243, 2015)."""
    import moocore

    values, sets = _joined(runs)
    result = moocore.vorob_t(values, sets, ref=reference)
    expectation = np.asarray(result["ve"], dtype=float)
    deviation = moocore.vorob_dev(values, sets, ref=reference, ve=expectation)
    return Vorobev(
        expectation, float(result["threshold"]), float(deviation), float(result["avg_hyp"])
    )


def _joined(runs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return all vectors, and the number of the run of each."""
    size = runs[0].shape[1]
    if size not in (2, 3):
        raise UnsupportedError(
            f"these fronts have {size} objective{'s' * (size > 1)}; attainment is computed of two "
            "or three"
        )
    return np.concatenate(runs), np.repeat(np.arange(1, len(runs) + 1), [len(r) for r in runs])
