"""LimitRanges: do they let a pod be made? Those that run may be older than the ranges."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from placeopt.kubernetes.objects import PodSpec, amounts
from placeopt.kubernetes.quantities import parse
from placeopt.kubernetes.reading import View

_RESOURCES = ("cpu", "memory")


class _Asked(NamedTuple):
    """What a container, or a pod, asks of a resource at least and at most; None for nothing."""

    who: str
    request: int | None
    limit: int | None


def why_out_of_range(
    ranges: list[tuple[str, View]], namespace: str, spec: PodSpec, *, defaulted: bool
) -> str:
    """Return why LimitRanges do not let a pod be made, empty if they do.

    Parameters
    ----------
    ranges : list of (name, View)
        The limits of a namespace, of containers and pods, with the name of their LimitRange.
    namespace : str
    spec : PodSpec
    defaulted : bool
        Whether containers that say nothing get what the ranges of containers say.
    """
    for name, limit in ranges:
        whole = limit["type"].value == "Pod"
        low, high = (amounts(limit[key]) for key in ("min", "max"))
        for r, what in enumerate(_RESOURCES):
            ratio = limit["maxLimitRequestRatio"][what].value
            for asked in _of_pod(spec, r) if whole else _of_containers(spec, r):
                why = _why(asked, low[r], high[r], None if ratio is None else parse(ratio))
                if not why and whole and not defaulted:
                    why = _why_silent(asked, low[r], high[r])
                if why:
                    return f"LimitRange {namespace}/{name} forbids a copy: {what} {why}"
    return ""


def _of_containers(spec: PodSpec, r: int) -> Iterator[_Asked]:
    for c in (*spec.containers, *spec.inits):
        yield _Asked(f"of container {c.name[:63]}", c.requests[r], c.limits[r])


def _of_pod(spec: PodSpec, r: int) -> Iterator[_Asked]:
    """Yield what a pod asks for: its containers together, or an init container by itself."""
    both = []
    for kind in ("requests", "limits"):
        lasting = [getattr(c, kind)[r] for c in spec.lasting]
        first = [getattr(c, kind)[r] or 0 for c in spec.inits if not c.sidecar]
        said = any(amount is not None for amount in lasting)
        both.append(max(sum(a or 0 for a in lasting), *first, 0) if said else None)
    yield _Asked("of the pod", both[0], both[1])


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
