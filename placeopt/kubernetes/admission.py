"""What pods ask for, and whether one pod more may be made.

A copy runs beside the pod that it replaces. ResourceQuotas and LimitRanges say whether it may be
made, no pod is made in a namespace that is being deleted, and Deployments that change make and end
pods as they see fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, NamedTuple

from placeopt.core.errors import DocumentError, UsageError
from placeopt.kubernetes.manifests import ENDED, ClusterObjects
from placeopt.kubernetes.objects import Container, ObjectMeta, Pod, PodSpec
from placeopt.kubernetes.origin import note, recorded
from placeopt.kubernetes.values import MIB, NOTHING, Amounts, millicores, whole_bytes

# -- requests of pods ------------------------------------------------------------------------------
#
# The effective request of a pod, per resource: the larger of (a) its containers and sidecars
# together and (b) each init container together with the sidecars that start before it; then the
# overhead of its runtime class. A request of the pod itself replaces those of its containers.

_WHAT = ("cpu", "memory")


class PodSize(NamedTuple):
    """Milli-CPU and bytes of a pod."""

    cpu: int
    memory: int

    def less(self, used: PodSize) -> PodSize:
        """Return what is left of a room beside `used`, at least 0."""
        return PodSize(max(0, self.cpu - used.cpu), max(0, self.memory - used.memory))


@dataclass(frozen=True)
class MissingRequests:
    """What a container is taken to ask for where it does not say: the first of `steps` that knows.

    Parameters
    ----------
    steps : sequence of (str, Amounts)
        ``("limits", ...)``: its limit; ``("default", (milli-CPU, bytes))``; ``("LimitRange", ...)``
        with None for what it does not say.
    """

    steps: tuple[tuple[str, Amounts], ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> MissingRequests:
        """Read ``error``, ``limits`` and ``default=100m,128Mi``, in the order in which they count.

        Raises
        ------
        UsageError
            None of these.
        """
        return cls(tuple(step for text in texts if (step := _step(text)) is not None))

    def after(self, defaults: Amounts) -> MissingRequests:
        """Return the policy that asks the defaults of a LimitRange first."""
        if defaults == (None, None):
            return self
        return MissingRequests((("LimitRange", defaults), *self.steps))


#: What asks for nothing counts as nothing, as the scheduler has it.
NOTHING_ASKED = MissingRequests((("default", (0, 0)),))


def _step(text: str) -> tuple[str, Amounts] | None:
    if text == "error":
        return None
    if text == "limits":
        return "limits", (None, None)
    word, _, value = text.partition("=")
    parts = value.split(",")
    if word != "default" or len(parts) != 2:
        raise UsageError(
            f"--missing-requests {text!r}; legal: error, limits, default=CPU,MEMORY "
            "such as default=100m,128Mi"
        )
    try:
        return "default", (millicores(parts[0].strip()), whole_bytes(parts[1].strip()))
    except DocumentError as error:
        raise UsageError(f"--missing-requests {text!r}: {error}") from None


def effective(spec: PodSpec, policy: MissingRequests, label: str) -> PodSize:
    """Return the effective request of a pod; of a resize in place the larger amount.

    Raises
    ------
    DocumentError
        A container says nothing of a resource, and the policy neither.
    """
    return PodSize(*(_effective(spec, r, policy, label) for r in range(2)))


def as_scheduled(spec: PodSpec) -> PodSize:
    """Return the request of a pod as the scheduler has it: nothing where nothing is said."""
    with recorded():  # nothing is assumed, so that nothing is told
        return effective(spec, NOTHING_ASKED, "")


def _effective(spec: PodSpec, r: int, policy: MissingRequests, label: str) -> int:
    own, overhead = spec.resources.requests.amounts[r], (spec.overhead or NOTHING).amounts[r] or 0
    if own is not None:
        return own + overhead
    held = partial(_held, spec=spec, r=r, policy=policy, label=label)
    running = sum(map(held, spec.containers))
    if not spec.inits:
        return running + overhead
    started = maximum = 0
    for init in spec.inits:
        if init.sidecar:
            started += held(init)
            maximum = max(maximum, started)
        else:
            maximum = max(maximum, started + _init_request(init, r, policy, label))
    return max(running + started, maximum) + overhead


def resized(spec: PodSpec, new: Mapping[str, Amounts]) -> PodSpec:
    """Return the spec of a new copy of a pod, with new requests of some containers, by name.

    A resource that is None stays as it is, and so do init containers that end before the pod
    serves.
    """

    containers, inits = (
        tuple(
            c.asking(new.get(c.name, (None, None))) if c.sidecar or own is spec.containers else c
            for c in own
        )
        for own in (spec.containers, spec.inits)
    )
    return spec.changed(containers=containers, inits=inits)


def _init_request(init: Container, r: int, policy: MissingRequests, label: str) -> int:
    """Return the request of an init container: its own, else that of a LimitRange, else 0.

    Without one it ends before the pod serves.
    """
    wanted = init.requests[r]
    if wanted is None:
        wanted = next((amounts[r] for kind, amounts in policy.steps if kind == "LimitRange"), None)
    if wanted is None:
        note(
            "assumption",
            f"init containers without a {_WHAT[r]} request add none: "
            "they end before the pod serves",
            f"{label} {init.name[:63]}",
        )
        return 0
    return wanted


def _held(c: Container, spec: PodSpec, r: int, policy: MissingRequests, label: str) -> int:
    """Return the larger of what a container asks for and what it was given."""
    return max(_request(c, spec, r, policy, label), c.held[r] or 0)


def _request(c: Container, spec: PodSpec, r: int, policy: MissingRequests, label: str) -> int:
    wanted = c.requests[r]
    if wanted is not None:
        return wanted
    what, subject = _WHAT[r], f"{label} {c.name[:63]}"
    for kind, amount in policy.steps:
        if kind == "limits" and c.limits[r] is not None:
            note("assumption", f"no {what} request: its limit", subject)
            return c.limits[r]  # type: ignore[return-value]
        if kind == "LimitRange" and amount[r] is not None:
            note("assumption", f"no {what} request: the default of its LimitRange", subject)
            return amount[r]  # type: ignore[return-value]
        if kind == "default":
            value = amount[r]
            assert value is not None
            unit = f"{value}m" if r == 0 else f"{value} bytes"
            note("assumption", f"no {what} request: {unit} (--missing-requests)", subject)
            return value
    limit = (
        " (it has a limit: --missing-requests limits takes it)" if c.limits[r] is not None else ""
    )
    remedy = "say what to assume: --missing-requests default=100m,128Mi, or limits"
    field, own = ("containers", spec.containers)
    if c not in own:
        field, own = ("initContainers", spec.inits)
    problem = f"container {c.name[:63]!r} of {label} has no {what} request{limit}"
    raise spec.place.fault(problem, remedy, field, own.index(c), "resources", "requests")


# -- quotas and ranges -----------------------------------------------------------------------------
#
# ResourceQuotas and LimitRanges say so, and no pod is made in a namespace that is being deleted.

#: Thousandths of a piece, bytes of memory and storage.
Usage = Counter[str]
_BYTES = ("memory", "storage", "hugepages-")
_MUST_SAY = {"cpu": 0, "memory": 1}


class _Quota(NamedTuple):
    meta: ObjectMeta
    spec: Any
    hard: dict[str, int]
    left: dict[str, int]


class Admission:
    """Which pods may be made beside those that are there.

    Parameters
    ----------
    cluster : ClusterObjects
    """

    def __init__(self, cluster: ClusterObjects):
        self.by_space: dict[str, list[_Quota]] = {}
        self.ranges, self.leaving = cluster.ranges, cluster.leaving
        self.defaulted = {s for s in self.ranges if cluster.limits_of_containers(s)}
        for quota in cluster.quotas:
            hard = _amounts(quota.spec.hard)
            left, meta = dict(hard), quota.metadata
            made = _Quota(meta, quota.spec, hard, left)
            used = Counter(_amounts(quota.status.used or {}))
            if quota.status.used is None:
                used = sum((_usage(pod.spec) for pod in _charged(cluster, made)), Counter())
            for key in left:
                left[key] -= used.get(key, 0)
            self.by_space.setdefault(meta.namespace, []).append(made)

    @property
    def asks(self) -> bool:
        """Whether there is anything that could forbid a copy."""
        return bool(self.by_space or self.ranges or self.leaving)

    def why_no_copy(self, namespace: str, spec: PodSpec) -> str:
        """Return why no pod more of a spec may be made in a namespace, empty if one may."""
        return next(self.forbidding(namespace, spec), "")

    def forbidding(self, namespace: str, spec: PodSpec) -> Iterator[str]:
        """Yield what forbids one pod more of a spec: its namespace, LimitRanges, ResourceQuotas."""
        if namespace in self.leaving:
            yield f"namespace {namespace} is being deleted: no pod may be made there"
        defaulted = namespace in self.defaulted
        for name, limit in self.ranges.get(namespace, ()):
            if why := next(_out_of_range(limit, spec, defaulted=defaulted), ""):
                yield f"LimitRange {namespace}/{name} forbids a copy: {why}"
        for quota in self.by_space.get(namespace, ()):
            if not _is_about(quota.spec, spec):
                continue
            if not defaulted and (what := _unsaid(quota.hard, spec)):
                yield f"ResourceQuota {quota.meta.label} wants to know what pods ask of {what}"
                continue
            for key, amount in _usage(spec).items():
                if key in quota.left and amount > quota.left[key]:
                    used = _shown(key, quota.hard[key] - quota.left[key])
                    yield (
                        f"ResourceQuota {quota.meta.label} has no room for one pod more: "
                        f"{key} {used} of {_shown(key, quota.hard[key])}"
                    )
                    break

    def take(self, namespace: str, spec: PodSpec, sign: int = 1) -> None:
        """Count a pod that is to be made; with the sign -1 one that is gone."""
        for quota in self.by_space.get(namespace, ()):
            if _is_about(quota.spec, spec):
                for key, amount in _usage(spec).items():
                    if key in quota.left:
                        quota.left[key] -= sign * amount


def _amounts(said: Mapping[str, Fraction]) -> dict[str, int]:
    return {key: floor(amount if _is_bytes(key) else 1000 * amount) for key, amount in said.items()}


def _is_bytes(key: str) -> bool:
    return any(word in key for word in _BYTES)


def _shown(key: str, amount: int) -> str:
    if _is_bytes(key):
        return f"{amount / MIB:g} MiB"
    return f"{amount / 1000:g}"


def _charged(cluster: ClusterObjects, quota: _Quota) -> Iterator[Pod]:
    """Yield the pods that a quota counts now; pods that have ended are none."""
    for pod in cluster.pods:
        own = pod.meta.namespace == quota.meta.namespace and pod.phase not in ENDED
        if own and _is_about(quota.spec, pod.spec):
            yield pod


def _usage(spec: PodSpec) -> Usage:
    """Return what a quota counts of a pod, by the names that quotas have for it."""
    size = as_scheduled(spec)
    result = Counter({"pods": 1000, "count/pods": 1000})
    wanted = {"cpu": size.cpu, "memory": size.memory}
    for key, amount in spec.further.items():
        if key != "pods":
            wanted[key] = amount * (MIB if _is_bytes(key) else 1000)
    for key, amount in wanted.items():
        result[key] = result[f"requests.{key}"] = amount
    for key, r in _MUST_SAY.items():
        running = sum(c.limits[r] or 0 for c in spec.lasting)
        first = max((c.limits[r] or 0 for c in spec.inits), default=0)
        result[f"limits.{key}"] = max(running, first) + ((spec.overhead or NOTHING).amounts[r] or 0)
    return result


def _unsaid(hard: Mapping[str, int], spec: PodSpec) -> str:
    """Return a resource that a quota limits and of which a container says nothing."""
    for key, r in _MUST_SAY.items():
        every = spec.every
        asks = {key, f"requests.{key}"} & hard.keys()
        if asks and any(c.requests[r] is None for c in every):
            return f"requests.{key}"
        if f"limits.{key}" in hard and any(c.limits[r] is None for c in every):
            return f"limits.{key}"
    return ""


# -- scopes ----------------------------------------------------------------------------------------


def _is_about(quota: Any, spec: PodSpec) -> bool:
    """Return whether a quota counts a pod: whether all its scopes hold."""
    if not all(_in_scope(scope, spec) for scope in quota.scopes):
        return False
    for term in quota.scopeSelector.matchExpressions:
        if term.scopeName == "PriorityClass":
            has = spec.priority_class_name
            holds = {
                "In": has in term.values,
                "NotIn": has not in term.values,
                "DoesNotExist": not has,
            }.get(term.operator, bool(has))
        else:
            holds = _in_scope(term.scopeName, spec) != (term.operator == "DoesNotExist")
        if not holds:
            return False
    return True


def _in_scope(name: str, spec: PodSpec) -> bool:
    """Return whether a pod is in a scope; in one that is not known it counts."""
    if name in ("Terminating", "NotTerminating"):
        return (spec.active_deadline_seconds is not None) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        amounts = (a for c in spec.every for a in (*c.requests, *c.limits))
        return any(amounts) == (name == "NotBestEffort")
    if name == "CrossNamespacePodAffinity":
        sides = spec.affinity.pods, spec.affinity.anti
        terms = (t for side in sides for t in (*side.required, *side.preferred))
        return any(t.namespaces or t.namespace_selector is not None for t in terms)
    return True


_RESOURCES = ("cpu", "memory")


class _Asked(NamedTuple):
    """What a container, or a pod, asks of a resource at least and at most; None for nothing."""

    who: str
    request: int | None
    limit: int | None


def _out_of_range(limit: Any, spec: PodSpec, *, defaulted: bool) -> Iterator[str]:
    """Yield why a limit of a LimitRange, of containers or of pods, does not let a pod be made.

    Where `defaulted`, containers that say nothing get what the ranges of containers say.
    """
    whole = limit.type == "Pod"
    low, high = limit.min.amounts, limit.max.amounts
    for r, what in enumerate(_RESOURCES):
        ratio = limit.maxLimitRequestRatio.get(what)
        for wanted in _of_pod(spec, r) if whole else _of_containers(spec, r):
            why = _why(wanted, low[r], high[r], ratio)
            if not why and whole and not defaulted:
                why = _why_silent(wanted, low[r], high[r])
            if why:
                yield f"{what} {why}"


def _of_containers(spec: PodSpec, r: int) -> Iterator[_Asked]:
    for c in spec.every:
        yield _Asked(f"of container {c.name[:63]}", c.requests[r], c.limits[r])


def _of_pod(spec: PodSpec, r: int) -> Iterator[_Asked]:
    """Yield what a pod asks for: itself, its containers together, or an init container alone."""
    both = []
    for kind in ("requests", "limits"):
        lasting = [getattr(c, kind)[r] for c in spec.lasting]
        first = [getattr(c, kind)[r] or 0 for c in spec.inits if not c.sidecar]
        said = any(amount is not None for amount in lasting)
        both.append(max(sum(a or 0 for a in lasting), *first, 0) if said else None)
    own = spec.resources.requests.amounts[r]
    yield _Asked("of the pod", both[0] if own is None else own, both[1])


def _why(asked: _Asked, low: int | None, high: int | None, ratio: Fraction | None) -> str:
    who, request, limit = asked
    said = [amount for amount in (request, limit) if amount is not None]
    if low is not None and any(amount < low for amount in said):
        return f"{who} is below its least"
    if high is not None and any(amount > high for amount in said):
        return f"{who} is above its most"
    if ratio is not None and request and limit and limit > ratio * request:
        return f"{who} has too large a limit for its request"
    return ""


def _why_silent(asked: _Asked, low: int | None, high: int | None) -> str:
    """Return that a pod says nothing of what a range is about."""
    if high is not None and asked.limit is None:
        return f"{asked.who} has no limit"
    return f"{asked.who} has no request" if low is not None and asked.request is None else ""


# -- Deployments that change -----------------------------------------------------------------------

_REVISION = "deployment.kubernetes.io/revision"
#: Namespace, kind and name of a workload.
_Owner = tuple[str, str, str]


class Changing(NamedTuple):
    """What a Deployment is, in words; and whether pods of it that wait are still wanted."""

    text: str
    wanted: bool = False


_DELETED = Changing("of a Deployment that is being deleted")
_ROLLOUT = Changing("of a Deployment in the middle of a rollout")
_SHRINKS = Changing("of a Deployment that has more pods than it wants")
_GROWS = Changing("of a Deployment that has fewer pods than it wants", wanted=True)


def under_way(cluster: ClusterObjects) -> dict[_Owner, Changing]:
    """Return the Deployments that change, and how.

    One is being deleted, or its ReplicaSet. Of a rollout pods are of two ReplicaSets, or two
    ReplicaSets want pods, or those of an old revision still have some, or the controller has not
    seen the newest template yet. A Deployment with another number of pods than it wants is making
    or ending some; copies of a plan would be counted among them.
    """
    if cluster.changing is None:
        cluster.changing = _under_way(cluster)
    return cluster.changing


def _under_way(cluster: ClusterObjects) -> dict[_Owner, Changing]:
    sets = _sets(cluster)
    result = _of_other_numbers(cluster)
    rolling = {o for o, names in sets.items() if len(names) > 1 or _is_old(cluster, o, names)}
    result |= dict.fromkeys(rolling | _unseen(cluster), _ROLLOUT)
    return result | dict.fromkeys(_deleted(cluster, sets), _DELETED)


def _sets(cluster: ClusterObjects) -> dict[_Owner, set[str]]:
    """Return the ReplicaSets of each Deployment that have pods or want some."""
    sets: dict[_Owner, set[str]] = {}
    for pod in cluster.pods:
        owner = pod.meta.owner
        if owner is not None and owner[0] == "ReplicaSet" and not pod.leaving:
            kind, name = cluster.owner(pod)
            if kind == "Deployment" and pod.phase not in ENDED:
                sets.setdefault((pod.meta.namespace, kind, name), set()).add(owner[1])
    for (space, name), known in cluster.sets.items():
        kind, above = cluster.owners[space, "ReplicaSet", name]
        if kind == "Deployment" and known.replicas:
            sets.setdefault((space, kind, above), set()).add(name)
    return sets


def _is_old(cluster: ClusterObjects, owner: _Owner, names: set[str]) -> bool:
    """Return whether the ReplicaSets of a Deployment are of another revision than it."""
    workload = cluster.workloads.get(owner)
    wanted = None if workload is None else workload.meta.annotations.get(_REVISION)
    for name in names if wanted else ():
        known = cluster.sets.get((owner[0], name))
        has = None if known is None else known.meta.annotations.get(_REVISION)
        if has is not None and has != wanted:
            return True
    return False


def _unseen(cluster: ClusterObjects) -> set[_Owner]:
    """Return the Deployments whose controller has not seen what they ask for."""
    return {o for o, w in cluster.workloads.items() if o[1] == "Deployment" and not w.is_seen}


def _deleted(cluster: ClusterObjects, sets: dict[_Owner, set[str]]) -> Iterable[_Owner]:
    """Yield the Deployments that are being deleted, or whose ReplicaSet is."""
    for owner, workload in cluster.workloads.items():
        if owner[1] == "Deployment" and workload.meta.deletion_timestamp:
            yield owner
    for owner, names in sets.items():
        known = (cluster.sets.get((owner[0], name)) for name in names)
        if any(one is not None and one.meta.deletion_timestamp for one in known):
            yield owner


def _of_other_numbers(cluster: ClusterObjects) -> dict[_Owner, Changing]:
    """Return the Deployments with pods, but with another number of them than they want."""
    there = Counter(
        (pod.meta.namespace, *cluster.owner(pod))
        for pod in cluster.pods
        if not pod.leaving and pod.phase not in ENDED
    )
    results = {}
    for owner, workload in cluster.workloads.items():
        if owner[1] == "Deployment" and there[owner] not in (0, workload.replicas):
            results[owner] = _GROWS if there[owner] < workload.replicas else _SHRINKS
    return results
