"""The trace of a cluster: machines, nodes, pods, prices and losses over time.

A trace says who came when, not where the scheduler put it: the twin places pods anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from placeopt.backtest.room import MOST_GPUS, MOST_SPREADS, WHOLE
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json, sha256, validate, with_line
from placeopt.core.files.paths import AnyPath
from placeopt.core.problem import Name, Record

#: Of a trace, at most.
LONGEST_S = 1e10
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
Amount = Annotated[int, Field(ge=0, le=10**12)]
Dollars = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
#: A file and a line of it.
Place = tuple[str, int]


class MachineType(Record):
    """A type of machine that nodes are."""

    name: Name
    """What nodes refer to."""
    cpu_millicores: Amount = Field(gt=0)
    """What pods can have of it, in thousandths of a core."""
    memory_mib: Amount
    """What pods can have of it."""
    gpus: int = Field(default=0, ge=0, le=MOST_GPUS)
    """GPUs."""
    gpu_model: Name | None = None
    """Their model. Absent: none, or not known."""
    zone: Name | None = None
    """Where it stands; a machine of two zones is two types. Absent: nowhere."""
    usd_per_hour: Dollars
    """Price of a node, from its order to its end."""
    pods: int | None = Field(default=None, ge=0, le=100_000)
    """Pods that a node takes. Absent: any number."""
    most: int | None = Field(default=None, ge=0, le=100_000)
    """Nodes that there can be at a time. Absent: as many as the trace has."""


class TraceNode(Record):
    """A node that was there."""

    name: Name
    """Another for each node."""
    machine: Name
    """Its type."""
    from_s: Seconds = 0.0
    """When it came."""
    to_s: Seconds | None = None
    """When it went. Absent: it stayed."""


class TracePod(Record):
    """A pod that was there. It ends when it was deleted, or when its work is done."""

    name: Name
    """A name may come again, later."""
    workload: Name | None = None
    """What it is a replica of. Absent: of itself."""
    cpu_millicores: Amount = 0
    """Request of CPU."""
    memory_mib: Amount = 0
    """Request of memory."""
    gpus: int = Field(default=0, ge=0, le=MOST_GPUS)
    """GPUs that it takes."""
    gpu_share: int = Field(default=WHOLE, ge=1, le=WHOLE)
    """Thousandths of a GPU; less than 1000 only of a single GPU."""
    machines: tuple[Name, ...] = ()
    """Types on which it may stand. Absent: all."""
    gpu_models: tuple[Name, ...] = ()
    """Models of GPU that it accepts. Absent: all."""
    zones: tuple[Name, ...] = ()
    """Zones in which it may stand. Absent: all."""
    apart: bool = False
    """Whether no node has two pods of its workload that say so."""
    ports: tuple[Name, ...] = ()
    """Ports of the node that it takes, such as TCP/8080: no two pods of a node take the same."""
    keeps: tuple[Name, ...] = ()
    """Rules that it keeps."""
    counts: tuple[Name, ...] = ()
    """Rules that count it."""
    revision: Name | None = None
    """Template of its workload that it is made of. Absent: not known."""
    fixed: bool = False
    """Whether nobody may evict or move it."""
    alone: bool = False
    """Whether no second copy may run beside it: it can be evicted, not moved."""
    from_s: Seconds
    """When it was created."""
    to_s: Seconds | None = None
    """When it was deleted. Absent: it stayed, or its work ended it."""
    work_s: Seconds | None = None
    """Of a job: it ends so long after it was ready. Stopped on the way, it begins again."""


class PodRule(Record):
    """A rule about other pods; a domain is a node or a zone.

    ``apart``: a pod that keeps it has none that it counts in its domain, nor the other way round.
    ``together``: it has one in its domain, unless there is none anywhere and it is one itself.
    ``spread``: its domain has at most `max_skew` more of them than the domain with the fewest.
    """

    name: Name
    """What pods refer to."""
    kind: Literal["apart", "together", "spread"]
    """What it asks."""
    per: Literal["node", "zone"] = "node"
    """What a domain is."""
    max_skew: int = Field(default=1, ge=1, le=10**6)
    """Of a spread."""


class RolloutStrategy(Record):
    """How a workload replaces the pods of a revision by those of the next one."""

    max_unavailable: int = Field(default=0, ge=0, le=10**6)
    """Old pods that may have ended before as many new ones are ready."""
    max_surge: int = Field(default=1, ge=0, le=10**6)
    """New pods that may be made before as many old ones have ended."""


class PriceChange(Record):
    """A price from some second on."""

    machine: Name
    """The type."""
    at_s: Seconds
    """From when on."""
    usd_per_hour: Dollars
    """The price."""


class Loss(Record):
    """A node that was lost: a spot interruption, or a failure."""

    node: Name
    """The node; a policy that has it switched off loses nothing."""
    at_s: Seconds
    """When it was gone."""


class ClusterTrace(Record):
    """What happened on a cluster."""

    trace: Literal["cluster"] = "cluster"
    """What this document is."""
    name: Name
    """Of the trace."""
    seconds: float = Field(gt=0, le=LONGEST_S, allow_inf_nan=False)
    """How long it is."""
    machines: tuple[MachineType, ...] = Field(min_length=1)
    """Types of nodes."""
    nodes: tuple[TraceNode, ...] = ()
    """Nodes that were there."""
    pods: tuple[TracePod, ...] = Field(min_length=1)
    """Pods that were there, by rising from_s."""
    prices: tuple[PriceChange, ...] = ()
    """Changes of prices, by rising at_s."""
    losses: tuple[Loss, ...] = ()
    """Losses of nodes, by rising at_s."""
    rules: tuple[PodRule, ...] = ()
    """Rules of pods about other pods."""
    rollouts: dict[Name, RolloutStrategy] = Field(default_factory=dict)
    """Workload -> its strategy. Absent: its pods come and go as recorded."""
    budgets: dict[Name, Annotated[int, Field(ge=0, le=10**6)]] = Field(default_factory=dict)
    """Workload -> pods of it that may be down at a time by a policy's doing. Absent: any number."""
    node_start_s: Seconds = 60.0
    """From the order of a node until it takes pods."""
    pod_start_s: Seconds = 10.0
    """From the placement of a pod until it is ready."""

    @model_validator(mode="after")
    def _checks(self) -> Self:
        check(self)
        return self

    @property
    def sha256(self) -> str:
        """SHA-256 of the document."""
        return sha256(self.model_dump(mode="json"))


