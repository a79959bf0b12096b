"""A trace as arrays, which the twin runs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.backtest.room import (
    APART,
    COUNTED,
    SPREAD,
    TOGETHER,
    Need,
    PodGroups,
    Room,
    empty_room,
)
from placeopt.backtest.trace import ClusterTrace, TracePod
from placeopt.core.numbers import begins

#: Pods of a node where nothing is said.
_ANY = 2**31


@dataclass(frozen=True)
class TraceArrays:
    """Nodes are slots: those of the trace, then further ones of machines that allow more.

    Attributes
    ----------
    machine : ndarray
        (nodes,) Type of a slot.
    price : ndarray
        (machines,) USD an hour at the beginning.
    begins, ends : ndarray
        (nodes,) When a node of the trace came and went, s; inf: never.
    need : Need
        (pods,)
    of_class : ndarray
        (pods,) Pods of a class ask for the same.
    created, deleted, work : ndarray
        (pods,) s; inf: never; work is nan where a pod is no job.
    workload : ndarray
        (pods,) Number of the workload.
    workloads : list of str
    fixed, alone : ndarray
        (pods,) Whether nobody may move it; whether it can be evicted alone.
    budget : ndarray
        (workloads,) Pods that may be down at a time.
    allowed : ndarray
        (sets, nodes)
    rules : PodGroups
    """

    trace: ClusterTrace
    names: list[str]
    machine: np.ndarray
    price: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    need: Need
    of_class: np.ndarray
    created: np.ndarray
    deleted: np.ndarray
    work: np.ndarray
    workload: np.ndarray
    workloads: list[str]
    fixed: np.ndarray
    alone: np.ndarray
    budget: np.ndarray
    allowed: np.ndarray
    rules: PodGroups

    def room(self) -> Room:
        """Return all nodes, off and empty."""
        machines = self.trace.machines
        sizes = np.array(
            [
                (m.cpu_millicores, m.memory_mib, m.gpus, _ANY if m.pods is None else m.pods)
                for m in machines
            ]
        )
        # Zones are numbered as nodes have them, so that no number exceeds that of nodes.
        zones: dict[str | None, int] = {}
        zone = [zones.setdefault(machines[k].zone, len(zones)) for k in self.machine]
        cpu, memory, gpus, most = sizes[self.machine].T
        return empty_room(cpu, memory, gpus, most, np.array(zone), self.allowed, self.rules)


def arrays_of(trace: ClusterTrace) -> TraceArrays:
    """Return the arrays of a trace."""
    numbers = {m.name: k for k, m in enumerate(trace.machines)}
    machine = [numbers[n.machine] for n in trace.nodes]
    names = [n.name for n in trace.nodes]
    for k, kind in enumerate(trace.machines):
        for extra in range((kind.most or 0) - machine.count(k)):
            names.append(f"{kind.name}-{extra + 1}")
            machine.append(k)
    more = len(machine) - len(trace.nodes)
    inf = float("inf")
    sets: dict[tuple[tuple[str, ...], ...], int] = {}
    node_set = [sets.setdefault((p.machines, p.gpu_models, p.zones), len(sets)) for p in trace.pods]
    per_machine = np.array([[_may(m, one) for m in trace.machines] for one in sets], dtype=np.int64)
    workloads: dict[str, int] = {}
    workload = [workloads.setdefault(p.workload or p.name, len(workloads)) for p in trace.pods]
    rules, row = _rules(trace)
    need = _need(trace.pods, node_set, row)
    rows = np.column_stack(need)
    budget = np.full(len(workloads), np.iinfo(np.int64).max)
    for name, number in trace.budgets.items():
        if name in workloads:
            budget[workloads[name]] = number
    return TraceArrays(
        trace=trace,
        names=names,
        machine=np.array(machine, dtype=np.int64),
        price=np.array([m.usd_per_hour for m in trace.machines]),
        begins=np.array([n.from_s for n in trace.nodes] + [inf] * more),
        ends=np.array([inf if n.to_s is None else n.to_s for n in trace.nodes] + [inf] * more),
        need=need,
        of_class=np.unique(rows, axis=0, return_inverse=True)[1].ravel().astype(np.int64),
        created=np.array([p.from_s for p in trace.pods]),
        deleted=np.array([inf if p.to_s is None else p.to_s for p in trace.pods]),
        work=np.array([np.nan if p.work_s is None else p.work_s for p in trace.pods]),
        workload=np.array(workload, dtype=np.int64),
        workloads=list(workloads),
        fixed=np.array([p.fixed for p in trace.pods]),
        alone=np.array([p.alone for p in trace.pods]),
        budget=budget,
        allowed=per_machine[:, machine],
        rules=rules,
    )


def _may(machine, wanted: tuple[tuple[str, ...], ...]) -> bool:
    machines, models, zones = wanted
    return (
        (not machines or machine.name in machines)
        and (not models or machine.gpu_model in models)
        and (not zones or machine.zone in zones)
    )


def _rules(trace: ClusterTrace) -> tuple[PodGroups, list[int]]:
    """Return what pods have to do with each other, and the row of each pod; -1: nothing."""
    known = {rule.name: rule for rule in trace.rules}
    groups: dict[tuple[str, str], int] = {}
    per_zone: list[int] = []
    rows: dict[tuple[tuple[int, int, int], ...], int] = {}

    def group(kind: str, name: str, zone: bool = False) -> int:
        if (kind, name) not in groups:
            groups[kind, name] = len(groups)
            per_zone.append(int(zone))
        return groups[kind, name]

    row = []
    for pod in trace.pods:
        own = [("ports", port) for port in pod.ports]
        own += [("workload", pod.workload or pod.name)] if pod.apart else []
        entries = [(what, group(*one), 0) for one in own for what in (COUNTED, APART)]
        for name in pod.counts:
            rule = known[name]
            entries.append((COUNTED, group("counts", name, rule.per == "zone"), 0))
            if rule.kind == "apart":
                entries.append((APART, group("keeps", name, rule.per == "zone"), 0))
        for name in pod.keeps:
            rule = known[name]
            what = {"apart": APART, "together": TOGETHER, "spread": SPREAD}[rule.kind]
            entries.append((what, group("counts", name, rule.per == "zone"), rule.max_skew))
            if rule.kind == "apart":
                entries.append((COUNTED, group("keeps", name, rule.per == "zone"), 0))
        key = tuple(dict.fromkeys(entries))
        row.append(rows.setdefault(key, len(rows)) if key else -1)
    flat = [entry for key in rows for entry in key]
    return PodGroups(
        np.array(per_zone or [0], dtype=np.int64),
        begins([len(key) for key in rows]),
        np.array(flat, dtype=np.int64).reshape(-1, 3),
    ), row


def _need(pods: tuple[TracePod, ...], node_set: list[int], rules: list[int]) -> Need:
    rows = [
        (p.cpu_millicores, p.memory_mib, p.gpus, p.gpu_share if p.gpus else 0, s, a)
        for p, s, a in zip(pods, node_set, rules, strict=True)
    ]
    return Need(*(np.ascontiguousarray(column) for column in np.array(rows, dtype=np.int64).T))
