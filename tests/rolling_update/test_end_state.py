"""The cheapest end against every end there is, judged by the slow oracle of tests/differential."""

from __future__ import annotations

import itertools
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries

sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))
from drawn import ruled
from rolling_updates import GONE, Deployment, State

import placeopt
from placeopt import registry
from placeopt.core.fronts.dominance import minimal
from placeopt.rolling_update import end_program, end_state
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.end_classes import World, _fewest_by_numbers, fewest_hosts
from placeopt.rolling_update.end_program import EndProgram
from placeopt.rolling_update.end_state import cheapest_end, end_front, floors
from placeopt.rolling_update.every_state import reached
from placeopt.rolling_update.repack import cheapest_plan

Document = dict[str, Any]


def every_end(document: Document) -> list[tuple[float, float]]:
    """Return the price and the starts of every legal end."""
    deployment, found = Deployment(document), list[tuple[float, float]]()
    choices = []
    for application, m in deployment.services:
        fixed = not application.get("reschedulable", True) or m.get("pinned")
        places = [m["node"]] if fixed else list(deployment.nodes)
        choices.append([GONE] if m.get("removed") else places)
    for ends in itertools.product(*choices):
        at = tuple(
            (n, n != GONE and (n != m["node"] or deployment.must_start(k, n)))
            for k, ((_, m), n) in enumerate(zip(deployment.services, ends, strict=True))
        )
        state = State(at)
        shut = {n for n, row in deployment.nodes.items() if row.get("drain") or row.get("closed")}
        if not any(new and n in shut for n, new in at) and deployment.ends_well(state):
            found.append(deployment.values(state, sum(new for _, new in at), 0)[:2])
    return found


def cheapest(document: Document) -> tuple[float, float] | None:
    """Return the least price of a legal end, and the fewest starts at it: every end is tried."""
    return min(every_end(document), default=None)


def cluster(rng: np.random.Generator) -> Document:
    """Four or five nodes of two machine types in two zones, five pods of two or three workloads."""
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "a",
            "cpu_millicores": 4 + 2 * (k % 2),
            "memory_mib": 16,
            "price": 1.0 + 0.5 * (k % 2),
            "domains": {"zone": "z1" if k < 2 else "z2"},
            "resources": {"pods": int(rng.integers(2, 5))} if rng.random() < 0.3 else {"pods": 9},
        }
        for k in range(int(rng.integers(3, 5)))
    ]
    services = []
    for w, count in enumerate(((3, 2), (2, 2, 1), (4, 1))[int(rng.integers(3))]):
        size = {"cpu_millicores": int(rng.integers(1, 4)), "memory_mib": int(rng.integers(1, 5))}
        for k in range(count):
            home = {"node": f"n{rng.integers(len(nodes))}", "pinned": bool(rng.random() < 0.1)}
            row = {"name": f"w{w}-{k}", "groups": [f"w{w}"], "resources": {"pods": 1}}
            services.append(row | size | home)
    rules: list[Document] = []
    for _ in range(int(rng.integers(1, 4))):
        rule: Document = {"kind": str(rng.choice(["apart", "together", "spread", "spread"]))}
        rule |= {"group": f"w{rng.integers(2)}", "per": str(rng.choice(["node", "zone"]))}
        if rng.random() < 0.3:
            rule["toward"] = f"w{rng.integers(2)}"
        if rule["kind"] == "spread" and rule["per"] == "node":
            rule["shrinks"] = bool(rng.random() < 0.8)
        rules.append(rule)
    return {
        "problem": "rolling-update",
        "name": "cluster",
        "semantics": "stay",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "rules": rules,
    }


