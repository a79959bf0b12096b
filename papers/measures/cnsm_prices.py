"""CNSM 2024, section IV: what the prices and latencies of Tables III and IV say of its example."""

from __future__ import annotations

from typing import Any

import placeopt

FULL: dict[str, Any] = {}
QUICK: dict[str, Any] = {}
HERE, THERE = "eu-south-1", "ap-south-1"


def measure(cells: Any) -> dict[str, Any]:
    """Return ratios of prices and latencies as printed; of spot prices by the size."""
    problem = placeopt.load("aws-50").to_document()
    offers = {(o["location"], o["size"]): o for o in problem["offers"]}
    latency = problem["latency_ms"][HERE]
    sizes = [size for location, size in offers if location == HERE]
    return {
        "rate": {
            size: offers[HERE, size]["on_demand_usd_per_hour"]
            / offers[THERE, size]["on_demand_usd_per_hour"]
            for size in sizes
        },
        "latency": latency[THERE] / latency[HERE],
        "spot": {
            size: offers[HERE, size]["on_demand_usd_per_hour"]
            / offers[HERE, size]["spot_usd_per_hour"]
            for size in sizes
        },
    }
