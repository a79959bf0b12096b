"""A rolling-update plan step by step: what each step does, and how full the nodes are meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.rolling_update.arrays import UpdateArrays

#: Heads of the columns in which a step is shown, but for whether it empties a node.
STEP_COLUMNS = (
    "step",
    "application",
    "microservice",
    "action",
    "from",
    "to",
    "target at its peak",
)


@dataclass(frozen=True, kw_only=True)
class TimelineStep:
    """One step of a plan.

    Attributes
    ----------
    number : int
        From 1.
    application, microservice : str
    action : str
        ``move``, ``restart`` (in place), ``hop`` (to a node that it leaves again), ``stop``,
        ``start`` (after a stop, or of what runs nowhere yet) or ``remove`` (for good).
    source, target : str or None
        Nodes before and after.
    peak : float
        Share of the scarcer resource of the target in use while both copies run; 0 without a
        target.
    empties : bool
        Whether this step leaves the source empty for good.
    """

    number: int
    application: str
    microservice: str
    action: str
    source: str | None
    target: str | None
    peak: float
    empties: bool


@dataclass(frozen=True)
class Timeline:
    """The course of a plan of S steps.

    Attributes
    ----------
    steps : list of TimelineStep
    nodes : list of int
        Nodes that the plan touches, in document order; without steps those that host something.
    load : int array (S + 1, nodes, R)
        Milli-CPU, MiB and other resources in use before the first step and after each.
    peak : int array (S + 1, nodes, R)
        The same with both copies of the step's microservice running.
    hosted : int array (S + 1, nodes)
        Number of microservices.
    """

    steps: list[TimelineStep]
    nodes: list[int]
    load: np.ndarray
    peak: np.ndarray
    hosted: np.ndarray

    @property
    def empties(self) -> np.ndarray:
        """Which nodes host something before the plan and nothing after it, bool (nodes,)."""
        return (self.hosted[0] > 0) & (self.hosted[-1] == 0)

    @property
    def opens(self) -> np.ndarray:
        """Which nodes host nothing before the plan and something after it, bool (nodes,)."""
        return (self.hosted[0] == 0) & (self.hosted[-1] > 0)


def timeline(arrays: UpdateArrays, steps: Sequence[tuple[int, int]]) -> Timeline:
    """Return the course of steps given as (microservice number, node number).

    The node is -1 for a stop, that of what runs nowhere for a removal.
    """
    steps = [(m, -1 if n == arrays.waiting else n) for m, n in steps]
    touched = {n for _, n in steps} | {int(arrays.home[m]) for m, _ in steps}
    nodes = sorted((touched if steps else set(arrays.home.tolist())) - {-1, arrays.waiting})
    lane = {n: k for k, n in enumerate(nodes)}
    load = np.zeros((len(steps) + 1, len(nodes), len(arrays.resources)), dtype=np.int64)
    hosted = np.zeros((len(steps) + 1, len(nodes)), dtype=np.int64)
    load[0] = arrays.initial_load[nodes]
    hosted[0] = np.bincount(arrays.home, minlength=len(arrays.price))[nodes]
    peak = load.copy()
    where = [-1 if n == arrays.waiting else n for n in arrays.home.tolist()]
    size, sources = arrays.old.copy(), []
    for k, (m, n) in enumerate(steps, start=1):
        load[k], hosted[k] = load[k - 1], hosted[k - 1]
        if n >= 0:
            load[k, lane[n]] += arrays.new[m]
            hosted[k, lane[n]] += 1
        peak[k] = load[k]
        if where[m] >= 0:
            load[k, lane[where[m]]] -= size[m]
            hosted[k, lane[where[m]]] -= 1
        if n < 0:
            peak[k] = load[k]
        else:
            size[m] = arrays.new[m]
        sources.append(where[m])
        where[m] = n
    return Timeline(_steps(arrays, steps, sources, lane, peak, hosted), nodes, load, peak, hosted)


def _steps(
    arrays: UpdateArrays,
    steps: Sequence[tuple[int, int]],
    sources: list[int],
    lane: dict[int, int],
    peak: np.ndarray,
    hosted: np.ndarray,
) -> list[TimelineStep]:
    """Return the steps in words; `lane` is the column of each node in `peak` and `hosted`."""
    results = []
    last = {m: k for k, (m, n) in enumerate(steps) if n >= 0}
    for k, ((m, n), source) in enumerate(zip(steps, sources, strict=True)):
        share = peak[k + 1, lane[n]] / np.maximum(arrays.capacity[n], 1) if n >= 0 else np.zeros(1)
        if n < 0:
            action = "remove" if arrays.removed[m] else "stop"
        elif source < 0:
            action = "start"
        elif last[m] != k:
            action = "hop"
        else:
            action = "restart" if n == source else "move"
        empties = source >= 0 and source != n and not hosted[k + 1 :, lane[source]].any()
        application, microservice = arrays.names[m]
        before, after = (None if x < 0 else arrays.node_names[x] for x in (source, n))
        results.append(
            TimelineStep(
                number=k + 1,
                application=application,
                microservice=microservice,
                action=action,
                source=before,
                target=after,
                peak=float(share.max()),
                empties=bool(empties),
            )
        )
    return results