def read(path: AnyPath) -> ClusterTrace:
    """Read a trace.

    Raises
    ------
    DocumentError
        One message: the file, the line, what is wrong, what to do.
    """
    document = read_json(path)
    try:
        return validate(ClusterTrace, document)
    except DocumentError as error:
        raise with_line(error, path) from None


def check(trace: ClusterTrace) -> None:
    """Raise for a trace that cannot have happened.

    Raises
    ------
    DocumentError
        Names the path of the value and what to do.
    """
    machines = {m.name: m for m in trace.machines}
    _once("machines", "machine", [m.name for m in trace.machines])
    _once("nodes", "node", [n.name for n in trace.nodes])
    for k, node in enumerate(trace.nodes):
        _known(f"nodes[{k}].machine", node.machine, machines)
        _life(f"nodes[{k}]", node)
    _once("rules", "rule", [rule.name for rule in trace.rules])
    kinds = {rule.name: rule.kind for rule in trace.rules}
    for name, strategy in trace.rollouts.items():
        if not (strategy.max_unavailable or strategy.max_surge):
            raise DocumentError(
                "neither surges nor lets a pod be missing",
                path=f"rollouts.{name}",
                remedy="legal: one of max_unavailable and max_surge above 0",
            )
    for k, pod in enumerate(trace.pods):
        _check_pod(f"pods[{k}]", pod, machines)
        _check_rules(f"pods[{k}]", pod, kinds)
    _overlaps(trace.pods)
    _in_order("pods", "from_s", [p.from_s for p in trace.pods])
    _in_order("prices", "at_s", [p.at_s for p in trace.prices])
    _in_order("losses", "at_s", [p.at_s for p in trace.losses])
    for k, change in enumerate(trace.prices):
        _known(f"prices[{k}].machine", change.machine, machines)
    names = {n.name for n in trace.nodes}
    for k, loss in enumerate(trace.losses):
        _known(f"losses[{k}].node", loss.node, names)