@pytest.fixture(params=["each node", "kinds"])
def _program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node by itself, or nodes that are alike as one."""
    if request.param == "kinds":
        monkeypatch.setattr(end_state, "_EACH_NODE", 0)


@pytest.mark.parametrize("seed", range(tries(60, 1000)))
@pytest.mark.usefixtures("_program")
def test_no_end_is_cheaper_than_what_is_proven(seed: int) -> None:
    """Clusters of few kinds of nodes."""
    document = cluster(np.random.default_rng(seed))
    problem, truth = registry.from_document(document), cheapest(document)
    found, scale = cheapest_end(problem), problem.arrays.price_scale
    if truth is None:
        assert found.node is None
        return
    assert lower_bound(problem) <= found.lowest <= round(truth[0] * scale)
    if found.exact:
        assert found.node is not None
        starts = problem.arrays.starts_of(found.node).sum()
        assert (found.lowest / scale, starts) == truth


def test_nodes_that_are_no_better_share_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many machine types and few of each: what is proven holds, and most ends are the cheapest."""
    fewer = met = 0
    for seed in range(tries(30, 300)):
        rng = np.random.default_rng([seed, 4])
        document = cluster(rng)
        for kind in range(8):
            row = document["nodes"][int(rng.integers(2))] | {"candidate": True}
            row |= {"cpu_millicores": int(rng.integers(3, 9)), "price": rng.integers(2, 9) / 4}
            many = range(int(rng.integers(1, 3)))
            document["nodes"] += [row | {"name": f"new{kind}-{k}"} for k in many]
        exact, wide = (registry.from_document(document) for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(end_state, "_EACH_NODE", 10**6)
            truth = cheapest_end(exact)
        with monkeypatch.context() as patch:
            patch.setattr(end_state, "_EACH_NODE", 0)
            patch.setattr(end_state, "_MANY_KINDS", 0)
            found = cheapest_end(wide)
        world, scale = World(wide.arrays), wide.arrays.price_scale
        fewer += len(world.kinds()) - len(world.widest_kinds())
        assert found.lowest <= truth.lowest
        if found.node is not None:
            assert round(wide.arrays.cost(found.node) * scale) >= truth.lowest
            met += round(wide.arrays.cost(found.node) * scale) == truth.lowest
    assert fewer
    assert met >= 0.8 * tries(30, 300)


@pytest.mark.skipif(find_spec("ortools") is None, reason="CP-SAT comes with an extra: ortools")
def test_cp_sat_packs_as_highs_does() -> None:
    """Of nodes that may do or not: the same verdict, the same cost and the same starts."""
    for seed in range(30):
        document = cluster(np.random.default_rng([seed, 3]))
        world = World(registry.from_document(document).arrays)
        nodes = [np.array([n]) for n in np.flatnonzero(world.real).tolist()]
        for chosen in (nodes, nodes[:-1], nodes[:2]):
            highs, cp_sat = (EndProgram(world, chosen, cp_sat=which) for which in (False, True))
            assert cp_sat.by_cp_sat
            assert not highs.by_cp_sat
            assert packed(highs) == packed(cp_sat)


def packed(program: EndProgram) -> tuple[bool, float, int | None, bool]:
    """Return whether all can be packed, the least price, the fewest starts, and what is proven."""
    possible, (price, x) = program.is_possible(), program.solve()
    assert possible is (x is not None)
    few, proven = program.of_few_starts(int(price)) if possible else (None, True)
    return possible, price, None if few is None else program.starts(few), proven


def test_without_cp_sat_highs_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_program, "find_spec", lambda _: None)
    world = World(registry.from_document(cluster(np.random.default_rng(0))).arrays)
    assert not EndProgram(world, [np.array([0])], cp_sat=True).by_cp_sat


