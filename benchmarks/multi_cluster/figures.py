"""Figures 5, 6, 8 and 9 of the multi-cluster paper, drawn.

    python benchmarks/multi_cluster/figures.py [training] [scaling]

`training` trains an agent for each strategy, some minutes, and draws fig5_6.png; `scaling` draws
fig8_9.png from the tables of results.md.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from placeopt.multi_cluster import environment as multi_cluster
from placeopt.rl.settings import defaults

HERE = Path(__file__).parent
#: Steps of an agent; the paper's 2,000 episodes are 200,000.
STEPS = {"ppo": 100_000, "dqn": 50_000}
#: What Figures 5 and 6 show of an episode: its key, the label, what it is multiplied by.
SHOWN = (
    ("reward", "reward", 1.0),
    ("acceptance", "rejected, %", 100.0),
    ("cost", "cost, units", 1.0),
    ("latency_ms", "latency, ms", 1.0),
)


def curve(algorithm: str, weights: tuple[float, ...]) -> list[tuple[int, dict[str, float]]]:
    """Train an agent of one strategy; return what its latest episodes came to, round by round."""
    from placeopt.rl.training import train

    steps, found = STEPS[algorithm], []
    settings = replace(
        defaults(algorithm).with_options({"steps": steps, "seed": 1}), weights=weights
    )
    environment = {"semantics": "published"}
    train(
        multi_cluster.batch(None, settings.num_envs, **environment),
        "multi-cluster",
        settings,
        environment=environment,
        on_round=lambda news: found.append((news.steps, news.facts)) and False,
    )
    return found


def training() -> None:
    """Draw reward, rejections, cost and latency while agents learn, a line for each strategy: DS-
    PPO above, DS-DQN below.
    """
    figure = Figure(figsize=(15, 6.4), layout="constrained")
    axes = figure.subplots(2, len(SHOWN))
    for row, algorithm in zip(axes, STEPS, strict=True):
        for name, weights in multi_cluster.PREFERENCES.items():
            rounds = curve(algorithm, weights)
            print(algorithm, name, rounds[-1], flush=True)
            for panel, (key, label, factor) in zip(row, SHOWN, strict=True):
                drawn = [(steps / 100, facts[key]) for steps, facts in rounds if key in facts]
                values = [factor * (1 - v) if key == "acceptance" else factor * v for _, v in drawn]
                panel.plot([episode for episode, _ in drawn], values, label=name, linewidth=1.3)
                panel.set(xlabel="episodes", ylabel=label, title=f"DS-{algorithm.upper()}")
    axes[0][0].legend(fontsize=7)
    figure.savefig(HERE / "fig5_6.png", dpi=110)


def tables() -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return the tables of results.md under headings of figures: heading -> column names, rows."""
    found = {}
    for section in re.split(
        r"^## ", (HERE / "results.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )[1:]:
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines()
            if line.startswith("|")
        ]
        if section.startswith("Figure"):
            found[section.splitlines()[0]] = (rows[0], rows[2:])
    return found


def scaling() -> None:
    """Draw rejections, cost, latency and Gini coefficient by ratio and by number of clusters, of
    what needs no training.
    """
    chosen = {
        heading: rows
        for heading, rows in tables().items()
        if heading.startswith(("Figure 8", "Figure 9"))
    }
    figure = Figure(figsize=(15, 3.2 * len(chosen)), layout="constrained")
    axes = figure.subplots(len(chosen), 4)
    for row, (heading, (names, rows)) in zip(axes, chosen.items(), strict=True):
        for panel, (k, label) in zip(
            row,
            enumerate(("rejected, %", "cost, units", "latency, ms", "Gini coefficient")),
            strict=True,
        ):
            for column, name in enumerate(names[1:], start=1):
                values = [float(cells[column].split("/")[k].split("(")[0]) for cells in rows]
                panel.plot(
                    [int(cells[0]) for cells in rows],
                    values,
                    marker="o",
                    markersize=3,
                    linewidth=1.3,
                    label=name,
                )
            panel.set(xlabel=names[0], ylabel=label)
        row[0].set_title(heading, loc="left", fontsize=9)
    axes[0][0].legend(fontsize=7)
    figure.savefig(HERE / "fig8_9.png", dpi=110)


if __name__ == "__main__":
    for part in sys.argv[1:] or ("training", "scaling"):
        {"training": training, "scaling": scaling}[part]()
