"""Exact fronts: equal to brute force, valid bounds whenever the search ends, errors of the solver
never read as answers.
"""

from __future__ import annotations

import itertools
import sys
import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
import pytest
from hands import Hand, within

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Objective
from placeopt.core.runs.compiling import Clock
from placeopt.core.task import Task
from placeopt.exact import engines, solvers
from placeopt.exact.compiled_model import CompiledModel, Cut
from placeopt.exact.engines import Reply
from placeopt.exact.epsilon_constraint import run, solve_model
from placeopt.portfolio import run_method
from placeopt.temporal import model as temporal
from placeopt.temporal.problem import Temporal

#: Seeds of tiny instances that take as long as ten others.
SLOW = (6, 16)
NAMES = ("latency_ms", "cost_usd", "interruption")


# -- tiny instances, and a slow oracle that shares nothing with placeopt but the document ----------


def tiny(seed: int) -> Temporal:
    """A random instance that can be enumerated: 3 requests every fourth time, else 2; at most 4
    replicas, 2 offers, 4 or 5 slots.
    """
    rng = np.random.default_rng(seed)
    count = 3 if seed % 4 == 0 else 2
    requests = [
        {
            "name": f"r{k}",
            "cpu_cores": int(rng.integers(1, 4)),
            "memory_gib": float(rng.integers(1, 9) / 2),
            "duration_slots": int(rng.integers(1, 4)),
            "replicas": 1,
            "origin": "ab"[rng.integers(2)],
        }
        for k in range(count)
    ]
    for request in requests[: 1 if seed % 8 == 0 else int(rng.integers(0, 3)) if count == 2 else 0]:
        request["replicas"] = 2
    offers = []
    for location in "ab":
        offer = {
            "location": location,
            "size": "m",
            "cpu_cores": int(rng.integers(3, 7)),
            "memory_gib": 5.0,
            "max_instances": None,
        }
        lowest = {"on_demand_usd_per_hour": 30, "reserved_usd_per_hour": 15, "spot_usd_per_hour": 5}
        prices = {key: rng.integers(low, low + 20) for key, low in lowest.items()}
        absent = rng.choice([*prices, "none"], p=[0.2, 0.2, 0.2, 0.4])
        offer |= {key: int(price) / 100 for key, price in prices.items() if key != absent}
        if absent != "spot_usd_per_hour":
            offer["spot_interruption"] = int(rng.integers(1, 5)) * 5 / 100
        if rng.random() < 0.4:
            offer["max_instances"] = int(rng.integers(1, 3))
        offers.append(offer)
    near, far = (sorted(rng.integers(1, 400, 2).tolist()) for _ in range(2))
    latency = {
        "a": {"a": near[0] / 10, "b": near[1] / 10},
        "b": {"a": far[1] / 10, "b": far[0] / 10},
    }
    document = {
        "problem": "temporal",
        "name": f"tiny{seed}",
        "horizon_slots": 4 if count == 3 else int(rng.integers(4, 6)),
        "latency_ms": latency,
    }
    return Temporal.from_document(
        document | {"slot_hours": 0.5, "offers": offers, "requests": requests}
    )


