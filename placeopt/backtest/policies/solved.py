"""The cluster of one moment as a rolling update, and plans for it.

Nodes that take pods, one of each machine that may be bought, and the pods with their sizes, node
sets and rules are an instance of ``rolling-update``. A node has its GPUs as thousandths of one
amount there: a plan is tried on the view, where a share has to fit on a single GPU. Beside it there
is the plan that frees the same nodes, whose pods go where the scheduler would put them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView
from placeopt.backtest.room import (
    APART,
    CLOSED,
    COUNTED,
    OFF,
    READY,
    SPREAD,
    TOGETHER,
    WHOLE,
    Room,
)
from placeopt.core.errors import UnsupportedError, UsageError

PROBLEM = "rolling-update"
#: Seconds for which a node that replaces others is paid beside them: it starts, then pods move.
BESIDE_S = 90.0
#: Steps between nothing and the dearest node: programs of prices with many digits take long.
_STEPS = 1000
#: The method that plays trained policies.
_TRAINED = "policy"
_KINDS = {APART: "apart", TOGETHER: "together", SPREAD: "spread"}


def plan(
    view: ClusterView, method: str, evaluations: int, limit: float, weight: float, **more: Any
) -> list[list[Action]]:
    """Return ways of the plan that is cheapest, a price for each move added.

    Parameters
    ----------
    view : ClusterView
    method : str
        Of the registry, for rolling updates.
    evaluations : int
        Budget of the method.
    limit : float
        Moves of a plan at most.
    weight : float
        USD an hour that a move has to save.
    **more
        Parameters of the method.
    """
    from placeopt.api import solve
    from placeopt.registry import from_document

    slots = _slots(view)
    document = instance(view, slots)
    if document is None:
        return []
    problem = from_document(document)
    seed = int(view.now) % 2**31
    front = solve(problem, method, evaluations=evaluations, seed=seed, **more)
    names = [o.name for o in front.objectives]
    cost, starts, stops = (names.index(n) for n in ("node_cost", "starts", "disruptions"))
    legal = [
        point
        for point in front.points
        if point.values[stops] == 0 and point.values[starts] <= limit
    ]
    if not legal:
        return []
    chosen = min(legal, key=lambda point: point.values[cost] + weight * point.values[starts])
    return _ways(view, slots, chosen.plan["steps"], limit)


def cheapest(view: ClusterView, hours: dict[int, float], limit: float) -> list[list[Action]]:
    """Return ways of the plan that searches of ``placeopt consolidate`` find for some nodes.

    Pods of other nodes stay. A node that is freed saves its price for so many hours; one that is
    bought costs its price for the most hours of all.

    Parameters
    ----------
    view : ClusterView
    hours : dict of int to float
        Node that may be freed -> for how long its price counts.
    limit : float
        Moves of a plan at most.
    """
    from placeopt.rolling_update.problem import RollingUpdate
    from placeopt.rolling_update.repack import cheapest_plan

    slots = _worthwhile(view, _slots(view), hours)
    document = instance(view, slots) if hours else None
    if document is None:
        return []
    bought = max(hours.values()) + BESIDE_S / 3600
    for node in document["nodes"]:
        node["price"] *= bought if node["candidate"] else hours.get(int(node["name"][1:]), 1.0)
    dearest = max(node["price"] for node in document["nodes"]) or 1.0
    for node in document["nodes"]:
        node["price"] = float(round(_STEPS * node["price"] / dearest))
    pods = document["applications"][0]["microservices"]
    for pod in pods:
        pod["pinned"] |= int(pod["node"][1:]) not in hours
    seed = int(view.now) % 2**31
    plan = cheapest_plan(
        RollingUpdate.from_document(document),
        work=2 * len(pods),
        tries=1,
        seconds=0.0,  # a program takes a second, and what it wins GPUs do not allow
        seed=seed,
    )
    return _ways(view, slots, plan["steps"], limit)


def _worthwhile(view: ClusterView, slots: dict[int, int], hours: Iterable[int]) -> dict[int, int]:
    """Return the slots that may replace nodes: cheaper than all, and no other is better."""
    room, paid = view.room, sum(map(view.price_of, hours))
    sets = {view.needs[p][4] for n in hours for p in view.on_node[n]}

    def kind(n: int) -> tuple[float, int, int, int, frozenset[int]]:
        legal = frozenset(s for s in sets if room.allowed[s, n])
        size = int(room.cpu_size[n]), int(room.memory_size[n]), int(room.gpus[n])
        return (-view.price_of(n), *size, legal)

    kinds = {n: kind(n) for n in slots if view.price_of(n) < paid}
    return {
        n: slots[n]
        for n, own in kinds.items()
        if own[-1] and not any(_is_better(other, m, own, n) for m, other in kinds.items())
    }


def _is_better(other: tuple[Any, ...], m: int, own: tuple[Any, ...], n: int) -> bool:
    """Whether a machine has all that another one has, at no higher price; the first of equals."""
    return all(a >= b for a, b in zip(other, own, strict=True)) and (other != own or m < n)


def require_method(method: str, policy: str) -> None:
    """Raise unless a method is of rolling updates, and has the trained policy that it plays.

    Raises
    ------
    UsageError, UnsupportedError, DocumentError
    """
    from placeopt import registry
    from placeopt.rl import policy_file

    found = registry.method(method)
    if PROBLEM not in found.problems:
        raise UnsupportedError(f"method {method} does not plan rolling updates")
    found.load(PROBLEM)
    if (method == _TRAINED) != bool(policy):
        raise UsageError(f"a trained policy is played by method={_TRAINED},policy=FILE")
    if policy:
        policy_file.read(policy, PROBLEM)


def _slots(view: ClusterView) -> dict[int, int]:
    """Return the slot of one further node of each machine, if there may be one."""
    results = {}
    for machine in range(len(view.price)):
        slot = view.open_slot(machine)
        if slot >= 0:
            view.room.state[slot] = OFF
            results[slot] = machine
    return results


def instance(view: ClusterView, slots: dict[int, int]) -> dict[str, Any] | None:
    """Return the cluster as a document; None where nothing runs."""
    room, nodes = view.room, [*map(int, view.nodes()), *slots]
    pods = [(p, n) for n in nodes for p in view.on_node[n]]
    if not pods:
        return None
    used = sorted({view.needs[p][4] for p, _ in pods})
    sets = {f"set-{s}": [f"n{n}" for n in nodes if room.allowed[s, n]] for s in used}
    shown = [_node(view, n, n in slots) for n in nodes]
    rules = _rules(room, sorted({view.needs[p][5] for p, _ in pods} - {-1}))
    # groups that no pod is in now are groups, too: of no pods
    shown[0]["residents"] = {rule["toward"]: 0 for rule in rules}
    return {
        "problem": PROBLEM,
        "name": "moment",
        "nodes": shown,
        "node_sets": {name: own for name, own in sets.items() if len(own) < len(nodes)},
        "rules": rules,
        "applications": [
            {
                "name": "pods",
                "microservices": [_microservice(view, p, n, sets, len(nodes)) for p, n in pods],
            }
        ],
    }


def _node(view: ClusterView, n: int, candidate: bool) -> dict[str, Any]:
    room = view.room
    return {
        "name": f"n{n}",
        "cluster": "here",
        "cpu_millicores": int(room.cpu_size[n]),
        "memory_mib": int(room.memory_size[n]),
        "price": view.price_of(n),
        "candidate": candidate,
        "resources": {"gpu": int(room.gpus[n]) * WHOLE, "pods": min(int(room.most[n]), 10**9)},
        "domains": {"zone": f"z{int(room.zone[n])}"},
    }


def _rules(room: Room, rows: list[int]) -> list[dict[str, Any]]:
    """Return what the rows of rules ask; of each row the pods are a group."""
    results = []
    for row in rows:
        for what, group, skew in _entries(room, row):
            if what != COUNTED:
                rule = {"kind": _KINDS[what], "group": f"row-{row}", "toward": f"group-{group}"}
                rule["per"] = "zone" if room.per_zone[group] else "node"
                results.append(rule | ({"max_skew": skew} if what == SPREAD else {}))
    return results


def _entries(room: Room, row: int) -> list[list[int]]:
    entries: list[list[int]] = room.rule[room.rule_from[row] : room.rule_from[row + 1]].tolist()
    return entries


def _microservice(
    view: ClusterView, p: int, n: int, sets: dict[str, list[str]], nodes: int
) -> dict[str, Any]:
    cpu, memory, gpus, share, node_set, row = view.needs[p]
    name, entries = f"set-{node_set}", _entries(view.room, row) if row >= 0 else []
    return {
        "name": f"p{p}",
        "node": f"n{n}",
        "cpu_millicores": cpu,
        "memory_mib": memory,
        "pinned": bool(view.fixed[p] or view.alone[p]),
        "resources": {"pods": 1} | ({"gpu": gpus * share} if gpus else {}),
        "allowed": name if len(sets[name]) < nodes else None,
        "groups": [f"row-{row}"] * (row >= 0)
        + [f"group-{group}" for what, group, _ in entries if what == COUNTED],
    }


def _ways(
    view: ClusterView, slots: dict[int, int], steps: Sequence[Any], limit: float
) -> list[list[Action]]:
    """Return plans that free the nodes that steps free: one that moves their pods alone and, where
    moves are not scarce and GPUs allow them, these steps.
    """
    where = {p: n for n in map(int, view.nodes()) for p in view.on_node[n]}
    moves = []
    for step in (one for one in steps if one["to"]):
        p, n = int(step["microservice"][1:]), int(step["to"][1:])
        if where[p] != n:
            moves.append((p, where[p], n))
            where[p] = n
    left = set(where.values())
    freed = [n for n in map(int, view.nodes()) if view.on_node[n] and n not in left]
    trials = [view.trial(), view.trial()]
    for trial in trials:
        trial.room.state[[n for _, _, n in moves if n in slots]] = READY
        trial.room.state[freed] = CLOSED
    ways = []
    if limit == math.inf and all(trials[0].move(*one) for one in moves):
        ways.append(_actions(slots, freed, [(p, n) for p, _, n in moves]))
    found = {n: placed for n in freed if (placed := trials[1].empty(n)) is not None}
    ways.append(_actions(slots, [*found], [one for own in found.values() for one in own]))
    return [way for way in ways if sum(action.do == "move" for action in way) <= limit]


def _actions(
    slots: dict[int, int], freed: list[int], moves: Sequence[tuple[int, int]]
) -> list[Action]:
    """Return a plan: first what is bought, then moves; nodes that end empty close."""
    bought = sorted({n for _, n in moves if n in slots})
    actions = [Action("buy", slots[n]) for n in bought]
    actions += [Action("await")] if bought else []
    actions += [Action("close", n) for n in freed]
    return actions + [Action("move", p, n) for p, n in moves]
