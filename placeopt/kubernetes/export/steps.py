"""Plans as ordered steps: which pod of which workload goes where, and what that interrupts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.core.documents import sha256
from placeopt.core.errors import DocumentError, UnsupportedError

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin, OriginItem
    from placeopt.rescheduling.instance import Rescheduling
    from placeopt.rolling_update.instance import RollingUpdate

#: Kinds of workloads whose pods can be moved one by one.
MOVABLE = ("Deployment", "StatefulSet")

#: The kind of what the importer made up: it is nowhere, and a step that restarts it does nothing.
_MADE_UP = "Virtual"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class StepTarget:
    """What a step acts on in the cluster.

    Attributes
    ----------
    namespace, kind, name : str
        The workload.
    pod : str or None
        The pod that ends; None where nothing runs.
    new_pod : str or None
        The pod that starts; a StatefulSet's has the old name. None for a stop.
    requests : dict
        Container -> ``{"cpu": "250m", "memory": "64Mi"}``: what the new pod asks for, where that
        changes.
    """

    namespace: str
    kind: str
    name: str
    pod: str | None
    new_pod: str | None
    requests: dict[str, dict[str, str]]


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan.

    Attributes
    ----------
    number : int
        From 1.
    action : str
        ``move``, ``restart`` (in place), ``hop`` (to a node that it leaves again), ``stop`` or
        ``start`` (after a stop).
    names : dict
        As the plan names it: application and microservice, or service.
    source, target : str or None
        Nodes.
    empties : bool
        Whether this step leaves the source empty for good.
    cordon : bool
        Whether nothing is to arrive at the source any more, from here on.
    at : StepTarget or None
        None without an origin.
    """

    number: int
    action: str
    names: dict[str, str]
    source: str | None
    target: str | None
    empties: bool = False
    cordon: bool = False
    at: StepTarget | None = None

    @property
    def warning(self) -> str | None:
        """What a reader must know before it is made."""
        what = self.names.get("microservice") or self.names.get("service", "")
        if self.action == "stop":
            return f"disruption: {what} is down from here until a later step starts it again"
        if self.at is not None and self.at.kind == "StatefulSet":
            return (
                "interruption: a pod of a StatefulSet cannot run twice, "
                f"so {what} is down while it restarts"
            )
        if self.action == "hop":
            return f"hop: {what} only makes room here, and a later step moves it on"
        return None

    @property
    def label(self) -> str:
        """The step in a phrase."""
        name = "/".join(self.names.values())
        ends = (
            f"on {self.target}"
            if self.source in (None, self.target)
            else f"from {self.source}" + (f" to {self.target}" if self.target else "")
        )
        return f"{self.action} {name} {ends}" + (
            f"; {self.source} is empty then" if self.empties else ""
        )


def steps(
    problem: Problem, plan: Mapping[str, Any], origin: Origin | None = None, *, partly: bool = False
) -> list[PlanStep]:
    """Return the steps of a plan.

    `partly` leaves out what a step acts on where no command can make it, instead of raising.

    Raises
    ------
    UnsupportedError
        A step moves a pod that no Deployment or StatefulSet owns, or one that is not running.
    DocumentError
        The origin does not name what the plan moves, or holds names that Kubernetes does not allow.
    """
    from placeopt.rescheduling.instance import Rescheduling
    from placeopt.rolling_update.instance import RollingUpdate

    names = _Pods(origin, plan_id(problem, plan), partly)
    if isinstance(problem, RollingUpdate):
        return _rolling(problem, plan, names)
    if isinstance(problem, Rescheduling):
        return _rescheduling(problem, plan, names)
    raise UnsupportedError(
        f"a {problem.problem} plan has no steps; legal: rolling-update, rescheduling"
    )


def plan_id(problem: Problem, plan: Mapping[str, Any]) -> str:
    """Return eight characters that stand for this plan of this instance."""
    return hashlib.sha256((problem.instance_name.sha256 + sha256(plan)).encode()).hexdigest()[:8]


