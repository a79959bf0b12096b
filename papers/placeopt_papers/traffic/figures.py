"""What is told of runs: percentiles, misses, throughput, and series over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from placeopt_papers.traffic.play import Played
from placeopt_papers.traffic.scenario import Scenario

#: Figures of a run, in the order of the table: name, unit.
NAMES = {
    "mean_ms": "ms",
    "p50_ms": "ms",
    "p95_ms": "ms",
    "p99_ms": "ms",
    "misses": "% of requests above the limit",
    "per_second": "requests answered a second",
    "failed": "requests lost",
    "moves": "pods moved",
    "started": "pods started",
}


def figures(played: Played, scenario: Scenario) -> dict[str, float]:
    """Return the figures of one run by name; latencies are NaN where nothing was answered."""
    begin = scenario.measured_from_s
    took = played.took_ms[played.answered >= begin]
    whole = took if len(took) else np.array([np.nan])
    middle, slow, slowest = np.percentile(whole, (50, 95, 99))
    lost = int((played.failed >= begin).sum())
    ended = len(took) + lost
    return {
        "mean_ms": float(whole.mean()),
        "p50_ms": float(middle),
        "p95_ms": float(slow),
        "p99_ms": float(slowest),
        "misses": 100 * (float((took > scenario.slo_ms).sum()) + lost) / max(1, ended),
        "per_second": len(took) / (scenario.seconds - begin),
        "failed": float(lost),
        "moves": float(played.moves),
        "started": float(played.started),
    }


def series(played: Played, scenario: Scenario) -> dict[str, list[float]]:
    """Return mean latency (ms, NaN for none) and requests a second, bucket by bucket."""
    edges = np.arange(0.0, scenario.seconds + scenario.bucket_s, scenario.bucket_s)
    counts, _ = np.histogram(played.answered, edges)
    sums, _ = np.histogram(played.answered, edges, weights=played.took_ms)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / counts
    return {
        "from_s": edges[:-1].tolist(),
        "latency_ms": mean.tolist(),
        "per_second": (counts / scenario.bucket_s).tolist(),
    }


def mean_and_half_width(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """Return the mean of each figure over runs, and half a 95 % interval (0 for one run)."""
    from scipy.stats import t

    result: dict[str, tuple[float, float]] = {}
    for name in NAMES:
        values = np.array([row[name] for row in rows])
        half = 0.0
        if len(values) > 1:
            factor = float(t.ppf(0.975, len(values) - 1))
            half = factor * float(values.std(ddof=1)) / len(values) ** 0.5
        result[name] = (float(values.mean()), half)
    return result


def document(runs: Sequence[Played], scenario: Scenario, instance: str) -> dict[str, Any]:
    """Return all of it as a JSON document."""
    rows = [figures(run, scenario) for run in runs]
    return {
        "format": "placeopt/traffic-result@1",
        "instance": instance,
        "figures": {
            name: {"mean": _plain(mean), "half_width": _plain(half), "unit": NAMES[name]}
            for name, (mean, half) in mean_and_half_width(rows).items()
        },
        "runs": [
            {
                "figures": {name: _plain(value) for name, value in row.items()},
                "series": {k: [*map(_plain, v)] for k, v in series(run, scenario).items()},
                "log": [[second, text] for second, text in run.log],
            }
            for row, run in zip(rows, runs, strict=True)
        ],
    }


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)
