"""REACH: training with Table V, Figs. 6 and 7.

The preset `reach-ppo` of `placeopt train`, and RSDQL by `placeopt_papers.dqn`: MaskablePPO and DQN
of stable-baselines3 with the paper's hyper-parameters; what it does not print, such as passes over
a batch and the network of sets, is ours. Episodes have 4 to 20 pods of one application, anywhere.
The paper trains 3 million steps on 64 cores and a GPU; here every agent has one core. All agents
train in turns, each to twice the steps of the turn before, and those on more pods and nodes to a
quarter of that until the others have ended. `make papers ONLY=reach_training MINUTES=60` ends the
turn that is under way after 60 CPU minutes; the next run goes on from its checkpoints. Curves are
mean returns of the latest episodes, ms of latency less 2 for a move.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers.measure import SCRATCH, Cells

from placeopt.rescheduling import episodes as environment
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.settings import TrainingSettings

FULL = {"steps": 3_000_000, "keep": True}
QUICK = {"steps": 2_048, "keep": False}
#: Steps of the first turn.
FIRST = 125_000
#: Agent of the paper -> its name here.
AGENTS = {"REACH": "reach-ppo", "RSDQL": "rsdql"}
#: Pods and machines of each of three kinds: Fig. 7. Its 20 pods on 6 nodes are an agent of Fig. 6.
SCALES = ((28, 4), (36, 6))
SMALLEST, AS_IN_FIG_6 = "20 pods, 6 nodes", "aggregator-sequential, REACH"
#: Share of the steps of a turn that agents of Fig. 7 train to: a step takes 3 to 6 times as long.
SCALED = 0.25
DECISIONS = 200
#: Steps, CPU seconds and mean return after each round.
Curve = list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Rounds(TrainingSettings):
    """Settings with rounds that make some hundred points of a curve."""

    @property
    def round_steps(self) -> int:
        """Steps of a round."""
        return 10_240


def settings_of(preset: str, steps: int) -> TrainingSettings:
    """Return the settings of an agent of the paper; a round makes a point of its curve."""
    if preset == "reach-ppo":
        return Rounds(**vars(environment.TABLE_V) | {"weights": (1.0,), "steps": steps})
    from placeopt_papers.dqn import RSDQL, DqnSettings

    @dataclass(frozen=True, kw_only=True)
    class Longer(DqnSettings):
        @property
        def round_steps(self) -> int:  # a checkpoint has the replay buffer, and takes seconds
            return 51_200

    return Longer(**vars(RSDQL.settings) | {"steps": steps})


def trained(
    preset: str, name: str, steps: int, keep: bool, stop: Callable[[int], bool], **options: Any
) -> tuple[TrainedPolicy, Curve]:
    """Return an agent of a run of so many steps, and its curve, once `stop(steps made)`.

    With `keep` go on from its checkpoint.
    """
    from placeopt.rl.training import train

    settings = settings_of(preset, steps)
    batch = environment.batch(None, settings.num_envs, **options)
    batch.reset()
    folder = SCRATCH / "reach"
    checkpoint, log = folder / f"{name}.npz", folder / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    again = keep and checkpoint.exists() and log.exists()
    curve = json.loads(log.read_text(encoding="utf-8")) if again else []

    def note(news: Any) -> bool:
        curve.append([news.steps, news.seconds, news.facts.get("reward", np.nan)])
        if keep:
            log.write_text(json.dumps(curve), encoding="utf-8")
        return stop(news.steps)

    policy = train(
        batch,
        "rescheduling",
        settings,
        environment=options,
        keep=checkpoint if keep else None,
        resume=checkpoint if again else None,
        on_round=note,
    )
    return policy, curve


def decision_ms(policy: TrainedPolicy, **options: Any) -> float:
    """Return CPU ms of a decision of one environment, with the environment's step."""
    batch = environment.batch(None, 1, **options)
    batch.reset(np.array([1], dtype=np.uint64))
    weights, spent = np.ones(1), 0.0
    for k in range(DECISIONS + 20):  # the first ones load and warm up
        began = time.process_time()
        _, ended = batch.step(policy.act(batch.observations, weights, batch.masks))
        spent += time.process_time() - began if k >= 20 else 0.0
        if ended.any():
            batch.reset(None, ended)
    return 1000 * spent / DECISIONS


