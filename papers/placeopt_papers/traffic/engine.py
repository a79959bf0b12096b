"""Discrete events: requests go through a call graph, from pod to pod.

A service works on a request, then calls its groups: groups in parallel, the calls of a group one
after another. A request is answered when all that it called is. Calls take the latency between the
nodes, answers come back at once, as in the model of `rescheduling`.

Events of one instant are taken in the order in which they were planned.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from placeopt_papers.traffic.scenario import Serving

from placeopt.core.errors import UsageError
from placeopt.rescheduling.problem import Rescheduling

#: Events that a run may have: more means that requests come faster than pods serve them.
MOST_EVENTS = 20_000_000


@dataclass(eq=False)
class ServingPod:
    """A running replica."""

    service: int
    node: int
    #: Second from which it serves.
    ready: float = 0.0
    #: Calls in it, and the work in seconds that each still needs.
    work: dict[Visit, float] = field(default_factory=dict)
    #: When `work` was last brought up to date; which planned end of a call still holds.
    at: float = 0.0
    version: int = 0
    #: When it has served what came before, if it serves in turn.
    free: float = 0.0
    #: Seconds that it was busy; requests at once count once each.
    busy: float = 0.0


@dataclass(eq=False)
class Visit:
    """A visit of a request to a service; `above` is the call that made it."""

    request: Request
    service: int
    above: Visit | None
    group: int = 0
    pod: ServingPod | None = None
    #: Groups that are not answered yet, and the next call of each.
    waiting: int = 0
    ahead: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Request:
    """What a client sent, and when."""

    began: float
    client: bool
    failed: bool = False


class RequestEngine:
    """The clock, the pods and the requests of one run.

    Parameters
    ----------
    problem : Rescheduling
        Nodes, latencies, services; its replicas are the first pods.
    serving : {'shared', 'in-turn', 'at-once'}
    rng : numpy.random.Generator

    Attributes
    ----------
    pods : list of list of ServingPod
        Those of each service that take requests.
    answered, took_ms : list of float
        When requests were answered, s, and how long they took.
    failed : list of float
        When requests were lost with a node.
    """

    def __init__(self, problem: Rescheduling, serving: Serving, rng: np.random.Generator):
        arrays = problem.arrays
        self.now, self.serving, self._rng = 0.0, serving, rng
        self._execution, self._delay = arrays.execution / 1000, arrays.delay / 1000
        self._user = arrays.user / 1000
        number = problem.service_numbers
        self._calls = [[[number[c] for c in g] for g in s.calls] for s in problem.services]
        self._gateway = number[problem.gateway]
        self.pods: list[list[ServingPod]] = [
            [ServingPod(s, problem.node_numbers[name]) for name in service.replicas]
            for s, service in enumerate(problem.services)
        ]
        self.answered: list[float] = []
        self.took_ms: list[float] = []
        self.failed: list[float] = []
        self._events: list[tuple[float, int, Callable[[], Any]]] = []
        self._planned = 0
        self.clients = 0
        self._running = 0

    def plan(self, at: float, what: Callable[[], Any]) -> None:
        """Let something happen at a second."""
        heapq.heappush(self._events, (at, self._planned, what))
        self._planned += 1

    def run(self, until: float) -> None:
        """Let the clock run."""
        while self._events and self._events[0][0] <= until:
            self.now, _, what = heapq.heappop(self._events)
            what()
            if self._planned > MOST_EVENTS:
                raise UsageError(
                    f"{MOST_EVENTS:,} events by second {self.now:.1f}: requests come faster than "
                    "they are served; lower the load or the seconds"
                )
        self.now = until

    # -- load ------------------------------------------------------------------------------------

    def set_clients(self, clients: int) -> None:
        """Let so many clients send, each a request when its last one is answered."""
        self.clients = clients
        while self._running < clients:
            self._running += 1
            self.send(client=True)

    def send(self, *, client: bool = False) -> None:
        """Send a request now."""
        self._begin(Visit(Request(self.now, client), self._gateway, None), None)

    def _ended(self, request: Request) -> None:
        """Let the client of a request that ended send its next one, or leave."""
        if request.client:
            if self._running > self.clients:
                self._running -= 1
            else:
                self.send(client=True)

    # -- calls -----------------------------------------------------------------------------------

    def _begin(self, call: Visit, origin: int | None) -> None:
        """Send a call from a node, or from the users, to a pod drawn evenly."""
        pods = [pod for pod in self.pods[call.service] if pod.ready <= self.now]
        if not pods:
            self._lose(call.request)
            return
        pod = pods[int(self._rng.integers(len(pods)))]
        call.pod = pod
        way = self._user[pod.node] if origin is None else self._delay[origin, pod.node]
        self.plan(self.now + way, lambda: self._arrive(call, pod))

    def _arrive(self, call: Visit, pod: ServingPod) -> None:
        """Let a pod work on a call."""
        if call.request.failed:
            return
        if pod.version < 0:
            self._lose(call.request)
            return
        seconds = float(self._execution[pod.service, pod.node])
        if self.serving == "shared":
            self._update(pod)
            pod.work[call] = seconds
            self._plan_end(pod)
            return
        begin = max(self.now, pod.free) if self.serving == "in-turn" else self.now
        pod.free = begin + seconds
        pod.busy += seconds
        pod.work[call] = seconds
        self.plan(pod.free, lambda: self._worked(call, pod))

    def _update(self, pod: ServingPod) -> None:
        """Bring up to date what the calls that share a pod still need."""
        if pod.work:
            passed = self.now - pod.at
            pod.busy += passed
            share = passed / len(pod.work)
            for call in pod.work:
                pod.work[call] -= share
        pod.at = self.now

    def _plan_end(self, pod: ServingPod) -> None:
        """Plan the next end of a call in a pod that calls share; what was planned is void."""
        pod.version += 1
        if not pod.work:
            return
        call = min(pod.work, key=lambda one: pod.work[one])
        version = pod.version
        end = self.now + max(0.0, pod.work[call]) * len(pod.work)
        self.plan(end, lambda: self._end_shared(call, pod, version))

    def _end_shared(self, call: Visit, pod: ServingPod, version: int) -> None:
        if pod.version != version:
            return
        self._update(pod)
        del pod.work[call]
        self._plan_end(pod)
        self._go_on(call, pod)

    def _worked(self, call: Visit, pod: ServingPod) -> None:
        if pod.version >= 0:
            pod.work.pop(call, None)
            self._go_on(call, pod)

    def _go_on(self, call: Visit, pod: ServingPod) -> None:
        """Let a call that was worked on call others, or be answered."""
        if call.request.failed:
            return
        groups = self._calls[call.service]
        call.waiting, call.ahead = len(groups), [0] * len(groups)
        if not groups:
            self._answer(call)
        for g in range(len(groups)):
            self._next_of(call, g, pod)

    def _next_of(self, call: Visit, g: int, pod: ServingPod) -> None:
        """Make the next call of a group."""
        group = self._calls[call.service][g]
        if call.ahead[g] == len(group):
            call.waiting -= 1
            if call.waiting == 0:
                self._answer(call)
            return
        callee = group[call.ahead[g]]
        call.ahead[g] += 1
        self._begin(Visit(call.request, callee, call, g), pod.node)

    def _answer(self, call: Visit) -> None:
        """Hand the answer of a call to the one above, or to the user."""
        if call.request.failed:
            return
        if call.above is not None:
            assert call.above.pod is not None
            self._next_of(call.above, call.group, call.above.pod)
            return
        self.answered.append(self.now)
        self.took_ms.append(1000 * (self.now - call.request.began))
        self._ended(call.request)

    def _lose(self, request: Request) -> None:
        """Count a request as lost; its client tries again a second later."""
        if request.failed:
            return
        request.failed = True
        self.failed.append(self.now)
        if request.client:
            self.plan(self.now + 1.0, lambda: self._ended(request))

    # -- pods ------------------------------------------------------------------------------------

    def start(self, service: int, node: int, ready: float) -> ServingPod:
        """Start a pod that serves from a second on."""
        pod = ServingPod(service, node, ready, at=ready)
        self.pods[service].append(pod)
        return pod

    def end(self, pod: ServingPod) -> None:
        """Take a pod away from those that take requests; it ends what it has."""
        self.pods[pod.service].remove(pod)

    def fail(self, nodes: set[int]) -> None:
        """Lose nodes with their pods and all requests in them."""
        for pods in self.pods:
            for pod in [pod for pod in pods if pod.node in nodes]:
                pods.remove(pod)
                pod.version = -1
                for call in list(pod.work):
                    self._lose(call.request)
                pod.work.clear()

    def busy(self, service: int) -> float:
        """Return the busy seconds of the pods of a service since the start."""
        for pod in self.pods[service] if self.serving == "shared" else ():
            self._update(pod)
        return sum(pod.busy for pod in self.pods[service])
