"""A cluster as a rolling-update instance: pods are microservices, namespaces applications.

What waits has a first node where the default scheduler would start it; other problems ask for it,
too. Compiled rules say where: half a second of loading that is spared where nothing waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.errors import DocumentError, InfeasibleInstanceError
from placeopt.core.files.documents import Document
from placeopt.kubernetes.admission import Admission, PodSize, resized
from placeopt.kubernetes.capacity import NodeCapacity, is_control_plane
from placeopt.kubernetes.cluster import (
    Edge,
    ImportedInstance,
    ReadCluster,
    calls,
    flows,
    has_prices,
    item,
    node_origins,
    node_prices,
)
from placeopt.kubernetes.given import NewSize, paid_shares
from placeopt.kubernetes.machines import PriceBook, keep_to_known
from placeopt.kubernetes.names import POOL, SPOT, lease_of
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import NodeOrigin, OriginItem, check_faults, key, note, recorded
from placeopt.kubernetes.pinned import keeps_its_node
from placeopt.kubernetes.replicas import (
    RESOURCE,
    Attached,
    Replica,
    attachments,
    default_requests,
    limits_of,
)
from placeopt.kubernetes.rules import PodRules, pod_rules
from placeopt.kubernetes.values import MIB, mebibytes

if TYPE_CHECKING:
    from placeopt.rolling_update.arrays import UpdateArrays

# -- limits of nodes -------------------------------------------------------------------------------

#: What an amount of a resource is said in, where it is not said in units.
_UNITS = {"cpu": "m", "memory": " MiB", "ephemeral-storage": " MiB"}


def limits_of_nodes(cluster: ReadCluster, options: ImportOptions) -> list[Document]:
    """Return the limits of nodes that a plan keeps."""
    return [*_of_pools(cluster), *_of_spot(cluster, options.max_spot_share)]


def _of_pools(cluster: ReadCluster) -> Iterator[Document]:
    """Yield for each NodePool and resource what may still be bought of it.

    Karpenter counts every node of the NodePool as long as it is there, empty or not; so a plan may
    buy what is left beside them, as it frees nodes after it bought others.
    """
    there: dict[str, list[KubernetesNode]] = {}
    bought: dict[str, list[KubernetesNode]] = {}
    for node in cluster.objects.nodes.values():
        side = bought if node.candidate else there
        side.setdefault(node.meta.labels.get(POOL, ""), []).append(node)
    for pool, nodes in bought.items():
        for what, most in nodes[0].pool_limits.items():
            held = sum(_amount(node, what) for node in there.get(pool, ()))
            amounts = {node.name: _amount(node, what) for node in nodes}
            left = max(0, _whole(most, what, up=False) - held)
            unit = _UNITS.get(what, "")
            text = "limits of NodePools, of all their machine types together and of nodes of now"
            note("kept", text, f"{pool}: {left:,}{unit} of {what} may be bought")
            yield {"name": f"NodePool {pool}: {what}", "amounts": amounts, "most": left}


def _amount(node: KubernetesNode, key: str) -> int:
    """Return how much of a resource a node counts with what the system takes."""
    if key not in ("cpu", "memory"):
        return 1 if key == "nodes" else node.further.get(key, 0)
    value = node.cpu, node.memory
    cpu, memory = (b if a is None else a for a, b in zip(node.machine, value, strict=True))
    return cpu if key == "cpu" else _whole(memory, key)


def _whole(amount: int, key: str, *, up: bool = True) -> int:
    """Return an amount as limits have it: memory in MiB, of nodes rounded up."""
    return amount if key != "memory" else -(-amount // MIB) if up else amount // MIB


def _of_spot(cluster: ReadCluster, share: float) -> Iterator[Document]:
    """Yield for each machine type the largest share that spot nodes of it may be."""
    if share == 1:
        return
    kinds: dict[str, list[str]] = {}
    for name, node in cluster.site.nodes.items():
        if lease_of(node.meta.labels) == SPOT:
            kinds.setdefault(node.instance_type or "of no machine type", []).append(name)
    for kind, names in kinds.items():
        note("kept", f"spot nodes of a machine type: at most {share:g} of the nodes in use", kind)
        yield {"name": f"spot {kind}", "amounts": dict.fromkeys(names, 1), "share": share}


# -- volumes that nodes attach ---------------------------------------------------------------------
#
# A volume that several pods of a node use is attached once. What stays is counted so, and taken off
# the limit of its node; what may move takes one for each of its volumes, which is never too little.

#: What nodes without a limit attach.
_MANY = 10**9


@dataclass
class AttachRoom:
    """Volumes by resource name: what each node may attach further, and what replicas ask for.

    Attributes
    ----------
    left : dict of str to dict
        By node; no node where no replica that may move asks for any.
    asked : dict of int to dict
        By the place of a replica among the units of the site.
    held : dict of int to str
        Why replicas have to stay, by their id.
    """

    left: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: dict[int, dict[str, int]] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)


def attach_room(cluster: ReadCluster) -> AttachRoom:
    """Return the volumes that nodes may attach, and what has to stay for that.

    What shares volumes on a node that is full stays: counted one by one, they were too many.
    """
    here = cluster.site.units
    if not any(unit.attached and not unit.stays for unit in here):
        return AttachRoom()
    limits = limits_of(cluster.objects, list(cluster.site.nodes.values()))
    held: dict[int, str] = {}
    for name in sorted({u.node for u in here if u.node and u.attached and not u.stays}):
        for unit in _sharers(cluster, name, limits[name]):
            held[id(unit)] = "pods that share volumes on a node that attaches no more"
            note("pinned", held[id(unit)], unit.label)
    staying = _staying(cluster, held)
    free = [(k, u) for k, u in enumerate(here) if not u.stays and id(u) not in held]
    drivers = sorted({a.driver for _, unit in free for a in unit.attached})
    result = AttachRoom(held=held)
    for name, known in limits.items():
        taken = Counter(a.driver for a in staying.get(name, ()))
        result.left[name] = {
            RESOURCE + driver: max(0, known[driver] - taken[driver]) if driver in known else _MANY
            for driver in drivers
        }
    for k, unit in free:
        if unit.attached:
            result.asked[k] = {RESOURCE + d: n for d, n in _drivers_of(unit).items()}
            text = "volumes that their node attaches, at most as many as its CSINode allows"
            note("kept", text, unit.label)
    return result


def _drivers_of(unit: Replica) -> Counter[str]:
    return Counter(a.driver for a in unit.attached)


def _staying(cluster: ReadCluster, held: Container[int] = ()) -> dict[str, set[Attached]]:
    """Return what nodes attach for what stays, or for nobody."""
    results: dict[str, set[Attached]] = {}
    moving: dict[str, set[Attached]] = {}
    for unit in cluster.site.units:
        if unit.node is not None:
            side = results if unit.stays or id(unit) in held else moving
            side.setdefault(unit.node, set()).update(unit.attached)
    for unit, name in cluster.site.residents:
        results.setdefault(name, set()).update(unit.attached)
    for name, one in attachments(cluster.objects):
        if one not in moving.get(name, ()):
            results.setdefault(name, set()).add(one)
    return results


def _sharers(cluster: ReadCluster, name: str, limits: dict[str, int]) -> list[Replica]:
    """Return what may move off a node that is not too full if shared volumes count once each."""
    here = [u for u in cluster.site.units if u.node == name and not u.stays and u.attached]
    results = []
    for driver, most in limits.items():
        own = [u for u in here if any(a.driver == driver for a in u.attached)]
        count = sum(_drivers_of(u)[driver] for u in own)
        apart = {a for u in own for a in u.attached if a.driver == driver}
        others = {a for a in _staying(cluster).get(name, ()) if a.driver == driver}
        if count + len(others) > most >= len(apart | others):
            results += own
    return results


# -- the document ----------------------------------------------------------------------------------


def update_document(
    cluster: ReadCluster, options: ImportOptions, prices: dict[str, float]
) -> tuple[Document, dict[str, OriginItem]]:
    """Return the document, and what its microservices are in the cluster.

    Replicas without a node wait for one.
    """
    volumes = attach_room(cluster)
    cluster = cluster.holding(volumes.held)
    rules = pod_rules(cluster, options)
    cluster = cluster.holding(rules.held)
    check_faults()  # what is wrong at all stages is known by now
    counted = _Counted(cluster.site, volumes)
    applications, items = _applications(cluster, options, rules, counted)
    options.new_requests.note_unused(cluster.site.units)
    nodes = [
        _node(cluster, options, n, prices[n.name], rules, counted)
        for n in cluster.site.nodes.values()
    ]
    if rules.rules:
        nodes += [_closed(node, rules) for node in cluster.site.closed.values()]
    document: Document = {
        "problem": "rolling-update",
        "name": options.name,
        "semantics": "stay",
        "nodes": nodes,
        "cluster_latency_ms": _latencies(cluster),
        "applications": applications,
        "node_sets": rules.node_sets,
        "rules": rules.rules,
        "limits": limits_of_nodes(cluster, options),
    }
    if survive := _survival(options, rules):
        document["survival"] = survive
    if has_prices(cluster, options):
        document["price_unit"] = "USD/h"
    if word := _word_of_places(cluster.site):
        document["cluster_word"] = word
    for name in ("cluster_latency_ms", "node_sets", "rules", "limits"):
        if not document[name]:
            del document[name]
    return document, items


def rules_document(cluster: ReadCluster, rules: PodRules) -> Document:
    """Return a document that says of replicas what rules say of them, and nothing else.

    Its microservices are the replicas of the site, in their order.
    """
    nothing = {"cpu_millicores": 0, "memory_mib": 0}
    return {
        "problem": "rolling-update",
        "name": "rules",
        "nodes": [
            {"name": n.name, "cluster": n.place, "price": 0.0, **nothing, **_standing(n, rules)}
            for n in cluster.site.nodes.values()
        ],
        "applications": [
            {
                "name": "all",
                "microservices": [
                    {
                        "name": str(k),
                        "node": u.node,
                        **nothing,
                        "groups": rules.groups.get(k, []),
                    }
                    for k, u in enumerate(cluster.site.units)
                ],
            }
        ],
        "node_sets": rules.node_sets,
        "rules": rules.rules,
    }


def _word_of_places(site: NodeCapacity) -> str:
    """Return what the places of nodes are: zones, or regions; empty where they say neither."""
    nodes = [*site.nodes.values(), *site.closed.values()]
    if any(node.zone for node in nodes):
        return "zone"
    return "region" if any(node.region for node in nodes) else ""


def _survival(options: ImportOptions, rules: PodRules) -> Document:
    """Return what the loss of a node is to leave; nothing where nothing is asked."""
    room = {"room": True} if "room" in options.survive else {}
    return room | ({"needs": rules.needs} if rules.needs else {})


class _Counted:
    """The resources besides cpu and memory that may run out, volumes among them.

    Pods do where there are as many of them as the smallest node may have: a copy is one more.
    """

    def __init__(self, site: NodeCapacity, volumes: AttachRoom):
        self.site, self.volumes = site, volumes
        self.names = {key for unit in site.units for key in unit.further}
        room = [left.get("pods") for left in site.further.values()]
        existing = [pods for pods in room if pods is not None]
        if len(existing) < len(room) or len(site.units) < min(existing, default=0):
            self.names.discard("pods")

    def room(self, node: str) -> Document:
        """Return the field of a node that has its further resources."""
        results = {k: v for k, v in self.site.further[node].items() if k in self.names}
        return self._field(results | self.volumes.left.get(node, {}))

    def asked(self, k: int) -> Document:
        """Return the field of replica k that has what it asks for besides cpu and memory."""
        unit = self.site.units[k]
        results = {key: amount for key, amount in unit.further.items() if key in self.names}
        return self._field(results | self.volumes.asked.get(k, {}))

    @staticmethod
    def _field(amounts: dict[str, int]) -> Document:
        return {"resources": dict(sorted(amounts.items()))} if amounts else {}


def _node(
    cluster: ReadCluster,
    options: ImportOptions,
    node: KubernetesNode,
    price: float,
    rules: PodRules,
    counted: _Counted,
) -> Document:
    room, part = cluster.site.room[node.name], 1 - options.headroom
    if options.only:  # what has no price is worth giving up too
        price = (price or 1.0) * (node.name == options.only)
    results: Document = {
        "name": node.name,
        "cluster": node.place,
        "cpu_millicores": int(room.cpu * part),
        "memory_mib": mebibytes(int(room.memory * part), capacity=True),
        "price": price,
    }
    if node.candidate:
        results["candidate"] = True
    if node.instance_type:
        results["machine_type"] = node.instance_type
    if node.name in cluster.site.drain:
        results["drain"] = True
    return results | counted.room(node.name) | _standing(node, rules)


def _closed(node: KubernetesNode, rules: PodRules) -> Document:
    """Return a node that is left out: rules count what it hosts, and it takes nothing."""
    results: Document = {
        "name": node.name,
        "cluster": node.place,
        "cpu_millicores": node.cpu,
        "memory_mib": mebibytes(node.memory, capacity=True),
        "price": 0.0,
        "closed": True,
    }
    return results | _standing(node, rules)


def _standing(node: KubernetesNode, rules: PodRules) -> Document:
    """Return where a node stands, as far as rules ask, and what comes with it."""
    domains = {k: node.meta.labels[k] for k in sorted(rules.keys) if node.meta.labels.get(k)}
    result: Document = {"domains": domains} if domains else {}
    residents = rules.residents.get(node.name)
    return result | ({"residents": residents} if residents else {})


def _latencies(cluster: ReadCluster) -> dict[str, dict[str, float]]:
    first: dict[str, KubernetesNode] = {}
    for node in cluster.site.nodes.values():
        first.setdefault(node.place, node)
    results: dict[str, dict[str, float]] = {}
    for (one, node), (other, peer) in combinations(first.items(), 2):
        if (ms := cluster.latencies.between(node, peer)) is not None:
            results.setdefault(one, {})[other] = ms
    return results


def _applications(
    cluster: ReadCluster, options: ImportOptions, rules: PodRules, counted: _Counted
) -> tuple[list[Document], dict[str, OriginItem]]:
    """Return the applications and what their microservices are in the cluster."""
    limits = _limits(cluster, options)
    talking = {end for edge in limits for end in (edge.source, edge.target)}
    grouped: dict[str, list[tuple[int, Replica]]] = {}
    for k, unit in enumerate(cluster.site.units):
        fixed = bool(unit.stays) and unit.key not in talking and unit.node is not None
        if unit.stays and not fixed:
            text = (
                "pods that stay and whose calls have limits: they never move, "
                "but a plan may restart them in place"
            )
            note("not-expressed", text, unit.label)
        grouped.setdefault(f"{unit.namespace} (stays)" if fixed else unit.namespace, []).append(
            (k, unit)
        )
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    admission = Admission(cluster.objects)
    for name, own in grouped.items():
        fixed = name.endswith(" (stays)")
        services = []
        for k, unit in own:
            new = _new_size(cluster, options, unit, admission)
            services.append(_microservice(k, unit, fixed, rules, counted, new))
            items[key(unit.name, name)] = _item(unit, new)
        results: Document = {"name": name, "microservices": services}
        if fixed:
            results["reschedulable"] = False
        else:
            units = [u for _, u in own]
            if talk := flows(units, limits, "max_latency_ms", "limits of calls"):
                results["flows"] = talk
        applications.append(results)
    return applications, items


def _microservice(
    k: int,
    unit: Replica,
    fixed: bool,
    rules: PodRules,
    counted: _Counted,
    new: NewSize | None,
) -> Document:
    results: Document = {
        "name": unit.name,
        "node": unit.node,
        "cpu_millicores": unit.size.cpu,
        "memory_mib": mebibytes(unit.size.memory),
    }
    results |= counted.asked(k)
    if k in rules.allowed:
        results["allowed"] = rules.allowed[k]
    if k in rules.groups:
        results["groups"] = rules.groups[k]
    if new is not None and _as_asked(new.pod) != _as_asked(unit.size):
        cpu, memory = _as_asked(new.pod)
        results |= {"new_cpu_millicores": cpu, "new_memory_mib": memory}
    pinned = unit.stays and not fixed and unit.node is not None
    return results | ({"pinned": True} if pinned else {})


def _as_asked(size: PodSize) -> tuple[int, int]:
    """Return a size as the instance has it: milli-CPU, and MiB rounded up."""
    return size.cpu, mebibytes(size.memory)


def _new_size(
    cluster: ReadCluster, options: ImportOptions, unit: Replica, admission: Admission
) -> NewSize | None:
    """Return what a replica shall ask for; None where it keeps its requests.

    `admission` count what grows and shrinks.
    """
    policy = options.rules.policy.after(default_requests(cluster.objects, unit.namespace))
    new = options.new_requests.of(unit, policy)
    if new is None:
        return None
    if unit.stays:
        text = "new requests of pods that stay where they are: they keep their size"
        note("not-expressed", text, unit.label)
        return None
    spec = resized(unit.spec, new.containers)
    if why := admission.why_no_copy(unit.namespace, spec):
        text = f"new requests that are forbidden, so that pods keep theirs: {why}"
        note("not-expressed", text, unit.label)
        return None
    admission.take(unit.namespace, spec)
    admission.take(unit.namespace, unit.spec, -1)
    if _as_asked(new.pod) == _as_asked(unit.size):
        text = "new requests that add up to those of now: pods that move get them, others may stay"
        note("assumption", text, unit.label)
    return new


def _item(unit: Replica, new: NewSize | None) -> OriginItem:
    """Return what a replica is in the cluster, and what its containers shall ask for."""
    known = item(unit)
    if new is None:
        return known
    wanted = new.containers
    changed = tuple(
        c.model_copy(
            update=dict(
                zip(("new_cpu_millicores", "new_memory_bytes"), wanted[c.name], strict=True)
            )
        )
        if c.name in wanted
        else c
        for c in known.containers
    )
    return known.model_copy(update={"containers": changed})


def _limits(cluster: ReadCluster, options: ImportOptions) -> list[Edge]:
    """Return the calls with a limit, those inside one namespace."""
    results = []
    for edge in calls(cluster, options):
        if edge.limit is None:
            text = "calls without a limit may take any time (--max-latency-ms)"
            note("assumption", text, edge.label)
        elif edge.source[0] != edge.target[0]:
            note("not-expressed", "limits of calls between namespaces", edge.label)
        else:
            results.append(edge)
    return results


# -- first nodes of what waits ---------------------------------------------------------------------

#: Replicas without room that a message names.
_NAMED = 20


def place(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Return a cluster whose replicas all have a node, as the default scheduler would start them.

    That is the node where cpu and memory are least in use afterwards, of those that room, taints
    and the rules between pods allow. ``--unplaceable leave-out`` leaves out those without one.

    Raises
    ------
    InfeasibleInstanceError
        Names the replicas that have no room.
    """
    here = cluster.site.units
    if all(unit.node is not None for unit in here):
        return cluster
    if not cluster.site.nodes:
        raise InfeasibleInstanceError(["there are no nodes to place on"])
    arrays, number = _arrays(cluster, options)
    free, placed, without = _Room(arrays), list[Replica](), list[Replica]()
    for unit in here:
        n = None if unit.node is not None else free.start(number[unit.namespace, unit.name])
        if n is not None:
            placed.append(replace(unit, node=arrays.node_names[n]))
        else:
            (without if unit.node is None else placed).append(unit)
    _require_placed(options, without, free, number)
    text = (
        "replicas of manifests run where the default scheduler would start them: "
        "on the node least in use"
    )
    count = sum(unit.node is None for unit in here) - len(without)
    note("assumption", text, f"{count} replicas")
    return cluster.with_replicas(tuple(placed))