def partitions(items):
    """All ways to share items out among machines that are not told apart."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for k, block in enumerate(smaller):
            yield [*smaller[:k], [first, *block], *smaller[k + 1 :]]


def brute_force(problem: Temporal) -> set[tuple[Fraction, ...]]:
    """All vectors of all plans, by trying them: starts, partitions of the replicas, offer and
    pricing of every part.
    """
    requests, offers, horizon = problem.requests, problem.offers, problem.horizon_slots
    exact = {
        id(o): {
            p: None if o.price(p) is None else Fraction(str(o.price(p)))
            for p in ("on-demand", "reserved", "spot")
        }
        for o in offers
    }
    shares = [
        list(p) for p in partitions([k for k, r in enumerate(requests) for _ in range(r.replicas)])
    ]
    parts = {tuple(block) for share in shares for block in share}
    vectors = set()
    for starts in itertools.product(*(range(horizon - r.duration_slots + 1) for r in requests)):
        running = [
            set(range(s, s + r.duration_slots)) for s, r in zip(starts, requests, strict=True)
        ]
        choices = {
            part: hosts(part, requests, offers, running, horizon, exact, problem) for part in parts
        }
        for share in shares:
            for chosen in itertools.product(*(choices[tuple(block)] for block in share)):
                counts = [sum(choice[0] == j for choice in chosen) for j in range(len(offers))]
                if all(
                    o.max_instances is None or n <= o.max_instances
                    for o, n in zip(offers, counts, strict=True)
                ):
                    vectors.add(vector(share, chosen, requests, offers, problem))
    return vectors


def hosts(part, requests, offers, running, horizon, exact, problem):
    """Where a part fits: offer, pricing and what that costs."""
    found = []
    busy = set().union(*(running[k] for k in part))
    for j, offer in enumerate(offers):
        for resource in ("cpu_cores", "memory_gib"):
            if any(
                sum(getattr(requests[k], resource) for k in part if t in running[k])
                > getattr(offer, resource)
                for t in busy
            ):
                break
        else:
            for pricing, price in exact[id(offer)].items():
                if price is not None:
                    slots = horizon if pricing == "reserved" else len(busy)
                    found.append((j, pricing, price * slots * Fraction(str(problem.slot_hours))))
    return found


def vector(share, chosen, requests, offers, problem):
    latency, cost, interruption = [Fraction(0)] * len(requests), Fraction(0), Fraction(0)
    for block, (j, pricing, price) in zip(share, chosen, strict=True):
        cost += price
        for k in block:
            latency[k] = max(
                latency[k],
                Fraction(str(problem.latency_ms[requests[k].origin][offers[j].location])),
            )
            if pricing == "spot":
                interruption += Fraction(str(offers[j].spot_interruption)) / requests[k].replicas
    return sum(latency) / len(requests), cost, interruption / len(requests)


def nondominated(vectors, columns=(0, 1, 2)):
    """The vectors that no other one beats, compared exactly, one by one."""
    cut = {tuple(v[c] for c in columns) for v in vectors}
    return sorted(
        v
        for v in cut
        if not any(w != v and all(a <= b for a, b in zip(w, v, strict=True)) for w in cut)
    )


def same(front, truth):
    return len(front) == len(truth) and np.allclose(
        front.values, np.array(truth, dtype=float), rtol=1e-12, atol=1e-12
    )


TRUTH: dict[int, list] = {}


def truth_of(seed):
    if seed not in TRUTH:
        TRUTH[seed] = brute_force(tiny(seed))
    return TRUTH[seed]


def answer(problem, names=NAMES, *, seconds=None, start=None, **options):
    # where nothing limits the time it stands still: a search asks for more when it takes long; and
    # no question has so little time that a busy machine does not answer it
    clock = {} if seconds else {"clock": Clock(Hand())}
    task = Task(problem, problem.select(names), Budget(seconds=seconds or 1e6, **clock), 0, start)
    return run_method("epsilon-constraint", task, options)


# -- the front is the true one ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "solver"),
    [(seed, ("highs", "scip")[seed % 2]) for seed in range(10) if seed not in SLOW],
)
def test_equals_brute_force(seed, solver):
    problem, truth = tiny(seed), nondominated(truth_of(seed))
    front = answer(problem, solver=solver)
    assert same(front, truth)
    assert {p.status for p in front.points} == {"optimal"}
    assert [p.gap for p in front.points] == [None] * len(front)
    assert front.bounds == tuple(p.values for p in front.points)
    assert front.runs[0].completed
    assert all(problem.evaluate(p.plan).values == p.values for p in front.points)
    assert front.runs[0].solver_calls <= 2.5 * len(front) + 9


@pytest.mark.parametrize("names", [*itertools.permutations(NAMES, 2), *((name,) for name in NAMES)])
def test_subsets_of_objectives(names):
    front = answer(tiny(3), names)
    truth = nondominated(truth_of(3), [NAMES.index(name) for name in names])
    assert same(front, truth)
    assert {p.status for p in front.points} == {"optimal"}
    assert front.bounds == tuple(p.values for p in front.points)


def test_any_objective_may_be_the_main_one():
    for name in NAMES:
        front = answer(tiny(3), main=name)
        assert same(front, nondominated(truth_of(3)))
        assert front.runs[0].parameters["main"] == name


def test_same_twice():
    first, second = (answer(tiny(2)) for _ in range(2))
    assert first.points == second.points
    assert first.bounds == second.bounds
    assert first.runs[0].solver_calls == second.runs[0].solver_calls


def test_a_start_front_changes_nothing_but_effort():
    whole = answer(tiny(2))
    again = answer(tiny(2), start=whole)
    assert again.values.tolist() == whole.values.tolist()
    assert again.runs[0].solver_calls <= whole.runs[0].solver_calls


# -- limits of the instance ------------------------------------------------------------------------


def changed(problem, **offer):
    document = problem.to_document()
    for what in document["offers"]:
        what |= offer
        for key in [k for k, v in what.items() if v is None and k != "max_instances"]:
            del what[key]
    return Temporal.from_document(document)


def test_max_instances_and_absent_prices_bind():
    free = changed(tiny(14), max_instances=None)
    one = changed(free, max_instances=1)
    dear = changed(
        free,
        spot_usd_per_hour=None,
        spot_interruption=None,
        reserved_usd_per_hour=None,
        on_demand_usd_per_hour=0.4,
    )
    truths = [nondominated(brute_force(p)) for p in (free, one, dear)]
    assert truths[0] != truths[1] != truths[2]
    for problem, truth in zip((free, one, dear), truths, strict=True):
        assert same(answer(problem), truth)


def test_infeasible_instances_still_get_their_least_violating_plan():
    nowhere = changed(tiny(14), cpu_cores=0.5)
    too_few = changed(tiny(0), max_instances=1, cpu_cores=3, memory_gib=4.0)
    document = too_few.to_document() | {"horizon_slots": 3}
    for request in document["requests"]:
        request |= {"duration_slots": 3, "cpu_cores": 2}
    too_few = Temporal.from_document(document)
    assert not too_few.infeasibility()
    for problem in (nowhere, too_few):
        front = answer(problem)
        assert len(front) == 0
        assert front.bounds == ()
        assert front.reasons
    assert front.rejected is not None
    assert front.rejected.violations


def test_fewer_copies_prove_nothing():
    whole, one = answer(tiny(14)), answer(tiny(14), copies=1)
    assert one.bounds == ()
    assert {p.status for p in one.points} == {"heuristic"}
    assert one.hypervolume([100, 100, 1]) <= whole.hypervolume([100, 100, 1])
    enough = answer(tiny(14), copies=4)
    assert enough.values.tolist() == whole.values.tolist()
    assert enough.bounds == whole.bounds


# -- ends that come early --------------------------------------------------------------------------


def bounded(front, truth):
    """Whether every true point is weakly dominated by a bound, up to the last bit."""
    return all(
        any(
            all(b <= float(v) * (1 + 1e-12) for b, v in zip(bound, point, strict=True))
            for bound in front.bounds
        )
        for point in truth
    )


@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.0])
def test_partial_front_within_the_time(seconds):
    problem, truth = tiny(0), nondominated(truth_of(0))
    with within(seconds, 1.5):
        front = answer(problem, seconds=seconds)
    assert len(front) > 0
    assert not front.runs[0].completed
    assert bounded(front, truth)
    for point in front.points:
        assert problem.evaluate(point.plan).feasible
        exact = any(np.allclose(point.values, np.array(t, dtype=float), rtol=1e-12) for t in truth)
        assert exact or point.status != "optimal"


def test_a_limit_too_short_to_load_the_solver(monkeypatch):
    """Quick plans, and the reason, where the modelling library is not imported yet."""
    problem = tiny(0)
    monkeypatch.delitem(sys.modules, "pyomo.environ")
    front = run(Task(problem, problem.objectives, Budget(seconds=1.0), 0))
    assert len(front) > 0 and not front.runs[0].completed
    assert "too short to load" in front.runs[0].parameters["note"]
    assert "pyomo.environ" not in sys.modules


def test_cancelled_front():
    budget = Budget(seconds=1000)
    threading.Timer(0.7, budget.cancel).start()
    problem = tiny(SLOW[0])
    with within(0.7, 1.8):
        front = run(Task(problem, problem.objectives, budget, 0))
    assert len(front) > 0
    assert bounded(front, nondominated(truth_of(SLOW[0])))


def test_a_model_that_is_too_large_is_not_built():
    problem = Temporal.generate(seed=1, requests=50)
    front = answer(problem, seconds=1.0)
    assert len(front) > 0
    assert "coefficients" in front.runs[0].parameters["note"]
    assert not front.runs[0].completed


# -- solvers that fail -----------------------------------------------------------------------------


class Unreliable(engines.HighsEngine):
    """A HiGHS that ends every third first attempt with an error."""

    asked = 0

    def reply(self):
        if self._settings.presolve:
            Unreliable.asked += 1
            if Unreliable.asked % 3 == 0:
                return Reply("error", message="Solve error")
        return super().reply()


def test_errors_of_the_solver_are_retried(monkeypatch):
    monkeypatch.setattr(Unreliable, "asked", 0)
    monkeypatch.setitem(solvers.ENGINES, "highs", Unreliable)
    front = answer(tiny(3))
    assert same(front, nondominated(truth_of(3)))
    assert Unreliable.asked > 3


def test_a_solver_that_always_fails_leaves_the_greedy_front(monkeypatch):
    def broken(*_):
        raise RuntimeError("no licence")

    monkeypatch.setitem(solvers.ENGINES, "highs", broken)
    front = answer(tiny(3))
    assert len(front) > 0
    assert {p.status for p in front.points} == {"heuristic"}
    assert bounded(front, nondominated(truth_of(3)))
    assert not front.runs[0].completed


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "higs"}, "legal: highs, scip"),
        ({"grid": 1}, "at least 2"),
        ({"main": "cost"}, "did you mean 'cost_usd'"),
        ({"copys": 2}, "did you mean 'copies'"),
        ({"copies": 0}, "at least 1"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(UsageError, match=message):
        answer(tiny(3), **options)


def test_grid():
    front = answer(tiny(14), grid=3)
    truth = nondominated(truth_of(14))
    assert bounded(front, truth)
    assert front.runs[0].solver_calls <= 9 + 9
    assert all(
        any(np.allclose(p.values, np.array(t, dtype=float), rtol=1e-12) for t in truth)
        or p.status == "bounded"
        for p in front.points
    )


def test_objectives_of_very_fine_steps_are_real_valued():
    problem = tiny(3)
    document = problem.to_document() | {"slot_hours": 0.33333333333}
    front = answer(Temporal.from_document(document))
    truth = nondominated(brute_force(Temporal.from_document(document)))
    assert len(front) == len(truth)
    assert np.allclose(front.values, np.array(truth, dtype=float), rtol=1e-9)
    assert all(p.status == "optimal" or p.gap <= 1e-5 for p in front.points)
    assert bounded(front, truth)


def test_limits_in_units_are_rounded_down():
    """But for what rounding took from a whole number of steps; constants are no part of units."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 1))
    model.a, model.b = pyo.Expression(expr=model.x[0] / 2 + 7), pyo.Expression(expr=model.y)
    compiled = CompiledModel(model, [Objective("a", "", 0.5), Objective("b", "", None)])
    for a, units in ((8.3, 2), (8.5 - 1e-12, 3), (8.4999, 2), (np.inf, np.inf)):
        limits = compiled.limits_in_units(np.array([a, 0.25])) * [1.0, compiled.units[1]]
        assert limits.tolist() == [units, 0.25]


# -- what a problem may add ------------------------------------------------------------------------


def test_cuts_exclude_plans():
    problem = tiny(3)
    asked = []

    def cuts(model, problem, plan):
        asked.append(plan)
        if all(i["pricing"] != "spot" for i in plan["instances"]):
            return ()
        return (Cut(pyo.ComponentMap((variable, 1.0) for variable in model.spot.values()), 0.0),)

    model = temporal.build(problem)
    model.placeopt_origin = replace(model.placeopt_origin, assign=None, cuts=cuts)
    front = solve_model(Task(problem, budget=Budget(seconds=60)), model)
    without = changed(problem, spot_usd_per_hour=None, spot_interruption=None)
    assert same(front, nondominated(brute_force(without)))
    assert {p.status for p in front.points} == {"optimal"}
    assert len(asked) == front.runs[0].solver_calls + 1
