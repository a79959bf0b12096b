"""HephaestusForge: spreads that leave no replica out, in the place of the code's one pass.

The published code places spreads in one pass and leaves out what does not fit in it. Algorithm 1 as
printed repeats its loop until nothing is left (`printed`); Karmada divides replicas by what
clusters can still take (`divide`). All play the authors' 2,000 test episodes with both sets of
requests. *One step*: no training, the action of the highest reward now. *Trained*: the bundled
policy, which learned with divisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from machine import table
from papers.authors_episodes import LOWERED, PRINTED, AuthorsEpisodes
from papers.measures.hephaestus_heuristics import BEST, PAPER, half, heuristic, shown, trained

from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rl.evaluation import evaluate

FULL = {"episodes": 2000, "trained_episodes": 2000}
QUICK = {"episodes": 50, "trained_episodes": 10}
REQUESTS = {"printed": PRINTED, "lowered": LOWERED}
#: The paper's four, and Karmada's own division, which it does not compare.
BASELINES = (*PAPER, "karmada-divided")
SPREADS = ("ffd", "printed", "divide")


def episodes_of(count: int, requests: str, spread: str) -> AuthorsEpisodes:
    """Return all episodes at once, begun; a refusal is legal where nothing places the request."""
    batch = AuthorsEpisodes(
        count, count, memory=REQUESTS[requests], accept="first", first_spread=spread
    )
    batch.reset(np.arange(count, dtype=np.uint64))
    return batch


def facts(found: dict[str, np.ndarray], reward: np.ndarray) -> dict[str, Any]:
    """Return reward with its half interval, and what is rejected and partly placed, in %."""
    return {
        "reward": [float(reward.mean()), half(reward)],
        "rejected": float(100 * (1 - found["acceptance"]).mean()),
        "partly": float(100 * (1 - found["whole"]).mean()),
        "cost": float(found["cost"].mean()),
        "latency_ms": float(found["latency_ms"].mean()),
        "gini": float(found["gini"].mean()),
    }


def one_step(strategy: str, requests: str, spread: str, count: int) -> dict[str, Any]:
    batch, weights = episodes_of(count, requests, spread), np.array(STRATEGIES[strategy])
    policy = partial(policies.myopic, weights=weights)
    earned = policies.play(batch, policy, np.random.default_rng(1))
    return facts(batch.info(), earned @ weights)


def by_policy(strategy: str, requests: str, spread: str, count: int) -> dict[str, Any]:
    batch = episodes_of(count, requests, spread)
    found = evaluate(batch, trained(1).act, count, STRATEGIES[strategy])
    return facts(found, found["reward"])


def measure(cells: Callable[..., Any], episodes: int, trained_episodes: int) -> dict[str, Any]:
    result: dict[str, Any] = {"episodes": episodes, "trained episodes": trained_episodes}
    result["baselines"] = {
        requests: {
            name: cells(
                f"{name} {requests} {episodes}",
                lambda n=name, r=requests: shown(heuristic(n, r, episodes)),
            )
            for name in BASELINES
        }
        for requests in REQUESTS
    }
    for who, play, count in (
        ("one step", one_step, episodes),
        ("trained", by_policy, trained_episodes),
    ):
        result[who] = {
            requests: {
                spread: {
                    strategy: cells(
                        f"{who} {requests} {spread} {strategy} {count}",
                        lambda s=strategy, r=requests, d=spread, p=play, n=count: p(s, r, d, n),
                    )
                    for strategy in STRATEGIES
                }
                for spread in SPREADS
                if who == "one step" or spread == "divide"
            }
            for requests in REQUESTS
        }
    return result


def worst(result: Any, requests: str, spread: str, key: str, who: str = "one step") -> float:
    """Return the largest share over the strategies, in %."""
    return max(row[key] for row in result[who][requests][spread].values())


def above(result: Any, requests: str, spread: str, who: str = "one step") -> int:
    """Return in how many strategies the reward is above the paper's best by its interval."""
    rows = result[who][requests][spread]
    return sum(row["reward"][0] - row["reward"][1] > BEST[name][0] for name, row in rows.items())


def fewer(result: Any, requests: str, spread: str) -> int:
    """Return in how many strategies no more is rejected than by the paper's better agent."""
    rows = result["one step"][requests][spread]
    return sum(row["rejected"] <= BEST[name][1] for name, row in rows.items())


def page(result: Any) -> Iterator[str]:
    yield "# HephaestusForge: spreads that leave no replica out"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield from (
        "",
        "Reward, with its half interval / rejected / rejected or partly placed, in %. "
        f"{result['episodes']:,} episodes, of the trained one {result['trained episodes']:,}.",
    )
    for requests in REQUESTS:
        yield from ("", f"## Requests: {requests}", "")
        kinds = [("one step", spread) for spread in SPREADS] + [("trained", "divide")]
        rows = []
        for strategy, (best, rejected) in BEST.items():
            cells = [result[who][requests][spread][strategy] for who, spread in kinds]
            shown = (
                "{:.1f} ± {:.1f} / {:.4f} / {:.4f}".format(*c["reward"], c["rejected"], c["partly"])
                for c in cells
            )
            rows.append((strategy, f"{best:g} / {rejected:g}", *shown))
        head = ("strategy", "paper's best reward / rejected")
        yield from table((*head, *(f"{who}, {spread}" for who, spread in kinds)), rows)
        yield from ("", "Baselines: rejected in %, cost, latency in ms, cpu in %, Gini.", "")
        rows = [
            (name, *(f"{row[key][0]:.4g}" for key in row))
            for name, row in result["baselines"][requests].items()
        ]
        yield from table(("baseline", "rejected", "cost", "latency", "cpu", "Gini"), rows)
