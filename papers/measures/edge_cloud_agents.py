"""Edge-cloud: the rollout by agents that run apart, the same plan, messages and time.

Of each decision, a microservice and its node, every agent simulates its share of the actions with
the greedy rule, five applications ahead, and answers with the best. An agent is a process of this
machine. Agents have the plain form of the rollout; beside them stand the same form in one process,
and the compiled form that the method `rollout` is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from machine import table
from placeopt_papers.agents import Rule, play_apart

from placeopt.core.budget import Budget
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.rollout import rollout

FULL = {"applications": 100, "agents": (1, 2, 4), "seeds": 2}
QUICK = {"applications": 5, "agents": (1, 2), "seeds": 1}
AHEAD = 5
WEIGHTS = np.array([0.01, 0.99])


class _Plain:
    """A decision sequence whose compiled form is not used."""

    compiled = False

    def __init__(self, sequence: Any):
        self._sequence = sequence

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sequence, name)


def row(applications: int, agents: int | str, seed: int) -> dict[str, Any]:
    """Return what one way takes, and its plan's weighted sum."""
    problem = EdgeCloud.generate(seed, applications=applications)
    task: Task[Any] = Task(problem)
    began = time.perf_counter()
    if isinstance(agents, int):
        told = play_apart(task, WEIGHTS, agents, Rule(horizon=AHEAD))
        plan, more = told.plan, {"decisions": told.decisions, "messages": told.messages}
        began = time.perf_counter() - told.seconds
    else:
        sequence = build_sequence(problem)
        if agents == "compiled":
            rollout.play(sequence, WEIGHTS, Budget(), horizon=AHEAD)  # compiles
            began = time.perf_counter()
        form = sequence if agents == "compiled" else _Plain(sequence)
        plan, more = sequence.plan(rollout.play(form, WEIGHTS, Budget(), horizon=AHEAD)), {}
    seconds = time.perf_counter() - began
    value = float(np.dot(problem.evaluate(plan).values, WEIGHTS))
    return {"seconds": seconds, "value": value, **more}


def measure(
    cells: Callable[..., Any], applications: int, agents: tuple[int, ...], seeds: int
) -> dict[str, Any]:
    """Let one process decide, then agents."""
    result: dict[str, Any] = {"applications": applications, "rows": {}}
    for who in ("compiled", "one process", *agents):
        many = [
            cells(f"{applications} {who} {seed}", lambda w=who, s=seed: row(applications, w, s))
            for seed in range(1, seeds + 1)
        ]
        mean = {key: float(np.mean([one[key] for one in many])) for key in many[0]}
        result["rows"][str(who)] = mean | {"values": [one["value"] for one in many]}
    return result


def same(result: Any) -> bool:
    """Return whether all ways end with plans of the same values."""
    values = {tuple(row["values"]) for row in result["rows"].values()}
    return len(values) == 1


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# Edge-cloud: agents that run apart"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield ""
    yield (
        f"{result['applications']} applications, w = .01, means over the seeds. Seconds are of the "
        f"wall, without the start of agents. Plans are the same: {'yes' if same(result) else 'no'}."
    )
    yield ""
    rows = [
        (
            name if name in ("compiled", "one process") else f"{name} agents",
            f"{row['decisions']:.0f}" if "decisions" in row else "",
            f"{row['messages']:,.0f}" if "messages" in row else "",
            f"{row['seconds']:.2f}",
            f"{row['value']:.4f}",
        )
        for name, row in result["rows"].items()
    ]
    yield from table(("who decides", "decisions", "messages", "s", "weighted sum"), rows)
