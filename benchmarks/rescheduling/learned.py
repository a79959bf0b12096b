"""Learned rescheduling: convergence of PPO and DQN, and policies beside search.

    python benchmarks/rescheduling/learned.py          the tables
    python benchmarks/rescheduling/learned.py train    the policies that they and run.py play

Needs the extra ``rl``. Writes ``learned.md`` and ``convergence.svg`` beside this file; about five
minutes on one core.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.rescheduling import environment as episodes
from placeopt.rescheduling import heuristics as search
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rl import play, policy_file
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.training import train

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import stamps
from machine import facts, table

HERE = Path(__file__).parent
STEPS, SCALE_STEPS, WIDTH = 24_000, 4_000, 16
#: Pods and machines of each kind: Figure 7 of the paper has 20 to 36 pods on 6 to 18 nodes.
SCALES = ((20, 2), (28, 4), (36, 6))
#: Steps of all environments between two points of a curve.
BUCKET = 1_000
TESTED = range(1_000, 1_060)
FILES = {
    "ppo": Path(policy_file.__file__).parent / "policies" / "rescheduling-testbed.npz",
    "dqn": HERE.parents[1] / "papers" / "policies" / "rescheduling-dqn.npz",
}
CARD = {
    "summary": "REACH testbed, three applications, 12 to 20 pods",
    "data": "generated episodes on 2 Cloud-A, 2 Edge-A, 2 Edge-B: chain, aggregator-sequential or "
    "aggregator-parallel, 3 to 5 replicas of each of four services on random nodes with room, "
    "others using up to a fifth of every node; execution times and pod sizes of "
    "placeopt.rescheduling.generator",
    "rewards": "what the latency drops, in ms, less 0.5 a move (the paper: 2); idle ends for "
    "nothing; an illegal action costs 100",
    "seeds": "training 1; settings chosen on starts of seeds 100 to 139; tested on starts of seeds "
    "from 1000",
    "limits": "latencies of the model, not measured; other nodes, services and graphs are read but "
    "were not trained on; block search is quicker and better, see benchmarks/rescheduling",
}


class Recorded:
    """A batch that notes the mean return of the episodes that end, by the steps made."""

    def __init__(self, batch: Any):
        self._batch, self._steps = batch, 0
        self._sums = np.zeros(batch.num_envs)
        self.curve: dict[int, list[float]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pass on, and note."""
        rewards, ended = self._batch.step(actions)
        self._steps += self._batch.num_envs
        self._sums += rewards[:, 0]
        self.curve.setdefault(self._steps // BUCKET, []).extend(self._sums[ended].tolist())
        self._sums[ended] = 0
        return rewards, ended

    def means(self) -> list[float]:
        """Mean return of every bucket that is full."""
        return [
            float(np.mean(self.curve.get(k, [np.nan]) or [np.nan]))
            for k in range(self._steps // BUCKET)
        ]


def trained(algorithm: str, steps: int, **options: Any) -> tuple[TrainedPolicy, list[float], float]:
    """Return a policy trained with Table V, its curve, and CPU seconds."""
    hidden = (WIDTH, WIDTH) if algorithm == "ppo" else (WIDTH, WIDTH, WIDTH)
    settings = episodes.SETTINGS[algorithm].with_options({"steps": steps, "hidden": hidden})
    batch = Recorded(episodes.batch(None, settings.num_envs, **options))
    batch.reset()
    begin = time.process_time()
    policy = train(batch, "rescheduling", settings)
    return policy, batch.means(), time.process_time() - begin


def ship() -> None:
    """Train the policies for all three applications with the quick settings, and write them."""
    for algorithm, file in FILES.items():
        settings = episodes.QUICK[algorithm]
        batch = episodes.batch(None, settings.num_envs, **episodes.QUICK_EPISODES)
        batch.reset(np.zeros(settings.num_envs, dtype=np.uint64))  # compiled
        policy = train(
            batch,
            "rescheduling",
            settings,
            environment=episodes.QUICK_EPISODES,
            on_round=lambda news: print(news, flush=True),
        )
        policy_file.write(policy.with_card(**CARD), file)


def beside(method: Any, application: str) -> tuple[float, float, float]:
    """Return what `ratio` does, of a heuristic."""
    rows = []
    for seed in TESTED:
        problem = Rescheduling.generate(seed, application=application, replicas=5)
        best = (
            search.block_search(Task(problem, problem.objectives, Budget(seconds=60), 0))
            .values[:, 0]
            .min()
        )
        begin = time.process_time()
        front = method(Task(problem, budget=Budget(seconds=60)))
        took = time.process_time() - begin
        latency, moves = front.values[front.values[:, 0].argmin()]
        rows.append((best / latency, moves, 1000 * took))
    found = np.mean(rows, axis=0)
    return float(found[0]), float(found[1]), float(found[2])


def ratio(
    policy: TrainedPolicy | str, application: str, replicas: int = 5, samples: int = 0, **sizes: Any
) -> tuple[float, float, float]:
    """Return best known over reached latency, moves, and ms of CPU per plan; means."""
    rows = []
    for seed in TESTED:
        problem = Rescheduling.generate(seed, application=application, replicas=replicas, **sizes)
        best = (
            search.block_search(Task(problem, problem.objectives, Budget(seconds=60), 0))
            .values[:, 0]
            .min()
        )
        begin = time.process_time()
        front = play.run(
            Task(problem, problem.objectives, Budget(evaluations=1 + samples), 0),
            policy=policy,
            samples=samples,
        )
        took = time.process_time() - begin
        latency, moves = front.values[front.values[:, 0].argmin()]
        rows.append((best / latency, moves, 1000 * took / (1 + samples)))
    found = np.mean(rows, axis=0)
    return float(found[0]), float(found[1]), float(found[2])


def convergence() -> tuple[list[str], dict[str, list[float]]]:
    """Figure 6: three applications, both algorithms, 4 to 20 pods."""
    curves, rows = {}, []
    for application in APPLICATIONS:
        for algorithm in ("ppo", "dqn"):
            policy, curve, cpu = trained(algorithm, STEPS, application=application)
            curves[f"{application}, {algorithm}"] = curve
            reached, moves, _ = ratio(policy, application)
            points = [f"{np.nanmean(curve[k : k + 3]):.0f}" for k in range(0, len(curve), 3)]
            rows.append(
                (application, algorithm, f"{cpu:.0f}", *points, f"{reached:.3f}", f"{moves:.1f}")
            )
            print(rows[-1], flush=True)
    thousands = BUCKET * 3 // 1000
    spans = [f"{k * thousands}-{(k + 1) * thousands}k" for k in range(len(points))]
    return table(
        ("application", "algorithm", "CPU s", *spans, "best known / reached, 20 pods", "moves"),
        rows,
    ), curves


def scale() -> list[str]:
    """Figure 7: pods and nodes, the application that takes the paper longest."""
    rows = []
    for pods, machines in SCALES:
        sizes = {"cloud_a": machines, "edge_a": machines, "edge_b": machines}
        policy, curve, cpu = trained(
            "ppo",
            SCALE_STEPS,
            application="aggregator-sequential",
            replicas=(1, pods // 4),
            **sizes,
        )
        reached, moves, took = ratio(policy, "aggregator-sequential", pods // 4, **sizes)
        actions = pods * 3 * machines + 1
        points = (f"{np.nanmean(curve[:2]):.0f}", f"{np.nanmean(curve[-2:]):.0f}")
        rows.append(
            (
                pods,
                3 * machines,
                actions,
                f"{cpu:.0f}",
                *points,
                f"{reached:.3f}",
                f"{moves:.1f}",
                f"{took / (moves + 1):.2f}",
            )
        )
        print(rows[-1], flush=True)
    head = (
        "pods",
        "nodes",
        "actions",
        "CPU s",
        "mean reward at first",
        "at last",
        "best known / reached",
        "moves",
        "ms per decision",
    )
    return table(head, rows)


def bundled() -> list[str]:
    """The policies for all three applications, on fresh starts of 20 pods."""
    rows = []
    for name, policy in (
        (algorithm.upper(), policy_file.read(file))
        for algorithm, file in FILES.items()
        if file.exists()
    ):
        for samples in (0, 31):
            found = [ratio(policy, application, samples=samples) for application in APPLICATIONS]
            cells = [f"{reached:.3f} ({moves:.1f})" for reached, moves, _ in found]
            how = "actions liked most" if samples == 0 else f"best of {samples + 1} episodes"
            took = (1 + samples) * np.mean([ms for _, _, ms in found])
            rows.append(
                (
                    name,
                    how,
                    f"{policy.card['cpu_seconds']:.0f}",
                    *cells,
                    f"{np.mean([r for r, _, _ in found]):.3f}",
                    f"{took:.0f}",
                )
            )
    for name, method in (("greedy", search.greedy), ("block search", search.block_search)):
        found = [beside(method, application) for application in APPLICATIONS]
        cells = [f"{reached:.3f} ({moves:.1f})" for reached, moves, _ in found]
        rows.append(
            (
                name,
                "-",
                "-",
                *cells,
                f"{np.mean([r for r, _, _ in found]):.3f}",
                f"{np.mean([ms for _, _, ms in found]):.0f}",
            )
        )
    return table(
        ("policy", "play", "CPU s of training", *APPLICATIONS, "mean", "ms per instance"), rows
    )


def draw(curves: dict[str, list[float]]) -> None:
    """Write the curves."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(APPLICATIONS), figsize=(10, 3), sharex=True, layout="constrained"
    )
    for panel, application in zip(panels, APPLICATIONS, strict=True):
        for algorithm, style in (("ppo", "-"), ("dqn", "--")):
            curve = curves[f"{application}, {algorithm}"]
            panel.plot(
                BUCKET / 1000 * (np.arange(len(curve)) + 0.5), curve, style, label=algorithm.upper()
            )
        panel.set(title=application, xlabel="steps, thousands")
    panels[0].set_ylabel("mean return of an episode, ms")
    panels[0].legend()
    figure.savefig(HERE / "convergence.svg")


NOTES = """
The bundled policies (`rescheduling-testbed` is PPO, `dqn.npz` lies beside this file) serve all
three applications. Settings are `QUICK` of `placeopt/rescheduling/environment.py`, not those of
Table V: no discount for PPO, 3 to 5 replicas of a service, and 0.5 ms a move where the paper takes
2; so plans have more moves than the paper's. The three were changed together: which of them matters
was not measured, but 5 replicas alone, at 2 ms and discount 0.99, reached no more than before
(0.935). One training seed each. Settings were chosen on starts of seeds 100 to 139, where the
earlier policy (2 ms a move, discount 0.99) reached 0.940; what is reported here are sixty other
starts for each application (seeds 1000 to 1059). "Best known" is block search, a few milliseconds,
no training. Latencies are of the model; the best latency along an episode counts. Times were taken
beside other work.
"""
TABLE_V = f"""
MaskablePPO of sb3-contrib, and stable-baselines3's DQN with legal actions only, with Table V of the
REACH paper (learning rate 3e-4, discount 0.99, clip 0.2, batch 64, entropy 0, two and three layers,
exploration 0.1, tau 1; 2 ms a move). What the table does not say is ours: DeepSets layers of
{WIDTH}, four passes, rewards in 100 ms. {STEPS:,} steps where the paper has three million: these
are the beginnings of its curves, far from convergence. Pods (4 to 20), start and what others use
(to a fifth of a node) are drawn for every episode.
"""
SCALE_NOTE = """
Two updates: what a step costs at each size, not what training comes to. Returns fall from the first
steps to the last: the episodes that end first are the short ones, and hardly anything is learned
yet.
"""


def main() -> None:
    """Run everything and write the tables, part by part."""
    lines = [
        "# Rescheduling: what is learned",
        "",
        facts("placeopt", "torch", "stable-baselines3", "sb3-contrib", "numba"),
        NOTES,
    ]
    lines += [
        "## Policies for all three applications, 20 pods: best known over reached latency (moves)",
        "",
        *bundled(),
        "",
    ]
    write(lines)
    first, curves = convergence()
    draw(curves)
    lines += [
        "## Convergence with Table V (Figure 6): mean return of episodes by steps",
        TABLE_V,
        *first,
        "",
        "![curves](convergence.svg)",
        "",
    ]
    write(lines)
    lines += [
        f"## Scale (Figure 7): PPO with Table V on aggregator-sequential, {SCALE_STEPS:,} steps",
        SCALE_NOTE,
        *scale(),
        "",
    ]
    write(lines)


def write(lines: list[str]) -> None:
    """Write what there is."""
    stamps.write(HERE / "learned.md", "\n".join(lines), __file__, {})


if __name__ == "__main__":
    ship() if sys.argv[1:] == ["train"] else main()
