"""Instances of edge-cloud, rescheduling and temporal from a cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import Any

from placeopt.core.errors import DocumentError, UsageError, did_you_mean
from placeopt.core.files.documents import Document
from placeopt.kubernetes.admission import PodSize
from placeopt.kubernetes.candidates import node_of
from placeopt.kubernetes.capacity import NodeCapacity, allowed, require_node, to_come
from placeopt.kubernetes.cluster import (
    ImportedInstance,
    ReadCluster,
    by_workload,
    calls,
    cores_and_gib,
    flows,
    item,
    largest,
    node_origins,
    node_prices,
    require_few_nodes,
    short_names,
)
from placeopt.kubernetes.instance import place as placed
from placeopt.kubernetes.machines import PRICES, Offer
from placeopt.kubernetes.manifests import ClusterObjects, Key
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import OriginItem, note
from placeopt.kubernetes.origin import key as key_of
from placeopt.kubernetes.replicas import Replica, default_requests, grouped

# -- edge-cloud ------------------------------------------------------------------------------------
#
# A member cluster of Karmada is one node.
#
# Replicas that run and must stay take of the capacity of their node; all others are placed anew.

#: A node says its layer by this label, or in the column `layer` of a table of nodes.
LAYER = "placeopt/layer"


def edge_cloud(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance.

    Raises
    ------
    UsageError
        There are too many nodes, or an unknown source.
    DocumentError
        Latencies or a price are missing.
    """
    require_few_nodes(cluster, "edge-cloud", "delays")
    site, units = _free(cluster.site, cluster.objects)
    prices = node_prices(cluster, options)
    cluster = replace(cluster, site=site)
    note("assumption", "operating_cost of a node is its price, for each replica that it hosts")
    costs = (
        f"network_cost is {options.network_cost:g} for every node (--network-cost), "
        "data 1 for every replica"
    )
    note("assumption", costs)
    applications, items = _applications(cluster, options, units)
    document = {
        "problem": "edge-cloud",
        "name": options.name,
        "nodes": [_edge_node(cluster, options, n, prices[n.name]) for n in site.nodes.values()],
        "delay_ms": _delays(cluster),
        "applications": applications,
    }
    return ImportedInstance(document, items, node_origins(cluster))


def layer(node: KubernetesNode) -> str:
    """Return the layer of a node: what it says, its zone, its region."""
    if own := node.layer or node.label(LAYER):
        return own
    if "node-role.kubernetes.io/edge" in node.meta.labels:
        return "edge"
    return node.place


def _free(site: NodeCapacity, objects: ClusterObjects) -> tuple[NodeCapacity, list[Replica]]:
    """Return the room beside the replicas that stay, and the replicas to place."""
    everywhere = frozenset(site.nodes)
    stay = [(u, u.node) for u in site.units if u.stays and u.node is not None]
    free = [u for u in site.units if not (u.stays and u.node is not None)]
    for unit, where in zip(free, allowed(free, objects, site.nodes), strict=True):
        if where != everywhere:
            note("not-expressed", "taints, node selectors and required node affinity", unit.label)
    left = site.less(stay)
    return replace(left, room=left.room | dict.fromkeys(site.drain, PodSize(0, 0))), free


def _edge_node(
    cluster: ReadCluster, options: ImportOptions, node: KubernetesNode, price: float
) -> Document:
    return {
        "name": node.name,
        "layer": layer(node),
        **cores_and_gib(cluster.site.room[node.name], capacity=True),
        "operating_cost": price,
        "network_cost": options.network_cost,
    }


def _delays(cluster: ReadCluster) -> dict[str, dict[str, float]]:
    """Return the delays between nodes."""
    nodes = list(cluster.site.nodes.values())
    results: dict[str, dict[str, float]] = {}
    for one, other in combinations(nodes, 2):
        ms = cluster.latencies.between(one, other)
        if ms is None:
            note(
                "not-expressed",
                "nodes between which no latency is given cannot reach each other",
                f"{layer(one)} to {layer(other)}",
            )
        else:
            results.setdefault(one.name, {})[other.name] = ms
    if len(nodes) > 1 and not results:
        raise nodes[0].meta.place.fault(
            "no latency between any two nodes",
            "give --latency, by node, zone or region",
        )
    return results


