"""The published AWS tables and the distributions that the CNSM 2024 paper draws its requests from.

Prices, sizes, interruption frequencies: Table III; latencies: Table IV of N. Di Cicco et al., CNSM
2024 (as of 1 July 2024). Table IV is asymmetric with a non-zero diagonal, and is kept so.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.files.documents import Document

# location size on-demand reserved spot vCPU GiB interruption
_OFFERS = """
eu-south-1     t4g.2xlarge 0.3072  0.1842 0.0308  8 32 0.10
eu-south-1     t4g.large   0.0768  0.0461 0.078   2  8 0.15
eu-south-1     t4g.small   0.0192  0.0115 0.0019  2  2 0.10
eu-west-2      t4g.2xlarge 0.3008  0.1808 0.01148 8 32 0.05
eu-west-2      t4g.large   0.0752  0.0452 0.0267  2  8 0.10
eu-west-2      t4g.small   0.0188  0.0112 0.0061  2  2 0.05
us-east-1      t4g.2xlarge 0.02688 0.1606 0.1135  8 32 0.15
us-east-1      t4g.large   0.0672  0.0402 0.0268  2  8 0.20
us-east-1      t4g.small   0.0168  0.01   0.009   2  2 0.05
us-west-1      t4g.2xlarge 0.32    0.1918 0.0849  8 32 0.10
us-west-1      t4g.large   0.08    0.048  0.0248  2  8 0.10
us-west-1      t4g.small   0.02    0.012  0.0061  2  2 0.05
ap-northeast-3 t4g.2xlarge 0.3482  0.2089 0.0415  8 32 0.10
ap-northeast-3 t4g.large   0.0879  0.0522 0.0298  2  8 0.15
ap-northeast-3 t4g.small   0.0218  0.013  0.0031  2  2 0.15
ap-south-1     t4g.2xlarge 0.1792  0.108  0.076   8 32 0.10
ap-south-1     t4g.large   0.0448  0.027  0.0211  2  8 0.15
ap-south-1     t4g.small   0.0112  0.0068 0.0049  2  2 0.05
"""

_PLACES = ("eu-south-1", "eu-west-2", "us-east-1", "us-west-1", "ap-northeast-3", "ap-south-1")

_LATENCY_MS = """
2.57   27.69  102.16 162.51 231.99 110.53
26.92  3.88   77.57  147.85 217.17 119.41
102.04 78.57  5.15   64.21  154.1  195.66
162.1  147.91 63.61  3.24   109.47 231.06
232.13 217.81 153.88 110.11 2.32   131.98
109.98 119.64 193.9  231.79 131.34 3.23
"""

#: Two prices of Table III that cannot be real, and what AWS lists or their neighbours suggest.
CORRECTIONS = {
    ("us-east-1", "t4g.2xlarge"): {"on_demand_usd_per_hour": 0.2688},
    ("eu-south-1", "t4g.large"): {"spot_usd_per_hour": 0.0078},
}


def offers(*, corrected: bool = False) -> list[Document]:
    """Return Table III as offers; `corrected` mends the two impossible prices."""
    fields = (
        "on_demand_usd_per_hour",
        "reserved_usd_per_hour",
        "spot_usd_per_hour",
        "cpu_cores",
        "memory_gib",
        "spot_interruption",
    )
    rows: list[Document] = []
    for line in _OFFERS.split("\n")[1:-1]:
        location, size, *numbers = line.split()
        row: Document = {
            "location": location,
            "size": size,
            **dict(zip(fields, map(float, numbers), strict=True)),
            "max_instances": None,
        }
        rows.append(row | (CORRECTIONS.get((location, size), {}) if corrected else {}))
    return rows


def latencies() -> dict[str, dict[str, float]]:
    """Return Table IV: origin -> data centre -> ms."""
    rows = [list(map(float, line.split())) for line in _LATENCY_MS.split("\n")[1:-1]]
    return {
        place: dict(zip(_PLACES, row, strict=True))
        for place, row in zip(_PLACES, rows, strict=True)
    }


def generate(
    seed: int = 0,
    *,
    requests: int = 50,
    horizon: int = 100,
    places: int = 6,
    max_replicas: int = 6,
    corrected: bool = False,
) -> Document:
    """Draw an instance document with the paper's distributions.

    Uniform whole numbers: vCPU 1-6, memory 2-16 GiB, duration 10-50 slots (at most the horizon),
    replicas 1-6, origins over the data centres.

    Parameters
    ----------
    seed : int
    requests, horizon : int
        How many requests, how many slots of an hour.
    places : int
        How many of the six data centres, 1 to 6.
    max_replicas : int
        Largest number of replicas of a request.
    corrected : bool
        Mend the two impossible prices of Table III.
    """
    largest = {"requests": 10**6, "horizon": 10**6, "places": len(_PLACES), "max_replicas": 1000}
    values_in = (requests, horizon, places, max_replicas)
    for (label, limit), value in zip(largest.items(), values_in, strict=True):
        if not 1 <= value <= limit:
            raise UsageError(f"{label} is {value}; legal: 1 to {limit}")
    rng = np.random.default_rng(seed)
    names = _PLACES[:places]

    def draw(low: int, high: int) -> list[int]:
        return rng.integers(low, high + 1, size=requests).tolist()

    columns = (
        draw(1, 6),
        draw(2, 16),
        draw(min(10, horizon), min(50, horizon)),
        draw(1, max_replicas),
        draw(0, places - 1),
    )
    drawn = [
        {
            "name": f"r{k + 1}",
            "cpu_cores": cpu,
            "memory_gib": memory,
            "duration_slots": duration,
            "replicas": replicas,
            "origin": names[origin],
        }
        for k, (cpu, memory, duration, replicas, origin) in enumerate(zip(*columns, strict=True))
    ]
    return {
        "problem": "temporal",
        "name": f"generated-{requests}-seed{seed}",
        "horizon_slots": horizon,
        "slot_hours": 1.0,
        "latency_ms": {
            a: {b: ms for b, ms in row.items() if b in names}
            for a, row in latencies().items()
            if a in names
        },
        "offers": [offer for offer in offers(corrected=corrected) if offer["location"] in names],
        "requests": drawn,
    }
