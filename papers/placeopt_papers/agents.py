"""Rollout by agents that run apart: each simulates its share of the actions of every decision.

An agent is a process with a state of its own. For every decision it is
told the action that was taken last, and answers with the best of its actions. The plan is that of
one process: of equal values, the action that one process would have tried first is taken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from placeopt.core.episodes import BasePolicy, follow, greedy, weighted
from placeopt.core.errors import PlaceoptError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.core.problem import Problem
from placeopt.core.task import Task


@dataclass(frozen=True)
class Rule:
    """How an action is judged: the parameters of `rollout`."""

    beta: float = 1.0
    gamma: float = 1.0
    horizon: float = math.inf
    policy: BasePolicy = greedy


@dataclass(frozen=True)
class SharedEpisode:
    """What agents took.

    Attributes
    ----------
    plan : dict
    decisions : int
    messages : int
        To agents and back; an action that was taken, or a value and where it stands.
    seconds : float
        From the first answers to the last decision: the start of agents is not among them.
    """

    plan: Plan
    decisions: int
    messages: int
    seconds: float


def ranked(
    sequence: DecisionSequence, state: Any, weights: np.ndarray, rule: Rule
) -> tuple[list[int], np.ndarray]:
    """Return the actions that are tried, in their order, and the own cost of every action."""
    own = weighted(sequence.costs(state), weights)
    tried = max(1, math.ceil(rule.beta * np.isfinite(own).sum()))
    base = rule.policy(sequence, state, weights)
    order = np.argsort(own, kind="stable")[:tried].tolist()
    return [base, *(action for action in order if action != base)], own


def best_of(
    sequence: DecisionSequence, state: Any, weights: np.ndarray, rule: Rule, mine: slice
) -> tuple[float, int]:
    """Return the least value of an agent's share of the actions, and where it stands among all."""
    actions, own = ranked(sequence, state, weights, rule)
    stage, result = sequence.stage(state), (math.inf, len(actions))
    for place in range(*mine.indices(len(actions))):
        action = actions[place]
        if sequence.costs_never_fall and own[action] >= result[0]:
            continue
        after = sequence.copy(state)
        sequence.step(after, action)
        future, stages = 0.0, rule.horizon - (sequence.stage(after) - stage)
        if rule.gamma > 0 and stages >= 0:
            finite = stages if math.isfinite(stages) else sequence.decisions
            future = follow(sequence, after, weights, rule.policy, stages=finite)
        result = min(result, (float(own[action] + rule.gamma * future), place))
    return result


class Agent:
    """What an agent knows: the instance, and the state that the actions taken so far lead to.

    Parameters
    ----------
    number, count : int
        Its share: every action whose place among those tried leaves `number` by `count`.
    kind : type
        The class of the problem.
    document : dict
        The instance.
    objectives, weights, rule, options
        As of `play_apart`.
    """

    def __init__(
        self,
        number: int,
        count: int,
        kind: type[Problem],
        document: Any,
        objectives: tuple[Objective, ...],
        weights: np.ndarray,
        rule: Rule,
        options: dict[str, Any],
    ):
        self._mine, self._weights, self._rule = slice(number, None, count), weights, rule
        self._sequence = build_sequence(kind.from_document(document), objectives, **options)
        self._state = self._sequence.reset()

    def best(self, last: int) -> tuple[float, int]:
        """Take over the last action, -1 for none; return the best of its share and its place."""
        if last >= 0:
            self._sequence.step(self._state, last)
        return best_of(self._sequence, self._state, self._weights, self._rule, self._mine)


def play_apart(
    task: Task[Problem], weights: np.ndarray, agents: int, rule: Rule, **options: Any
) -> SharedEpisode:
    """Return the plan of one episode, whose decisions agents share.

    Parameters
    ----------
    task : Task
        Agents are processes of this machine.
    weights : ndarray, shape (objectives,)
    agents : int
        At least 1.
    options
        Of the decision sequence.

    Raises
    ------
    PlaceoptError
        An agent died.
    """
    problem, objectives = task.problem, task.objectives
    sequence = build_sequence(problem, objectives, **options)
    state, decisions, last, began = sequence.reset(), 0, -1, 0.0
    whole = type(problem), problem.to_document(), objectives, weights, rule, options
    with _processes([(k, agents, *whole) for k in range(agents)]) as ask:
        while sequence.remaining(state) and sequence.mask(state).any():
            if task.budget.out_of_time:
                break
            value, place = min(ask(last))
            began = began or time.perf_counter()  # agents have started
            actions, _ = ranked(sequence, state, weights, rule)
            last = actions[place if value < math.inf else 0]
            sequence.step(state, last)
            decisions += 1
        seconds = time.perf_counter() - began if decisions else 0.0
    follow(sequence, state, weights, rule.policy)
    return SharedEpisode(sequence.plan(state), decisions, 2 * agents * decisions, seconds)


#: Tells all agents the last action; returns their answers.
Ask = Callable[[int], list[tuple[float, int]]]


@contextmanager
def _processes(shares: list[tuple[Any, ...]]) -> Iterator[Ask]:
    """Let agents run as processes of this machine, each at the end of a line."""
    from joblib.externals.loky.backend.context import get_context

    context = get_context("loky")  # unlike "spawn" it does not run the caller's script again
    lines, processes = list[Connection](), []

    def ask(last: int) -> list[tuple[float, int]]:
        try:
            for line in lines:
                line.send(last)
            return [line.recv() for line in lines]
        except (EOFError, OSError):
            raise PlaceoptError("an agent died; is there enough memory?") from None

    try:
        for share in shares:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, share), daemon=True)
            process.start()
            there.close()
            lines.append(here)
            processes.append(process)
        yield ask
    finally:
        for line in lines:
            line.close()
        for process in processes:
            process.join()


def _serve(line: Connection, share: tuple[Any, ...]) -> None:
    """Answer for a share of the actions until the line is closed."""
    agent = Agent(*share)
    while True:
        try:
            last = line.recv()
        except EOFError:
            return
        line.send(agent.best(last))
