"""HephaestusForge: the paper's own agents trained here, Figs. 5, 6 and 10.

The preset of `placeopt_papers.hephaestus`, and DQN by `placeopt_papers.dqn`: an agent for one
strategy, the ten columns of Table 3, no one-step reward in the network, 200,000 steps; DQN without
masks. Numbers that the paper leaves out are those of the published code; ours have eight
environments at once. A last agent is ours, of all preferences, with acceptance as the fourth. One
training seed. `make papers ONLY=hephaestus_training` trains those that are missing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers.authors_episodes import PRINTED, AuthorsEpisodes, means
from placeopt_papers import hephaestus

from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rl.episodes import DRAWN
from placeopt.rl.evaluation import evaluate, summary
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.settings import TrainingSettings

FULL = {"steps": 200_000, "episodes": 2000, "crowded": 200, "strategies": tuple(STRATEGIES)}
QUICK = {"steps": 12_000, "episodes": 50, "crowded": 20, "strategies": ("cost",)}
AGENTS = ("DS-PPO", "DS-DQN")
#: The strategies that are trained first, and those with the extended actions of Fig. 10.
FIRST, EXTENDED = ("latency", "cost", "inequality", "balanced"), ("latency", "cost", "inequality")
RATIOS = (1, 4, 8)
#: Episodes between two points of a curve.
WINDOW = 200
COLUMNS = ("reward", "rejected", "cost", "latency_ms")
#: Means of the authors' training files over windows of episodes.
AUTHORS = Path(__file__).resolve().parents[1] / "authors_training.csv"
Row = dict[str, Any]


class Timed(AuthorsEpisodes):
    """The authors' test episodes with times of arrival, which agents see and no rule reads."""

    def _write_traces(self, chosen: np.ndarray) -> None:
        super()._write_traces(chosen)
        for i in chosen:
            gaps = np.random.default_rng(int(self._which[i])).exponential(1 / self.rate, self.steps)
            self.traces.arrival[i] = gaps.cumsum()


def trained(name: str, strategy: str, spreads: int, steps: int) -> tuple[TrainedPolicy, Row]:
    """Return an agent of the paper, and its curve with CPU seconds."""
    from placeopt_papers.dqn import DS_DQN

    from placeopt.rl.training import train

    known = DS_DQN if name == "DS-DQN" else hephaestus.PAPER
    settings = replace(known.settings, weights=STRATEGIES[strategy], steps=steps)
    options = {**known.options, "spreads": spreads}
    batch = hephaestus.PublishedEpisodes(settings.num_envs, **options)
    curve: list[list[float]] = []

    def note(news: Any) -> None:
        facts = news.facts
        shown = (facts["reward"], 100 * (1 - facts["acceptance"]))
        curve.append([*shown, facts.get("cost", np.nan), facts.get("latency_ms", np.nan)])
        seconds.append(news.seconds)

    seconds: list[float] = []
    policy = train(batch, hephaestus.KIND, settings, environment=options, on_round=note)
    return policy, {"curve": curve, "seconds": seconds[-1]}


def played(policy: TrainedPolicy, strategy: Any, episodes: int, **options: Any) -> Row:
    """Return means over the authors' test episodes."""
    batch = Timed(min(500, episodes), episodes, memory=PRINTED, **options)
    found = summary(evaluate(batch, policy.act, episodes, strategy))
    row = {key: found[key][0] for key in ("reward", "cost", "latency_ms", "gini")}
    return row | {
        "half": found["reward"][1],
        "rejected": 100 * (1 - found["acceptance"][0]),
        "partly": 100 * (1 - found["whole"][0]),
    }


def agent(
    name: str, strategy: str, spreads: int, steps: int, episodes: int, crowded: int
) -> dict[str, Any]:
    """Train an agent, and test it on 1 to 7 replicas and on those of Fig. 10."""
    policy, known = trained(name, strategy, spreads, steps)
    weights = STRATEGIES[strategy]
    options = {"observation": "paper", "spreads": spreads}
    tests = {"test": played(policy, weights, episodes, **options)}
    if name == "DS-DQN":
        tests["without masks"] = played(policy, weights, episodes, masked=False, **options)
    if strategy in EXTENDED:
        for ratio in RATIOS:
            asked = {"replicas": (4 * ratio, 4 * ratio)}
            tests[f"ratio {ratio}"] = played(policy, weights, crowded, **options, **asked)
    return known | tests


