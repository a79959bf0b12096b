"""A cluster as the document of a rolling update, whether or not its replicas run yet."""

from __future__ import annotations

from itertools import combinations

from placeopt.core.documents import Document
from placeopt.kubernetes.attaching import AttachRoom, attach_room
from placeopt.kubernetes.edges import Edge
from placeopt.kubernetes.gathered import Gathered, calls, flows, has_prices, item
from placeopt.kubernetes.new_requests import NewSize
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.origin import OriginItem, key
from placeopt.kubernetes.quantities import mebibytes
from placeopt.kubernetes.rules import PodRules, pod_rules
from placeopt.kubernetes.sizes import PodSize
from placeopt.kubernetes.units import Unit, default_requests


def update_document(
    g: Gathered, prices: dict[str, float]
) -> tuple[Document, dict[str, OriginItem]]:
    """Return the document, and what its microservices are in the cluster.

    Replicas without a node wait for one.
    """
    volumes = attach_room(g)
    rules = pod_rules(g)
    g.faults.check()  # what is wrong at all stages is known by now
    counted = _Counted(g, volumes)
    applications, items = _applications(g, rules, counted)
    g.options.new_requests.note_unused(g.site.units, g.notes)
    nodes = [_node(g, n, prices[n.name], rules, counted) for n in g.site.nodes.values()]
    if rules.rules:
        nodes += [_closed(node, rules) for node in g.site.closed.values()]
    document: Document = {
        "problem": "rolling-update",
        "name": g.options.name,
        "semantics": "stay",
        "nodes": nodes,
        "cluster_latency_ms": _latencies(g),
        "applications": applications,
        "node_sets": rules.node_sets,
        "rules": rules.rules,
    }
    if survive := _survival(g, rules):
        document["survival"] = survive
    if has_prices(g):
        document["price_unit"] = "USD/h"
    for field in ("cluster_latency_ms", "node_sets", "rules"):
        if not document[field]:
            del document[field]
    return document, items


def _survival(g: Gathered, rules: PodRules) -> Document:
    """Return what the loss of a node is to leave; nothing where nothing is asked."""
    room = {"room": True} if "room" in g.options.survive else {}
    return room | ({"needs": rules.needs} if rules.needs else {})


class _Counted:
    """The resources besides cpu and memory that may run out, volumes among them.

    Pods do where there are as many of them as the smallest node may have: a copy is one more.
    """

    def __init__(self, g: Gathered, volumes: AttachRoom):
        self.g, self.volumes = g, volumes
        self.names = {key for unit in g.site.units for key in unit.further}
        room = [left.get("pods") for left in g.site.further.values()]
        known = [pods for pods in room if pods is not None]
        if len(known) < len(room) or len(g.site.units) < min(known, default=0):
            self.names.discard("pods")

    def room(self, node: str) -> Document:
        """Return the field of a node that has its further resources."""
        found = {k: v for k, v in self.g.site.further[node].items() if k in self.names}
        return self._field(found | self.volumes.left.get(node, {}))

    def asked(self, k: int) -> Document:
        """Return the field of replica k that has what it asks for besides cpu and memory."""
        unit = self.g.site.units[k]
        found = {key: amount for key, amount in unit.further.items() if key in self.names}
        return self._field(found | self.volumes.asked.get(k, {}))

    @staticmethod
    def _field(amounts: dict[str, int]) -> Document:
        return {"resources": dict(sorted(amounts.items()))} if amounts else {}


def _node(
    g: Gathered, node: KubernetesNode, price: float, rules: PodRules, counted: _Counted
) -> Document:
    room, part = g.site.room[node.name], 1 - g.options.headroom
    found: Document = {
        "name": node.name,
        "cluster": node.place,
        "cpu_millicores": int(room.cpu * part),
        "memory_mib": mebibytes(int(room.memory * part), capacity=True),
        "price": price,
    }
    if node.candidate:
        found["candidate"] = True
    if node.instance_type:
        found["machine_type"] = node.instance_type
    if node.name in g.site.drain:
        found["drain"] = True
    return found | counted.room(node.name) | _standing(node, rules)


def _closed(node: KubernetesNode, rules: PodRules) -> Document:
    """Return a node that is left out: rules count what it hosts, and it takes nothing."""
    found: Document = {
        "name": node.name,
        "cluster": node.place,
        "cpu_millicores": node.cpu,
        "memory_mib": mebibytes(node.memory, capacity=True),
        "price": 0.0,
        "closed": True,
    }
    return found | _standing(node, rules)


def _standing(node: KubernetesNode, rules: PodRules) -> Document:
    """Return where a node stands, as far as rules ask, and what comes with it."""
    domains = {k: node.meta.labels[k] for k in sorted(rules.keys) if node.meta.labels.get(k)}
    found: Document = {"domains": domains} if domains else {}
    residents = rules.residents.get(node.name)
    return found | ({"residents": residents} if residents else {})