def leave_out_unplaceable(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Return a cluster without the waiting replicas that no node could run.

    That is even beside what stays alone. With ``--unplaceable leave-out`` those are left out, too,
    that find no place beside what stays and the other ones that wait, the largest first.

    Raises
    ------
    InfeasibleInstanceError
        There are some, and ``--unplaceable leave-out`` is not given.
    """
    here = cluster.site.units
    waiting = [u for u in here if u.node is None]
    if not waiting:
        return cluster
    arrays, number = _arrays(cluster, options)
    numbers = {id(u): number[u.namespace, u.name] for u in waiting}
    places = _Room(arrays, stays=True)
    without = [u for u in waiting if not places.of(numbers[id(u)]).any()]
    _require_placed(options, without, _Room(arrays), number)
    gone = {id(unit) for unit in without}
    if options.leave_out:
        left = [u for u in waiting if id(u) not in gone]
        for unit in sorted(left, key=lambda u: -u.size.cpu):
            if places.start(numbers[id(unit)]) is None:
                text = "replicas that find no place beside what stays and others that wait"
                note("left-out", text, unit.label)
                gone.add(id(unit))
    return cluster.with_replicas(tuple(u for u in here if id(u) not in gone))


class _Room:
    """What is free on nodes beside what runs, and what rules count there, as replicas start.

    With `stays` only what stays runs: more copies end nothing that keeps away. Company, and where
    others are, may change on the way; so neither is asked for then.
    """

    def __init__(self, arrays: UpdateArrays, *, stays: bool = False):
        from placeopt.rolling_update import rules

        self.a, self.stays, self.rules = arrays, stays, rules
        runs = arrays.stuck if stays else arrays.home != arrays.waiting
        load = arrays.load_of(runs, arrays.new) if stays else arrays.initial_load
        self.free = arrays.capacity - load
        self.used = arrays.hosting(runs) if stays else np.asarray(load.any(axis=1))
        self.counts = rules.counted(arrays.packed_rules, np.where(runs, arrays.home, -1))

    def of(self, m: int) -> np.ndarray:
        """Return on which nodes microservice m has room, and what stays allows it, bool (N,)."""
        a = self.a
        hosts: np.ndarray = a.may_host(m) & self.fits(m)
        if a.limits.any:
            hosts &= a.limits.open_to(self.used)
        first, last = a.rules.check_first[m : m + 2] if self.stays else (0, 0)
        for kind, c, bound, _ in a.rules.checks[first:last].tolist():
            if kind == self.rules.APART:
                domain, begin = a.rules.domain[c], a.rules.first[c]
                hosts &= (domain < 0) | (self.counts[begin + np.maximum(domain, 0)] <= bound)
        return hosts

    def fits(self, m: int) -> np.ndarray:
        """Return on which nodes there is room for microservice m, bool (N,)."""
        fits: np.ndarray = ((self.free >= self.a.new[m]) | (self.a.new[m] == 0)).all(axis=1)
        return fits

    def start(self, m: int) -> int | None:
        """Start microservice m; return its node, None for none.

        It is the node least in use afterwards; beside what stays it is the fullest one.
        """
        a, choice = self.a, np.flatnonzero(self.of(m))
        own = 0 if self.stays else a.new[m, :2]
        scale = np.maximum(a.capacity[choice, :2], 1)
        left = ((self.free[choice, :2] - own) / scale).sum(axis=1)
        for n in choice[np.argsort(left if self.stays else -left, kind="stable")].tolist():
            if self.stays or self.rules.may_start(a.packed_rules, self.counts, m, n):
                self.free[n] -= a.new[m]
                self.used[n] = True
                self.rules.tally(a.packed_rules, self.counts, m, n, 1)
                return int(n)
        return None


def _arrays(
    cluster: ReadCluster, options: ImportOptions
) -> tuple[UpdateArrays, dict[tuple[str, str], int]]:
    """Return a cluster as arrays, and numbers of microservices by namespace and name."""
    from placeopt.rolling_update.problem import RollingUpdate

    with recorded():  # what this document says is said again later
        document, _ = update_document(cluster, options, dict.fromkeys(cluster.site.nodes, 1.0))
    arrays = RollingUpdate.from_document(document).arrays
    number = {
        (application.removesuffix(" (stays)"), name): m
        for m, (application, name) in enumerate(arrays.names)
    }
    return arrays, number


def _require_placed(
    options: ImportOptions, without: list[Replica], free: _Room, number: dict[tuple[str, str], int]
) -> None:
    """Note that replicas without a node are left out, or raise where that is not asked for."""
    if without and not options.leave_out:
        raise InfeasibleInstanceError(_reasons(without, free, number))
    for unit in without:
        note("left-out", "replicas that no node has room for", unit.label)


def _reasons(without: list[Replica], free: _Room, number: dict[tuple[str, str], int]) -> list[str]:
    """Return why replicas have no node, each by its name."""
    a, result = free.a, []
    for unit in without[:_NAMED]:
        m = number[unit.namespace, unit.name]
        amounts = ", ".join(f"{x} {r}" for r, x in zip(a.resources, a.new[m].tolist(), strict=True))
        legal = free.rules.is_allowed
        allowed = [n for n in range(len(a.price)) if legal(a.packed_rules, m, n) and not a.drain[n]]
        why = "has the labels and tolerated taints that suit"
        if allowed:
            fits = free.fits(m)[allowed]
            why = "has room for"
            if fits.any():
                legal_to_buy = not a.limits.any or a.limits.open_to(free.used)[allowed][fits].any()
                whose = "its rules about other pods" if legal_to_buy else "limits of nodes to buy"
                why = f"has, by {whose}, a place for"
        result.append(f"no node {why} {unit.label} ({amounts})")
    if len(without) > _NAMED:
        result.append(f"and {len(without) - _NAMED} more (--unplaceable leave-out leaves them out)")
    return result


# -- the instance ----------------------------------------------------------------------------------


# -- the import ------------------------------------------------------------------------------------


def rolling_update(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance of a cluster.

    Raises
    ------
    DocumentError
        A node has no price, or there is nothing to place.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    prices = node_prices(cluster, options)
    cluster = _with_places(cluster, options)
    if not cluster.site.units:
        raise DocumentError(
            "nothing to place: no node takes any of the pods",
            file=", ".join(cluster.objects.files),
            path="line 1",
            remedy="see what is left out, and the nodes that take part (--cordoned)",
        )
    paid = paid_shares(options.commitments, cluster.site, prices, options.region)
    paid |= _paid_anyway(cluster)
    due = {name: round(price * (1 - paid.get(name, 0.0)), 9) for name, price in prices.items()}
    document, items = update_document(cluster, options, due)
    keep_to_known(
        document,
        cluster.site.units,
        cluster.site.nodes,
        cluster.objects,
        anywhere=options.any_architecture,
    )
    _note_rounding(cluster)
    return ImportedInstance(document, items, _priced_origins(cluster, options, prices, paid))


def _paid_anyway(cluster: ReadCluster) -> dict[str, float]:
    """Return the whole share of each node that no plan can remove.

    Those of the control plane, and those that host nothing and are annotated to be left alone.
    """
    results, hosting = {}, {unit.node for unit in cluster.site.units}
    for name, node in cluster.site.nodes.items():
        if is_control_plane(node):
            results[name] = 1.0
            note("assumption", "nodes of the control plane: freeing one saves nothing", name)
        elif keeps_its_node(node) and name not in hosting:
            results[name] = 1.0
    return results


def _priced_origins(
    cluster: ReadCluster, options: ImportOptions, prices: dict[str, float], paid: dict[str, float]
) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster, and what they cost."""
    book, wanted = cluster.prices or PriceBook(), _pools_asked(cluster.site.units)
    priced = has_prices(cluster, options)
    return {
        name: known.model_copy(
            update={
                "price": prices[name] if priced else None,
                "paid": paid.get(name, 0.0),
                "pool_asked": known.labels.get(POOL, "") in wanted,
                "interruptions": book.interruptions(cluster.site.nodes[name], options.region)
                if lease_of(known.labels) == SPOT
                else None,
            }
        )
        for name, known in node_origins(cluster).items()
    }


def _with_places(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Place the replicas of manifests; of those that wait beside a cluster, see that a node may."""
    if all(unit.node is not None for unit in cluster.site.units):
        return cluster
    return (leave_out_unplaceable if cluster.objects.pods else place)(cluster, options)


def _note_rounding(cluster: ReadCluster) -> None:
    for unit in cluster.site.units:
        if unit.size.memory % MIB:
            note(
                "assumption",
                "memory requests are rounded up to whole MiB, capacities down",
                unit.label,
            )


def _pools_asked(units: Iterable[Replica]) -> set[str]:
    """Return the names of NodePools that some replicas ask for.

    A new NodePool of another name would make nodes on which they may not run.
    """
    result = set[str]()
    for unit in units:
        if POOL in unit.spec.selector:
            result.add(unit.spec.selector[POOL])
        for term in unit.spec.affinity.nodes.required.requirements:
            if term.key == POOL and term.operator == "In":
                result.update(term.values)
    return result