@pytest.mark.parametrize("seed", range(tries(20, 1000)))
@pytest.mark.usefixtures("_program")
def test_corners_are_the_front_of_price_and_starts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against every end; with few corners they bound it still."""
    if seed % 4 == 0:
        monkeypatch.setattr(end_state, "_CORNERS", 2)
    document = cluster(np.random.default_rng([seed, 2]))
    problem, ends = registry.from_document(document), every_end(document)
    a = problem.arrays
    found = end_front(problem)
    for price, starts in ends:
        units = round(price * a.price_scale)
        assert not found.bounds or any(p <= units and s <= starts for p, s in found.bounds)
    legal = {
        (round(a.cost(node) * a.price_scale), int(a.starts_of(node).sum()))
        for node, _ in found.ends
    }
    assert legal <= {(round(price * a.price_scale), starts) for price, starts in ends}
    if seed % 4 and end_state._EACH_NODE:
        front = minimal(np.array(ends, dtype=float).reshape(-1, 2) * [a.price_scale, 1])
        assert sorted(legal) == sorted(map(tuple, front.round().astype(int).tolist()))


def test_a_front_that_had_no_time_is_made_again_with_more() -> None:
    document = cluster(np.random.default_rng([1, 2]))
    problem = registry.from_document(document)
    assert not end_front(problem, 0.0).ends
    assert end_front(problem).bounds == end_front(registry.from_document(document)).bounds != []


@pytest.mark.parametrize("seed", range(tries(20, 1000)))
@pytest.mark.usefixtures("_program")
def test_every_plan_is_bounded_by_a_corner(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rules together, in every choice of goals: against every plan, with stops and without."""
    monkeypatch.setattr(end_state, "_CORNERS", 1 + 20 * (seed % 2))
    document = ruled(np.random.default_rng([seed, 12]), seed % 3)
    problem = registry.from_document(document)
    level = seed % 5 if seed % 3 else np.inf
    values = np.array(list(Deployment(document).attainable())).reshape(-1, len(problem.objectives))
    for names in (["node_cost", "starts"], ["node_cost", "starts", "disruptions"], ["starts"]):
        goals = problem.select(names)
        bounds = floors(problem, goals, np.inf, level)
        for plan in values[:, problem.columns(goals)]:
            assert (bounds <= plan + 1e-9).all(axis=1).any()


@pytest.mark.parametrize("seed", range(tries(20, 1000)))
@pytest.mark.usefixtures("_program")
def test_no_plan_is_cheaper_than_what_is_proven(seed: int) -> None:
    """All rules together, replicas that come and go: against every plan, with stops and without."""
    document = ruled(np.random.default_rng([seed, 5]), seed % 3)
    problem = registry.from_document(document)
    values = Deployment(document).attainable()
    found = cheapest_end(problem)
    unstopped = cheapest_end(problem, stops=False)
    for cost, _, stops, *_ in values:
        least = found.lowest if stops else unstopped.lowest
        assert least <= round(cost * problem.arrays.price_scale)


def test_nearly_all_small_clusters_are_exact() -> None:
    exact = with_end = 0
    for seed in range(tries(40, 400)):
        document = cluster(np.random.default_rng([seed, 1]))
        truth, problem = cheapest(document), registry.from_document(document)
        found = cheapest_end(problem)
        with_end += truth is not None
        exact += truth is not None and found.exact
    assert exact >= 0.95 * with_end > 0


def test_the_cheapest_plan_goes_to_the_cheapest_end() -> None:
    """Where it is reached in the direct order, no search is needed."""
    reached = known = 0
    for seed in range(tries(15, 200)):
        document = cluster(np.random.default_rng([seed, 2]))
        truth, problem = cheapest(document), registry.from_document(document)
        if truth is None:
            continue
        judged = problem.evaluate(cheapest_plan(problem))
        assert not judged.feasible or judged.values[0] >= truth[0]
        known += 1
        reached += judged.feasible and judged.values[2] == 0 and judged.values[0] == truth[0]
    assert reached >= 0.8 * known


# -- the way --------------------------------------------------------------------------------------


def shrinking(rng: np.random.Generator) -> Document:
    """Three to five nodes; one to three groups, most of them spread by nodes that may be left."""
    count, services, rules = int(rng.integers(3, 6)), list[Document](), list[Document]()
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "a",
            "cpu_millicores": int(rng.choice([6, 12])),
            "memory_mib": 99,
            "price": float(rng.choice([0, 1, 1, 1, 1.5])),
        }
        for k in range(count)
    ]
    sizes = [int(rng.integers(3, 7)), *rng.integers(1, 4, size=int(rng.integers(0, 3))).tolist()]
    for g, copies in enumerate(sizes[: 3 if count < 5 else 2]):
        cpu, skew, pinned = int(rng.integers(1, 3)), int(rng.integers(1, 3)), rng.random() < 0.1
        if g == 0 or rng.random() < 0.6:
            rule = {"kind": "spread", "group": f"g{g}", "per": "node", "max_skew": skew}
            rules.append(rule | {"shrinks": bool(rng.random() < 0.9)})
        for k in range(copies):
            row = {"name": f"g{g}-{k}", "cpu_millicores": cpu, "memory_mib": 1, "groups": [f"g{g}"]}
            services.append(row | {"node": f"n{rng.integers(count)}", "pinned": bool(pinned)})
    document = {"problem": "rolling-update", "name": "shrinking", "semantics": "stay"}
    applications = [{"name": "a", "microservices": services}]
    return document | {"nodes": nodes, "applications": applications, "rules": rules}


