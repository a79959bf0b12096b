"""HephaestusForge: DQN with masks and without, and our policy trained with divisions; three seeds.

The paper trains DQN without masks, its published code masks choices: both, in the strategies in
which training without masks rejects most. *Divisions*: a policy of all preferences, trained as the
bundled one, where Karmada's division stands in the place of the code's one pass
(`first_spread=divide`); it plays the authors' 2,000 test episodes with the published requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from machine import table
from papers.measures.hephaestus_divide import episodes_of, facts
from papers.measures.hephaestus_heuristics import BEST
from placeopt_papers import hephaestus

from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rl.episodes import DRAWN
from placeopt.rl.evaluation import evaluate
from placeopt.rl.settings import TrainingSettings

FULL = {"steps": 100_000, "own_steps": 400_000, "episodes": 2000, "seeds": 3}
QUICK = {"steps": 4_000, "own_steps": 4_000, "episodes": 20, "seeds": 1}
#: Strategies in which DQN without masks rejects most.
MIXED = ("cost-ineq", "lat-cost")
#: Steps of an episode, and episodes between two points of a curve.
EPISODE, WINDOW = 100, 200


def curve(strategy: str, masked: bool, steps: int, seed: int) -> dict[str, Any]:
    """Train the paper's DQN; return reward and rejections in % after every window."""
    from placeopt_papers.dqn import DS_DQN

    from placeopt.rl.training import train

    settings = replace(DS_DQN.settings, weights=STRATEGIES[strategy], steps=steps, seed=seed)
    options = {**DS_DQN.options, "spreads": 1, "masked": masked}
    batch = hephaestus.PublishedEpisodes(settings.num_envs, **options)
    points: list[list[float]] = []

    def note(news: Any) -> None:
        points.append([news.facts["reward"], 100 * (1 - news.facts["acceptance"])])

    train(batch, hephaestus.KIND, settings, environment=options, on_round=note)
    return {"curve": points}


def divided(steps: int, episodes: int, seed: int) -> dict[str, Any]:
    """Train a policy of all preferences with divisions; return what it reaches in each strategy."""
    from placeopt.rl.training import train

    options = {"first_spread": "divide"}
    settings = replace(TrainingSettings().with_options({"steps": steps}), weights=DRAWN, seed=seed)
    batch = hephaestus.PublishedEpisodes(settings.num_envs, **options)
    policy = train(batch, hephaestus.KIND, settings, environment=options)
    rows = {}
    for name, weights in STRATEGIES.items():
        found = evaluate(episodes_of(episodes, "printed", "divide"), policy.act, episodes, weights)
        rows[name] = facts(found, found["reward"])
    return rows


def measure(
    cells: Callable[..., Any], steps: int, own_steps: int, episodes: int, seeds: int
) -> dict[str, Any]:
    """Train all of them."""
    seeded = range(1, seeds + 1)
    own = [
        cells(f"divide {own_steps} {episodes} {s}", lambda s=s: divided(own_steps, episodes, s))
        for s in seeded
    ]
    dqn = {
        f"{strategy}, {'masks' if masked else 'no masks'}": [
            cells(
                f"{strategy} {masked} {steps} {s}",
                lambda a=strategy, m=masked, s=s: curve(a, m, steps, s),
            )["curve"]
            for s in seeded
        ]
        for strategy in MIXED
        for masked in (True, False)
    }
    return {"steps": steps, "own steps": own_steps, "divide": own, "dqn": dqn}


def last(result: Any, kind: str) -> list[float]:
    """Return the rejections at the end of training, %: `masks` or `no masks`, by run."""
    return [
        run[-1][1]
        for name, runs in result["dqn"].items()
        for run in runs
        if name.endswith(f", {kind}")
    ]


def worst(result: Any, key: str) -> float:
    """Return the largest share over strategies and seeds of the policies with divisions, %."""
    return max(row[key] for rows in result["divide"] for row in rows.values())


def above(result: Any) -> list[int]:
    """Return in how many strategies the reward is above the paper's best, seed by seed."""
    return [
        sum(row["reward"][0] - row["reward"][1] > BEST[name][0] for name, row in rows.items())
        for rows in result["divide"]
    ]


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# HephaestusForge: masks, and training with divisions"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield from ("", "## DQN with masks and without", "")
    yield (
        f"Rejected in % over the latest episodes, mean of the seeds (least to most); "
        f"{result['steps']:,} steps, the paper has 200,000. The paper says below 5 %."
    )
    yield ""
    shown = [100, 300, 500, 1000]
    rows = []
    for name, runs in result["dqn"].items():
        cells = []
        for episode in shown:
            at = [run[min(len(run), max(1, episode // WINDOW)) - 1][1] for run in runs]
            cells.append(f"{np.mean(at):.2f} ({min(at):.2f} to {max(at):.2f})")
        rows.append((name, *cells))
    yield from table(("strategy", *(f"episode {one}" for one in shown)), rows)
    yield from ("", "## Trained with divisions", "")
    yield f"Reward with its half interval / rejected in %; {result['own steps']:,} steps."
    yield ""
    rows = [
        (
            name,
            f"{best:g} / {rejected:g}",
            *(
                "{:.1f} ± {:.1f} / {:.4f}".format(*one[name]["reward"], one[name]["rejected"])
                for one in result["divide"]
            ),
        )
        for name, (best, rejected) in BEST.items()
    ]
    seeds = [f"seed {k + 1}" for k in range(len(result["divide"]))]
    yield from table(("strategy", "paper's best", *seeds), rows)
