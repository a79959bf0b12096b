"""The oracle's bound: beside a listing of all corners, under what policies pay, with many types."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from little_traces import node, played, pod, trace

from placeopt.backtest.arrays import arrays_of
from placeopt.backtest.bound import bound_usd, vertices


def all_corners(sizes: np.ndarray, price: np.ndarray) -> np.ndarray:
    """Return the corners, from all triples of rows: cubic, and simple."""
    scale = sizes.max(axis=0)
    scale[scale == 0] = 1.0
    rows = np.vstack([sizes / scale, -np.eye(3)])
    most = np.concatenate([price, np.zeros(3)])
    found = [np.zeros(3)]
    for chosen in combinations(range(len(rows)), 3):
        part = rows[list(chosen)]
        if abs(np.linalg.det(part)) > 1e-12:
            point = np.linalg.solve(part, most[list(chosen)])
            if (rows @ point <= most + 1e-9).all():
                found.append(np.maximum(point, 0.0))
    return np.array(found) / scale


def drawn(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return machines: some without memory, GPUs or a price, some at prices by their size."""
    gpus = rng.integers(0, 5, count) * 1000 * (rng.random(count) < 0.5)
    sizes = np.column_stack(
        [rng.integers(1, 64, count) * 1000, rng.integers(0, 9, count) * 1024, gpus]
    ).astype(float)
    price = np.round(rng.uniform(0, 3, count), 2)
    if rng.random() < 0.3:
        price = sizes[:, 0] * 1e-4
    price[rng.random(count) < 0.1] = 0.0
    return sizes, price


@pytest.mark.parametrize("seed", range(40))
def test_corners_are_those_of_all_triples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, price = drawn(rng, int(rng.integers(1, 9)))
    found = vertices(sizes, price)
    assert (sizes @ found.T <= price[:, None] * (1 + 1e-12) + 1e-15).all()
    asked = rng.uniform(0, 1, (100, 3)) * rng.integers(0, 2, (100, 3)) * [1e4, 1e5, 1e3]
    slow = (asked @ all_corners(sizes, price).T).max(axis=1)
    assert (asked @ found.T).max(axis=1) == pytest.approx(slow, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "price",
    ["drawn", "by size", "equal", "nothing", "one for nothing", "far apart"],
)
def test_thousands_of_machine_types(price: str) -> None:
    """Machines none of which is dominated; cubic work on them would not end."""
    rng = np.random.default_rng(1)
    sizes = np.abs(rng.normal(size=(2000, 3))) + 0.01
    sizes = np.round(1e5 * sizes / np.linalg.norm(sizes, axis=1)[:, None])
    usd = {
        "drawn": rng.uniform(0.05, 3, 2000),
        "by size": sizes @ np.array([3e-5, 4e-6, 1e-3]),
        "equal": np.ones(2000),
        "nothing": np.zeros(2000),
        "one for nothing": np.append(0.0, np.ones(1999)),
        "far apart": 10.0 ** rng.uniform(-6, 6, 2000),
    }[price]
    found = vertices(sizes, usd)
    assert (sizes @ found.T <= usd[:, None] * (1 + 1e-12)).all()
    assert found.any() == (price not in ("nothing", "one for nothing"))


def slow_bound(document) -> float:
    """Return the bound from what is alive between any two moments."""
    total, price = 0.0, arrays_of(document).price.copy()
    names = [m.name for m in document.machines]
    sizes = np.array([(m.cpu_millicores, m.memory_mib, m.gpus * 1000) for m in document.machines])
    most = document.seconds
    ends = [
        min(most if p.to_s is None else p.to_s, most, p.from_s + (p.work_s or most))
        for p in document.pods
    ]
    moments = {0.0, document.seconds, *ends, *(p.from_s for p in document.pods)}
    moments |= {c.at_s for c in document.prices}
    times = sorted(t for t in moments if t <= document.seconds)
    for begin, end in pairwise(times):
        for change in document.prices:
            if change.at_s <= begin:
                price[names.index(change.machine)] = change.usd_per_hour
        alive = [p for p, e in zip(document.pods, ends, strict=True) if p.from_s <= begin < e]
        sizes_of = [(p.cpu_millicores, p.memory_mib, p.gpus * p.gpu_share) for p in alive]
        asked = np.sum(sizes_of or [(0, 0, 0)], axis=0)
        single = [
            min(
                (
                    usd
                    for m, usd in zip(document.machines, price, strict=True)
                    if m.cpu_millicores >= p.cpu_millicores
                    and m.memory_mib >= p.memory_mib
                    and m.gpus >= p.gpus
                    and (not p.zones or m.zone in p.zones)
                ),
                default=0.0,
            )
            for p in alive
        ]
        volume = (all_corners(sizes.astype(float), price) @ asked).max()
        total += max([volume, *single]) * (end - begin) / 3600
    return total


@pytest.mark.parametrize("seed", range(12))
def test_a_slow_bound_says_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, price = drawn(rng, int(rng.integers(1, 6)))
    machines = [
        {
            "name": f"m{k}",
            "cpu_millicores": int(cpu),
            "memory_mib": int(memory),
            "gpus": int(gpu) // 1000,
            "usd_per_hour": float(usd),
            "zone": f"z{k % 2}",
            "most": 1,
        }
        for k, ((cpu, memory, gpu), usd) in enumerate(zip(sizes, price, strict=True))
    ]
    pods = []
    for k, begin in enumerate(sorted(rng.integers(0, 900, 12).tolist())):
        kind = int(rng.integers(4))
        more = [{}, {"zones": ["z1"]}, {"gpus": 1, "gpu_share": 300}, {"work_s": 200}][kind]
        end = begin + int(rng.integers(0, 400)) if rng.random() < 0.7 else None
        pods.append(pod(f"p{k}", int(rng.integers(1, 30)) * 100, begin, end, **more))
    changes = sorted(rng.integers(0, 1100, int(rng.integers(0, 8))).tolist())
    prices = [
        {"machine": f"m{rng.integers(len(machines))}", "at_s": t, "usd_per_hour": float(usd)}
        for t, usd in zip(changes, np.round(rng.uniform(0, 2, len(changes)), 2), strict=True)
    ]
    document = trace([], pods, machines=machines, seconds=1000, prices=prices)
    assert bound_usd(arrays_of(document)) == pytest.approx(slow_bound(document), rel=1e-6)


def test_no_policy_undercuts_the_bound_where_nobody_waits() -> None:
    document = trace(
        [node("a"), node("b")], [pod(f"p{k}", 900, 10 * k, 10 * k + 900) for k in range(8)]
    )
    found = bound_usd(arrays_of(document))
    assert 0 < found <= played(document, "none").ledger.usd
