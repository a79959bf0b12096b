"""Public functions and adapters with wrong types, shapes and numbers: refused by one clear line.

`python tests/support/door_calls.py` makes all calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries

import placeopt
from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Objective
from placeopt.core.public import public
from placeopt.environments import make_env

CALLS = Path(__file__).resolve().parents[1] / "support" / "door_calls.py"


def test_random_calls_end_in_an_answer_or_one_line() -> None:
    """In a process of their own, so that a crash is seen."""
    command = [sys.executable, str(CALLS), "--random", str(tries(4, 12)), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (said[-1:], done.stderr[-2000:])
    assert [line for line in said if line[0] == "wrong"] == []
    counts = [line[2] for line in said if line[0] == "ended"]
    assert len(counts) > 100 and sum(one["refused"] for one in counts) > tries(250, 800)


def test_an_argument_of_another_type_is_named() -> None:
    """Before anything else is lost; what is broken inside stays as it is."""

    def ask_by_a_number() -> placeopt.Front:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(domain=pyo.Binary)
        model.cost = pyo.Objective(expr=model.x)
        return placeopt.ask.supported(model, budget=3)  # type: ignore[arg-type]

    for call, message in (
        (lambda: placeopt.solve("toy", evaluations="100"), "evaluations is '100'; give a whole"),
        (lambda: placeopt.solve("toy", seconds="1"), "the time limit is '1' s; give a positive"),
        (lambda: placeopt.solve("toy", objectives="cost_usd"), "objectives is 'cost_usd'; give a"),
        (lambda: placeopt.solve("toy", start=3), r"start is 3; solve\(\) wants Front \| None"),
        (lambda: placeopt.merge(["a"]), "'a' is no front; give a list of fronts"),
        (lambda: placeopt.load(1), "1 is no path; give a text or a pathlib.Path"),
        (lambda: placeopt.load("toy\0"), "is no path"),
        (lambda: placeopt.evaluate("toy", {}), r"problem is 'toy'; give an instance"),
        (lambda: placeopt.sweep(3), "3 is no path"),
        (ask_by_a_number, r"budget is 3; supported\(\) wants Budget \| None"),
    ):
        with pytest.raises(placeopt.PlaceoptError, match=message):
            call()

    @public
    def broken(count: int) -> float:
        return count / 0

    with pytest.raises(ZeroDivisionError):
        broken(1)
    with pytest.raises(UsageError, match=r"count is 'a'; broken\(\) wants int"):
        broken("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        broken()  # type: ignore[call-arg]


def test_what_was_meant_is_suggested() -> None:
    """Of instances, problems, methods, parameters, objectives and what every run takes."""
    for call, message in (
        (lambda: placeopt.load("toyy"), "did you mean 'toy'?"),
        (lambda: placeopt.solve("toy", "moed"), "did you mean 'moead'?"),
        (
            lambda: placeopt.solve("toy", "moead", evals=3),
            "did you mean 'evaluations', which every",
        ),
        (lambda: placeopt.solve("toy", "moead", sead=3), "did you mean 'seed', which every"),
        (lambda: placeopt.solve("toy", "nsga2", populaton=3), "did you mean 'population'?"),
        (lambda: placeopt.solve("toy", objectives=["cost"]), "did you mean 'cost_usd'?"),
        (lambda: make_env("edge-clod"), "did you mean 'edge-cloud'?"),
        (
            lambda: make_env("edge-cloud", aplications=3),
            "did you mean 'applications'?",
        ),
        (lambda: placeopt.enumerate(pyo.ConcreteModel(), sekonds=3), "did you mean 'seconds'?"),
        (lambda: placeopt.sweep({}, job=3), "sweep() has no argument 'job'; did you mean 'jobs'?"),
        (lambda: placeopt.Budget(evalutions=3), "did you mean 'evaluations'?"),
        (lambda: placeopt.load("toy").generate(request=3), "did you mean 'requests'?"),
        (lambda: placeopt.solve("toy", "greedy").pick(budget={"cost": 1}), "mean 'cost_usd'?"),
    ):
        with pytest.raises(placeopt.PlaceoptError) as caught:
            call()
        assert message in str(caught.value)


def test_a_front_is_an_array_and_a_key() -> None:
    """Its values, for whoever takes arrays; equal fronts have equal hashes."""
    front = placeopt.solve("toy", "greedy")
    np.testing.assert_array_equal(np.asarray(front), front.values)
    np.testing.assert_array_equal(np.vstack([front, front]), np.tile(front.values, (2, 1)))
    assert np.asarray(front, dtype=np.float32).dtype == np.float32
    again = placeopt.Front.from_document(front.to_document())
    assert again == front and hash(again) == hash(front) and {front: 1}[again] == 1
    assert hash(front[0]) == hash(again[0]) and len({*front}) == len(front)
    with pytest.raises(UsageError, match="objectives is empty"):
        placeopt.Front(front.instance, ())
    with pytest.raises(UsageError, match=r"points is \[3\]; __init__\(\) wants"):
        placeopt.Front(front.instance, (Objective("cost_usd", ""),), [3])  # type: ignore[arg-type]
