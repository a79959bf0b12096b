"""Indicators of sets of vectors beside a better one; all minimised."""

from __future__ import annotations

import numpy as np


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
