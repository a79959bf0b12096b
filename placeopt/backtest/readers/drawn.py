"""A drawn trace, for tests and for those without one: rhythm, bursts, rollouts, cron jobs.

Services follow the hour of the day and the day of the week; now and then one has a burst, or is
rolled out: its pods are replaced one after another. Cron jobs come at their hours.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.backtest.trace import ClusterTrace, built

DAY = 86400.0
_SIZES = ((250, 512), (500, 1024), (1000, 4096), (2000, 4096))


def generate(
    seed: int = 1,
    *,
    days: Annotated[float, Field(ge=0.1, le=366, allow_inf_nan=False)] = 7.0,
    services: Annotated[int, Field(ge=1, le=1000)] = 20,
    crons: Annotated[int, Field(ge=0, le=1000)] = 5,
    peak: Annotated[int, Field(ge=1, le=1000)] = 8,
) -> ClusterTrace:
    """Return a drawn trace.

    Parameters
    ----------
    seed : int
    days : float
    services, crons : int
        Workloads of each kind.
    peak : int
        Replicas of a service at its height, on average.
    """
    rng = np.random.default_rng(seed)
    end = days * DAY
    pods: list[dict[str, Any]] = []
    for k in range(services):
        pods += _service(rng, f"service-{k}", end, peak)
    for k in range(crons):
        pods += _cron(rng, f"cron-{k}", end)
    most = max(8, services * peak)
    machines = [
        ("small", 2000, 8192, 0.096),
        ("medium", 4000, 16384, 0.192),
        ("large", 8000, 32768, 0.384),
    ]
    return built(
        {
            "name": f"drawn-{seed}",
            "seconds": end,
            "machines": [
                {
                    "name": name,
                    "cpu_millicores": cpu,
                    "memory_mib": memory,
                    "usd_per_hour": usd,
                    "most": most,
                }
                for name, cpu, memory, usd in machines
            ],
            "nodes": [{"name": f"node-{k}", "machine": "medium"} for k in range(max(2, most // 4))],
            "pods": pods,
            "rollouts": {f"service-{k}": {} for k in range(services)},
        }
    )


def _wanted(rng: np.random.Generator, end: float, peak: int) -> np.ndarray:
    """Return the replicas of a service, one number for every quarter of an hour."""
    at = np.arange(0, end, 900.0)
    phase, height = rng.uniform(-2, 2) * 3600, rng.gamma(4, peak / 4)
    daily = 0.55 + 0.45 * np.sin(2 * np.pi * (at - phase) / DAY - np.pi / 2)
    weekly = np.where((at // DAY) % 7 >= 5, 0.5, 1.0)
    burst = np.ones(len(at))
    for begin in np.flatnonzero(rng.random(len(at)) < 1 / 400):
        burst[begin : begin + int(rng.integers(1, 9))] = rng.uniform(1.5, 3)
    return np.maximum(1, np.round(height * daily * weekly * burst)).astype(int)


def _service(rng: np.random.Generator, name: str, end: float, peak: int) -> list[dict[str, Any]]:
    cpu, memory = _SIZES[rng.integers(len(_SIZES))]
    running: list[dict[str, Any]] = []
    pods: list[dict[str, Any]] = []
    revision = 1

    def start(at: float) -> None:
        pod = {
            "name": f"{name}-{len(pods)}",
            "workload": name,
            "cpu_millicores": cpu,
            "memory_mib": memory,
            "from_s": at,
            "revision": str(revision),
        }
        pods.append(pod)
        running.append(pod)

    for k, wanted in enumerate(_wanted(rng, end, peak)):
        at = 900.0 * k
        while len(running) < wanted:
            start(at)
        while len(running) > wanted:
            running.pop()["to_s"] = at
        if rng.random() < 1 / 300:  # a rollout: a new pod, then an old one ends
            revision += 1
            for step in range(len(running)):
                moment = at + 10.0 * (step + 1)
                start(moment)
                running.pop(0)["to_s"] = moment + 10.0
    return [pod for pod in pods if pod["from_s"] <= end and pod.get("to_s", end) >= pod["from_s"]]


def _cron(rng: np.random.Generator, name: str, end: float) -> list[dict[str, Any]]:
    every = float(rng.choice([3600, 6 * 3600, DAY]))
    pods = int(rng.integers(1, 6))
    begin = float(rng.integers(0, 3600))
    return [
        {
            "name": f"{name}-{k}-{i}",
            "workload": name,
            "cpu_millicores": 1000,
            "memory_mib": 2048,
            "from_s": begin + k * every,
            "work_s": float(rng.integers(60, 1800)),
        }
        for k in range(int((end - begin) // every) + 1)
        for i in range(pods)
        if begin + k * every < end
    ]
