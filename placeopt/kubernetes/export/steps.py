"""Plans as ordered steps: which pod of which workload goes where, and what that interrupts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.core.files.documents import sha256
from placeopt.core.fronts.values import Plan
from placeopt.core.fronts.words import counted
from placeopt.core.problem import Problem
from placeopt.kubernetes.names import DUMP
from placeopt.kubernetes.origin import Origin, key
from placeopt.kubernetes.pinned import Interruption, KnownBudget, broken_budgets
from placeopt.kubernetes.values import MIB

if TYPE_CHECKING:
    from placeopt.kubernetes.origin import OriginContainer, OriginItem
    from placeopt.rescheduling.problem import Rescheduling
    from placeopt.rolling_update.problem import RollingUpdate

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
    kept : dict
        The same of containers that ask for another amount than their template.
    """

    namespace: str
    kind: str
    name: str
    pod: str | None
    new_pod: str | None
    requests: dict[str, dict[str, str]]
    kept: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, dict[str, str]]:
        """What the new pod asks for otherwise than its template: as wanted, else as now."""
        names = self.kept | self.requests
        return {c: self.kept.get(c, {}) | self.requests.get(c, {}) for c in names}


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan.

    Attributes
    ----------
    number : int
        From 1.
    action : str
        ``move``, ``restart`` (in place), ``hop`` (to a node that it leaves again), ``stop``,
        ``start`` (after a stop, or of a pod that waits), ``add`` or ``remove`` (a replica more or
        less, for good).
    names : dict
        As the plan names it: application and microservice, or service.
    source, target : str or None
        Nodes.
    empties : bool
        Whether this step leaves the source empty for good.
    cordon : bool
        Whether nothing is to arrive at the source any more, from here on.
    deletes : bool
        Whether the empty source has to be deleted then: rules count it until it is.
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
    deletes: bool = False
    at: StepTarget | None = None

    @property
    def interrupts(self) -> bool:
        """Whether it restarts a pod of a StatefulSet."""
        return self.at is not None and self.at.kind == "StatefulSet"

    @property
    def warning(self) -> str | None:
        """What a reader must know before it is made."""
        what = self.names.get("microservice") or self.names.get("service", "")
        if self.action == "stop":
            return f"disruption: {what} is down from here until a later step starts it again"
        if self.interrupts:
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
            f"; {self.source} is empty then" * self.empties + ", and deleted" * self.deletes
        )


