"""Learned policies of the multi-cluster problem: trains them, and writes the tables of learned.md.

    python benchmarks/multi_cluster/learned.py train NAME SEED
        one policy; the first seed goes into placeopt, others beside this file
    python benchmarks/multi_cluster/learned.py
        learned.md, from the policies that are there; a stopped run goes on where it was

NAME is published, fixed-rate5, fixed-rate20 or published-dqn. Training is `placeopt train` with the
settings below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.multi_cluster import environment as multi_cluster
from placeopt.multi_cluster import policies as known
from placeopt.rl import policy_file
from placeopt.rl.evaluation import Chooser, evaluate, greedy, summary
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.preferences import DRAWN
from placeopt.rl.settings import defaults

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402
import parts  # noqa: E402
import stamps  # noqa: E402

#: Where departures are real a decision matters for longer; at few arrivals there is less to gain,
#: and it takes longer.
LONG = {
    "steps": 800_000,
    "gamma": 0.97,
    "gae_lambda": 0.95,
    "entropy": 0.002,
    "num_envs": 128,
    "batch_size": 3200,
}
#: Name -> environment, algorithm, settings that differ from the defaults.
RUNS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "published": ({"semantics": "published"}, "ppo", {"steps": 400_000}),
    "published-dqn": ({"semantics": "published"}, "dqn", {"steps": 200_000}),
    "fixed-rate5": ({"rate": 5.0}, "ppo", LONG),
    "fixed-rate20": ({"rate": 20.0}, "ppo", {"steps": 400_000, "gamma": 0.98, "gae_lambda": 0.95}),
}
SEEDS = (1, 2, 3)
EPISODES = 500
#: Seed of the first test episode; training seeds are below 2^32 and drawn from other streams.
FIRST = 10**12
#: Table 8 of the paper: reward, rejected in %, cost, latency, cpu usage in %, Gini coefficient;
#: DS-PPO, then DS-DQN.
PAPER = {
    "latency": ((73.1, 0.02, 5.87, 268.6, 30.5, 0.67), (70.1, 0.52, 7.03, 290.7, 27.5, 0.55)),
    "cost": ((89.9, 0.05, 2.50, 414.1, 38.5, 0.58), (89.7, 0.01, 2.53, 477.1, 38.5, 0.55)),
    "inequality": ((50.9, 0.002, 5.57, 533.6, 31.5, 0.48), (49.4, 0.21, 8.01, 476.9, 25.9, 0.48)),
    "lat-cost": ((75.2, 0.15, 3.59, 317.1, 35.9, 0.62), (74.3, 0.008, 2.57, 408.3, 38.5, 0.55)),
    "lat-ineq": ((55.7, 0.002, 5.51, 405.8, 31.6, 0.47), (58.5, 1.42, 6.67, 307.9, 27.3, 0.46)),
    "cost-ineq": ((55.3, 0.003, 4.51, 573.7, 34.0, 0.66), (64.4, 0.003, 2.80, 511.2, 38.0, 0.58)),
    "balanced": ((59.4, 0.003, 3.44, 501.5, 36.7, 0.51), (63.2, 0.26, 3.07, 392.0, 37.0, 0.54)),
    "favor-lat": ((65.1, 0.008, 3.28, 334.3, 36.8, 0.58), (63.3, 0.003, 3.59, 378.9, 36.1, 0.52)),
}
SUMMARIES = {
    "published": "published semantics, 4 clusters, every preference, PPO",
    "published-dqn": "published semantics, 4 clusters, every preference, DQN",
    "fixed-rate5": (
        "fixed semantics, 4 clusters, 5 arrivals per unit of time, every preference, PPO"
    ),
    "fixed-rate20": (
        "fixed semantics, 4 clusters, 20 arrivals per unit of time, every preference, PPO"
    ),
}
LIMITS = {
    "published": "learned in an environment that undoes every placement before the next "
    "request and pays +1 for refusing what no single "
    "cluster can take: for the paper's tables, not for a cluster.",
    "fixed": "generated clusters of Table 4 and Cloud2Edge requests at one rate of "
    "arrivals; beyond eight clusters and at other "
    "rates see benchmarks/multi_cluster/learned.md before use.",
}
Facts = dict[str, tuple[float, float]]


def path_of(name: str, seed: int) -> Path:
    """Return where a policy is kept."""
    return (
        policy_file.BUNDLED / f"multi-cluster-{name}.npz"
        if seed == SEEDS[0]
        else HERE / "policies" / f"{name}-seed{seed}.npz"
    )


def measure(
    environment: dict[str, Any],
    choose: Chooser,
    weights: Any,
    episodes: int = EPISODES,
    **options: Any,
) -> Facts:
    """Return what a policy comes to."""
    batch = multi_cluster.batch(None, min(500, episodes), **(environment | options))
    return summary(evaluate(batch, choose, episodes, weights, FIRST))


def train(name: str, seed: int) -> None:
    """Train one policy."""
    from placeopt.rl.training import train as learn

    environment, algorithm, options = RUNS[name]
    settings = replace(defaults(algorithm).with_options(options | {"seed": seed}), weights=DRAWN)
    policy = learn(
        multi_cluster.batch(None, settings.num_envs, **environment),
        "multi-cluster",
        settings,
        environment=environment,
    )
    finish(name, seed, policy)


def finish(name: str, seed: int, policy: TrainedPolicy) -> None:
    """Measure a trained policy and write it with its card."""
    environment = RUNS[name][0]
    score = policy.shape.score
    found = {}
    for strategy, weights in multi_cluster.PREFERENCES.items():
        ours, other = (
            measure(environment, choose, weights, 500) for choose in (policy.act, greedy(score))
        )
        facts = {
            "reward": round(ours["reward"][0], 2),
            "acceptance": round(ours["acceptance"][0], 4),
        }
        found[strategy] = facts | {"one-step greedy": round(other["reward"][0], 2)}
    card = {
        "summary": SUMMARIES[name],
        "data": "generated episodes of 100 requests, no outside data",
        "evaluation": {"episodes": 500, "seeds": f"{FIRST} and after", "strategies": found},
        "limits": LIMITS[name.partition("-")[0]],
    }
    path = path_of(name, seed)
    path.parent.mkdir(exist_ok=True)
    policy_file.write(policy.with_card(**card), path)
    print(
        path,
        policy.card["cpu_seconds"],
        {key: tuple(value.values()) for key, value in found.items()},
    )


def baseline(
    environment: dict[str, Any], name: str, episodes: int = EPISODES, **options: Any
) -> dict[str, Facts]:
    """Return what a baseline comes to by strategy.

    It takes the same actions for every one, so that it plays once.
    """
    batch = multi_cluster.batch(None, min(500, episodes), **(environment | options))
    rng, earned, accepted = np.random.default_rng(1), [], []
    for first in range(0, episodes, batch.num_envs):
        batch.reset(np.arange(batch.num_envs, dtype=np.uint64) + np.uint64(FIRST + first))
        earned.append(known.play(batch, known.of(name, ()), rng))
        accepted.append(batch.info()["acceptance"])
    rewards, acceptance = np.concatenate(earned), np.concatenate(accepted)
    return {
        key: summary({"reward": rewards @ np.array(weights), "acceptance": acceptance})
        for key, weights in multi_cluster.PREFERENCES.items()
    }


def there(name: str) -> dict[int, TrainedPolicy]:
    """Return the trained policies of a name by seed."""
    return {
        seed: policy_file.read(path_of(name, seed))
        for seed in SEEDS
        if path_of(name, seed).exists()
    }


def number(value: float, digits: int = 2) -> str:
    """Return a number for a table."""
    return "-" if value != value else f"{value:.{digits}f}"


def bold(value: float, ahead: bool) -> str:
    """Return a number for a table, bold where every seed is ahead of all others."""
    return f"**{number(value)}**" if ahead else number(value)


def mean(facts: list[Facts], key: str) -> float:
    """Return the mean over seeds."""
    return float(np.mean([one[key][0] for one in facts]))


def against_the_paper() -> Iterator[str]:
    """Yield Table 8's learned rows: the paper's numbers beside ours."""
    for name, column, label in (("published", 0, "DS-PPO"), ("published-dqn", 1, "DS-DQN")):
        policies = there(name)
        if not policies:
            continue
        rows, wins, every = [], 0, 0
        for strategy, weights in multi_cluster.PREFERENCES.items():
            facts = [
                measure({"semantics": "published"}, policy.act, weights)
                for policy in policies.values()
            ]
            paper, best = PAPER[strategy][column], max(line[0] for line in PAPER[strategy])
            each = [one["reward"][0] for one in facts]
            wins += min(each) > best
            every += sum(r > best for r in each)
            ours = (
                f"{bold(mean(facts, 'reward'), min(each) > best)} "
                f"({', '.join(number(r, 1) for r in each)})",
                number(100 * (1 - mean(facts, "acceptance")), 3),
                *(
                    number(mean(facts, key), digits)
                    for key, digits in (
                        ("cost", 2),
                        ("latency_ms", 1),
                        ("cpu_usage", 1),
                        ("gini", 2),
                    )
                ),
            )
            rows.append((strategy, *(f"{p} / {o}" for p, o in zip(paper, ours, strict=True)), best))
        head = (
            "strategy",
            "reward",
            "rejected %",
            "cost",
            "latency ms",
            "cpu %",
            "Gini",
            "paper's best",
        )
        yield f"### {label}, published semantics"
        yield ""
        yield (
            f"One preference-conditioned policy for all eight strategies, {len(policies)} seeds "
            "(rewards of each in brackets); paper / ours."
        )
        yield (
            f"Above the paper's best with every seed: {wins} of 8 strategies; "
            f"{every} of {8 * len(policies)} "
            "single results."
        )
        yield ""
        yield from machine.table(head, rows)
        yield ""


def fixed() -> Iterator[str]:
    """Yield reward and acceptance in the fixed semantics beside the greedy policies and the myopic
    one.
    """
    for rate in (5.0, 20.0):
        policies = there(f"fixed-rate{rate:g}")
        if not policies:
            continue
        rows, above, kept = [], 0, 0
        played = {name: baseline({"rate": rate}, name) for name in known.BASELINES}
        for strategy, weights in multi_cluster.PREFERENCES.items():
            ours = [measure({"rate": rate}, policy.act, weights) for policy in policies.values()]
            others = {name: facts[strategy] for name, facts in played.items()}
            others["myopic"] = measure({"rate": rate}, greedy(multi_cluster.SCORE), weights)
            best = max(others.values(), key=lambda one: one["reward"][0])["reward"][0]
            accepted = max(others[name]["acceptance"][0] for name in known.BASELINES)
            each = [one["reward"][0] for one in ours]
            above += min(each) > best
            kept += mean(ours, "acceptance") >= accepted - 0.01
            cells = [
                f"{number(one['reward'][0])} / {100 * one['acceptance'][0]:.2f}"
                for one in others.values()
            ]
            seeds = ", ".join(map(number, each))
            percent = 100 * mean(ours, "acceptance")
            mean_reward = bold(float(np.mean(each)), min(each) > best)
            mine = f"{mean_reward} ({seeds}) / {percent:.2f}"
            rows.append((strategy, mine, *cells, f"{ours[0]['reward'][1]:.2f}"))
        yield f"### Fixed semantics, {rate:g} arrivals per unit of time"
        yield ""
        yield (
            f"Reward / acceptance in %; {len(policies)} seed(s). With every seed above all "
            f"others: {above} of 8 strategies; acceptance not below"
        )
        yield (
            f"the best greedy's less one point: {kept} of 8. All play the same episodes, so "
            "that differences are surer than the half widths say."
        )
        yield ""
        yield from machine.table(
            ("strategy", "DS-PPO", *known.BASELINES, "myopic", "half width"), rows
        )
        yield ""


def zero_shot(episodes: int = 50) -> Iterator[str]:
    """Yield what policies trained on four clusters do on more of them, with the paper's replicas of
    C to 4 C.
    """
    for name, environment in (
        ("published", {"semantics": "published"}),
        ("fixed-rate20", {"rate": 20.0}),
    ):
        for seed, policy in list(there(name).items())[:1]:
            rows = []
            for clusters in (4, 8, 16, 32):
                options = {"clusters": clusters, "replicas": (clusters, 4 * clusters)}
                played = [
                    baseline(environment, who, episodes, **options)
                    for who in ("cpu-greedy", "binpack")
                ]
                for strategy in ("cost", "balanced"):
                    weights, score = (
                        multi_cluster.PREFERENCES[strategy],
                        greedy(multi_cluster.SCORE),
                    )
                    facts = [
                        measure(environment, who, weights, episodes, **options)
                        for who in (policy.act, score)
                    ]
                    facts += [one[strategy] for one in played]
                    rows.append(
                        (
                            clusters,
                            strategy,
                            *(
                                f"{number(f['reward'][0])} / {100 * f['acceptance'][0]:.1f}"
                                for f in facts
                            ),
                        )
                    )
            yield f"### Zero-shot: trained on 4 clusters ({name}, seed {seed})"
            yield ""
            yield (
                f"Reward / acceptance in %, {episodes} episodes, C to 4 C replicas a request. "
                "In the published semantics refusing what no single"
            )
            yield (
                "cluster can take earns +1, more than any placement: there reward says "
                "little where requests are large."
            )
            yield ""
            yield from machine.table(
                ("clusters", "strategy", "DS-PPO", "myopic", "cpu-greedy", "binpack"), rows
            )
            yield ""


def ratios(episodes: int = 100) -> Iterator[str]:
    """Yield what more replicas a request do, on four clusters."""
    for name, environment in (
        ("published", {"semantics": "published"}),
        ("fixed-rate5", {"rate": 5.0}),
    ):
        for policy in list(there(name).values())[:1]:
            rows = []
            for ratio in (1, 2, 3, 4, 6, 8):
                options = {"replicas": (4 * ratio, 4 * ratio)}
                weights = multi_cluster.PREFERENCES["balanced"]
                facts = [
                    measure(environment, who, weights, episodes, **options)
                    for who in (policy.act, greedy(multi_cluster.SCORE))
                ]
                facts += [
                    baseline(environment, who, episodes, **options)["balanced"]
                    for who in ("cpu-greedy", "binpack")
                ]
                rows.append(
                    (
                        ratio,
                        *(
                            f"{number(f['reward'][0])} / {100 * (1 - f['acceptance'][0]):.1f}"
                            for f in facts
                        ),
                    )
                )
            yield f"### Replicas per cluster, 1 to 8 ({name}, balanced)"
            yield ""
            yield f"Reward / rejected in %, {episodes} episodes, four clusters."
            yield ""
            yield from machine.table(("ratio", "DS-PPO", "myopic", "cpu-greedy", "binpack"), rows)
            yield ""


def times() -> Iterator[str]:
    """Yield what training took, Table 7 beside it."""
    rows = []
    for name in RUNS:
        for seed, policy in there(name).items():
            card, steps = policy.card, policy.card["steps"]
            paper = {"published": "1598 s", "published-dqn": "988 s"}.get(name, "-")
            rows.append(
                (
                    name,
                    seed,
                    f"{steps:,}",
                    f"{card['cpu_seconds']:.0f}",
                    f"{card['cpu_seconds'] * 200_000 / steps:.0f}",
                    paper,
                )
            )
    yield "### Training times"
    yield ""
    yield (
        "CPU seconds of one process with one thread; the machine was shared, so that they "
        "are upper bounds. The paper's times are for one"
    )
    yield (
        "strategy each, 2000 episodes of 100 steps, on a 14-core i7-12700H; ours are for one "
        "policy that serves all."
    )
    yield ""
    yield from machine.table(
        ("policy", "seed", "steps", "CPU s", "CPU s per 2000 episodes", "paper, 2000 episodes"),
        rows,
    )


PARTS = {part.__name__: part for part in (against_the_paper, fixed, zero_shot, ratios, times)}


def write() -> None:
    """Measure all parts that an earlier run did not, and write learned.md."""
    page = HERE / "learned.md"
    head = [
        "# Multi-cluster: learned policies",
        "",
        f"{EPISODES} test episodes of 100 requests for each number unless it says otherwise; the "
        "action",
        "that the policy likes most is taken, computed in NumPy.",
        "",
        "Figures 5 and 6, an agent for each strategy while it learns (figures.py):",
        "",
        "![reward, rejections, cost and latency during training](fig5_6.png)",
        "",
    ]
    text = parts.measured(page, PARTS, __file__, {}, "placeopt", "numpy", "numba")
    stamps.write(page, "\n".join([*head, text]), __file__, {})


def main() -> None:
    """Train a policy or write the page."""
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], int(sys.argv[3]))
    else:
        write()


if __name__ == "__main__":
    main()