def _rolling(problem: RollingUpdate, plan: Mapping[str, Any], pods: _Pods) -> list[PlanStep]:
    a, moves = problem.arrays, problem.steps(plan)
    last = {m: k for k, (m, n) in enumerate(moves) if n >= 0}
    where, hosted = a.home.tolist(), Counter(a.home.tolist())
    final = list(where)
    for m, n in moves:
        final[m] = n
    kept, arrives = set(final), {n: k for k, (_, n) in enumerate(moves) if n >= 0}
    cordoned: set[int] = set()
    found = []
    for k, (m, n) in enumerate(moves):
        source = where[m]
        action = (
            "stop"
            if n < 0
            else "start"
            if source < 0
            else "hop"
            if last[m] != k
            else "restart"
            if n == source
            else "move"
        )
        hosted[source] -= 1
        hosted[n] += 1
        ends = source >= 0 and source not in kept and arrives.get(source, -1) < k
        cordon = ends and source not in cordoned
        cordoned |= {source} if cordon else set()
        application, name = a.names[m]
        at = pods.at(
            k + 1,
            name,
            application,
            action,
            problem.nodes[n].name if n >= 0 else None,
            _resized(problem, m),
        )
        before, after = (None if x < 0 else problem.nodes[x].name for x in (source, n))
        names = {"application": application, "microservice": name}
        found.append(
            PlanStep(k + 1, action, names, before, after, ends and hosted[source] == 0, cordon, at)
        )
        where[m] = n
    return found


def _resized(problem: RollingUpdate, m: int) -> tuple[int, int] | None:
    """Return milli-CPU and MiB of the new copy where they differ from now."""
    a = problem.arrays
    return None if (a.old[m] == a.new[m]).all() else (int(a.new[m, 0]), int(a.new[m, 1]))


def _rescheduling(problem: Rescheduling, plan: Mapping[str, Any], pods: _Pods) -> list[PlanStep]:
    moves, home = problem.moves(plan), problem.arrays.home.sum(axis=0).tolist()
    arrives = {v: k for k, (_, _, v) in enumerate(moves)}
    hosted = list(home)
    for _, u, v in moves:
        hosted[u] -= 1
        hosted[v] += 1
    kept = {n for n, count in enumerate(hosted) if count}
    hosted, cordoned, found = list(home), set(), []
    for k, (i, u, v) in enumerate(moves):
        hosted[u] -= 1
        hosted[v] += 1
        ends = u not in kept and arrives.get(u, -1) < k
        cordon = ends and u not in cordoned
        cordoned |= {u} if cordon else set()
        name, source, target = (
            problem.services[i].name,
            problem.nodes[u].name,
            problem.nodes[v].name,
        )
        at = pods.replica(k + 1, name, source, target)
        found.append(
            PlanStep(
                k + 1,
                "restart" if u == v else "move",
                {"service": name},
                source,
                target,
                ends and hosted[u] == 0,
                cordon,
                at,
            )
        )
    return found