def agents() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield each agent: part of the result, name there, preset, and options of its episodes."""
    for application in APPLICATIONS:
        for who, preset in AGENTS.items():
            yield "applications", f"{application}, {who}", preset, {"application": application}
    for pods, machines in SCALES:
        sizes = {"cloud_a": machines, "edge_a": machines, "edge_b": machines}
        options = {"application": "aggregator-sequential", "replicas": [1, pods // 4], **sizes}
        yield "scales", f"{pods} pods, {3 * machines} nodes", "reach-ppo", options


def measure(cells: Cells, steps: int, keep: bool) -> dict[str, Any]:
    """Train on what is there; a longer curve of an earlier run stays."""
    goals = [min(steps, FIRST * 2**k) for k in range(1 + ceil(log2(max(1, steps / FIRST))))]
    for turn in [*goals, steps / SCALED]:
        for part, name, preset, options in agents():
            goal = min(steps, turn if part == "applications" else max(FIRST, SCALED * turn))
            before = cells.known.get(name, {"curve": [[0]]})
            if before["curve"][-1][0] >= goal or (cells.out_of_time and name in cells.known):
                continue
            file = name.replace(", ", "-").replace(" ", "-")
            policy, curve = trained(
                preset,
                file,
                steps,
                keep,
                lambda made, goal=goal: made >= goal or cells.out_of_time,
                **options,
            )
            if curve[-1][0] > before["curve"][-1][0]:
                row = {"curve": curve, "decision_ms": decision_ms(policy, **options)}
                cells.known.pop(name, None)
                cells(name, lambda row=row: row)
    found: dict[str, Any] = {"applications": {}, "scales": {}}
    found["scales"][SMALLEST] = cells.known[AS_IN_FIG_6]
    for part, name, _, _ in agents():
        found[part][name] = cells.known[name]
    return found


# -- what entries and the page read ----------------------------------------------------------------


def minutes(result: Any, steps: float = 3e6) -> dict[str, float]:
    """Return CPU minutes that `steps` take at the pace so far, by agent."""
    rows = result["applications"] | result["scales"]
    return {
        name: steps * row["curve"][-1][1] / row["curve"][-1][0] / 60 for name, row in rows.items()
    }


def last(result: Any) -> dict[str, float]:
    """Return the return at the end of what is trained, by agent."""
    rows = result["applications"] | result["scales"]
    return {name: row["curve"][-1][2] for name, row in rows.items()}


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# REACH: training with Table V, Figs. 6 and 7"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    for part, title in (
        ("applications", "Fig. 6: three applications, 4 to 20 pods, six nodes"),
        ("scales", "Fig. 7: REACH on more pods and nodes, aggregator-sequential"),
    ):
        yield from ("", f"## {title}", "")
        rows = []
        for name, row in result[part].items():
            curve = row["curve"]
            third = curve[len(curve) // 3]
            rows.append(
                (
                    name,
                    f"{curve[-1][0]:,}",
                    f"{curve[-1][1]:.0f}",
                    *(f"{point[2]:.1f}" for point in (curve[0], third, curve[-1])),
                    f"{minutes(result)[name]:.0f}",
                    f"{row['decision_ms']:.2f}",
                )
            )
        head = ("agent", "steps", "CPU s", "return at first", "after a third", "at last")
        yield from table((*head, "CPU min of 3 million steps", "CPU ms a decision"), rows)
    yield from ("", "![returns by steps](reach_training.png)")


def draw(result: Any, folder: Path) -> None:
    """Draw Figs. 6 and 7: returns by steps."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 4), layout="constrained")
    for axis, part in zip(drawing.subplots(1, 2), ("applications", "scales"), strict=True):
        for name, row in result[part].items():
            steps, _, returns = np.array(row["curve"], dtype=float).T
            axis.plot(steps / 1000, returns, marker="o", markersize=3, label=name)
        axis.set(xlabel="steps, thousands", ylabel="mean return of an episode, ms")
        axis.legend(fontsize=8)
    drawing.savefig(folder / "reach_training.png", dpi=90)
