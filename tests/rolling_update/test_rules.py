"""Rules between microservices and nodes: referee, kernels, models and methods against an oracle.

The oracle reads the document; it shares nothing with the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from effort import tries
from rolling_updates import Deployment, State, best

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.front import Front
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.rolling_update import rules as kernels
from placeopt.rolling_update.bounds import bound_vectors, lower_bound
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.encoder import RollingUpdateEncoder
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.repack import cheapest_plan, repack
from placeopt.rolling_update.schemes import recreate_plan, rolling_update_plan

Json = dict[str, Any]


def ruled(seed: int, most: int = 5) -> Json:
    """Return a random document with every kind of rule, on 3 or 4 nodes in 2 or 3 zones."""
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(2, most + 1)), int(rng.integers(3, 5))
    zones = rng.integers(2 + seed % 2, size=width)
    nodes: list[Json] = [
        {
            "name": f"n{k}",
            "cluster": f"c{k % 2}",
            "cpu_millicores": int(rng.choice([6, 10])),
            "memory_mib": 100,
            "price": float(rng.choice([0.0, 1.0, 1.0, 1.5])),
            "drain": bool(rng.random() < 0.05),
            "resources": {"pods": int(rng.integers(2, 5)), "gpu": int(rng.integers(3))},
            "domains": {"zone": f"z{zones[k]}"} if rng.random() < 0.9 else {},
        }
        for k in range(width)
    ]
    services: list[Json] = []
    for k in range(count):
        home = None if rng.random() < 0.1 else f"n{rng.integers(width)}"
        m: Json = {"name": f"m{k}", "node": home, "cpu_millicores": int(rng.integers(1, 5))}
        m |= {"memory_mib": 1, "resources": {"pods": 1}, "groups": ["web" if k < 3 else "db"]}
        if rng.random() < 0.15:
            m["resources"] = {"pods": 1, "gpu": 1}
        if rng.random() < 0.3:
            m["groups"] = [*m["groups"], "all"]
        if rng.random() < 0.25:
            m["allowed"] = "some"
        if rng.random() < 0.3:
            m["new_cpu_millicores"] = int(rng.integers(1, 5))
        if home and rng.random() < 0.1:
            m["pinned"] = True
        services.append(m)
    known = sorted({g for m in services for g in m["groups"]})
    found: list[Json] = []
    for _ in range(int(rng.integers(1, 4))):
        rule: Json = {"kind": str(rng.choice(["apart", "together", "spread"]))}
        rule |= {"group": str(rng.choice(known)), "per": str(rng.choice(["node", "zone"]))}
        if rng.random() < 0.4:
            rule["toward"] = str(rng.choice(known))
        if rule["kind"] == "spread":
            rule["max_skew"] = int(rng.integers(1, 3))
            rule["min_domains"] = int(rng.integers(1, 4))
            if rng.random() < 0.3:
                rule["among"] = "some"
        elif rule["kind"] == "apart" and rule.get("toward", rule["group"]) == rule["group"]:
            rule["max_copies"] = int(rng.integers(1, 3))
        rule["mend"] = bool(rng.random() < 0.2)
        found.append(rule)
    some = [f"n{k}" for k in range(width) if rng.random() < 0.7] or ["n0"]
    _add_closed_and_residents(np.random.default_rng([seed, 1]), nodes, found)
    for rule in found:
        if rule["kind"] == "spread" and rule["per"] == "node" and seed % 2:
            rule |= {"min_domains": 1, "shrinks": True}
    return {
        "problem": "rolling-update",
        "name": "ruled",
        "semantics": ("stay", "strict")[int(rng.random() < 0.2)],
        "nodes": nodes,
        "cluster_latency_ms": {"c0": {"c1": 10.0}},
        "applications": [{"name": "a", "microservices": services}],
        "node_sets": {"some": some},
        "rules": found,
    }


def _add_closed_and_residents(
    rng: np.random.Generator, nodes: list[Json], rules: list[Json]
) -> None:
    """Close some nodes, and let copies come with some that rules count and obey."""
    for node in nodes:
        node["closed"] = bool(rng.random() < 0.1)
        if rng.random() < 0.2:
            group = str(rng.choice([rules[0]["group"], "agent"]))
            node["residents"] = {group: int(rng.integers(1, 3))}
    if any("agent" in node.get("residents", ()) for node in nodes):
        rules.append({"kind": "apart", "group": "agent", "toward": "web", "per": "node"})
        rules[-1]["mend"] = False


def fronts(document: Json, direct: bool = False, stops: int = 2) -> list[list[float]]:
    """Return the non-dominated (cost, starts, stops) of plans of few steps, or of direct ones."""
    most = (len(document["applications"][0]["microservices"]) + 2, stops)
    return [list(v) for v in best(Deployment(document).attainable(direct, most))]


def judged(document: Json, plan: Json) -> bool:
    """Whether a plan is legal by the oracle alone."""
    return Deployment(document).judge(plan) is not None


def random_plan(rng: np.random.Generator, document: Json) -> Json:
    names = [s["name"] for s in document["applications"][0]["microservices"]]
    targets = [n["name"] for n in document["nodes"]] * 3 + [None]
    return {
        "steps": [
            {"application": "a", "microservice": str(rng.choice(names)), "to": rng.choice(targets)}
            for _ in range(int(rng.integers(0, 5)))
        ]
    }


def test_the_referee_agrees_with_the_oracle() -> None:
    legal = 0
    for seed in range(400):
        document, rng = ruled(seed), np.random.default_rng(seed)
        problem, plan = RollingUpdate.from_document(document), random_plan(rng, ruled(seed))
        fine = judged(document, plan)
        legal += fine
        assert problem.evaluate(plan).feasible == fine, (seed, problem.evaluate(plan).violations)
        problem.describe(plan), problem.warnings(), problem.table(plan)
    assert 20 < legal < 380


def test_the_kernels_agree_with_the_oracle() -> None:
    """Where copies may start, and how a deployment ends."""
    for seed in range(300):
        document, rng = ruled(seed), np.random.default_rng(seed)
        problem, oracle = RollingUpdate.from_document(document), Deployment(document)
        a = problem.arrays
        where = rng.integers(0, len(document["nodes"]), size=len(a.home))
        running = [(m, f"n{n}") for m, n in enumerate(where.tolist())]
        count = kernels.counted(a.packed_rules, where)
        before = count.copy()
        for m in range(len(where)):
            for n in range(len(document["nodes"])):
                may = kernels.may_start(a.packed_rules, count, m, n)
                broken = next(oracle.breaks([*running, (m, f"n{n}")], m, f"n{n}"), None)
                assert may == (broken is None and oracle.may_be_on(m, f"n{n}")), seed
        assert (count == before).all()
        rests = (where == a.home) & (rng.random(len(where)) < 0.5)
        end = State(tuple((n, not rests[m]) for m, n in running))
        broken = kernels.num_broken(a.packed_rules, where[None], rests[None])[0]
        assert (broken == 0) == oracle.obeys(end), seed


@pytest.mark.parametrize("seed", range(30))
def test_the_encoder_agrees_with_the_referee(seed: int) -> None:
    problem = RollingUpdate.from_document(ruled(seed))
    encoder, rng = RollingUpdateEncoder(problem, problem.objectives), np.random.default_rng(seed)
    X = encoder.sample(rng, 12)
    X = np.concatenate((X, encoder.vary(rng, X, X[::-1])))
    for genes, values, excess in zip(X, *encoder.evaluate(X), strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert verdict.values == tuple(values)
        assert verdict.feasible == (excess <= 0).all(), verdict.violations


def test_the_time_indexed_model_refuses_rules() -> None:
    """In one sentence, which names the method that proves with them."""
    problem = RollingUpdate.from_document(shrinking(0))
    with pytest.raises(UnsupportedError, match="use method 'decomposition'"):
        placeopt.solve(problem, "epsilon-constraint")


def run(problem: RollingUpdate, names: list[str] | None = None, **parameters: Any) -> Front:
    return decomposition(Task(problem, problem.select(names), Budget(), 0), **parameters)


@pytest.mark.parametrize("seed", range(200, 213))
def test_the_exact_methods_against_all_plans(seed: int) -> None:
    """The decomposition has the front of the direct plans."""
    document = ruled(seed, most=4)
    problem = RollingUpdate.from_document(document)
    pair = ["node_cost", "starts"]
    truth = [v[:2] for v in fronts(document, direct=True)]
    if problem.infeasibility():
        assert truth == []
        return
    found = [p.values for p in run(problem, pair, max_hops=0).points]
    assert [v for v in truth if tuple(v) not in found] == []


@pytest.mark.parametrize("seed", range(300, 312))
def test_the_front_and_its_bounds_against_all_plans(seed: int) -> None:
    document = ruled(seed, most=4)
    problem = RollingUpdate.from_document(document)
    truth, front = fronts(document), run(problem)
    bounds = np.array(front.bounds)
    if truth:
        assert lower_bound(problem) / problem.arrays.price_scale <= truth[0][0]
    for values in truth:
        assert any((b <= np.array(values) + 1e-9).all() for b in bounds)
        floors = bound_vectors(problem, problem.objectives)
        assert (floors <= np.array(values) + 1e-9).all(axis=1).any()
    for point in front.points:
        verdict = problem.evaluate(point.plan)
        if verdict.feasible:
            assert judged(document, point.plan)
        if point.status == "optimal":
            assert list(point.values) in truth
    calm = [v for v in truth if v[2] == 0]
    found = [list(p.values) for p in front.points if problem.evaluate(p.plan).feasible]
    assert all(any(f <= v for f in found) for v in calm)


def test_heuristics_keep_the_rules() -> None:
    """Every plan that repack and the baselines offer is legal, and repack is often the cheapest."""
    cheapest = total = 0
    for seed in range(400, 400 + tries(20, 60)):
        document = ruled(seed)
        problem = RollingUpdate.from_document(document)
        front = repack(Task(problem, problem.objectives, Budget(), 0))
        legal = [p for p in front.points if problem.evaluate(p.plan).feasible]
        assert all(judged(document, p.plan) for p in legal)
        for plan in (rolling_update_plan(problem), recreate_plan(problem)):
            assert problem.evaluate(plan).feasible == judged(document, plan)
        if len(problem.arrays.home) < 4 and (truth := fronts(document)):
            total += 1
            cheapest += bool(legal) and min(p.values[0] for p in legal) == truth[0][0]
    assert cheapest >= 0.8 * total > tries(2, 8)


def test_an_episode_that_ends_is_legal() -> None:
    complete = 0
    for seed in range(tries(40, 150)):
        document, rng = ruled(seed), np.random.default_rng(seed)
        document["rules"] = [r | {"mend": False} for r in document["rules"]]
        problem = RollingUpdate.from_document(document)
        sequence = build_sequence(problem)
        state = sequence.reset(rng)
        while not sequence.done(state):
            sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))
        if sequence.remaining(state) == 0 and not problem.infeasibility():
            complete += 1
            assert judged(document, sequence.plan(state)), seed
    assert complete > tries(8, 30)


def shrinking(seed: int) -> Json:
    """Return a document in which a required spread over nodes holds what else could be emptied."""
    rng = np.random.default_rng([seed, 9])
    width = int(rng.integers(3, 5))
    node: Json = {"cluster": "c", "cpu_millicores": 10, "memory_mib": 9, "price": 1.0}
    node |= {"drain": False, "closed": False, "resources": {"pods": 9, "gpu": 0}, "domains": {}}
    size: Json = {"cpu_millicores": int(rng.integers(2, 5)), "memory_mib": 1}
    size["resources"] = {"pods": 1}
    services = [
        {
            "name": f"m{k}",
            "node": f"n{k - (k > 1 and seed % 3 == 0)}",
            "groups": [str(rng.choice(["web", "web", "db"]))],
            **size,
        }
        for k in range(width)
    ]
    services[0]["groups"] = ["web"]
    if rng.random() < 0.2:
        services[0]["pinned"] = True
    rule: Json = {"kind": "spread", "group": "web", "per": "node", "mend": False, "shrinks": True}
    return {
        "problem": "rolling-update",
        "name": "shrinking",
        "semantics": "stay",
        "nodes": [{**node, "name": f"n{k}", "price": float(k > 0)} for k in range(width)],
        "applications": [{"name": "a", "microservices": services}],
        "node_sets": {"some": [f"n{k}" for k in range(width - 1)]},
        "rules": [rule | {"max_skew": int(rng.integers(1, 3)), "min_domains": 1}],
    }


def test_nodes_that_are_emptied_are_no_domains_of_a_spread_that_shrinks() -> None:
    """All methods, against all plans; many clusters are smaller for it."""
    smaller, clusters = 0, tries(5, 14)
    for seed in range(clusters):
        document = shrinking(seed)
        problem, pair = RollingUpdate.from_document(document), ["node_cost", "starts"]
        truth = [v[:2] for v in fronts(document, direct=True)]
        rule = document["rules"][0]
        held = {**document, "rules": [{k: v for k, v in rule.items() if k != "shrinks"}]}
        smaller += truth[0] < fronts(held, direct=True)[0][:2]
        found = run(problem, pair, max_hops=0)
        assert [list(p.values) for p in found.points if p.values[1] <= truth[0][1]] == truth, seed
        front = repack(Task(problem, problem.objectives, Budget(), 0))
        assert all(judged(document, p.plan) for p in front.points)
        calm = fronts(document, stops=0)[0][0]
        assert min(p.values[0] for p in front.points if p.values[2] == 0) == calm, seed
        plan = cheapest_plan(problem)
        assert judged(document, plan)
        assert problem.evaluate(plan).values[0] == calm
    assert smaller > clusters / 3


def test_a_node_that_one_leaves_and_another_reaches_is_still_a_domain() -> None:
    """Two were there and two are: a spread that shrinks counts it, with none of its group."""
    document = shrinking(0)
    row, service = document["nodes"][1], document["applications"][0]["microservices"][0]
    places = {"d0": "n0", "d1": "n0", "d2": "n2", "w0": "n1", "w1": "n2"}
    document |= {
        "nodes": [{**row, "name": f"n{k}"} for k in range(3)],
        "applications": [
            {
                "name": "a",
                "microservices": [
                    service
                    | {"name": m, "node": n, "groups": ["web" if m[0] == "w" else "db"]}
                    | {"cpu_millicores": 1, "pinned": False}
                    for m, n in places.items()
                ],
            }
        ],
        "node_sets": {},
        "rules": [document["rules"][0] | {"max_skew": 1}],
    }
    moves = [("d1", "n1"), ("d2", "n0"), ("w1", "n1"), ("w0", "n2")]
    plan = {"steps": [{"application": "a", "microservice": m, "to": n} for m, n in moves]}
    assert not judged(document, plan)
    broken = RollingUpdate.from_document(document).evaluate(plan).violations
    assert {v.kind for v in broken} == {"rule"}