def _latencies(g: Gathered) -> dict[str, dict[str, float]]:
    first: dict[str, KubernetesNode] = {}
    for node in g.site.nodes.values():
        first.setdefault(node.place, node)
    found: dict[str, dict[str, float]] = {}
    for (one, node), (other, peer) in combinations(first.items(), 2):
        if (ms := g.latencies.between(node, peer)) is not None:
            found.setdefault(one, {})[other] = ms
    return found


def _applications(
    g: Gathered, rules: PodRules, counted: _Counted
) -> tuple[list[Document], dict[str, OriginItem]]:
    """Return the applications and what their microservices are in the cluster."""
    limits = _limits(g)
    talking = {end for edge in limits for end in (edge.source, edge.target)}
    grouped: dict[str, list[tuple[int, Unit]]] = {}
    for k, unit in enumerate(g.site.units):
        fixed = bool(unit.stays) and unit.key not in talking and unit.node is not None
        if unit.stays and not fixed:
            text = (
                "pods that stay and whose calls have limits: they never move, "
                "but a plan may restart them in place"
            )
            g.notes.add("not-expressed", text, unit.label)
        grouped.setdefault(f"{unit.namespace} (stays)" if fixed else unit.namespace, []).append(
            (k, unit)
        )
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    for name, mine in grouped.items():
        fixed = name.endswith(" (stays)")
        services = []
        for k, unit in mine:
            new = None if unit.removed else _new_size(g, unit)
            services.append(_microservice(g, k, unit, fixed, rules, counted, new))
            items[key(unit.name, name)] = _item(unit, new)
        found: Document = {"name": name, "microservices": services}
        if fixed:
            found["reschedulable"] = False
        else:
            units = [u for _, u in mine]
            if talk := flows(g, units, limits, "max_latency_ms", "limits of calls"):
                found["flows"] = talk
        applications.append(found)
    return applications, items


def _microservice(
    g: Gathered,
    k: int,
    unit: Unit,
    fixed: bool,
    rules: PodRules,
    counted: _Counted,
    new: NewSize | None,
) -> Document:
    found: Document = {
        "name": unit.name,
        "node": unit.node,
        "cpu_millicores": unit.size.cpu,
        "memory_mib": mebibytes(unit.size.memory),
    }
    found |= counted.asked(k)
    if k in rules.allowed:
        found["allowed"] = rules.allowed[k]
    if k in rules.groups:
        found["groups"] = rules.groups[k]
    if unit.removed:
        return found | {"removed": True}
    if new is not None and _as_asked(new.pod) != _as_asked(unit.size):
        cpu, memory = _as_asked(new.pod)
        found |= {"new_cpu_millicores": cpu, "new_memory_mib": memory}
    pinned = unit.stays and not fixed and unit.node is not None
    return found | ({"pinned": True} if pinned else {})


def _as_asked(size: PodSize) -> tuple[int, int]:
    """Return a size as the instance has it: milli-CPU, and MiB rounded up."""
    return size.cpu, mebibytes(size.memory)


def _new_size(g: Gathered, unit: Unit) -> NewSize | None:
    """Return what a replica shall ask for; None where it keeps its requests."""
    policy = g.options.rules.policy.after(default_requests(g.cluster, unit.namespace))
    new = g.options.new_requests.of(unit, policy, g.notes)
    if new is None:
        return None
    if unit.stays:
        text = "new requests of pods that stay where they are: they keep their size"
        g.notes.add("not-expressed", text, unit.label)
        return None
    if _as_asked(new.pod) == _as_asked(unit.size):
        text = "new requests that add up to those of now: pods that move get them, others may stay"
        g.notes.add("assumption", text, unit.label)
    return new


def _item(unit: Unit, new: NewSize | None) -> OriginItem:
    """Return what a replica is in the cluster, and what its containers shall ask for."""
    known = item(unit)
    asked = {} if new is None else new.containers
    changed = tuple(
        c.model_copy(
            update=dict(zip(("new_cpu_millicores", "new_memory_bytes"), asked[c.name], strict=True))
        )
        if c.name in asked
        else c
        for c in known.containers
    )
    return known.model_copy(update={"containers": changed})


def _limits(g: Gathered) -> list[Edge]:
    """Return the calls with a limit, those inside one namespace."""
    found = []
    for edge in calls(g):
        if edge.limit is None:
            text = "calls without a limit may take any time (--max-latency-ms)"
            g.notes.add("assumption", text, edge.label)
        elif edge.source[0] != edge.target[0]:
            g.notes.add("not-expressed", "limits of calls between namespaces", edge.label)
        else:
            found.append(edge)
    return found
