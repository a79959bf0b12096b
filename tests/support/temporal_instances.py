"""Random temporal instances that are small enough for brute force."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.temporal.problem import Temporal

PLACES = ("north", "south")


def tiny(
    seed: int,
    *,
    requests: int = 2,
    replicas: int = 2,
    horizon: int = 4,
    offers: int = 3,
    **changes: Any,
) -> Temporal:
    """Return a random instance small enough for brute force."""
    rng = np.random.default_rng(seed)

    def offer(k: int) -> dict[str, Any]:
        prices = {
            "on_demand_usd_per_hour": 0.1 * int(rng.integers(3, 9)),
            "reserved_usd_per_hour": 0.1 * int(rng.integers(1, 6)),
        }
        if rng.random() < 0.6:
            prices |= {
                "spot_usd_per_hour": 0.1 * int(rng.integers(1, 4)),
                "spot_interruption": 0.05 * int(rng.integers(1, 4)),
            }
        if rng.random() < 0.3:
            del prices["reserved_usd_per_hour" if rng.random() < 0.5 else "on_demand_usd_per_hour"]
        prices = {name: round(value, 2) for name, value in prices.items()}
        return {
            "location": PLACES[k % 2],
            "size": f"s{k}",
            "cpu_cores": int(rng.integers(3, 7)),
            "memory_gib": int(rng.integers(3, 7)),
            **prices,
        }

    def request(k: int) -> dict[str, Any]:
        return {
            "name": f"r{k}",
            "cpu_cores": int(rng.integers(1, 4)),
            "memory_gib": int(rng.integers(1, 4)),
            "origin": PLACES[int(rng.integers(2))],
            "duration_slots": int(rng.integers(1, horizon)),
            "replicas": int(rng.integers(1, replicas + 1)),
        }

    latency = {
        a: {b: 1.5 if a == b else float(rng.integers(5, 30)) for b in PLACES} for a in PLACES
    }
    document = {
        "problem": "temporal",
        "name": f"tiny-{seed}",
        "horizon_slots": horizon,
        "latency_ms": latency,
        "offers": [offer(k) for k in range(offers)],
        "requests": [request(k) for k in range(requests)],
    }
    return Temporal.from_document(document | changes)


def mutilated(seed: int) -> Temporal:
    """Return a random instance with absent prices, limits, fractions and one-way latencies."""
    rng = np.random.default_rng(seed)
    document: dict[str, Any] = Temporal.generate(
        seed, requests=int(rng.integers(1, 9)), horizon=int(rng.integers(8, 60))
    ).to_document()
    document["slot_hours"] = float(rng.choice([1.0, 0.5, 0.25]))
    for offer in document["offers"]:
        prices = [f"{p}_usd_per_hour" for p in ("on_demand", "reserved", "spot")]
        for price in prices:
            if rng.random() < 0.25 and sum(offer[p] is not None for p in prices) > 1:
                offer[price] = None
        if rng.random() < 0.3:
            offer["max_instances"] = int(rng.integers(0, 4))
        offer["cpu_cores"] += float(rng.choice([0, 0.5]))
    for request in document["requests"]:
        request["cpu_cores"] = float(rng.choice([request["cpu_cores"], 0.1, 1.7]))
    for row in document["latency_ms"].values():
        if rng.random() < 0.3:
            row.pop(rng.choice(list(row)))
    return Temporal.from_document(document)