class _Pods:
    """The pods of the cluster as the steps change them."""

    def __init__(self, origin: Origin | None, identity: str, partly: bool):
        self.origin, self.identity, self.partly = origin, identity, partly
        self.now: dict[str, str | None] = {}
        self.replicas: dict[str, list[tuple[str | None, str | None]]] = {}

    def at(
        self,
        number: int,
        name: str,
        application: str,
        action: str,
        node: str | None,
        size: tuple[int, int] | None,
    ) -> StepTarget | None:
        """Return what a rolling-update step acts on, and remember its new pod."""
        if self.origin is None:
            return None
        try:
            return self._at(self.origin, number, name, application, action, node, size)
        except UnsupportedError:
            if not self.partly:
                raise
            return None

    def _at(
        self,
        origin: Origin,
        number: int,
        name: str,
        application: str,
        action: str,
        node: str | None,
        size: tuple[int, int] | None,
    ) -> StepTarget | None:
        item = origin.item(name, application)
        if item.kind == _MADE_UP:
            return None
        known = f"{application}/{name}"
        pod = self.now.get(known, item.pod)
        if known not in self.now and pod is None:
            raise UnsupportedError(
                f"{known!r} is not running: commands move running pods; "
                "import from `kubectl get nodes,pods`"
            )
        self._check(item, pod, node)
        new = None if action == "stop" else self._new_name(item, pod or item.pod, number)
        self.now[known] = new
        return StepTarget(
            item.namespace,
            item.kind,
            item.name,
            pod,
            new,
            _requests(item, size) if size and new else {},
        )

    def replica(self, number: int, service: str, source: str, target: str) -> StepTarget | None:
        """Return what a rescheduling step acts on: the first replica of the service on `source`."""
        if self.origin is None:
            return None
        try:
            return self._replica(self.origin, number, service, source, target)
        except UnsupportedError:
            if not self.partly:
                raise
            return None

    def _replica(
        self, origin: Origin, number: int, service: str, source: str, target: str
    ) -> StepTarget:
        item = origin.item(service)
        mine = self.replicas.setdefault(service, [(r.pod, r.node) for r in item.replicas])
        k = next(
            (k for k, (pod, node) in enumerate(mine) if node == source and pod is not None), None
        )
        if k is None:
            raise UnsupportedError(
                f"no running pod of {service!r} on {source!r} is on file; "
                "import from `kubectl get nodes,pods`"
            )
        pod = mine[k][0]
        self._check(item, pod, target)
        new = self._new_name(item, pod, number)
        mine[k] = (new, target)
        return StepTarget(item.namespace, item.kind, item.name, pod, new, {})

    def _new_name(self, item: OriginItem, pod: str | None, number: int) -> str | None:
        if item.kind == "StatefulSet":
            return pod
        tail = f"-po{self.identity}-{number}"
        return item.name[: 63 - len(tail)].rstrip("-.") + tail

    def _check(self, item: OriginItem, pod: str | None, node: str | None) -> None:
        if item.kind not in MOVABLE:
            raise UnsupportedError(
                f"{item.kind} {item.name!r} cannot be moved pod by pod; "
                f"legal: {', '.join(MOVABLE)}. Pin it in the instance"
            )
        for name in (item.namespace, item.name, pod, node):
            if name is not None and not _NAME.fullmatch(name):
                raise DocumentError(
                    f"{name[:80]!r} is not a name that Kubernetes allows",
                    path="items",
                    remedy="import again",
                )
        if (
            self.origin is not None
            and node is not None
            and node in self.origin.nodes
            and self.origin.nodes[node].virtual
        ):
            raise UnsupportedError(
                f"node {node!r} was made up by the importer: nothing can run there"
            )


def _requests(item: OriginItem, size: tuple[int, int]) -> dict[str, dict[str, str]]:
    """Share the new size of a pod among its containers, as they share the size it has now."""
    containers = item.containers
    if not containers:
        raise UnsupportedError(
            f"{item.kind} {item.name!r} gets a new size, but its containers are not on file; "
            "import again"
        )
    cpu = _shares(size[0], [c.cpu_millicores or 0 for c in containers])
    memory = _shares(size[1], [c.memory_bytes or 0 for c in containers])
    return {
        c.name: {"cpu": f"{m}m", "memory": f"{b}Mi"}
        for c, m, b in zip(containers, cpu, memory, strict=True)
    }


def _shares(total: int, parts: list[int]) -> list[int]:
    """Return `total` shared in proportion to `parts`, in whole numbers.

    Examples
    --------
    >>> _shares(100, [1, 2]), _shares(5, [0, 0])
    ([33, 67], [2, 3])
    """
    weights = parts if sum(parts) else [1] * len(parts)
    ends = [total * sum(weights[: k + 1]) // sum(weights) for k in range(len(weights))]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def warnings(made: list[PlanStep]) -> list[str]:
    """Return what a reader must know before the first step."""
    found = []
    stops, hops = ([s.number for s in made if s.action == action] for action in ("stop", "hop"))
    stateful = [s.number for s in made if s.at is not None and s.at.kind == "StatefulSet"]
    for numbers, what in (
        (stops, "stop a copy before its successor runs: disruptions"),
        (
            stateful,
            "restart pods of StatefulSets, which cannot run twice: "
            "interruptions that the plan's values do not count",
        ),
        (hops, "are hops, to a node that the copy leaves again"),
    ):
        if numbers:
            shown = ", ".join(map(str, numbers[:20])) + (", ..." if len(numbers) > 20 else "")
            found.append(f"{len(numbers)} of {len(made)} steps {what} (steps {shown})")
    return found
