"""The paper's model.

Its expressions are the referee's values, its components are those of its page, its options change
no front.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from hands import within

from placeopt import models
from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.core.task import Task
from placeopt.exact.epsilon_constraint import run
from placeopt.exact.goals import minimise_only
from placeopt.temporal.model import enough_copies
from placeopt.temporal.problem import Temporal

PAGE = Path(__file__).parents[2] / "models" / "temporal" / "README.md"
NAMES = ("latency_ms", "cost_usd", "interruption")


def small(seed: int = 0, **offer) -> Temporal:
    """Two requests of two replicas, two places, four slots."""
    rng = np.random.default_rng(seed)
    document = {
        "problem": "temporal",
        "name": f"small{seed}",
        "horizon_slots": 4,
        "latency_ms": {"a": {"a": 1.5, "b": 20.0}, "b": {"a": 18.25, "b": 2.0}},
        "offers": [
            {
                "location": location,
                "size": "m",
                "cpu_cores": 4,
                "memory_gib": 8,
                "on_demand_usd_per_hour": int(rng.integers(30, 50)) / 100,
                "reserved_usd_per_hour": int(rng.integers(15, 30)) / 100,
                "spot_usd_per_hour": int(rng.integers(5, 25)) / 100,
                "spot_interruption": 0.05,
            }
            | offer
            for location in "ab"
        ],
        "requests": [
            {
                "name": name,
                "cpu_cores": 1.5,
                "memory_gib": int(rng.integers(1, 5)),
                "duration_slots": d,
                "replicas": 2,
                "origin": origin,
            }
            for name, d, origin in (("x", 1, "a"), ("y", 2, "b"))
        ],
    }
    return Temporal.from_document(document)


def expressions(model):
    return [pyo.value(getattr(model, name)) for name in NAMES]


def solve(model, name=None):
    if name is not None:
        minimise_only(model, name)
    return pyo.SolverFactory("appsi_highs").solve(model, load_solutions=True)


def random_plan(problem, rng):
    """A feasible plan: random starts, every replica with whatever it fits beside."""
    starts = {
        r.name: int(rng.integers(0, problem.horizon_slots - r.duration_slots + 1))
        for r in problem.requests
    }
    instances = []
    for request in problem.requests:
        for replica in range(request.replicas):
            choices = [*instances, None]
            host = choices[int(rng.integers(len(choices)))]
            if host is None:
                offer = problem.offers[int(rng.integers(len(problem.offers)))]
                host = {
                    "location": offer.location,
                    "size": offer.size,
                    "pricing": str(rng.choice(["on-demand", "reserved", "spot"])),
                    "replicas": [],
                }
                instances.append(host)
            host["replicas"].append([request.name, replica])
    return {"starts": starts, "instances": instances}


def test_expressions_of_any_plan_are_the_referees_values():
    rng = np.random.default_rng(0)
    checked = 0
    problem = small(1)
    model = models.temporal.build(problem, copies=4)
    for _ in range(60):
        plan = random_plan(problem, rng)
        verdict = problem.evaluate(plan)
        if not verdict.feasible:
            continue
        assert models.temporal.assign(model, plan)
        assert expressions(model) == pytest.approx(verdict.values, rel=1e-12)
        broken = [
            c.name
            for c in model.component_data_objects(pyo.Constraint, active=True)
            if not satisfied(c)
        ]
        assert broken == []
        assert problem.evaluate(models.temporal.extract(model)).values == verdict.values
        checked += 1
    assert checked >= 20


def satisfied(constraint, slack=1e-9):
    body = pyo.value(constraint.body)
    lower, upper = constraint.lb, constraint.ub
    return (lower is None or body >= lower - slack) and (upper is None or body <= upper + slack)


def test_expressions_of_solutions_are_the_referees_values():
    """Minimise each in turn within the least values of those before: then nothing is slack."""
    problem = small(2)
    model = models.temporal.build(problem)
    for order in (NAMES, NAMES[::-1]):
        for name in NAMES:
            model.epsilon[name] = np.inf
        for name in order:
            solve(model, name)
            least = pyo.value(getattr(model, name))
            claimed, verdict = expressions(model), problem.evaluate(models.temporal.extract(model))
            assert verdict.feasible
            assert verdict.values[NAMES.index(name)] == pytest.approx(least)
            assert all(v <= c + 1e-6 for v, c in zip(verdict.values, claimed, strict=True))
            model.epsilon[name] = least + 1e-7
        assert verdict.values == pytest.approx(claimed, abs=1e-6)


def front(problem, **options):
    return run(Task(problem, problem.objectives, Budget(seconds=100), 0), **options)


def test_epsilon_bounds_are_infinite_until_set():
    problem = small(4)
    model = models.temporal.build(problem)
    solve(model, "cost_usd")
    cheapest = expressions(model)[1]
    model.epsilon["interruption"] = 0.0
    solve(model)
    reliable = problem.evaluate(models.temporal.extract(model)).values
    assert reliable[2] == 0
    assert reliable[1] > cheapest
    model.epsilon["interruption"] = np.inf
    solve(model)
    assert expressions(model)[1] == pytest.approx(cheapest)


def test_enough_copies_is_never_too_few():
    """Merging pairs of machines that fit into one leaves at most so many."""
    rng = np.random.default_rng(5)
    for seed in range(40):
        document = small(seed).to_document()
        for request in document["requests"]:
            request |= {
                "replicas": int(rng.integers(1, 5)),
                "cpu_cores": float(rng.integers(1, 9) / 2),
                "memory_gib": float(rng.integers(1, 17) / 2),
            }
        problem = Temporal.from_document(document)
        able = [k for k in range(2) if problem.arrays.usable[k, 0]]
        items = [
            problem.arrays.demands[k] for k in able for _ in range(problem.requests[k].replicas)
        ]
        rng.shuffle(items)
        machines = []
        for item in items:
            machines.append(np.array(item))
            merged = True
            while merged:
                merged = False
                for a in range(len(machines)):
                    for b in range(a):
                        if (machines[a] + machines[b] <= problem.arrays.capacities[0]).all():
                            machines[b] = machines[b] + machines.pop(a)
                            merged = True
                            break
                    if merged:
                        break
        assert len(machines) <= enough_copies(problem, 0) <= len(items)


def test_absent_prices_have_no_variables():
    model = models.temporal.build(small(1, spot_usd_per_hour=None, on_demand_usd_per_hour=None))
    assert len(model.spot) == len(model.on_demand) == 0
    assert {machine.pricing for machine in model.MACHINES} == {"reserved"}
    assert pyo.value(model.interruption) == 0


def test_max_instances_has_a_row():
    model = models.temporal.build(small(1, max_instances=1))
    assert list(model.at_most_leased) == [0, 1]
    solve(model, "cost_usd")
    plan = models.temporal.extract(model)
    assert len(plan["instances"]) <= 2
    assert small(1, max_instances=1).evaluate(plan).feasible
    assert len(models.temporal.build(small(1, max_instances=99)).at_most_leased) == 0


def test_too_many_machines_cannot_be_assigned():
    problem = small(1)
    model = models.temporal.build(problem, copies=1)
    instances = [
        {"location": "a", "size": "m", "pricing": "spot", "replicas": [[name, r]]}
        for name in "xy"
        for r in (0, 1)
    ]
    assert not models.temporal.assign(model, {"starts": {"x": 0, "y": 0}, "instances": instances})


def test_page_and_model_name_the_same_components():
    text = PAGE.read_text()
    documented = {
        re.match(r"\w+", name).group()
        for row in text.splitlines()
        if row.startswith("|")
        for name in re.findall(r"`([a-z_]+[^`]*)`", row)
    }
    kinds = (pyo.Var, pyo.Constraint, pyo.Expression, pyo.Param, pyo.Objective)
    model = models.temporal.build(small(1, max_instances=1))
    actual = {component.local_name for component in model.component_objects(kinds)}
    assert actual <= documented
    assert documented - actual <= {"max_instances"}


def test_refused():
    with pytest.raises(InfeasibleInstanceError, match="fits no offer"):
        models.temporal.build(small(1, cpu_cores=1))
    with pytest.raises(UsageError, match="at least 1"):
        models.temporal.build(small(1), copies=0)
    with pytest.raises(AttributeError):
        _ = models.nowhere


def test_estimated_size():
    for seed in range(3):
        problem = small(seed)
        model = models.temporal.build(problem)
        counted = sum(c.body.nargs() for c in model.component_data_objects(pyo.Constraint))
        assert 0.3 * counted < models.temporal.size(problem) < 3 * counted


def test_a_model_that_is_too_large_is_known_before_the_time_is_over():
    """The machines of 1,000 requests, one by one, took ten times the limit."""
    problem = Temporal.generate(1, requests=1000)
    with within(0, 3):
        assert models.temporal.size(problem) > 10**11


def test_importing_models_loads_no_pyomo():
    code = (
        "import sys, placeopt.models; assert 'pyomo' not in sys.modules; "
        "placeopt.models.temporal; assert 'pyomo' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