def least_without_stops(document: Document) -> float | None:
    """Return the least price of an end that moves reach without a stop: every state is met.

    Copies of one group are alike, so that a state is how many of each are on each node, and which
    nodes are left for good. None where the start is no legal end: what breaks a rule there may go
    on while it rests, which the state does not know.
    """
    nodes, rules = document["nodes"], {r["group"]: r for r in document["rules"]}
    rows = document["applications"][0]["microservices"]
    groups = list(dict.fromkeys(row["groups"][0] for row in rows))
    size = {row["groups"][0]: row["cpu_millicores"] for row in rows}
    fixed = {row["groups"][0] for row in rows if row["pinned"]}
    names = [n["name"] for n in nodes]
    start = tuple(
        tuple(sum(r["node"] == n and r["groups"] == [g] for r in rows) for n in names)
        for g in groups
    )

    def spread(g: int, counts: tuple[int, ...], n: int, gone: frozenset[int]) -> bool:
        rule = rules.get(groups[g])
        if rule is None or counts[n] <= rule["max_skew"]:
            return True
        domains = [c for k, c in enumerate(counts) if not (rule["shrinks"] and k in gone)]
        return counts[n] - min(domains) <= rule["max_skew"]

    def load(state: tuple[tuple[int, ...], ...], n: int) -> int:
        return sum(size[g] * counts[n] for g, counts in zip(groups, state, strict=True))

    def is_end(state: tuple[tuple[int, ...], ...]) -> bool:
        full = [load(state, n) for n in range(len(nodes))]
        gone = frozenset(n for n, x in enumerate(full) if x == 0 and nodes[n]["price"] > 0)
        every = itertools.product(range(len(groups)), range(len(nodes)))
        return all(
            x <= node["cpu_millicores"] for x, node in zip(full, nodes, strict=True)
        ) and all(spread(g, state[g], n, gone) for g, n in every if state[g][n])

    if not is_end(start):
        return None
    begin = (start, frozenset[int]())
    seen, todo, best = {begin}, [begin], np.inf
    while todo:
        state, left = todo.pop()
        used = [sum(counts[n] for counts in state) for n in range(len(nodes))]
        if is_end(state):
            best = min(best, sum(node["price"] for n, node in enumerate(nodes) if used[n]))
        after = [
            (state, left | {n})
            for n, node in enumerate(nodes)
            if not used[n] and node["price"] > 0 and n not in left
        ]
        for g, o, n in itertools.product(range(len(groups)), range(len(nodes)), range(len(nodes))):
            if o == n or not state[g][o] or n in left or groups[g] in fixed:
                continue
            both = tuple(c + (k == n) for k, c in enumerate(state[g]))
            full = load(state, n) + size[groups[g]]
            if full <= nodes[n]["cpu_millicores"] and spread(g, both, n, left):
                moved = tuple(c - (k == o) for k, c in enumerate(both))
                after.append(((*state[:g], moved, *state[g + 1 :]), left))
        for one in after:
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return best


@pytest.mark.parametrize("seed", range(tries(80, 1000)))
@pytest.mark.usefixtures("_program")
def test_no_way_without_stops_is_cheaper_than_what_is_proven(seed: int) -> None:
    """Groups that shrink, against every state that moves reach."""
    document = shrinking(np.random.default_rng([seed, 7]))
    truth = least_without_stops(document)
    if truth is None:
        return
    problem = registry.from_document(document)
    found, scale = cheapest_end(problem, stops=False), problem.arrays.price_scale
    assert cheapest_end(problem).lowest <= found.lowest <= round(truth * scale)
    assert problem.evaluate(cheapest_plan(problem)).values[0] >= truth


@pytest.mark.parametrize("method", ["auto", "decomposition"])
def test_no_method_finds_a_cheaper_plan_than_the_planner(method: str) -> None:
    """No plan that stops nothing is cheaper, or has fewer starts at the same cost."""
    for seed in range(tries(5, 100)):
        document = shrinking(np.random.default_rng([seed, 9]))
        problem = registry.from_document(document)
        verdict = problem.evaluate(cheapest_plan(problem))
        if verdict.feasible and verdict.values[2] == 0:
            front = placeopt.solve(registry.from_document(document), method, evaluations=300)
            best = min(point.values[:2] for point in front.points if point.values[2] == 0)
            assert verdict.values[:2] <= best