def _applications(
    cluster: ReadCluster,
    options: ImportOptions,
    units: list[Replica],
) -> tuple[list[Document], dict[str, OriginItem]]:
    source = options.source or next(iter(cluster.site.nodes))
    require_node("--source", source, cluster.site.nodes)
    if options.source is None:
        note("assumption", f"data come from the first node, {source} (--source)")
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    for name, own in grouped(units, lambda unit: unit.namespace).items():
        services = [{"name": u.name, **cores_and_gib(u.size), "data": 1.0} for u in own]
        application: Document = {"name": name, "source": source, "microservices": services}
        if talking := flows(own, calls(cluster, options), "max_delay_ms", "calls"):
            application["flows"] = talking
        applications.append(application)
        items |= {key_of(u.name, name): item(u) for u in own}
    return applications, items


# -- rescheduling ----------------------------------------------------------------------------------
#
# The problem has no pods that stay and no node selectors. Both are kept by execution times: on
# nodes where a service must not run it takes `FORBIDDEN_MS`, so that no plan on the front puts it
# there. Nodes that accept the same services are of one kind.

FORBIDDEN_MS = 1e6


def rescheduling(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
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
    cluster, workloads = _services(placed(cluster, options))
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
        raise next(iter(cluster.site.nodes.values())).meta.place.fault(
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
            raise one.meta.place.fault(
                f"no latency between {one.name} and {other.name}",
                "give --latency: nodes, zones or regions, in ms",
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
        space, name = service.metadata.namespace, service.metadata.name
        exposed = service.spec.type in ("LoadBalancer", "NodePort")
        if exposed or (space, name) in cluster.objects.entries:
            labels = service.spec.selector
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


# -- temporal --------------------------------------------------------------------------------------


def temporal(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance: which machines to lease, and where, for the workloads of the files.

    Raises
    ------
    DocumentError
        There are no prices, or no machine whose size is known.
    UsageError
        The prices are of several places and ``--origin`` is not given, or a slot has no length.
    """
    if not 0 < options.slot_hours <= 1e6:
        raise UsageError(f"--slot-hours {options.slot_hours}; legal: above 0, up to 1,000,000")
    workloads = by_workload(u for u in cluster.units if not u.bound)
    names = short_names(workloads)
    offers = _offers(cluster, options)
    options.new_requests.note_unused(cluster.units)
    places = list(dict.fromkeys(o["location"] for o in offers))
    origin = _origin(cluster, options, places)
    document = {
        "problem": "temporal",
        "name": options.name,
        "horizon_slots": options.horizon,
        "slot_hours": options.slot_hours,
        "latency_ms": _from_origin(cluster, origin, places),
        "offers": offers,
        "requests": [
            _request(cluster, options, names[key], units, origin)
            for key, units in workloads.items()
        ],
    }
    note("assumption", "machines offer all of their capacity; nothing is kept for the system")
    return ImportedInstance(
        document, {names[key]: item(units[0]) for key, units in workloads.items()}
    )


def _taken(cluster: ReadCluster, options: ImportOptions) -> dict[tuple[str, str], PodSize]:
    """Return what DaemonSets and static pods take of a machine of each (location, size)."""
    assert cluster.prices is not None
    places = {f"{a}/{b}": (a, b) for a, b in cluster.prices.offers}
    machines = {name: node_of(name, *place) for name, place in places.items()}
    results = dict.fromkeys(places.values(), PodSize(0, 0))
    for unit, name in to_come(cluster.objects, cluster.units, machines, options.rules.policy):
        cpu, memory = results[places[name]]
        results[places[name]] = PodSize(cpu + unit.size.cpu, memory + unit.size.memory)
    return results


def _request(
    cluster: ReadCluster, options: ImportOptions, name: str, units: list[Replica], origin: str
) -> dict[str, Any]:
    unit, size = units[0], largest(units)
    policy = options.rules.policy.after(default_requests(cluster.objects, unit.namespace))
    if (new := options.new_requests.of(unit, policy)) is not None:
        size = new.pod
    if size.cpu == 0 or size.memory == 0:
        raise unit.spec.place.fault(
            f"{unit.label} asks for nothing",
            "the temporal problem needs a request above 0 of cpu and memory",
        )
    workload = cluster.objects.workloads.get(unit.owner)
    slots = options.duration or options.horizon
    if workload is not None and workload.deadline_seconds is not None:
        slot_seconds = max(1, round(3600 * options.slot_hours))
        slots = min(options.horizon, max(1, -(-workload.deadline_seconds // slot_seconds)))
        note("assumption", "Jobs run until their deadline", name)
    else:
        note(
            "assumption",
            f"workloads run for {slots} slots"
            + ("" if options.duration else ", the whole horizon"),
            name,
        )
    return {
        "name": name,
        **cores_and_gib(size),
        "duration_slots": slots,
        "replicas": len(units),
        "origin": origin,
    }


def _offers(cluster: ReadCluster, options: ImportOptions) -> list[dict[str, Any]]:
    if cluster.prices is None:
        raise DocumentError(
            "no prices",
            path="offers",
            remedy="give --prices: a table with sizes, such as the spot advisor or CSV",
        )
    existing = {n.instance_type: n for n in cluster.objects.nodes.values() if n.instance_type}
    results, taken = [], _taken(cluster, options)
    for (location, size), offer in cluster.prices.offers.items():
        cpu, memory = offer.get("cpu_cores"), offer.get("memory_gib")
        if (cpu is None or memory is None) and size in existing:
            cpu, memory = Decimal(existing[size].cpu) / 1000, Decimal(existing[size].memory) / 2**30
            note(
                "assumption",
                "machine types without a size: what a node of this type can allocate",
                size,
            )
        if cpu is None or memory is None:
            note(
                "left-out",
                "machine types with a price but no size (cpu_cores, memory_gib)",
                f"{location} {size}",
            )
            continue
        daemons = taken[location, size]
        cpu, memory = cpu - Decimal(daemons.cpu) / 1000, memory - Decimal(daemons.memory) / 2**30
        if cpu > 0 and memory > 0:
            results.append(
                {
                    "location": location,
                    "size": size,
                    "cpu_cores": float(cpu),
                    "memory_gib": float(memory),
                    **_prices(offer, size),
                }
            )
    if not results:
        remedy = (
            "give their sizes: the spot advisor of AWS, or CSV with "
            "location,size,cpu_cores,memory_gib"
        )
        raise DocumentError("no machine type with a price and a size", path="offers", remedy=remedy)
    return results


def _prices(offer: Offer, size: str) -> dict[str, float]:
    results = {key: float(offer[key]) for key in PRICES.values() if key in offer}
    if PRICES["spot"] in results:
        if "spot_interruption" in offer:
            return results | {"spot_interruption": float(offer["spot_interruption"])}
        note("left-out", "spot prices without a share of interruptions", size)
        del results[PRICES["spot"]]
    return results


def _origin(cluster: ReadCluster, options: ImportOptions, places: list[str]) -> str:
    value = options.origin
    if value is None:
        if len(places) > 1:
            raise UsageError(
                f"the prices are of {len(places)} places; say where requests come from: "
                f"--origin {places[0]}"
            )
        note("assumption", f"requests come from {places[0]}, the only place with prices")
        return places[0]
    if value not in places and value not in cluster.latencies.table:
        raise UsageError(
            f"--origin {value!r}: neither prices nor latencies name it; "
            + did_you_mean(value, places)
        )
    return value


def _from_origin(
    cluster: ReadCluster, origin: str, places: list[str]
) -> dict[str, dict[str, float]]:
    results = {}
    for place in places:
        ms = cluster.latencies.between_places(origin, place)
        if ms is None and place == origin:
            ms = 0.0
            note(
                "assumption",
                "latency inside a place is 0 ms unless --latency says otherwise",
                place,
            )
        if ms is None:
            note("left-out", f"places that {origin} does not reach: no latency is given", place)
        else:
            results[place] = ms
    return {origin: results}
