"""Requests of pods, as the scheduler counts them, and the policy for containers without any.

The effective request of a pod, per resource: the larger of (a) its containers and sidecars together
and (b) each init container together with the sidecars that start before it; then the overhead of
its runtime class. A request of the pod itself replaces those of its containers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from placeopt.core.errors import DocumentError, UsageError
from placeopt.kubernetes.notes import note, recorded
from placeopt.kubernetes.objects import Amounts, ContainerSpec, PodSpec
from placeopt.kubernetes.quantities import millicores, whole_bytes

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
    own, overhead = spec.own_requests[r], spec.overhead[r] or 0
    if own is not None:
        return own + overhead
    running = sum(_held(c, r, policy, label) for c in spec.containers)
    started = maximum = 0
    for init in spec.inits:
        if init.sidecar:
            started += _held(init, r, policy, label)
            maximum = max(maximum, started)
        else:
            maximum = max(maximum, started + _init_request(init, r, policy, label))
    return max(running + started, maximum) + overhead


def resized(spec: PodSpec, new: Mapping[str, Amounts]) -> PodSpec:
    """Return the spec of a new copy of a pod, with new requests of some containers, by name.

    A resource that is None stays as it is, and so do init containers that end before the pod
    serves.
    """

    def asked(c: ContainerSpec) -> ContainerSpec:
        cpu, memory = (
            now if wanted is None else wanted
            for now, wanted in zip(c.requests, new.get(c.name, (None, None)), strict=True)
        )
        return replace(c, requests=(cpu, memory), held=(None, None))

    inits = [asked(c) if c.sidecar else c for c in spec.inits]
    return replace(spec, containers=[asked(c) for c in spec.containers], inits=inits)


def _init_request(init: ContainerSpec, r: int, policy: MissingRequests, label: str) -> int:
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


def _held(c: ContainerSpec, r: int, policy: MissingRequests, label: str) -> int:
    """Return the larger of what a container asks for and what it was given."""
    return max(_request(c, r, policy, label), c.held[r] or 0)


def _request(c: ContainerSpec, r: int, policy: MissingRequests, label: str) -> int:
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
    view = c.view["resources"]["requests"] if c.view["resources"] else c.view
    raise view.fault(f"container {c.name[:63]!r} of {label} has no {what} request{limit}", remedy)
