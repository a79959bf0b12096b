"""Train the policies of the published multi-cluster rules, and two more seeds.

    python papers/train.py    # about 5 CPU minutes; needs `make rl`

They learn where Karmada's division stands in the place of the code's first spread
(`first_spread=divide`), so that no request of the test episodes lacks a place. The card of each has
its settings and what it reaches on episodes that it did not learn on.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "benchmarks")]

from placeopt_papers.hephaestus import KIND, PublishedEpisodes  # noqa: E402

from placeopt.multi_cluster.episodes import policies  # noqa: E402
from placeopt.multi_cluster.generator import STRATEGIES  # noqa: E402
from placeopt.rl import policy_file  # noqa: E402
from placeopt.rl.episodes import DRAWN  # noqa: E402
from placeopt.rl.evaluation import evaluate, summary  # noqa: E402
from placeopt.rl.policy import TrainedPolicy  # noqa: E402
from placeopt.rl.settings import TrainingSettings  # noqa: E402

#: What they learn in.
EPISODES: dict[str, Any] = {"first_spread": "divide"}
#: Algorithm and seed -> file.
FILES = {
    ("ppo", 1): HERE / "policies" / "published.npz",
    ("dqn", 1): HERE / "policies" / "published-dqn.npz",
    ("ppo", 2): HERE / "policies" / "published-seed2.npz",
    ("ppo", 3): HERE / "policies" / "published-seed3.npz",
}
STEPS = {"ppo": 400_000, "dqn": 200_000}
#: Episodes of the card's evaluation and the first of their seeds.
TESTED, FIRST = 1000, 10**12
LIMITS = (
    "learned in an environment that undoes every placement before the next request and pays +1 "
    "for refusing what no single cluster can take: for the paper's tables, not for a cluster."
)


def reached(policy: TrainedPolicy) -> dict[str, Any]:
    """Return reward and acceptance by strategy, and the reward of the one-step greedy choice."""
    rows = {}
    for name, weights in STRATEGIES.items():
        batch = PublishedEpisodes(min(500, TESTED), **EPISODES)
        found = summary(evaluate(batch, policy.act, TESTED, weights, FIRST))
        rows[name] = {key: round(found[key][0], 4) for key in ("reward", "acceptance")}
        rng = np.random.default_rng(1)
        batch = PublishedEpisodes(TESTED, **EPISODES)
        batch.reset(np.arange(TESTED, dtype=np.uint64) + np.uint64(FIRST))
        earned = policies.play(batch, policies.of("myopic", weights), rng) @ np.array(weights)
        rows[name]["one-step greedy"] = round(float(earned.mean()), 2)
    return {"episodes": TESTED, "seeds": f"{FIRST} and after", "strategies": rows}


def main() -> None:
    """Train all of them and write their files."""
    from placeopt_papers.dqn import DqnSettings

    from placeopt.rl.training import train

    for (algorithm, seed), path in FILES.items():
        known = DqnSettings() if algorithm == "dqn" else TrainingSettings()
        settings = known.with_options({"steps": STEPS[algorithm], "seed": seed})
        settings = replace(settings, weights=DRAWN)
        batch = PublishedEpisodes(settings.num_envs, **EPISODES)
        policy = train(batch, KIND, settings, environment=EPISODES)
        card = {
            **policy.card,
            "data": "generated episodes of 100 requests, no outside data",
            "evaluation": reached(policy),
            "limits": LIMITS,
            "summary": "published semantics with Karmada's division as the first spread, "
            f"4 clusters, every preference, {algorithm.upper()}",
        }
        policy_file.write(replace(policy, card=card), path)
        print(path.name, card["cpu_seconds"], card["evaluation"]["strategies"], flush=True)


if __name__ == "__main__":
    main()