def test_the_way_is_what_proves_many_plans() -> None:
    """The row about the way is needed, and is tight where the group is alone."""
    open_without = proven = known = 0
    for seed in range(tries(80, 400)):
        document = shrinking(np.random.default_rng([seed, 8]))
        truth, problem = least_without_stops(document), registry.from_document(document)
        if truth is None:
            continue
        price = round(truth * problem.arrays.price_scale)
        known += 1
        proven += cheapest_end(problem, stops=False).lowest == price
        open_without += cheapest_end(problem).lowest < price
    assert proven >= 0.9 * known > 0
    assert open_without > known - proven


@pytest.mark.parametrize("skew", [1, 2, 3])
def test_the_fewest_nodes_of_a_group(skew: int) -> None:
    """A group alone on nodes with room for all: every state that moves reach."""
    for copies in range(1, 8):
        for counts in _partitions(copies):
            document = _alone(counts, skew)
            truth = least_without_stops(document)
            if truth is not None:
                assert fewest_hosts(counts, skew) == truth
            assert _fewest_by_numbers(counts, skew) <= fewest_hosts(counts, skew)


def _partitions(total: int, least: int = 1) -> list[tuple[int, ...]]:
    """Return the ways to write a number as a sum of numbers in ascending order."""
    parts = [(total,)] if total >= least else []
    for first in range(least, total // 2 + 1):
        parts += [(first, *rest) for rest in _partitions(total - first, first)]
    return parts


def _alone(counts: tuple[int, ...], skew: int) -> Document:
    rule = {"kind": "spread", "group": "g", "per": "node", "max_skew": skew, "shrinks": True}
    services = [
        {"name": f"g-{n}-{k}", "groups": ["g"], "node": f"n{n}", "pinned": False}
        | {"cpu_millicores": 1, "memory_mib": 1}
        for n, count in enumerate(counts)
        for k in range(count)
    ]
    nodes = [
        {"name": f"n{n}", "cluster": "a", "cpu_millicores": 99, "memory_mib": 99, "price": 1.0}
        for n in range(len(counts))
    ]
    document = {"problem": "rolling-update", "name": "alone", "semantics": "stay"}
    applications = [{"name": "a", "microservices": services}]
    return document | {"nodes": nodes, "applications": applications, "rules": [rule]}


# -- every state -----------------------------------------------------------------------------------


def test_what_moves_reach_is_met_whole() -> None:
    """All rules together: the cheapest end and its fewest starts, and a plan that gets there."""
    known = 0
    for seed in range(tries(20, 1000)):
        document = ruled(np.random.default_rng([seed, 6]), seed % 3)
        for part in ("limits", "survival"):
            document.pop(part, None)
        for row in document["nodes"]:
            row.pop("candidate", None)
        for application in document["applications"]:
            application.pop("flows", None)
        problem: Any = registry.from_document(document)
        values = [v for v in Deployment(document).attainable() if not v[2]]
        front = reached(problem.arrays)
        if not front:
            continue
        known += 1
        found = [problem.evaluate(problem.plan(one.steps)) for one in front]
        assert all(verdict.feasible and not verdict.values[2] for verdict in found)
        truth = minimal(np.array([v[:2] for v in values]))
        assert sorted(v.values[:2] for v in found) == sorted(map(tuple, truth.tolist()))
        assert [round(one.price / problem.arrays.price_scale, 9) for one in front] == [
            round(verdict.values[0], 9) for verdict in found
        ]
        assert [one.starts for one in front] == [verdict.values[1] for verdict in found]
    assert known


def test_shrinking_groups_are_met_whole() -> None:
    for seed in range(tries(20, 1000)):
        document = shrinking(np.random.default_rng([seed, 10]))
        truth, problem = least_without_stops(document), registry.from_document(document)
        front = reached(problem.arrays)
        if truth is not None and front:
            assert front[0].price == round(truth * problem.arrays.price_scale)
            assert problem.evaluate(problem.plan(front[0].steps)).values[0] == truth
