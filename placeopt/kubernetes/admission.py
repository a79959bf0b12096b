"""May one pod more be made? A copy runs beside the one that it replaces.

ResourceQuotas and LimitRanges say so, and no pod is made in a namespace that is being deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from placeopt.kubernetes.manifests import ENDED, ClusterObjects
from placeopt.kubernetes.objects import (
    ObjectMeta,
    Pod,
    PodSpec,
    amounts,
    quantity,
)
from placeopt.kubernetes.quantities import MIB, millicores, parse, whole_bytes
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.sizes import as_scheduled

#: Thousandths of a piece, bytes of memory and storage.
Usage = Counter[str]
_BYTES = ("memory", "storage", "hugepages-")
_MUST_SAY = {"cpu": 0, "memory": 1}


class _Quota(NamedTuple):
    meta: ObjectMeta
    view: View
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
        self.defaulted = set(cluster.limit_ranges)
        self.ranges, self.leaving = cluster.ranges, cluster.leaving
        for meta, view in cluster.quotas:
            hard = _amounts(view["spec"]["hard"])
            left = dict(hard)
            made = _Quota(meta, view, hard, left)
            used = _amounts(view["status"]["used"])
            if not view["status"]["used"]:
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
            if not _is_about(quota.view["spec"], spec):
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
            if _is_about(quota.view["spec"], spec):
                for key, amount in _usage(spec).items():
                    if key in quota.left:
                        quota.left[key] -= sign * amount


def _amounts(view: View) -> dict[str, int]:
    results = {}
    for key in view.mapping():
        convert = whole_bytes if _is_bytes(key) else millicores
        results[key] = quantity(view[key], convert, capacity=True) or 0
    return results


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
        if own and _is_about(quota.view["spec"], pod.spec):
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
        result[f"limits.{key}"] = max(running, first) + (spec.overhead[r] or 0)
    return result


def _unsaid(hard: Mapping[str, int], spec: PodSpec) -> str:
    """Return a resource that a quota limits and of which a container says nothing."""
    for key, r in _MUST_SAY.items():
        every = (*spec.containers, *spec.inits)
        asks = {key, f"requests.{key}"} & hard.keys()
        if asks and any(c.requests[r] is None for c in every):
            return f"requests.{key}"
        if f"limits.{key}" in hard and any(c.limits[r] is None for c in every):
            return f"limits.{key}"
    return ""


# -- scopes ----------------------------------------------------------------------------------------


def _is_about(quota: View, spec: PodSpec) -> bool:
    """Return whether a quota counts a pod: whether all its scopes hold."""
    for scope in quota["scopes"].items():
        if not _in_scope(scope.text(), spec):
            return False
    for term in quota["scopeSelector"]["matchExpressions"].items():
        name, operator = term["scopeName"].text(), term["operator"].text()
        values = {v.text() for v in term["values"].items()}
        if name == "PriorityClass":
            has = spec.view["priorityClassName"].text()
            holds = {
                "In": has in values,
                "NotIn": has not in values,
                "DoesNotExist": not has,
            }.get(operator, bool(has))
        else:
            holds = _in_scope(name, spec) != (operator == "DoesNotExist")
        if not holds:
            return False
    return True


def _in_scope(name: str, spec: PodSpec) -> bool:
    """Return whether a pod is in a scope; in one that is not known it counts."""
    if name in ("Terminating", "NotTerminating"):
        return bool(spec.view["activeDeadlineSeconds"]) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        amounts = (a for c in (*spec.containers, *spec.inits) for a in (*c.requests, *c.limits))
        return any(amounts) == (name == "NotBestEffort")
    if name == "CrossNamespacePodAffinity":
        return any(
            _names_spaces(spec.affinity[kind]) for kind in ("podAffinity", "podAntiAffinity")
        )
    return True


def _names_spaces(affinity: View) -> bool:
    hard = affinity["requiredDuringSchedulingIgnoredDuringExecution"].items()
    soft = affinity["preferredDuringSchedulingIgnoredDuringExecution"].items()
    terms = [*hard, *(weighted["podAffinityTerm"] for weighted in soft)]
    return any(bool(t["namespaces"].value) or bool(t["namespaceSelector"]) for t in terms)


_RESOURCES = ("cpu", "memory")


class _Asked(NamedTuple):
    """What a container, or a pod, asks of a resource at least and at most; None for nothing."""

    who: str
    request: int | None
    limit: int | None


def _out_of_range(limit: View, spec: PodSpec, *, defaulted: bool) -> Iterator[str]:
    """Yield why a limit of a LimitRange, of containers or of pods, does not let a pod be made.

    Where `defaulted`, containers that say nothing get what the ranges of containers say.
    """
    whole = limit["type"].value == "Pod"
    low, high = (amounts(limit[key]) for key in ("min", "max"))
    for r, what in enumerate(_RESOURCES):
        ratio = limit["maxLimitRequestRatio"][what].value
        for wanted in _of_pod(spec, r) if whole else _of_containers(spec, r):
            why = _why(wanted, low[r], high[r], None if ratio is None else parse(ratio))
            if not why and whole and not defaulted:
                why = _why_silent(wanted, low[r], high[r])
            if why:
                yield f"{what} {why}"


def _of_containers(spec: PodSpec, r: int) -> Iterator[_Asked]:
    for c in (*spec.containers, *spec.inits):
        yield _Asked(f"of container {c.name[:63]}", c.requests[r], c.limits[r])


def _of_pod(spec: PodSpec, r: int) -> Iterator[_Asked]:
    """Yield what a pod asks for: itself, its containers together, or an init container alone."""
    both = []
    for kind in ("requests", "limits"):
        lasting = [getattr(c, kind)[r] for c in spec.lasting]
        first = [getattr(c, kind)[r] or 0 for c in spec.inits if not c.sidecar]
        said = any(amount is not None for amount in lasting)
        both.append(max(sum(a or 0 for a in lasting), *first, 0) if said else None)
    own = spec.own_requests[r]
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
