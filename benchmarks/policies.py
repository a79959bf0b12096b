"""What the policies that come with placeopt reach, beside rules and search that need no training.

    python benchmarks/policies.py [--episodes 500] [--starts 60]

A policy plays the action that it likes most, computed in NumPy. A stopped run goes on where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Benchmark, section, table, timed

import placeopt
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.stream import MultiClusterBatch
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rl import policy_file
from placeopt.rl.evaluation import evaluate, summary

RULES = (*policies.BASELINES, "myopic")
#: Method and its parameters on rescheduling instances.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "policy": ("policy", {"policy": "rescheduling-testbed"}),
    "policy, best of 32": ("policy", {"policy": "rescheduling-testbed", "samples": 31}),
    "greedy": ("greedy", {}),
    "block-search": ("block-search", {}),
}
#: Policy and its environment.
TRAINED: dict[str, dict[str, Any]] = {
    "multi-cluster-fixed-rate5": {"rate": 5.0},
    "multi-cluster-fixed-rate20": {"rate": 20.0},
}
#: Clusters of the table beyond those that policies were trained on, and its strategies.
CLUSTERS, SHOWN = (4, 8, 16, 32), ("cost", "balanced")
#: First seeds of episodes and of starts: no policy was trained or chosen on them.
FIRST, FIRST_START = 10**9, 1000


def played(name: str, strategy: str, episodes: int, options: dict[str, Any]) -> str:
    """Return reward / acceptance in per cent of a policy or a rule over episodes."""
    weights = STRATEGIES[strategy]
    batch = MultiClusterBatch(min(500, episodes), **options)
    if name in RULES:
        batch.reset(np.arange(batch.num_envs, dtype=np.uint64) + np.uint64(FIRST))
        rng = np.random.default_rng(1)
        earned = policies.play(batch, policies.of(name, weights), rng) @ np.array(weights)
        facts = {"reward": float(earned.mean()), "acceptance": batch.info()["acceptance"].mean()}
    else:
        found = evaluate(batch, policy_file.read(name).act, episodes, weights, FIRST)
        facts = {key: summary(found)[key][0] for key in ("reward", "acceptance")}
    return f"{facts['reward']:.2f} / {100 * facts['acceptance']:.2f}"


def reached(what: str, application: str, starts: int) -> list[float]:
    """Return best known over reached latency, moves, and CPU ms of a plan; means over starts."""
    rows = []
    method, parameters = METHODS[what]
    for seed in range(FIRST_START, FIRST_START + starts):
        problem = Rescheduling.generate(seed, application=application, replicas=5)
        best = placeopt.solve(problem, "block-search", seconds=60).values[:, 0].min()
        front, took = timed(lambda p=problem: placeopt.solve(p, method, seconds=60, **parameters))
        latency, moves = front.values[front.values[:, 0].argmin()]
        rows.append((best / latency, moves, 1000 * took))
    return np.mean(rows, axis=0).tolist()


def rescheduling_row(run: Benchmark, what: str) -> list[object]:
    """Return the row of a method on all applications."""
    found = [
        run.cell(f"{what} {a} {run.starts}", lambda a=a: reached(what, a, run.starts))
        for a in APPLICATIONS
    ]
    cells = [f"{share:.3f} ({moves:.1f})" for share, moves, _ in found]
    mean, _, took = np.mean(found, axis=0)
    return [what, *cells, f"{mean:.3f}", f"{took:.0f}"]


def main() -> None:
    """Play all and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", episodes=500, starts=60)
    sections = []
    for policy, options in TRAINED.items():
        names = (policy, *RULES)

        def cell(name: str, strategy: str, clusters: int, options: Any = options) -> str:
            more = {} if clusters == 4 else {"clusters": clusters}
            more |= {"replicas": (clusters, 4 * clusters)} if more else {}
            count = run.episodes if clusters == 4 else max(10, run.episodes // 10)
            key = f"{name} {options} {strategy} {clusters} {count}"
            return run.cell(key, lambda: played(name, strategy, count, options | more))

        card = policy_file.read(policy).card
        rows = [[s, *(cell(name, s, 4) for name in names)] for s in STRATEGIES]
        wide = [[c, s, *(cell(name, s, c) for name in names)] for c in CLUSTERS[1:] for s in SHOWN]
        sections.append(
            section(
                f"`{policy}`",
                f"{card['summary']}; {card['steps']:,} steps in {card['cpu_seconds']:.0f} CPU s. "
                "Reward / acceptance in %, four clusters, "
                f"{run.episodes} episodes of 100 requests.",
                table(" | ".join(("strategy", *names)), rows),
                "On more clusters than it was trained on, C to 4 C replicas a request:",
                table(" | ".join(("clusters", "strategy", *names)), wide),
            )
        )
    run.write(
        "Policies that come with placeopt",
        *sections,
        section(
            "`rescheduling-testbed`",
            f"Best known over reached latency (moves), 20 pods, {run.starts} random starts of each "
            "application. *Best known* is block search.",
            table(
                " | ".join(("method", *APPLICATIONS, "mean", "CPU ms of an instance")),
                [rescheduling_row(run, what) for what in METHODS],
            ),
        ),
    )


if __name__ == "__main__":
    main()