def steps(
    problem: Problem, plan: Plan, origin: Origin | None = None, *, partly: bool = False
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
    from placeopt.rescheduling.problem import Rescheduling
    from placeopt.rolling_update.problem import RollingUpdate

    names = _Pods(origin, plan_id(problem, plan), partly)
    if isinstance(problem, RollingUpdate):
        return _rolling(problem, plan, names)
    if isinstance(problem, Rescheduling):
        return _rescheduling(problem, plan, names)
    raise UnsupportedError(
        f"a {problem.problem} plan has no steps; legal: rolling-update, rescheduling"
    )


def plan_id(problem: Problem, plan: Plan) -> str:
    """Return eight characters that stand for this plan of this instance."""
    with problem.reading(plan):
        text = problem.instance_name.sha256 + sha256(plan)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _rolling(problem: RollingUpdate, plan: Plan, pods: _Pods) -> list[PlanStep]:
    arrays = problem.arrays
    plan = _in_order(problem, plan, pods.origin)
    moves = [(m, -1 if n == arrays.waiting else n) for m, n in problem.steps(plan)]
    last = {copy: k for k, (copy, node) in enumerate(moves) if node >= 0}
    where = [-1 if n == arrays.waiting else n for n in arrays.home.tolist()]
    shrinks = any(rule.shrinks for rule in problem.rules)
    kept = {n.name for n in problem.nodes if n.price == 0}
    journeys = []
    for copy, node in moves:
        journeys.append((where[copy], node))
        where[copy] = node
    results = []
    ends = _ends(journeys, Counter(n for n in arrays.home.tolist() if n != arrays.waiting))
    for k, ((copy, _), (source, node), (empties, cordon)) in enumerate(
        zip(moves, journeys, ends, strict=True)
    ):
        application, name = arrays.names[copy]
        action = _action(source, node, last.get(copy) == k)
        if arrays.removed[copy]:
            action = "remove"
        elif pods.is_new(application, name):
            action = "add"
        before, after = (None if n < 0 else problem.nodes[n].name for n in (source, node))
        results.append(
            PlanStep(
                number=k + 1,
                action=action,
                names={"application": application, "microservice": name},
                source=before,
                target=after,
                empties=empties,
                cordon=cordon,
                deletes=empties and shrinks and before not in kept,
                at=pods.find(
                    pods.copy, k + 1, name, application, action, after, _resized(problem, copy)
                ),
            )
        )
    return results


def _in_order(problem: RollingUpdate, plan: Plan, origin: Origin | None) -> Plan:
    """Return a plan in which waiting pods of a StatefulSet that are alike start in their order.

    A StatefulSet makes a pod that was deleted anew only when those before it are ready, but for
    parallel ones. Pods exchange their steps where the referee says that it is the same.
    """
    items = {} if origin is None else origin.items
    sets: dict[tuple[str, str, str], dict[tuple[str, str], None]] = {}
    for move in plan["steps"]:
        name = (move["application"], move["microservice"])
        item = items.get(key(name[1], name[0]))
        if item is not None and item.kind == "StatefulSet" and item.pod and item.node is None:
            sets.setdefault(_owner(item), {})[name] = None
    for names in sets.values():
        in_order = sorted(names, key=lambda n: _ordinal(items[key(n[1], n[0])].pod))
        if in_order == list(names):
            continue
        takes = dict(zip(names, in_order, strict=True))
        moves = []
        for move in plan["steps"]:
            name = (move["application"], move["microservice"])
            application, pod = takes.get(name, name)
            moves.append({**move, "application": application, "microservice": pod})
        other = {**plan, "steps": moves}
        before, after = problem.evaluate(plan), problem.evaluate(other)
        if not after.violations and after.values == before.values:
            plan = other
    return plan


def _ordinal(pod: str | None) -> int:
    """Return the number of a pod in its StatefulSet.

    Examples
    --------
    >>> _ordinal("db-12"), _ordinal("db")
    (12, 0)
    """
    number = (pod or "").rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _action(source: int, node: int, last: bool) -> str:
    """Return what happens to a copy that goes from a node to a node; -1 is none."""
    if node < 0:
        return "stop"
    if source < 0:
        return "start"
    if not last:
        return "hop"
    return "restart" if node == source else "move"


def _ends(journeys: Sequence[tuple[int, int]], hosted: Counter[int]) -> Iterator[tuple[bool, bool]]:
    """Yield for each step whether it empties its source for good, and whether to cordon it first.

    `journeys` are (source, target), -1 for none; `hosted` counts the copies of each node and is
    changed in place.
    """
    after = hosted + Counter(target for _, target in journeys)
    after.subtract(source for source, _ in journeys)
    arrives = {target: k for k, (_, target) in enumerate(journeys)}
    cordoned = set()
    for k, (source, target) in enumerate(journeys):
        hosted[source] -= 1
        hosted[target] += 1
        leaves = source >= 0 and after[source] <= 0 and arrives.get(source, -1) < k
        yield leaves and hosted[source] == 0, leaves and source not in cordoned
        if leaves:
            cordoned.add(source)


def _resized(problem: RollingUpdate, copy: int) -> tuple[int, int] | None:
    """Return milli-CPU and MiB of the new copy where they differ from now."""
    arrays = problem.arrays
    if (arrays.old[copy] == arrays.new[copy]).all():
        return None
    return int(arrays.new[copy, 0]), int(arrays.new[copy, 1])


def _rescheduling(problem: Rescheduling, plan: Plan, pods: _Pods) -> list[PlanStep]:
    moves = problem.moves(plan)
    hosted = Counter(dict(enumerate(problem.arrays.home.sum(axis=0).tolist())))
    ends = _ends([(source, target) for _, source, target in moves], hosted)
    results = []
    for k, ((service, *journey), (empties, cordon)) in enumerate(zip(moves, ends, strict=True)):
        name = problem.services[service].name
        source, target = (problem.nodes[n].name for n in journey)
        results.append(
            PlanStep(
                number=k + 1,
                action="restart" if source == target else "move",
                names={"service": name},
                source=source,
                target=target,
                empties=empties,
                cordon=cordon,
                at=pods.find(pods.replica, k + 1, name, source, target),
            )
        )
    return results


class _Pods:
    """The pods of the cluster as the steps change them."""

    def __init__(self, origin: Origin | None, identity: str, partly: bool):
        self.origin, self.identity, self.partly = origin, identity, partly
        self.now: dict[str, str | None] = {}
        items = () if origin is None else origin.items.values()
        self.running = {_owner(item) for item in items if item.pod}
        self.replicas: dict[str, list[tuple[str | None, str | None]]] = {}
        self.absent: set[str] = set()  # not in the cluster yet: their manifests are to be applied

    def find(self, locate: Callable[..., StepTarget | None], *arguments: Any) -> StepTarget | None:
        """Return what a step acts on; `locate` is `copy` or `replica`.

        It is None without an origin, and, if the pods are asked for partly, where no command can
        make the step.
        """
        if self.origin is None:
            return None
        try:
            return locate(self.origin, *arguments)
        except UnsupportedError:
            if not self.partly:
                raise
            return None

    def is_new(self, application: str, name: str) -> bool:
        """Return whether a microservice is not in the cluster yet, but others of its workload."""
        item = None if self.origin is None else self.origin.items.get(key(name, application))
        known = key(name, application)
        return (
            item is not None
            and item.pod is None
            and known not in self.now
            and _owner(item) in self.running
        )

    def copy(
        self,
        origin: Origin,
        number: int,
        name: str,
        application: str,
        action: str,
        node: str | None,
        size: tuple[int, int] | None,
    ) -> StepTarget | None:
        """Return what a rolling-update step acts on, and remember its new pod."""
        item = origin.item(name, application)
        if item.kind == _MADE_UP:
            return None
        known = key(name, application)
        pod = self.now.get(known, item.pod)
        if action in ("add", "remove") and item.kind == "StatefulSet":
            raise UnsupportedError(
                f"{known!r} is a replica of a StatefulSet, which adds and removes the last ones "
                "itself; scale it, then import again"
            )
        if action == "start" and known not in self.now and item.pod is None and item.node is None:
            self.absent.add(known)
        if known in self.absent:
            return None
        if known not in self.now and pod is None and action != "add":
            raise UnsupportedError(
                f"{known!r} is not in the cluster yet: apply its manifest, then import again; "
                "commands move pods that are there"
            )
        _check(origin, item, pod, node)
        new = (
            None if action in ("stop", "remove") else self._new_name(item, pod or item.pod, number)
        )
        self.now[known] = new
        requests = _requests(item, size) if new else {}
        kept = _kept(item) if new else {}
        return StepTarget(item.namespace, item.kind, item.name, pod, new, requests, kept)

    def replica(
        self, origin: Origin, number: int, service: str, source: str, target: str
    ) -> StepTarget:
        """Return what a rescheduling step acts on: the first replica of the service on `source`."""
        item = origin.item(service)
        own = self.replicas.setdefault(service, [(r.pod, r.node) for r in item.replicas])
        k = next((k for k, (pod, node) in enumerate(own) if node == source and pod), None)
        if k is None:
            raise UnsupportedError(
                f"no running pod of {service!r} on {source!r} is on file; "
                f"import the output of {DUMP}"
            )
        pod = own[k][0]
        _check(origin, item, pod, target)
        new = self._new_name(item, pod, number)
        own[k] = (new, target)
        return StepTarget(item.namespace, item.kind, item.name, pod, new, {})

    def _new_name(self, item: OriginItem, pod: str | None, number: int) -> str | None:
        if item.kind == "StatefulSet":
            return pod
        tail = f"-po{self.identity}-{number}"
        return item.name[: 63 - len(tail)].rstrip("-.") + tail


def _owner(item: OriginItem) -> tuple[str, str, str]:
    return item.namespace, item.kind, item.name


def _check(origin: Origin, item: OriginItem, pod: str | None, node: str | None) -> None:
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
    if node in origin.nodes and origin.nodes[node].virtual:
        raise UnsupportedError(f"node {node!r} was made up by the importer: nothing can run there")


def _requests(item: OriginItem, size: tuple[int, int] | None) -> dict[str, dict[str, str]]:
    """Return what the containers of a copy shall ask for, by name, where that changes.

    Without new requests by container they share the new size of the pod as they share that of now.
    """
    containers = item.containers
    if named := {c.name: wanted for c in containers if (wanted := _asked(c))}:
        return named
    if size is None:
        return {}
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


def _kept(item: OriginItem) -> dict[str, dict[str, str]]:
    """Return what the containers of a pod ask for that were resized, by name."""
    return {
        c.name: _amounts(c.cpu_millicores, c.memory_bytes) for c in item.containers if c.resized
    }


def _amounts(cpu: int | None, memory: int | None) -> dict[str, str]:
    result = {} if cpu is None else {"cpu": f"{cpu}m"}
    if memory is not None:
        result["memory"] = f"{memory}" if memory % MIB else f"{memory // MIB}Mi"
    return result


def _asked(c: OriginContainer) -> dict[str, str]:
    return _amounts(c.new_cpu_millicores, c.new_memory_bytes)


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


def broken_by(made: Sequence[PlanStep], origin: Origin | None) -> list[str]:
    """Return a sentence for each step that breaks a PodDisruptionBudget."""
    budgets: dict[str, list[KnownBudget]] = {}
    for budget in () if origin is None else origin.budgets:
        known = KnownBudget(f"{budget.namespace}/{budget.name}", budget.allowed)
        for item in budget.items:
            budgets.setdefault(item, []).append(known)
    events = []
    for step in made if budgets else ():
        who = key(step.names.get("microservice", ""), step.names.get("application"))
        down = step.action == "stop" or (step.interrupts and step.source is not None)
        what = who if step.at is None else f"{step.at.namespace}/{step.at.pod or step.at.name}"
        event = Interruption(step.number, who, what, down=down, up=step.target is not None)
        events.append((event, budgets.get(who, ())))
    return broken_budgets(events)


def _absent(made: Sequence[PlanStep], origin: Origin | None) -> list[str]:
    """Return what to do about replicas that are not in the cluster yet, in a sentence."""
    if origin is None:
        return []
    where = {}
    for step in made:
        if step.at is None and step.source is None and step.target is not None:
            item = origin.items.get(
                key(step.names.get("microservice", ""), step.names.get("application"))
            )
            if item is not None and item.kind != _MADE_UP:
                where[f"{item.namespace}/{item.name}"] = step.target
    if not where:
        return []
    named = ", ".join(f"{name} ({node})" for name, node in list(where.items())[:12])
    more = f" and {len(where) - 12} more" if len(where) > 12 else ""
    return [
        "not in the cluster yet, so that no step makes it: apply its manifest after the last step; "
        f"there is room for it on the node behind its name: {named}{more}"
    ]


def _behind(made: Sequence[PlanStep], origin: Origin | None) -> list[str]:
    """Return a sentence for each pod of a StatefulSet that is behind one that waits for a node."""
    waiting: dict[tuple[str, str, str], set[str]] = {}
    for item in () if origin is None else origin.items.values():
        if item.kind == "StatefulSet" and item.pod and item.node is None:
            waiting.setdefault(_owner(item), set()).add(item.pod)
    results = []
    for step in made:
        at = step.at
        if at is None or at.pod is None or not step.interrupts:
            continue
        waits = waiting.get((at.namespace, at.kind, at.name), set())
        waits.discard(at.pod)
        before = sorted((p for p in waits if _ordinal(p) < _ordinal(at.pod)), key=_ordinal)
        if before:
            results.append(
                f"step {step.number} makes {at.namespace}/{at.pod} anew, which its StatefulSet "
                f"does only when {before[0]} is ready, unless its podManagementPolicy is Parallel; "
                f"{before[0]} waits for a node until then, and the script stops before this step"
            )
    return results


def idle_nodes(
    problem: Problem, made: Sequence[PlanStep], origin: Origin | None
) -> tuple[list[str], bool]:
    """Return the nodes with a price that host nothing and that no step uses; whether they count.

    Those that count for a spread over hostnames have to be deleted before the first step.
    """
    from placeopt.rolling_update.problem import RollingUpdate

    if origin is None or not isinstance(problem, RollingUpdate):
        return [], False
    there = {k for k, n in origin.nodes.items() if not (n.absent or n.virtual)}
    there = {name for name in there if _NAME.fullmatch(name)}
    there -= {problem.nodes[n].name for n in problem.arrays.home.tolist() if n < len(problem.nodes)}
    there -= {step.target for step in made if step.target is not None}
    idle = [n.name for n in problem.nodes if n.price > 0 and n.name in there and not n.candidate]
    return idle, any(rule.shrinks for rule in problem.rules)


def about_idle(nodes: Sequence[str], deleted: bool) -> list[str]:
    """Return what a script does with nodes that host nothing, in a sentence."""
    if not nodes:
        return []
    shown = ", ".join(nodes[:20]) + (", ..." if len(nodes) > 20 else "")
    told = (
        "deletes them before the first step: spreads over hostnames count them until then"
        if deleted
        else "cordons them after the last step"
    )
    some = counted(len(nodes), "node")
    return [f"nothing runs on {some}, and no step uses them ({shown}); the plan {told}"]


def warnings(made: list[PlanStep], origin: Origin | None = None) -> list[str]:
    """Return what a reader must know before the first step."""
    results = [*broken_by(made, origin), *_absent(made, origin), *_behind(made, origin)]
    if deleted := [str(s.source) for s in made if s.deletes]:
        shown = ", ".join(deleted[:20]) + (", ..." if len(deleted) > 20 else "")
        results.append(
            f"the plan deletes {counted(len(deleted), 'node')} of the cluster when empty "
            f"({shown}): spreads over hostnames count an empty node until it is deleted"
        )
    stops, hops = ([s.number for s in made if s.action == action] for action in ("stop", "hop"))
    stateful = [s.number for s in made if s.interrupts]
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
            results.append(f"{len(numbers)} of {len(made)} steps {what} (steps {shown})")
    return results
