"""Every plan of a tiny instance, judged straight from the documents: none of placeopt is used here.

``judge(document, plan)`` gives the values of a plan, None where it breaks the instance;
``attainable(document)`` gives the values of all feasible plans that matter, as a set of tuples.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from rolling_updates import Deployment, number

Document = dict[str, Any]
Values = tuple[float, ...]


def latency(rows: dict[str, dict[str, float]], one: str, other: str) -> Fraction | None:
    """Return a latency that may be given in either direction, 0 to itself, None where unknown."""
    if other in rows.get(one, {}):
        return number(rows[one][other])
    if one in rows.get(other, {}):
        return number(rows[other][one])
    return Fraction(0) if one == other else None


# -- temporal ------------------------------------------------

_PRICES = {"on-demand": "on_demand_usd_per_hour", "reserved": "reserved_usd_per_hour"}
_PRICES["spot"] = "spot_usd_per_hour"


def temporal(document: Document, plan: Document) -> Values | None:
    """Values and feasibility of starts and leased machines."""
    offers = {(o["location"], o["size"]): o for o in document["offers"]}
    requests = {r["name"]: r for r in document["requests"]}
    starts, horizon = plan["starts"], document["horizon_slots"]
    placed = [tuple(replica) for machine in plan["instances"] for replica in machine["replicas"]]
    wanted = [(name, k) for name, r in requests.items() for k in range(r["replicas"])]
    if sorted(placed) != sorted(wanted) or set(starts) != set(requests):
        return None
    if any(not 0 <= starts[n] <= horizon - r["duration_slots"] for n, r in requests.items()):
        return None
    cost, leased = Fraction(0), dict.fromkeys(offers, 0)
    worst = dict.fromkeys(requests, Fraction(0))
    lost = dict.fromkeys(requests, Fraction(0))
    for machine in plan["instances"]:
        offer = offers[machine["location"], machine["size"]]
        leased[machine["location"], machine["size"]] += 1
        price, busy = offer.get(_PRICES[machine["pricing"]]), 0
        if price is None:
            return None
        for slot in range(horizon):
            here = [
                r
                for name, _ in machine["replicas"]
                if starts[name] <= slot < starts[name] + (r := requests[name])["duration_slots"]
            ]
            busy += bool(here)
            for what in ("cpu_cores", "memory_gib"):
                if sum(number(r[what]) for r in here) > number(offer[what]):
                    return None
        slots = horizon if machine["pricing"] == "reserved" else busy
        cost += slots * number(document.get("slot_hours", 1)) * number(price)
        for name, _ in machine["replicas"]:
            ms = document["latency_ms"].get(requests[name]["origin"], {}).get(offer["location"])
            if ms is None:
                return None
            worst[name] = max(worst[name], number(ms))
            if machine["pricing"] == "spot":
                lost[name] += number(offer["spot_interruption"]) / requests[name]["replicas"]
    limits = {key: o.get("max_instances") for key, o in offers.items()}
    if any(limits[key] is not None and count > limits[key] for key, count in leased.items()):
        return None
    mean = Fraction(1, len(requests))
    return float(sum(worst.values()) * mean), float(cost), float(sum(lost.values()) * mean)


def temporal_plans(document: Document) -> Iterator[Document]:
    """All starts, all ways to share machines, all ways to lease these."""
    requests = document["requests"]
    replicas = [[r["name"], k] for r in requests for k in range(r["replicas"])]
    leases = [
        {"location": o["location"], "size": o["size"], "pricing": pricing}
        for o in document["offers"]
        for pricing, field in _PRICES.items()
        if o.get(field) is not None
    ]
    latest = [document["horizon_slots"] - r["duration_slots"] for r in requests]
    for begins in itertools.product(*(range(last + 1) for last in latest)):
        starts = {r["name"]: begin for r, begin in zip(requests, begins, strict=True)}
        for groups in _partitions(replicas):
            for chosen in itertools.product(leases, repeat=len(groups)):
                machines = [
                    {**lease, "replicas": g} for lease, g in zip(chosen, groups, strict=True)
                ]
                yield {"starts": starts, "instances": machines}


def _partitions(items: list[Any]) -> Iterator[list[list[Any]]]:
    if not items:
        yield []
        return
    for rest in _partitions(items[1:]):
        yield [[items[0]], *rest]
        for k in range(len(rest)):
            yield [*rest[:k], [items[0], *rest[k]], *rest[k + 1 :]]


# -- edge-cloud ------------------------------------------------


def edge_cloud(document: Document, plan: Document) -> Values | None:
    """Values and feasibility of a placement."""
    nodes = {n["name"]: n for n in document["nodes"]}
    free = {
        (name, what): number(n[what])
        for name, n in nodes.items()
        for what in ("cpu_cores", "memory_gib")
    }
    cost = total = Fraction(0)
    for application in document["applications"]:
        where = plan["placement"].get(application["name"], {})
        farthest = Fraction(0)
        for service in application["microservices"]:
            node = nodes.get(where.get(service["name"], ""))
            if node is None:
                return None
            cost += number(node["operating_cost"])
            cost += number(node["network_cost"]) * number(service["data"])
            delay = latency(document["delay_ms"], application["source"], node["name"])
            if delay is None:
                return None
            farthest = max(farthest, delay)
            for what in ("cpu_cores", "memory_gib"):
                free[node["name"], what] -= number(service[what])
        total += farthest
        for flow in application["flows"]:
            delay = latency(document["delay_ms"], where[flow["from"]], where[flow["to"]])
            if flow.get("max_delay_ms") is not None and (
                delay is None or delay > number(flow["max_delay_ms"])
            ):
                return None
    return None if min(free.values()) < 0 else (float(cost), float(total))


def edge_cloud_plans(document: Document) -> Iterator[Document]:
    """Every microservice on every node."""
    names = [n["name"] for n in document["nodes"]]
    services = [
        (a["name"], m["name"]) for a in document["applications"] for m in a["microservices"]
    ]
    for hosts in itertools.product(names, repeat=len(services)):
        placement: Document = {}
        for (application, service), host in zip(services, hosts, strict=True):
            placement.setdefault(application, {})[service] = host
        yield {"placement": placement}


# -- rolling-update ------------------------------------------------


def rolling_update(document: Document, plan: Document) -> Values | None:
    """Values and feasibility of a list of steps."""
    return Deployment(document).judge(plan)


def rolling_update_values(document: Document) -> set[Values]:
    """All deployments that steps lead to, with the least starts and stops to get there."""
    return Deployment(document).attainable()


# -- multi-cluster ------------------------------------------------


def multi_cluster(document: Document, plan: Document) -> Values | None:
    """Values and feasibility of decisions under the fixed semantics."""
    clusters, requests = document["clusters"], document["requests"]
    names = [c["name"] for c in clusters]
    base = {
        a: float(sum(latency(document["latency_ms"], a, b) or 0 for b in names if b != a))
        / (len(names) - 1)
        for a in names
    }
    running: list[tuple[Document, dict[str, int]]] = []
    seen: list[tuple[float, float, float]] = []
    for request, decision in zip(requests, plan["decisions"], strict=True):
        now = number(request["arrival"])
        running = [(r, p) for r, p in running if number(r["arrival"]) + number(r["duration"]) > now]
        placed = {c: n for c, n in decision.items() if n}
        if not placed:
            continue
        running.append((request, placed))
        if sum(placed.values()) != request["replicas"] or not _room(clusters, running):
            return None
        now_ms = {c: _cluster_ms(c, base[c], running) for c in placed}
        prices = {c["name"]: c["cost"] for c in clusters}
        share = {c: n / request["replicas"] for c, n in placed.items()}
        loads = [sum(p.get(c, 0) for _, p in running) for c in names]
        spread = sum(abs(a - b) for a in loads for b in loads) / (2 * len(names) * sum(loads))
        ms = sum(share[c] * now_ms[c] for c in placed)
        seen.append((ms, sum(share[c] * prices[c] for c in placed), spread))
    rejected = 1 - len(seen) / len(requests)
    if not seen:
        return 1000.0, float(max(c["cost"] for c in clusters)), 1 - 1 / len(clusters), 1.0
    return (*(sum(row) / len(seen) for row in zip(*seen, strict=True)), rejected)


def _room(clusters: list[Document], running: list[tuple[Document, dict[str, int]]]) -> bool:
    return all(
        sum(number(r[what]) * p.get(c["name"], 0) for r, p in running)
        + number(c.get(f"allocated_{what}"))
        <= number(c[what])
        for c in clusters
        for what in ("cpu_cores", "memory_gib")
    )


def _cluster_ms(name: str, ms: float, running: list[tuple[Document, dict[str, int]]]) -> float:
    for request, placed in running:
        ms *= 1 + request["latency_increase"] * placed.get(name, 0) / request["replicas"]
    return min(1000.0, ms)


def multi_cluster_plans(document: Document) -> Iterator[Document]:
    """Every request refused, or placed in every way."""
    names = [c["name"] for c in document["clusters"]]
    choices = []
    for request in document["requests"]:
        counts = itertools.product(range(request["replicas"] + 1), repeat=len(names))
        ways = [c for c in counts if sum(c) in (0, request["replicas"])]
        choices.append([{n: k for n, k in zip(names, c, strict=True) if k} for c in ways])
    for decisions in itertools.product(*choices):
        yield {"decisions": list(decisions)}


# -- rescheduling ------------------------------------------------


class _CallGraph:
    """Deployments as sorted tuples of nodes, one tuple a service, and what requests take there."""

    def __init__(self, document: Document):
        self.document = document
        self.nodes = {n["name"]: n for n in document["nodes"]}
        self.services = {s["name"]: s for s in document["services"]}
        self.names = list(self.services)
        self.start = tuple(tuple(sorted(s["replicas"])) for s in document["services"])

    def move(self, state: tuple, service: str, source: str, to: str) -> tuple | None:
        """Return the state after a move, None where it is not legal."""
        k = self.names.index(service)
        if source not in state[k]:
            return None
        for what in ("cpu_cores", "memory_gib"):
            load = sum(
                number(self.services[name][what]) * row.count(to)
                for name, row in zip(self.names, state, strict=True)
            )
            if load + number(self.services[service][what]) > number(self.nodes[to][what]):
                return None
        row = list(state[k])
        row[row.index(source)] = to
        return (*state[:k], tuple(sorted(row)), *state[k + 1 :])

    def latency(self, state: tuple) -> float:
        """Return what a request takes from the users to the end of all calls."""
        place = dict(zip(self.names, state, strict=True))
        gate = place[self.document["gateway"]]
        users = sum(number(self.nodes[n]["user_latency_ms"]) for n in gate) / len(gate)
        return float(users + self._takes(place, self.document["gateway"]))

    def _takes(self, place: dict[str, tuple], name: str) -> Fraction:
        service = self.services[name]
        times = [number(service["execution_ms"][self.nodes[n]["kind"]]) for n in place[name]]
        groups = [
            sum((self._hop(place[name], place[o]) + self._takes(place, o) for o in g), Fraction(0))
            for g in service["calls"]
        ]
        return sum(times, Fraction(0)) / len(times) + max(groups, default=Fraction(0))

    def _hop(self, ours: tuple, theirs: tuple) -> Fraction:
        rows = self.document["latency_ms"]
        each = [latency(rows, a, b) or Fraction(0) for a in ours for b in theirs]
        return sum(each, Fraction(0)) / len(each)


def rescheduling(document: Document, plan: Document) -> Values | None:
    """Values and feasibility of a list of moves."""
    graph = _CallGraph(document)
    state: tuple | None = graph.start
    for move in plan["moves"]:
        state = graph.move(state, move["service"], move["from"], move["to"])
        if state is None:
            return None
    return graph.latency(state), float(len(plan["moves"]))


def rescheduling_values(document: Document) -> set[Values]:
    """All deployments that moves lead to, breadth first: the fewest moves to each."""
    graph = _CallGraph(document)
    moves = {graph.start: 0}
    frontier = [graph.start]
    while frontier:
        following = []
        for state in frontier:
            for k, service in enumerate(graph.names):
                for source in set(state[k]):
                    for to in graph.nodes:
                        after = graph.move(state, service, source, to)
                        if after is not None and after not in moves:
                            moves[after] = moves[state] + 1
                            following.append(after)
        frontier = following
    return {(graph.latency(state), float(count)) for state, count in moves.items()}


# -- all of them ------------------------------------------------

judge: dict[str, Callable[[Document, Document], Values | None]] = {
    "temporal": temporal,
    "edge-cloud": edge_cloud,
    "rolling-update": rolling_update,
    "multi-cluster": multi_cluster,
    "rescheduling": rescheduling,
}
_PLANS = {
    "temporal": temporal_plans,
    "edge-cloud": edge_cloud_plans,
    "multi-cluster": multi_cluster_plans,
}
_VALUES = {"rolling-update": rolling_update_values, "rescheduling": rescheduling_values}


def attainable(document: Document) -> set[Values]:
    """Return the values of all feasible plans that matter; empty where there is none."""
    kind = document["problem"]
    if kind in _VALUES:
        return _VALUES[kind](document)
    found = (judge[kind](document, plan) for plan in _PLANS[kind](document))
    return {values for values in found if values is not None}
