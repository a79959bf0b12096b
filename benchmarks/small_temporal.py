"""Temporal instances that can still be enumerated: odd prices, few slots, few replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.temporal.generator import generate
from placeopt.temporal.problem import Temporal

PLACES = ("north", "south")


def drawn(seed: int, *, horizon: int = 5, offers: int = 2) -> Temporal:
    """Return two requests of one or two replicas, or three, of which one may have two."""
    rng = np.random.default_rng(seed)
    replicas = rng.integers(1, 3, size=2).tolist() if seed % 2 else [int(rng.integers(1, 3)), 1, 1]
    latency = {
        a: {b: 1.5 if a == b else float(rng.integers(5, 30)) for b in PLACES} for a in PLACES
    }
    document: dict[str, Any] = {
        "problem": "temporal",
        "name": f"drawn-{seed}",
        "horizon_slots": horizon,
        "latency_ms": latency,
        "offers": [_offer(rng, k) for k in range(offers)],
        "requests": [_request(rng, k, count, horizon) for k, count in enumerate(replicas)],
    }
    return Temporal.from_document(document)


def _request(rng: np.random.Generator, k: int, replicas: int, horizon: int) -> dict[str, Any]:
    return {
        "name": f"r{k + 1}",
        "cpu_cores": int(rng.integers(1, 4)),
        "memory_gib": int(rng.integers(1, 4)),
        "duration_slots": int(rng.integers(1, horizon)),
        "replicas": replicas,
        "origin": PLACES[int(rng.integers(2))],
    }


def _offer(rng: np.random.Generator, k: int) -> dict[str, Any]:
    """Return an offer with an on-demand price, often a reserved and a spot one."""
    prices: dict[str, float] = {"on_demand_usd_per_hour": round(0.1 * int(rng.integers(3, 9)), 2)}
    if rng.random() < 0.8:
        prices["reserved_usd_per_hour"] = round(0.1 * int(rng.integers(1, 6)), 2)
    if rng.random() < 0.7:
        prices["spot_usd_per_hour"] = round(0.1 * int(rng.integers(1, 4)), 2)
        prices["spot_interruption"] = round(0.05 * int(rng.integers(1, 4)), 2)
    cores, memory = int(rng.integers(3, 7)), int(rng.integers(3, 7))
    about = {"location": PLACES[k % 2], "size": f"s{k + 1}"}
    return {**about, "cpu_cores": cores, "memory_gib": memory, **prices}


def of_size(requests: int, replicas: int, seed: int) -> Temporal:
    """Return an instance with the paper's distributions but `replicas` replicas in all.

    A request has at most three.
    """
    document = generate(seed, requests=requests)
    rng = np.random.default_rng(1000 + seed)
    counts = np.ones(requests, dtype=int)
    while counts.sum() < replicas:
        k = int(rng.integers(requests))
        counts[k] = min(3, counts[k] + 1)
    for request, count in zip(document["requests"], counts.tolist(), strict=True):
        request["replicas"] = count
    return Temporal.from_document(document | {"name": f"{requests}x{replicas}-seed{seed}"})