def accepting(steps: int, episodes: int) -> dict[str, Any]:
    """Train a policy of all preferences, acceptance the fourth; play Balanced with its share."""
    from placeopt.rl.training import train

    options = {"acceptance": True}
    settings = replace(TrainingSettings().with_options({"steps": steps}), weights=DRAWN)
    batch = hephaestus.PublishedEpisodes(settings.num_envs, **options)
    seconds: list[float] = []
    policy = train(
        batch,
        hephaestus.KIND,
        settings,
        environment=options,
        on_round=lambda news: seconds.append(news.seconds),
    )
    found: dict[str, Any] = {"seconds": seconds[-1]}
    for share in (0.0, 0.25, 0.5, 0.75):
        weights = (*((1 - share) * w for w in STRATEGIES["balanced"]), share)
        for name, replicas in (("1 to 7", (1, 7)), ("ratio 4", (16, 16)), ("ratio 8", (32, 32))):
            some = episodes if name == "1 to 7" else min(200, episodes)
            found[f"{share}, {name}"] = played(
                policy, weights, some, acceptance=True, replicas=replicas
            )
    return found


def measure(
    cells: Callable[..., Any], steps: int, episodes: int, crowded: int, strategies: tuple[str, ...]
) -> dict[str, Any]:
    """Train and test the agents in the order of their use; end where the time is over."""
    first = [s for s in strategies if s in FIRST]
    rest = [s for s in strategies if s not in FIRST]
    wanted = [(name, s, 1) for s in first for name in AGENTS]
    wanted += [(name, s, 3) for s in first if s in EXTENDED for name in AGENTS]
    wanted += [(name, s, 1) for s in rest for name in AGENTS]
    kept = cells(f"acceptance {steps}", lambda: accepting(steps, episodes))
    found: dict[str, Any] = {}
    for name, strategy, spreads in wanted:
        key = f"{name} {strategy} C+{spreads + 1}"
        if found and cells.out_of_time and f"{key} {steps}" not in cells.known:
            break
        found[key] = cells(
            f"{key} {steps}",
            lambda n=name, s=strategy, k=spreads: agent(n, s, k, steps, episodes, crowded),
        )
    return {"agents": found, "asked": len(wanted), "accepting": kept}


# -- what entries and the page read ----------------------------------------------------------------


def authors() -> dict[str, list[dict[str, float]]]:
    """Return the authors' training means by agent, strategy and actions, window by window."""
    found: dict[str, list[dict[str, float]]] = {}
    with AUTHORS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = f"{row['agent']} {row['strategy']} {row['actions']}"
            found.setdefault(key, []).append({k: float(row[k]) for k in ("until", *COLUMNS)})
    return found


def of(result: Any, name: str, actions: str = "C+2") -> dict[str, Any]:
    """Return the trained agents of a kind by strategy."""
    return {
        key.split()[1]: row
        for key, row in result["agents"].items()
        if key.startswith(name) and key.endswith(actions)
    }


def last(result: Any, name: str) -> list[float]:
    """Return the rejections at the end of training, by agent, %."""
    return [row["curve"][-1][1] for row in of(result, name).values()]


def converged(curve: list[list[float]]) -> int:
    """Return the episode after which no window's reward leaves the last one's by a tenth of the
    way that it went.
    """
    rewards = [row[0] for row in curve]
    near = 0.1 * max(abs(rewards[-1] - rewards[0]), 1.0)
    far = [k for k, reward in enumerate(rewards) if abs(reward - rewards[-1]) > near]
    return WINDOW * ((far[-1] + 1 if far else 0) + 1)


def convergence(result: Any) -> list[int]:
    """Return the episodes after which the agents of C + 2 actions have converged."""
    return [converged(row["curve"]) for name in AGENTS for row in of(result, name).values()]


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# HephaestusForge: the paper's own agents, Figs. 5, 6 and 10"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield ""
    yield f"{len(result['agents'])} of {result['asked']} agents of the paper are trained."
    yield from _curves(result)
    yield from _tests(result)
    yield from _ratios(result)
    yield from _accepting(result)


def _curves(result: Any) -> Iterator[str]:
    yield from ("", "## Figs. 5 and 6: training", "")
    yield (
        f"Reward / rejected in %; ours is the mean over the latest 100 episodes after every "
        f"{WINDOW}, the authors' the mean over these {WINDOW} of their training files. "
        "`converged`: after which no window's reward leaves the last one's by a tenth of the way "
        "that it went; the paper says 700 to 1,000, by no printed rule."
    )
    yield from ("", "![training curves](hephaestus_training.png)", "")
    theirs, rows = authors(), []
    shown = (1, 3, 5, 10)
    for key, row in result["agents"].items():
        for who, curve in (
            ("ours", row["curve"]),
            ("authors", [[one[c] for c in COLUMNS] for one in theirs.get(key, [])]),
        ):
            if curve:
                points = [curve[k - 1] if k <= len(curve) else None for k in shown]
                cells = (f"{p[0]:.1f} / {p[1]:.2f}" if p else "-" for p in points)
                time = f"{row['seconds']:.0f}" if who == "ours" else ""
                rows.append((key, who, *cells, converged(curve), time))
    head = ("agent", "whose", *(f"episode {WINDOW * k}" for k in shown), "converged", "CPU s")
    yield from table(head, rows)


