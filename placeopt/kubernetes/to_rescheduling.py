"""A running call graph as a rescheduling instance: services, their replicas and their calls.

The problem has no pods that stay and no node selectors. Both are kept by execution times: on nodes
where a service must not run it takes `FORBIDDEN_MS`, so that no plan on the front puts it there.
Nodes that accept the same services are of one kind.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.files.documents import Document
from placeopt.kubernetes.calls import Key
from placeopt.kubernetes.capacity import allowed
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.parts import (
    ImportedInstance,
    by_workload,
    cores_and_gib,
    item,
    largest,
    node_origins,
    require_few_nodes,
    short_names,
)
from placeopt.kubernetes.placement import place
from placeopt.kubernetes.replicas import Replica

FORBIDDEN_MS = 1e6


def build(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance.

    Raises
    ------
    DocumentError
        Two nodes have no latency.
    UsageError
        There are too many nodes, or an unknown gateway.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    require_few_nodes(cluster, "rescheduling", "latencies")
    cluster, workloads = _services(place(cluster, options))
    names = short_names(workloads)
    where = _where(cluster, workloads)
    kinds = _kinds(cluster, list(where.values()))
    calls = _calls(cluster, options, workloads)
    gateway = _gateway(cluster, options, workloads, names, calls)
    services = [
        _service(cluster, options, names, key, units, kinds, where[key], calls[key])
        for key, units in workloads.items()
    ]
    document = {
        "problem": "rescheduling",
        "name": options.name,
        "nodes": [_node(cluster, options, n, kinds[n.name]) for n in cluster.site.nodes.values()],
        "latency_ms": _latencies(cluster),
        "services": services,
        "gateway": names[gateway],
    }
    items = {names[key]: item(units[0], units) for key, units in workloads.items()}
    return ImportedInstance(document, items, node_origins(cluster))


def _services(cluster: ReadCluster) -> tuple[ReadCluster, dict[Key, list[Replica]]]:
    """Return the workloads, those that stay and call nobody taken off the room of their nodes."""
    talking = {end for edge in cluster.calls.edges for end in edge}
    results: dict[Key, list[Replica]] = {}
    taken: list[tuple[Replica, str]] = []
    for key, units in by_workload(cluster.site.units).items():
        if key in talking or not all(u.stays for u in units):
            results[key] = units
            continue
        for unit in units:
            assert unit.node is not None
            taken.append((unit, unit.node))
            note("capacity", "pods that stay and are in no call", unit.label)
    if not results:
        raise next(iter(cluster.site.nodes.values())).meta.view.fault(
            "no workload that may move or is called", "see what stays, in the report"
        )
    return replace(cluster, site=cluster.site.less(taken)), results


def _where(cluster: ReadCluster, workloads: dict[Key, list[Replica]]) -> dict[Key, frozenset[str]]:
    """Return for each service the nodes on which it may run.

    A service that stays may run where it is; another where its rules let it.
    """
    everywhere = frozenset(cluster.site.nodes) - cluster.site.drain
    results = {}
    for key, units in workloads.items():
        now = frozenset(u.node for u in units if u.node is not None)
        if any(u.stays for u in units):
            note(
                "kept",
                f"services that stay take {FORBIDDEN_MS:,.0f} ms on other nodes",
                f"{key[0]}/{key[1]}",
            )
            results[key] = now
            continue
        own = allowed(units[:1], cluster.objects, cluster.site.nodes)[0] - cluster.site.drain
        if own != everywhere:
            note(
                "kept",
                "taints, node selectors and required node affinity: "
                f"{FORBIDDEN_MS:,.0f} ms elsewhere",
                f"{key[0]}/{key[1]}",
            )
        results[key] = own | now if not own >= everywhere else everywhere
    for name in sorted(cluster.site.drain):
        note(
            "not-expressed",
            "nodes to drain: every service takes very long there, but nothing makes it leave",
            name,
        )
    return results


def _machine(node: KubernetesNode) -> str:
    return node.layer or node.instance_type or "node"


def _kinds(cluster: ReadCluster, sets: list[frozenset[str]]) -> dict[str, str]:
    """Return the kind of every node: its machine type, split where services need it."""
    different = dict.fromkeys(sets)
    signatures: dict[tuple[str, tuple[bool, ...]], str] = {}
    count: Counter[str] = Counter()
    results = {}
    for node in cluster.site.nodes.values():
        base = _machine(node)
        signature = base, tuple(node.name in s for s in different)
        if signature not in signatures:
            count[base] += 1
            signatures[signature] = base if count[base] == 1 else f"{base}#{count[base]}"
        results[node.name] = signatures[signature]
    return results


def _node(
    cluster: ReadCluster, options: ImportOptions, node: KubernetesNode, kind: str
) -> Document:
    user = node.user_latency_ms
    if user is None:
        user = options.user_latency_ms
    if user is None:
        user = 0.0
        note(
            "assumption",
            "users are equally far from every node: 0 ms "
            "(--user-latency-ms, or a column of --nodes)",
        )
    return {
        "name": node.name,
        "kind": kind,
        **cores_and_gib(cluster.site.room[node.name], capacity=True),
        "user_latency_ms": user,
    }


def _latencies(cluster: ReadCluster) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    for one, other in combinations(cluster.site.nodes.values(), 2):
        ms = cluster.latencies.between(one, other)
        if ms is None:
            raise one.meta.view.fault(
                f"no latency between {one.name} and {other.name}",
                "give --latency, or a NetworkTopology and nodes with zones and regions",
            )
        results.setdefault(one.name, {})[other.name] = ms
    return results


def _service(
    cluster: ReadCluster,
    options: ImportOptions,
    names: dict[Key, str],
    key: Key,
    units: list[Replica],
    kinds: dict[str, str],
    where: frozenset[str],
    calls: list[Key],
) -> Document:
    size = largest(units)
    if any(u.size != size for u in units):
        note(
            "assumption", "replicas of different sizes: all are as large as the largest", names[key]
        )
    times = {}
    for name, kind in kinds.items():
        if kind not in times:
            times[kind] = (
                _time(options, names[key], key[1], _machine(cluster.site.nodes[name]))
                if name in where
                else FORBIDDEN_MS
            )
    called = [names[c] for c in calls]
    results: Document = {
        "name": names[key],
        **cores_and_gib(size),
        "execution_ms": times,
        "replicas": [u.node for u in units],
    }
    groups = [[name] for name in called] if options.parallel_calls else [called]
    return results | ({"calls": groups} if called else {})


def _time(options: ImportOptions, name: str, workload: str, kind: str) -> float:
    ms, value = options.execution
    for candidate in ((name, kind), (workload, kind), (name, ""), (workload, "")):
        if candidate in value:
            return value[candidate]
    note(
        "assumption",
        f"services without a measured time take {ms:g} ms on any machine (--execution)",
        name,
    )
    return ms


def _calls(
    cluster: ReadCluster, options: ImportOptions, workloads: dict[Key, list[Replica]]
) -> dict[Key, list[Key]]:
    """Return whom every service calls, without the calls that close a circle."""
    callees = {
        key: [c for c in result if c in workloads]
        for key, result in cluster.calls.callees().items()
        if key in workloads
    }
    kept: dict[Key, list[Key]] = {key: [] for key in workloads}
    state: dict[Key, int] = {}
    called = {c for result in callees.values() for c in result}
    for root in sorted(workloads, key=lambda k: k in called):
        stack = [(root, iter(callees.get(root, ())))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            here, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[here] = 2
                stack.pop()
            elif state.get(following) == 1:
                note(
                    "not-expressed",
                    "calls that close a circle are left out",
                    f"{here[1]} to {following[1]}",
                )
            else:
                kept[here].append(following)
                if following not in state:
                    state[following] = 1
                    stack.append((following, iter(callees.get(following, ()))))
    if any(kept.values()):
        order = (
            "at the same time (--parallel-calls)"
            if options.parallel_calls
            else "one after another (--parallel-calls: at the same time)"
        )
        note("assumption", f"a service calls others {order}, each once per request")
    return kept


def _gateway(
    cluster: ReadCluster,
    options: ImportOptions,
    workloads: dict[Key, list[Replica]],
    names: dict[Key, str],
    calls: dict[Key, list[Key]],
) -> Key:
    """Return the service that users call.

    It is the given one, else one behind an Ingress or a LoadBalancer, else the one that reaches
    most others.
    """
    by_name = {name: key for key, name in names.items()}
    if options.gateway is not None:
        if options.gateway not in by_name:
            raise UsageError(
                f"--gateway {options.gateway!r}: no such service; "
                + did_you_mean(options.gateway, by_name)
            )
        return by_name[options.gateway]
    open_to_users: set[Key] = set()
    for service in cluster.objects.services:
        space = service.meta.namespace
        if (
            service.type in ("LoadBalancer", "NodePort")
            or (space, service.meta.name) in cluster.objects.entries
        ):
            labels = service.selector
            open_to_users |= {
                k
                for k, units in workloads.items()
                if k[0] == space and labels and labels.items() <= units[0].labels.items()
            }
    candidates = [k for k in workloads if k in open_to_users] or workloads
    best = max(candidates, key=lambda k: len(_reached(k, calls)))
    note("assumption", f"users call {names[best]} (--gateway)")
    return best


def _reached(start: Key, calls: dict[Key, list[Key]]) -> set[Key]:
    seen, waiting = {start}, [start]
    while waiting:
        for following in calls[waiting.pop()]:
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen
