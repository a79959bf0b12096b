"""Random instances in the proportions of the challenge's; what runs at first keeps every rule."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

Count = Annotated[int, Field(ge=1, le=100_000)]


def generate(
    seed: int = 0,
    *,
    machines: Count = 12,
    processes: Count = 60,
    services: Count = 20,
    resources: Annotated[int, Field(ge=1, le=100)] = 3,
    locations: Count = 4,
    neighbourhoods: Count = 2,
    fill: Annotated[float, Field(gt=0, le=1, description="Share of the capacity in use.")] = 0.8,
) -> dict[str, Any]:
    """Return the document of a random instance.

    Machines are sized after what runs on them, so that nothing is over capacity at first. Services
    are spread, and depend on each other, as far as they do at first.
    """
    rng = np.random.default_rng(seed)
    service = _services(rng, processes, services, machines)
    home = _homes(rng, service, machines)
    need = np.ceil(rng.lognormal(4.0, 1.0, (processes, resources))).astype(int)
    used = np.zeros((machines, resources), dtype=int)
    np.add.at(used, home, need)
    room = used.mean(axis=0) / fill * rng.uniform(0.9, 1.1, (machines, resources))
    capacity = np.maximum(used, np.ceil(room).astype(int))
    safety = (capacity * rng.uniform(0.75, 0.95, capacity.shape)).astype(int)
    location = rng.integers(locations, size=machines)
    near = rng.integers(neighbourhoods, size=machines)
    between = rng.integers(0, 10, (machines, machines)) * (1 - np.eye(machines, dtype=int))
    return {
        "problem": "machine-reassignment",
        "name": f"random-{seed}",
        "resources": [{"transient": r % 3 == 2, "load_cost": 10} for r in range(resources)],
        "machines": [
            {
                "neighbourhood": int(near[m]),
                "location": int(location[m]),
                "capacity": capacity[m].tolist(),
                "safety_capacity": safety[m].tolist(),
                "move_costs": between[m].tolist(),
            }
            for m in range(machines)
        ],
        "services": _rules(rng, service, services, np.array([location[home], near[home]])),
        "processes": [
            {
                "service": int(service[p]),
                "requirements": need[p].tolist(),
                "move_cost": int(rng.integers(1, 100)),
                "machine": int(home[p]),
            }
            for p in range(processes)
        ],
        "balances": [{"resource": 0, "other": 1, "target": 1, "cost": 10}] if resources > 1 else [],
        "move_weights": {"process": 1, "service": 10, "machine": 100},
    }


def _services(rng: np.random.Generator, processes: int, services: int, most: int) -> np.ndarray:
    """Return the service of each process; none has more processes than there are machines."""
    services = max(services, -(-processes // most))
    service = rng.permutation(np.arange(processes) % services)
    drawn = rng.integers(services, size=processes) ** 2 // services  # some are larger than others
    count = np.bincount(service, minlength=services)
    for p, wanted in enumerate(drawn.tolist()):
        if count[wanted] < most:
            count[service[p]] -= 1
            count[wanted] += 1
            service[p] = wanted
    return service


def _homes(rng: np.random.Generator, service: np.ndarray, machines: int) -> np.ndarray:
    """Return a random machine for each process; processes of a service are apart."""
    home = np.zeros(len(service), dtype=int)
    for s in np.unique(service):
        members = np.flatnonzero(service == s)
        home[members] = rng.permutation(machines)[: len(members)]
    return home


def _rules(
    rng: np.random.Generator, service: np.ndarray, services: int, places: np.ndarray
) -> list[dict[str, Any]]:
    """Return services that are spread and dependent as what runs at first allows."""
    count = max(services, int(service.max()) + 1)
    at = [set(places[1, service == s].tolist()) for s in range(count)]
    rows = []
    for s in range(count):
        spread = len(np.unique(places[0, service == s]))
        others = rng.integers(count, size=2).tolist()
        depends = sorted({t for t in others if t != s and at[s] <= at[t]})
        rows.append({"spread": int(rng.integers(0, spread + 1)), "depends_on": depends})
    return rows
