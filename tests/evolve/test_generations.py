"""A budget makes generations; a front that is only what a search began with says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries
from hands import Hand
from typer.testing import CliRunner

import placeopt
from placeopt import registry
from placeopt.cli import app
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import shares
from placeopt.core.fronts.words import only_started
from placeopt.core.runs.compiling import Clock
from placeopt.evolve.nsga import LEAST_CHILDREN, MOST_CHILDREN
from placeopt.evolve.search import VectorSearch

SEARCHES = ["nsga2", "nsga3", "moead", "mspso"]
if registry.method("jmetal-nsga2").installed:
    SEARCHES += ["jmetal-nsga2", "jmetal-nsga3", "jmetal-smpso"]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors each population of a run has."""
    found: list[int] = []
    evaluate = VectorSearch.evaluate

    def counted(search: VectorSearch, X: np.ndarray) -> Any:
        found.append(len(X))
        return evaluate(search, X)

    monkeypatch.setattr(VectorSearch, "evaluate", counted)
    return found


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("instance", ["toy", "corner-5"][: tries(1, 2)])
def test_two_thousand_evaluations_are_generations(
    method: str, instance: str, sizes: list[int]
) -> None:
    front = placeopt.solve(instance, method, evaluations=2000)
    assert len(sizes) >= 9
    assert not only_started(front)


@pytest.mark.parametrize(
    ("evaluations", "least", "most"),
    [
        (400, LEAST_CHILDREN, LEAST_CHILDREN),
        (2000, 100, 100),
        (10_000, 500, 500),
        (50_000, MOST_CHILDREN, MOST_CHILDREN),
    ],
)
@pytest.mark.parametrize("method", ["nsga2", "nsga3"])
def test_children_by_budget(
    method: str, evaluations: int, least: int, most: int, sizes: list[int]
) -> None:
    placeopt.solve("toy", method, evaluations=evaluations)
    assert all(least <= size <= most for size in sizes[1:-1])
    sizes.clear()
    placeopt.solve("toy", method, evaluations=evaluations, offspring=150)
    assert set(sizes[1:-1]) == {150}


@pytest.mark.parametrize("method", ["nsga2", "nsga3"])
def test_a_time_limit_makes_generations_by_the_pace(method: str, sizes: list[int]) -> None:
    """A clock by which a vector takes a hundredth of the limit that 2,000 children would need."""
    hand = Hand()
    evaluate = placeopt.load("toy").spec.load("encoder").evaluate

    def slow(encoder: Any, X: np.ndarray) -> Any:
        hand.passes(0.001 * len(X))
        return evaluate(encoder, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placeopt.load("toy").spec.load("encoder"), "evaluate", slow)
        placeopt.solve("toy", method, budget=Budget(seconds=2, clock=Clock(hand)))
    assert len(sizes) > 10


@pytest.mark.thorough
@pytest.mark.parametrize("instance", ["corner-5", "toy"])
def test_as_good_as_with_a_hundred_children(instance: str) -> None:
    ratios = []
    for seed in (1, 2, 3):
        fronts = [
            placeopt.solve(instance, "nsga2", evaluations=2000, seed=seed, **more)
            for more in ({}, {"offspring": 100})
        ]
        own, other = shares(fronts)
        ratios.append(own / other)
    assert np.mean(ratios) >= 0.985


@pytest.mark.parametrize("method", SEARCHES)
def test_a_front_of_the_first_vectors_says_so(method: str, tmp_path: Path) -> None:
    """On the terminal, in the file, and in a report; one more generation says it no more."""
    first = placeopt.solve("corner-5", method, evaluations=20)
    assert first.runs[0].parameters["generations"] == 0
    assert only_started(first)[0].startswith(f"{method} ended before its first generation")
    later = placeopt.solve("corner-5", method, evaluations=1000)
    assert "generations" not in later.runs[0].parameters
    file = tmp_path / "f.json"
    command = ["solve", "corner-5", "--method", method, "--evaluations", "20", "-o", str(file)]
    told = CliRunner().invoke(app, command)
    assert "ended before its first generation" in " ".join(told.stderr.split())
    assert json.loads(file.read_text())["runs"][0]["parameters"]["generations"] == 0
    CliRunner().invoke(app, ["report", str(file), "-o", str(tmp_path / "page.html")])
    assert "ended before its first generation" in (tmp_path / "page.html").read_text()


def test_methods_made_of_methods_name_the_one() -> None:
    front = placeopt.solve("corner-5", "ensemble", methods="nsga2,moead", evaluations=40)
    assert [text.split()[0] for text in only_started(front)] == ["moead", "nsga2"]


def test_two_searches_differ_where_there_are_generations() -> None:
    """With 200 evaluations they print the same front, and say why."""
    few = [placeopt.solve("corner-5", m, evaluations=200) for m in ("moead", "nsga2")]
    assert all(only_started(front) for front in few)
    many = [placeopt.solve("corner-5", m, evaluations=2000) for m in ("moead", "nsga2")]
    assert many[0].points != many[1].points and not any(map(only_started, many))
