"""REACH: training with Table V, Figs. 6 and 7.

Presets `reach-ppo` and `rsdql` of `placeopt train`: MaskablePPO and DQN of stable-baselines3 with
the paper's hyper-parameters; what it does not print, such as passes over a batch and the network of
sets, is ours. Episodes have 4 to 20 pods of one application, anywhere. The paper trains 3 million
steps on 64 cores and a GPU; here every agent trains for some CPU seconds of one core, and the next
run of `make papers ONLY=reach_training` goes on from its checkpoint. Curves are mean returns of the
latest episodes, ms of latency less 2 for a move.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers.measure import SCRATCH

from placeopt.rescheduling import environment
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.settings import TrainingSettings

FULL = {"seconds": 45.0, "keep": True}
QUICK = {"seconds": 1.0, "keep": False}
#: Agent of the paper -> preset.
AGENTS = {"REACH": "reach-ppo", "RSDQL": "rsdql"}
#: Pods and machines of each of three kinds: Fig. 7.
SCALES = ((20, 2), (28, 4), (36, 6))
DECISIONS = 200
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings(TrainingSettings):
    """Settings with short rounds: points of a curve, and ends of a run."""

    @property
    def round_steps(self) -> int:
        """Steps of a round: RSDQL's checkpoint has its replay buffer, and takes seconds."""
        return 2_048 if self.algorithm == "ppo" else 10_240


def trained(
    preset: str, name: str, seconds: float, keep: bool, **options: Any
) -> tuple[TrainedPolicy, Row]:
    """Return an agent and its curve, trained for some CPU seconds; with `keep` more than before."""
    from placeopt.rl.training import train

    known = environment.PRESETS[preset].settings
    settings = Settings().with_options(known.to_document() | {"weights": (1.0,)})
    batch = environment.batch(None, settings.num_envs, **options)
    batch.reset()
    folder = SCRATCH / "reach"
    checkpoint, log = folder / f"{name}.npz", folder / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    again = keep and checkpoint.exists() and log.exists()
    curve = json.loads(log.read_text(encoding="utf-8")) if again else []
    before = curve[-1][1] if curve else 0.0

    def note(news: Any) -> bool:
        curve.append([news.steps, news.seconds, news.facts.get("reward", np.nan)])
        if keep:
            log.write_text(json.dumps(curve), encoding="utf-8")
        return bool(news.seconds - before > seconds)

    policy = train(
        batch,
        "rescheduling",
        settings,
        environment=options,
        keep=checkpoint if keep else None,
        resume=checkpoint if again else None,
        on_round=note,
    )
    return policy, {"curve": curve}


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


def agent(preset: str, name: str, seconds: float, keep: bool, **options: Any) -> Row:
    """Train an agent on, and time its decisions."""
    policy, row = trained(preset, name, seconds, keep, **options)
    return row | {"decision_ms": decision_ms(policy, **options)}


def measure(cells: Callable[..., Any], seconds: float, keep: bool) -> dict[str, Any]:
    """Train on what is there; a longer curve of an earlier run stays."""
    found: dict[str, Any] = {"applications": {}, "scales": {}}
    for application in APPLICATIONS:
        for who, preset in AGENTS.items():
            found["applications"][f"{application}, {who}"] = grown(
                cells,
                f"{application}-{preset}",
                lambda key, p=preset, a=application: agent(p, key, seconds, keep, application=a),
            )
    for pods, machines in SCALES:
        sizes = {"cloud_a": machines, "edge_a": machines, "edge_b": machines}
        options = {"application": "aggregator-sequential", "replicas": [1, pods // 4], **sizes}
        found["scales"][f"{pods} pods, {3 * machines} nodes"] = grown(
            cells,
            f"scale-{pods}",
            lambda key, o=options: agent("reach-ppo", key, seconds, keep, **o),
        )
    return found


def grown(cells: Callable[..., Any], key: str, work: Callable[[str], Row]) -> Row:
    """Return the longer one of what `work` returns and what a run before returned."""
    before, now = cells.known.pop(key, None), work(key)
    longer = before and before["curve"][-1][0] > now["curve"][-1][0]
    kept: Row = cells(key, lambda: before if longer else now)
    return kept


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
