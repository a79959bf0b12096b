"""Public functions and adapters with wrong types, shapes and numbers: refused by one clear line.

`python tests/support/door_calls.py` makes all calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from effort import tries

import placeopt
from placeopt.core.errors import UsageError
from placeopt.environments import make_env

CALLS = Path(__file__).resolve().parents[1] / "support" / "door_calls.py"


def test_random_calls_end_in_an_answer_or_one_line() -> None:
    """In a process of their own, so that a crash is seen."""
    command = [sys.executable, str(CALLS), "--random", str(tries(2, 12)), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (said[-1:], done.stderr[-2000:])
    assert [line for line in said if line[0] == "wrong"] == []
    counts = [line[2] for line in said if line[0] == "ended"]
    assert len(counts) > 100 and sum(one["refused"] for one in counts) > tries(110, 800)


def test_a_value_that_is_not_legal_is_named() -> None:
    """Where it is a value, a number or a file; of another type it is Python that says so."""
    for call, message in (
        (lambda: placeopt.solve("toy", evaluations="100"), "evaluations is '100'; give a whole"),
        (lambda: placeopt.solve("toy", seconds="1"), "the time limit is '1' s; give a positive"),
        (lambda: placeopt.solve("toy", objectives="cost_usd"), "objectives is 'cost_usd'; give a"),
        (lambda: placeopt.merge(["a"]), "'a' is no front; give a list of fronts"),
        (lambda: placeopt.load(1), "1 is no path; give a text or a pathlib.Path"),
        (lambda: placeopt.load("toy\0"), "is no path"),
        (lambda: placeopt.evaluate("toy", {}), r"problem is 'toy'; give an instance"),
        (lambda: placeopt.sweep(3), "3 is no path"),
    ):
        with pytest.raises(placeopt.PlaceoptError, match=message):
            call()


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
