"""Plans that stop nothing and their proofs, against every state that moves reach.

    python benchmarks/kubernetes/small_clusters.py [--clusters 200]

Random clusters of four to six nodes of three machine types in two zones, and of six to nine pods of
three or four workloads: spread, kept apart or together by nodes or zones, restricted to nodes, or
pinned. Copies of a workload are alike, so that a state is how many of each are on each node, and
which nodes are left for good; a search of its own meets all of them.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark, shown, table

from placeopt import registry
from placeopt.rolling_update.end_state import lowest_price
from placeopt.rolling_update.every_state import reached
from placeopt.rolling_update.repack import cheapest_plan

Document = dict[str, Any]
#: Kinds of rules, in the rows that the search reads.
KINDS = ("apart", "together", "spread")
MACHINES = ((4, 16, 1.0), (6, 12, 1.3), (8, 32, 1.9))
COLUMNS = "nodes | clusters | optimal | proven | false proofs | largest distance | CPU s, largest"


def drawn(seed: int, nodes: int) -> Document | None:
    """Return a random cluster whose rules hold; None where the draw has none."""
    rng = np.random.default_rng([seed, nodes])
    rows = []
    for n in range(nodes):
        cpu, memory, price = MACHINES[rng.integers(len(MACHINES))]
        paid = 0.0 if rng.random() < 0.08 else price
        row = {"name": f"n{n}", "cluster": "a", "cpu_millicores": cpu, "memory_mib": memory}
        row |= {"price": paid, "domains": {"zone": f"z{n % 2}"}, "resources": {"pods": 5}}
        rows.append(row | ({"closed": True} if rng.random() < 0.05 else {}))
    sizes = ((3, 2, 2), (4, 2, 1), (3, 3), (3, 2, 1, 1), (5, 2), (2, 2, 2))[rng.integers(6)]
    rules, services, sets = list[Document](), list[Document](), dict[str, list[str]]()
    for g, copies in enumerate(sizes):
        own: Document = {"groups": [f"g{g}"], "resources": {"pods": 1}}
        own |= {"cpu_millicores": int(rng.integers(1, 4)), "memory_mib": int(rng.integers(1, 9))}
        own |= {"pinned": bool(rng.random() < 0.07)}
        if rng.random() < 0.2:
            own["allowed"] = f"set{g}"
            members = np.flatnonzero(rng.random(nodes) < 0.7)
            sets[f"set{g}"] = [f"n{n}" for n in (members if len(members) else range(nodes))]
        services += [{"name": f"g{g}-{k}"} | own for k in range(copies)]
        if rng.random() < 0.7:
            rule: Document = {"kind": str(rng.choice(["apart", "spread", "spread", "together"]))}
            rule |= {"group": f"g{g}", "per": str(rng.choice(["node", "node", "zone"]))}
            if rule["kind"] == "spread":
                rule |= {"max_skew": int(rng.integers(1, 3)), "shrinks": rule["per"] == "node"}
            elif rng.random() < 0.4:
                rule["toward"] = f"g{rng.integers(len(sizes))}"
            rules.append(rule)
    document: Document = {
        "problem": "rolling-update",
        "name": f"states-{nodes}-{seed}",
        "semantics": "stay",
        "nodes": rows,
        "node_sets": sets,
        "applications": [{"name": "a", "microservices": services}],
        "rules": rules,
    }
    for _ in range(300):
        for row, n in zip(services, rng.integers(nodes, size=len(services)), strict=True):
            row["node"] = f"n{n}"
        problem: Any = registry.from_document(document)
        at_home = all(row["node"] in sets[row["allowed"]] for row in services if "allowed" in row)
        legal = at_home and not problem.arrays.rules.forgiven.any()  # what is broken may rest
        if legal and problem.evaluate({"steps": []}).feasible:
            return document
    return None


def compositions(total: int, parts: int) -> np.ndarray:
    """Return all ways to put so many copies on so many nodes, (k, parts)."""
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    return np.array(
        [np.diff([-1, *bar, total + parts - 1]) - 1 for bar in bars], dtype=np.int64
    ).reshape(-1, parts)


def least_reached(document: Document) -> tuple[float, int]:
    """Return the least price of an end that moves reach without a stop, and the states met."""
    nodes, services = document["nodes"], document["applications"][0]["microservices"]
    groups = list(dict.fromkeys(row["groups"][0] for row in services))
    first = [next(r for r in services if r["groups"] == [g]) for g in groups]
    number = {n["name"]: k for k, n in enumerate(nodes)}
    count = np.array([sum(r["groups"] == [g] for r in services) for g in groups])
    ways = [compositions(c, len(nodes)) for c in count.tolist()]
    begin = []
    for g, own in zip(groups, ways, strict=True):
        where = [number[r["node"]] for r in services if r["groups"] == [g]]
        now = np.bincount(where, minlength=len(nodes))
        begin.append(int(np.flatnonzero((own == now).all(axis=1))[0]))
    size = max(map(len, ways))
    moved = np.full((len(groups), size, len(nodes), len(nodes)), -1, dtype=np.int64)
    table_of_ways = np.zeros((len(groups), size, len(nodes)), dtype=np.int64)
    for g, own in enumerate(ways):
        table_of_ways[g, : len(own)] = own
        at = {tuple(row): k for k, row in enumerate(own.tolist())}
        for (k, row), o, n in itertools.product(
            enumerate(own.tolist()), range(len(nodes)), range(len(nodes))
        ):
            if o != n and row[o]:
                after = [x - (j == o) + (j == n) for j, x in enumerate(row)]
                moved[g, k, o, n] = at[tuple(after)]
    may = np.ones((len(groups), len(nodes)), dtype=np.bool_)
    for g, row in enumerate(first):
        for n, node in enumerate(nodes):
            allowed = "allowed" not in row or node["name"] in document["node_sets"][row["allowed"]]
            may[g, n] = allowed and not node.get("closed") and not row["pinned"]
    zone = np.array([int(n["domains"]["zone"][1:]) for n in nodes])
    rules = np.array(
        [
            (
                KINDS.index(r["kind"]),
                groups.index(r["group"]),
                groups.index(r.get("toward", r["group"])),
                r["per"] == "zone",
                r.get("max_skew", 1),
                r.get("shrinks", False),
            )
            for r in document["rules"]
        ],
        dtype=np.int64,
    ).reshape(-1, 6)
    asked = np.array([[r["cpu_millicores"], r["memory_mib"], 1] for r in first])
    room = np.array([[n["cpu_millicores"], n["memory_mib"], 5] for n in nodes])
    price = np.array([n["price"] for n in nodes])
    lengths = np.array([len(own) for own in ways])
    return _search(
        table_of_ways, lengths, moved, np.array(begin), may, zone, rules, asked, room, price
    )


@numba.njit(cache=False)
def _keeps(x, g, n, left, zone, rules):  # type: ignore[no-untyped-def]
    """Return whether a copy of group g on node n, counted there, obeys all rules about it."""
    size = x.shape[1]
    for r in range(len(rules)):
        kind, own, toward, by_zone, skew, shrinks = rules[r]
        for side in range(2):
            other = toward if side == 0 else own
            if (side == 0 and own != g) or (
                side == 1 and (kind != 0 or toward != g or own == toward)
            ):
                continue
            here = total = 0
            counts = np.zeros(size, np.int64)
            for k in range(size):
                counts[zone[k] if by_zone else k] += x[other, k]
                total += x[other, k]
            here = counts[zone[n] if by_zone else n]
            if kind == 0:
                if here - (other == g) > 0:
                    return False
            elif kind == 1:
                if here - (other == g) <= 0 and not (other == g and total == 1):
                    return False
            else:
                least = 1 << 40
                for k in range(size):
                    if by_zone or not (shrinks and (left >> k) & 1):
                        least = min(least, counts[zone[k] if by_zone else k])
                if here > skew and here - least > skew:
                    return False
    return True


@numba.njit(cache=False)
def _search(  # type: ignore[no-untyped-def]
    ways, lengths, moved, begin, may, zone, rules, asked, room, price
):
    groups, nodes = ways.shape[0], ways.shape[2]
    masks = 1 << nodes
    total = masks
    for g in range(groups):
        total *= lengths[g]
    seen = np.zeros(total, np.bool_)
    stack = np.empty(total, np.int64)
    code = 0
    for g in range(groups):
        code = code * lengths[g] + begin[g]
    stack[0], top = code * masks, 1
    seen[code * masks] = True
    best, met = np.inf, 0
    x, at = np.zeros((groups, nodes), np.int64), np.zeros(groups, np.int64)
    while top:
        top -= 1
        met += 1
        state = stack[top]
        left, rest = state % masks, state // masks
        for g in range(groups - 1, -1, -1):
            at[g] = rest % lengths[g]
            rest //= lengths[g]
            x[g] = ways[g, at[g]]
        cost, gone = 0.0, 0
        for n in range(nodes):
            if x[:, n].sum() > 0:
                cost += price[n]
            elif price[n] > 0:
                gone |= 1 << n
        if cost < best:
            legal = True
            for g in range(groups):
                for n in range(nodes):
                    legal = legal and (x[g, n] == 0 or _keeps(x, g, n, gone, zone, rules))
            if legal:
                best = cost
        for n in range(nodes):
            if (gone >> n) & 1 and not (left >> n) & 1:
                after = state | (1 << n)
                if not seen[after]:
                    seen[after] = True
                    stack[top] = after
                    top += 1
        weight = masks
        for g in range(groups - 1, -1, -1):
            for n in range(nodes):
                fits = may[g, n] and not (left >> n) & 1
                for r in range(asked.shape[1]):
                    load = asked[g, r]
                    for h in range(groups):
                        load += asked[h, r] * x[h, n]
                    fits = fits and load <= room[n, r]
                if not fits:
                    continue
                x[g, n] += 1
                legal = _keeps(x, g, n, left, zone, rules)
                x[g, n] -= 1
                if not legal:
                    continue
                for o in range(nodes):
                    k = moved[g, at[g], o, n]
                    if k >= 0:
                        after = state + (k - at[g]) * weight
                        if not seen[after]:
                            seen[after] = True
                            stack[top] = after
                            top += 1
            weight *= lengths[g]
    return best, met


def judged(document: Document) -> tuple[bool, bool, bool, float, float]:
    """Return whether a plan is optimal, is proven, whether the proof is false, gap, CPU s."""
    truth, _ = least_reached(document)
    problem: Any = registry.from_document(document)
    begin = time.process_time()
    plan = cheapest_plan(problem)
    verdict, scale = problem.evaluate(plan), problem.arrays.price_scale
    cost = verdict.values[0]
    lowest = lowest_price(problem, round(cost * scale), stops=False) / scale
    cpu = time.process_time() - begin
    assert verdict.feasible, verdict.violations
    assert verdict.values[2] == 0
    assert cost >= truth - 1e-9, "the search of all states has missed a plan"
    gap = cost / truth - 1 if truth else 0.0
    return cost <= truth + 1e-9, cost <= lowest + 1e-9, lowest > truth + 1e-9, gap, cpu


def main() -> None:
    """Judge all clusters and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "scipy", clusters=200)
    counts, rows, missed = {4: 0.35, 5: 0.35, 6: 0.3}, [], []
    first: Any = registry.from_document(next(d for s in range(9) if (d := drawn(s, 4))))
    cheapest_plan(first), reached(first.arrays)  # compiled before times are taken
    sums = np.zeros(3, dtype=int)
    for nodes, share in counts.items():
        results = []
        for seed in itertools.count():
            if len(results) == round(share * run.clusters):
                break
            document = drawn(seed, nodes)
            if document is not None:
                results.append(judged(document))
                if not all(results[-1][:2]):
                    missed.append((document["name"], *results[-1]))
        found = np.array(results)
        sums += found[:, :3].sum(axis=0).astype(int)
        numbers = [nodes, len(results), *(int(x) for x in found[:, :3].sum(axis=0))]
        rows.append(shown([*numbers, f"{found[:, 3].max():.1%}", f"{found[:, 4].max():.2f}"]))
    print(*missed, sep="\n")
    run.write(
        "Small clusters against every state",
        "Random clusters by this script. A search of its own meets every state that moves reach "
        "without a stop; the plan is that of `placeopt consolidate`.",
        table(COLUMNS, rows),
        f"Together {sums[0]} of {run.clusters} are optimal, {sums[1]} are proven, and "
        f"{sums[2]} proofs are false.",
    )


if __name__ == "__main__":
    main()