def _tests(result: Any) -> Iterator[str]:
    yield from ("", "## Table 8: tests on the authors' episodes", "")
    yield (
        "Reward / rejected in % / cost / latency in ms / Gini. `without masks` is DQN as it was "
        "trained; the published test masks."
    )
    yield ""
    theirs = {
        (row["actions"], row["policy"], row["strategy"]): row
        for row in means()
        if row["set"] in ("table 8", "test")
    }
    rows = []
    for key, row in result["agents"].items():
        name, strategy, actions = key.split()
        paper = theirs.get((actions, name[3:].lower(), strategy))
        keys = ("reward", "rejected_percent", "cost", "latency_ms", "gini")
        other = " / ".join(f"{float(paper[k]):.3g}" for k in keys) if paper else "-"
        rows.append((key, other, *(_five(row.get(name)) for name in ("test", "without masks"))))
    yield from table(("agent", "authors' files", "ours", "ours without masks"), rows)


def _five(row: Any) -> str:
    keys = ("reward", "rejected", "cost", "latency_ms", "gini")
    return " / ".join(f"{row[k]:.3g}" for k in keys) if row else "-"


def _ratios(result: Any) -> Iterator[str]:
    yield from ("", "## Figs. 8 and 10: ratios, with one spread and with three", "")
    yield "Reward / rejected in % / rejected or partly placed in %; authors' files: the first two."
    yield ""
    theirs = {
        (row["actions"], row["policy"], row["strategy"], row["x"]): row
        for row in means()
        if row["set"] == "ratio"
    }
    rows = []
    for key, row in result["agents"].items():
        name, strategy, actions = key.split()
        if strategy not in EXTENDED:
            continue
        cells: list[str] = []
        for ratio in RATIOS:
            one = row[f"ratio {ratio}"]
            paper = theirs.get((actions, name[3:].lower(), strategy, str(ratio)))
            cells.append(
                f"{float(paper['reward']):.1f} / {float(paper['rejected_percent']):.2f}"
                if paper
                else "-"
            )
            cells.append(f"{one['reward']:.1f} / {one['rejected']:.2f} / {one['partly']:.1f}")
        rows.append((key, *cells))
    head = [part for ratio in RATIOS for part in (f"ratio {ratio}: authors", "ours")]
    yield from table(("agent", *head), rows)


def _accepting(result: Any) -> Iterator[str]:
    found = result["accepting"]
    yield from ("", "## Acceptance as a fourth preference", "")
    yield (
        "One policy of ours for all preferences of four parts, refusals free: Balanced with a "
        "growing share for acceptance. Rejected / rejected or partly placed, in %; the reward is "
        f"that of Balanced and the share together. Training took {found['seconds']:.0f} CPU s."
    )
    yield ""
    names = ("1 to 7", "ratio 4", "ratio 8")
    rows = [
        (
            share,
            *(
                f"{row['rejected']:.3f} / {row['partly']:.2f}, cost {row['cost']:.2f}, "
                f"{row['latency_ms']:.0f} ms"
                for row in (found[f"{share}, {name}"] for name in names)
            ),
        )
        for share in (0.0, 0.25, 0.5, 0.75)
    ]
    yield from table(("share of acceptance", *names), rows)


def draw(result: Any, folder: Path) -> None:
    """Draw Figs. 5 and 6: reward, rejections, cost and latency while the agents learn."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 6), layout="constrained")
    axes = drawing.subplots(2, 4, sharex=True)
    theirs = authors()
    for row, name in zip(axes, AGENTS, strict=True):
        for number, strategy in enumerate(of(result, name)):
            ours = np.array(of(result, name)[strategy]["curve"])
            other = theirs.get(f"{name} {strategy} C+2", [])
            for axis, column, label in zip(row, range(4), COLUMNS, strict=True):
                across = WINDOW * (np.arange(len(ours)) + 1)
                axis.plot(across, ours[:, column], color=f"C{number}", label=strategy)
                axis.plot(
                    [one["until"] for one in other],
                    [one[label] for one in other],
                    color=f"C{number}",
                    linestyle=":",
                )
                axis.set(title=f"{name}: {label}", xlabel="episodes")
    known = axes[0][0].get_legend_handles_labels()
    drawing.legend(*known, loc="outside lower center", ncols=8, title="dotted: the authors' files")
    drawing.savefig(folder / "hephaestus_training.png", dpi=90)
