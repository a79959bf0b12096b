"""A scenario played on an instance: who starts, moves and ends pods while requests go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from placeopt_papers.traffic.engine import RequestEngine, ServingPod
from placeopt_papers.traffic.scenario import Scenario

from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.rescheduling import generator
from placeopt.rescheduling.problem import Rescheduling

#: ``(instance) -> moves``: (service, from, to) by name, in the order in which they are made.
Mover = Callable[[Rescheduling], list[tuple[str, str, str]]]


@dataclass
class Played:
    """What one run left.

    Attributes
    ----------
    answered, took_ms : ndarray
        When requests were answered, s, and how long they took.
    failed : ndarray
        When requests were lost, s.
    moves, started, unplaced : int
        Pods that a rescheduler moved; pods started by a failure or the autoscaler; pods that found
        no room.
    log : list of (float, str)
        What was done, by the second.
    end : Rescheduling
        The instance as it is at the end.
    """

    answered: np.ndarray
    took_ms: np.ndarray
    failed: np.ndarray
    moves: int
    started: int
    unplaced: int
    log: list[tuple[float, str]]
    end: Rescheduling


def play(
    problem: Rescheduling, scenario: Scenario, seed: int = 1, mover: Mover | None = None
) -> Played:
    """Play a scenario.

    Parameters
    ----------
    problem : Rescheduling
    scenario : Scenario
    seed : int
        Which pods serve, and when requests arrive in an open loop, is drawn with it.
    mover : callable, optional
        Takes the place of the scenario's rescheduler.

    Raises
    ------
    UsageError
        A node or a method is not there, or requests come faster than they can be counted.
    """
    for k, failure in enumerate(scenario.failures):
        for name in failure.nodes:
            if name not in problem.node_numbers:
                raise UsageError(
                    f"failures[{k}].nodes: there is no node {name!r} in {problem.name!r}; "
                    f"it has {', '.join(sorted(problem.node_numbers)[:12])}"
                )
    return _Twin(problem, scenario, seed, mover or _mover(scenario)).run()


def _mover(scenario: Scenario) -> Mover | None:
    """Return the rescheduler of a scenario: the fastest plan of its method."""
    wanted = scenario.rescheduler
    if wanted is None:
        return None

    def move(problem: Rescheduling) -> list[tuple[str, str, str]]:
        from placeopt import api

        front = api.solve(
            problem,
            wanted.method,
            seconds=wanted.seconds,
            evaluations=wanted.evaluations,
            **wanted.parameters,
        )
        if not len(front.values):
            return []
        plan = front.points[int(np.lexsort(front.values.T[::-1])[0])].plan
        return [(m["service"], m["from"], m["to"]) for m in plan["moves"]]

    return move


@dataclass
class _Twin:
    """The pods by name beside the requests that visit them."""

    problem: Rescheduling
    scenario: Scenario
    seed: int
    mover: Mover | None
    moves: int = 0
    started: int = 0
    unplaced: int = 0
    log: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self._arrivals = rng.spawn(1)[0]
        self.engine = RequestEngine(self.problem, self.scenario.serving, rng)
        self._names = list(self.problem.node_numbers)
        self._numbers = dict(self.problem.node_numbers)
        self._fewest = [len(s.replicas) for s in self.problem.services]
        self._seen: dict[ServingPod, float] = {}
        self._wanted: list[tuple[float, list[int]]] = []
        self._event = 0

    def run(self) -> Played:
        """Plan what the scenario says, and let the clock run."""
        scenario, engine = self.scenario, self.engine
        for k, load in enumerate(scenario.load):
            ends = [one.from_s for one in scenario.load[k + 1 : k + 2]] + [scenario.seconds]
            if load.clients is not None:
                engine.plan(load.from_s, partial(engine.set_clients, load.clients))
            else:
                for at in self._times(load.requests_per_s or 0.0, load.from_s, ends[0]):
                    engine.plan(at, engine.send)
        for failure in scenario.failures:
            engine.plan(failure.at_s, partial(self._fail, failure.nodes))
        if (scaler := scenario.autoscaler) is not None:
            for period in range(1, int(scenario.seconds / scaler.period_s) + 1):
                engine.plan(period * scaler.period_s, self._scale)
        engine.run(scenario.seconds)
        return Played(
            np.array(engine.answered),
            np.array(engine.took_ms),
            np.array(engine.failed),
            self.moves,
            self.started,
            self.unplaced,
            self.log,
            self.problem,
        )

    def _times(self, rate: float, begin: float, end: float) -> Iterator[float]:
        """Yield arrivals of a Poisson process."""
        at = begin
        while rate > 0:
            at += float(self._arrivals.exponential(1 / rate))
            if at >= end:
                return
            yield at

    # -- failures, autoscaler ----------------------------------------------------------------------

    def _fail(self, nodes: tuple[str, ...]) -> None:
        gone = [name for name in nodes if name in self.problem.node_numbers]
        self.engine.fail({self._numbers[name] for name in gone})
        self.log.append((self.engine.now, f"nodes {', '.join(gone)} are lost"))
        document = self.problem.to_document()
        document["nodes"] = [n for n in document["nodes"] if n["name"] not in gone]
        lost = []
        for s, service in enumerate(document["services"]):
            stay = [name for name in service["replicas"] if name not in gone]
            lost += [s] * (len(service["replicas"]) - len(stay))
            service["replicas"] = stay
        for s in lost:
            self._place(document, s)
        self._changed(document)

    def _place(self, document: dict[str, Any], service: int) -> None:
        """Start a pod where the scheduler puts it; count it where there is no room."""
        one = document["services"][service]
        one["replicas"] = list(one["replicas"])
        try:
            generator.restart(document, [one], self.scenario.scheduler)
        except InfeasibleInstanceError:
            self.unplaced += 1
            self.log.append((self.engine.now, f"no node has room for a pod of {one['name']}"))
            return
        node = one["replicas"][-1]
        self.started += 1
        self.log.append((self.engine.now, f"a pod of {one['name']} starts on {node}"))
        ready = self.engine.now + self.scenario.restart_s
        self.engine.start(service, self._numbers[node], ready)

    def _changed(self, document: dict[str, Any]) -> None:
        """Take over what an event left, and let the rescheduler react to it."""
        if any(not service["replicas"] for service in document["services"]):
            raise UsageError(
                f"second {self.engine.now:g}: a service has no pod left and no node has room for "
                "one; let fewer nodes fail"
            )
        self.problem = Rescheduling.from_document(document)
        wanted, self._event = self.scenario.rescheduler, self._event + 1
        if self.mover is None:
            return
        after, every = (wanted.after_s, wanted.move_s) if wanted else (1.0, 1.0)
        moves, event = self.mover(self.problem), self._event
        if wanted is not None and wanted.most_moves is not None:
            moves = moves[: wanted.most_moves]
        for k, move in enumerate(moves):
            at = self.engine.now + after + every * k
            self.engine.plan(at, partial(self._move, event, *move))

    def _move(self, event: int, service: str, source: str, to: str) -> None:
        """Start a pod's new copy, then end the old one; not where the plan is of an older state."""
        if event != self._event:
            return
        s = self.problem.service_numbers[service]
        pods = [p for p in self.engine.pods[s] if p.node == self._numbers[source]]
        if not pods:
            return
        self.engine.start(s, self._numbers[to], self.engine.now)
        self.engine.end(pods[0])
        document = self.problem.to_document()
        names = list(document["services"][s]["replicas"])
        names[names.index(source)] = to
        document["services"][s]["replicas"] = names
        self.problem = Rescheduling.from_document(document)
        self.moves += 1
        self.log.append((self.engine.now, f"a pod of {service} moves from {source} to {to}"))

    def _scale(self) -> None:
        """Decide as the HorizontalPodAutoscaler does: replicas times use by target, rounded up."""
        scaler = self.scenario.autoscaler
        assert scaler is not None
        wanted = [self._wanted_of(s) for s in range(len(self._fewest))]
        now = self.engine.now
        self._wanted = [x for x in self._wanted if x[0] > now - scaler.stabilise_s]
        self._wanted.append((now, wanted))
        document, changed = self.problem.to_document(), False
        for s, goal in enumerate(wanted):
            has = len(self.engine.pods[s])
            least = max(goal, *(one[s] for _, one in self._wanted))
            for _ in range(goal - has):
                self._place(document, s)
                changed = True
            for _ in range(has - least):
                self._end_newest(document, s)
                changed = True
        if changed:
            self._changed(document)

    def _wanted_of(self, service: int) -> int:
        """Return how many pods the autoscaler wants of a service."""
        scaler, engine = self.scenario.autoscaler, self.engine
        assert scaler is not None
        engine.busy(service)
        pods = engine.pods[service]
        busy = sum(pod.busy - self._seen.get(pod, 0.0) for pod in pods)
        self._seen.update((pod, pod.busy) for pod in pods)
        ratio = busy / scaler.period_s / len(pods) / scaler.target
        goal = len(pods)
        if abs(ratio - 1) > scaler.tolerance:
            goal = math.ceil(round(len(pods) * ratio, 9))
        most = max(scaler.most, self._fewest[service])
        return min(most, max(self._fewest[service], goal))

    def _end_newest(self, document: dict[str, Any], service: int) -> None:
        pod = self.engine.pods[service][-1]
        self.engine.end(pod)
        one, name = document["services"][service], self._names[pod.node]
        replicas = list(one["replicas"])
        del replicas[len(replicas) - 1 - replicas[::-1].index(name)]
        one["replicas"] = replicas
        self.log.append((self.engine.now, f"a pod of {one['name']} ends on {name}"))
