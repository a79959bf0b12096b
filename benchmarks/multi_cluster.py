"""The multi-cluster environment: speed, regret against hindsight, searches on whole traces.

    python benchmarks/multi_cluster.py [--share 1]

A stopped run goes on where it was. A share below 1 plays that share of the episodes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from harness import Benchmark, section, table, timed
from hindsight import optimum

import placeopt

from multi_cluster_plain import Plain  # isort: skip
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.stream import EpisodeBatch, MultiClusterBatch
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.multi_cluster.problem import MultiCluster

#: Arrivals in a unit of time.
SPEEDS = ((5.0,), (20.0,), (100.0,))
TRACES = ((5.0,), (20.0,))
LOSERS = ("cpu-greedy", "binpack", "karmada-greedy", "myopic")
SEARCHES = ("greedy", "nsga2", "nsga3", "moead", "mspso")


def core_speed(steps: int, **options: Any) -> float:
    """Return steps per CPU second of the core, 64 environments, random legal actions.

    Choosing them is not counted.
    """
    batch, rng = MultiClusterBatch(64, **options), np.random.default_rng(0)
    batch.reset(np.arange(64, dtype=np.uint64))
    batch.step(batch.masks.argmax(axis=1))
    taken = 0.0
    for _ in range(steps):
        actions = np.where(batch.masks, rng.random(batch.masks.shape), -1).argmax(axis=1)
        began = time.process_time()
        _, ended = batch.step(actions)
        if ended.any():
            batch.reset(which=ended)
        taken += time.process_time() - began
    return 64 * steps / taken


def plain_speed(look: str, episodes: int, **options: Any) -> float:
    """Return steps per CPU second of plain Python: masks, observation, step.

    `look` is ``rows`` or the paper's ``observation``.
    """
    stream, rng, taken = EpisodeBatch(episodes, **options), np.random.default_rng(0), 0.0
    stream.reset(np.arange(episodes, dtype=np.uint64))
    for k in range(episodes):
        one = Plain(stream, k)
        for _ in range(stream.steps):
            began = time.process_time()
            getattr(one, look)()
            mask = one.mask()
            taken += time.process_time() - began
            action = int(rng.choice(np.flatnonzero(mask)))
            began = time.process_time()
            one.step(action)
            taken += time.process_time() - began
    return episodes * stream.steps / taken


def speed(share: float, rate: float) -> list[object]:
    """Return the row of steps per second at a rate; best of three."""
    steps, episodes = max(50, int(1500 * share)), max(2, int(10 * share))
    options: dict[str, Any] = {"rate": rate}
    fast = max(core_speed(steps, **options) for _ in range(3))
    same, ten = (
        max(plain_speed(look, episodes, **options) for _ in range(3))
        for look in ("rows", "observation")
    )
    ratios = f"**{fast / same:.0f}**", f"{ten:,.0f}", f"{fast / ten:.0f}"
    return [f"{rate:g}", f"{fast:,.0f}", f"{same:,.0f}", *ratios]


def regret(share: float, rate: float, requests: int, strategy: str) -> list[object]:
    """Return the row of a strategy: what rules lose against one who knew the trace."""
    count, weights = max(2, int(10 * share)), np.array(STRATEGIES[strategy])
    lost: dict[str, list[float]] = {name: [] for name in LOSERS}
    best, proven = [], 0
    for seed in range(count):
        problem = MultiCluster.generate(seed, requests=requests, rate=rate)
        answer = optimum(problem, weights, 3000)
        proven += answer.proven
        best.append(answer.reward)
        for name in LOSERS:
            stream = EpisodeBatch.of(problem)
            stream.reset()
            rule, rng = policies.of(name, weights), np.random.default_rng(seed)
            lost[name].append(
                answer.reward - float((policies.play(stream, rule, rng) @ weights)[0])
            )
    means = (f"{np.mean(values):.2f}" for values in (best, *lost.values()))
    return [f"{rate:g}", requests, strategy, f"{proven} of {count}", *means]


def searches(share: float, rate: float) -> list[list[object]]:
    """Return the rows of a trace: the hypervolume of fronts."""
    import moocore

    problem = MultiCluster.generate(1, rate=rate)
    evaluations = max(500, int(20000 * share))
    fronts = {
        name: timed(lambda n=name: placeopt.solve(problem, n, evaluations=evaluations, seed=0))
        for name in SEARCHES
    }
    low = np.concatenate([front.values for front, _ in fronts.values()]).min(axis=0)
    high = np.array([1000.0, max(c.cost for c in problem.clusters), 0.75, 1.0])
    span = np.where(high > low, high - low, 1.0)
    rows = []
    for name, (front, seconds) in fronts.items():
        volume = moocore.hypervolume((front.values - low) / span, ref=np.full(4, 1.0))
        told = len(front), f"{volume:.4f}", f"{seconds:.1f}"
        rows.append([f"{rate:g}", name, *told])
    return rows


def main() -> None:
    """Measure all and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "numpy", share=1.0)

    def rows(work: Any, instances: Iterable[tuple[Any, ...]]) -> list[Any]:
        return [
            run.cell(f"{work.__name__} {run.share} {one}", lambda one=one: work(run.share, *one))
            for one in instances
        ]

    shown = ("latency", "cost", "inequality", "balanced")
    traces = [(rate, n, name) for rate, n in ((5.0, 12), (20.0, 10)) for name in shown]
    run.write(
        "Multi-cluster: the environment, regret, searches",
        section(
            "Steps per second of one core",
            "Four clusters, 64 environments, masks and observations included: 31 columns for each "
            "action with the reward that it would earn; beside it plain Python of the same rules "
            "(`tests/support/multi_cluster_plain.py`), with the same columns, and with the paper's "
            "ten, for which it need not look ahead. CPU time, best of three.",
            table(
                "rate | core | plain Python | ratio | plain, ten columns | ratio",
                rows(speed, SPEEDS),
            ),
        ),
        section(
            "Regret: reward lost against hindsight",
            "Short traces, four clusters; the optimum over all sequences of "
            "actions by dynamic programming.",
            table(
                " | ".join(("rate", "requests", "strategy", "optimum proven", "optimum", *LOSERS)),
                rows(regret, traces),
            ),
        ),
        section(
            "Searches on a fixed trace of 100 requests",
            "20,000 evaluations at share 1; hypervolume between the best value of any front and "
            "refusing everything. All start from `greedy`.",
            table(
                "rate | method | points | hypervolume | CPU s",
                [row for block in rows(searches, TRACES) for row in block],
            ),
        ),
    )


if __name__ == "__main__":
    main()