def _once(path: str, what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for k, name in enumerate(names):
        if name in seen:
            raise DocumentError(
                f"{what} {name!r} comes twice",
                path=f"{path}[{k}].name",
                remedy="give each its own name; a node that came back is a node of another name",
            )
        seen.add(name)


def _known(path: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise DocumentError(
            f"{name!r} is not in the trace", path=path, remedy=f"legal: {_few(names)}"
        )


def _few(names: Iterable[str]) -> str:
    some = sorted(names)
    return ", ".join(some[:8]) + (", ..." if len(some) > 8 else "") or "none"


def _life(path: str, one: TraceNode | TracePod) -> None:
    if one.to_s is not None and one.to_s < one.from_s:
        raise DocumentError(
            f"{one.name!r} ends at {one.to_s:g} s, before it begins at {one.from_s:g} s",
            path=f"{path}.to_s",
            remedy="check the clock of the export: to_s is at least from_s",
        )


def _check_pod(path: str, pod: TracePod, machines: dict[str, MachineType]) -> None:
    _life(path, pod)
    if not (pod.cpu_millicores or pod.memory_mib or pod.gpus):
        raise DocumentError(
            f"pod {pod.name!r} has no requests",
            path=path,
            remedy="give cpu_millicores, memory_mib or gpus: without, a node holds any number",
        )
    if pod.gpu_share < WHOLE and pod.gpus != 1:
        raise DocumentError(
            f"a share of {pod.gpu_share} thousandths of {pod.gpus} GPUs",
            path=f"{path}.gpu_share",
            remedy='legal: shares of a single GPU, "gpus": 1',
        )
    for name in pod.machines:
        _known(f"{path}.machines", name, machines)


def _check_rules(path: str, pod: TracePod, kinds: Mapping[str, str]) -> None:
    for part, names in (("keeps", pod.keeps), ("counts", pod.counts)):
        for name in names:
            _known(f"{path}.{part}", name, kinds)
    if sum(kinds[name] != "apart" for name in pod.keeps) > MOST_SPREADS:
        raise DocumentError(
            f"pod {pod.name!r} keeps more than {MOST_SPREADS} rules of spread and company",
            path=f"{path}.keeps",
            remedy=f"legal: up to {MOST_SPREADS}",
        )


def _overlaps(pods: tuple[TracePod, ...]) -> None:
    """Raise where two pods of one name live at the same time."""
    lives: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for k, pod in enumerate(pods):
        lives[pod.name].append((pod.from_s, float("inf") if pod.to_s is None else pod.to_s, k))
    for name, spans in lives.items():
        spans.sort()
        for (_, end, _), (begin, _, k) in pairwise(spans):
            if begin < end:
                raise DocumentError(
                    f"pod {name!r} begins at {begin:g} s while one of its name lives",
                    path=f"pods[{k}].from_s",
                    remedy="end the first one before, or give it another name",
                )


def _in_order(path: str, field: str, times: list[float]) -> None:
    for k, (before, after) in enumerate(pairwise(times), 1):
        if after < before:
            raise DocumentError(
                f"{after:g} s comes after {before:g} s: the clock goes back",
                path=f"{path}[{k}].{field}",
                remedy=f"sort {path} by {field}",
            )


def built(
    document: dict[str, Any],
    file: str | None = None,
    places: Mapping[str, Sequence[Place]] | None = None,
) -> ClusterTrace:
    """Return a trace from what a reader made; lists are sorted by time.

    Parameters
    ----------
    document : dict
    file : str, optional
        What was read.
    places : mapping, optional
        List of the document -> for each element, as it came, the file and line it was read from.

    Raises
    ------
    DocumentError
        The trace cannot have happened; names the place.
    """
    places = dict(places or {})
    for part, key in (("pods", "from_s"), ("prices", "at_s"), ("losses", "at_s")):
        values = document.get(part, ())
        order = sorted(range(len(values)), key=lambda k: values[k].get(key, 0.0))
        document[part] = [values[k] for k in order]
        if part in places:
            places[part] = [places[part][k] for k in order]
    try:
        trace: ClusterTrace = validate(ClusterTrace, document, file=file)
    except DocumentError as error:
        raise _placed(error, places) from None
    return trace


def _placed(error: DocumentError, places: Mapping[str, Sequence[Place]]) -> DocumentError:
    """Return an error about an element with the file and line that the element was read from."""
    match = re.match(r"(\w+)\[(\d+)\]\.?(.*)", error.path or "")
    if match is None or match[1] not in places:
        return error
    file, line = places[match[1]][int(match[2])]
    where = f"line {line}" + (f", {match[3]}" if match[3] else "")
    return DocumentError(error.problem, file=file, path=where, remedy=error.remedy)
