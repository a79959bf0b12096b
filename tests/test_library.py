"""The public set of instances: made again as they were, and fronts that the referee confirms."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import placeopt
from placeopt.registry import problem_class

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
FOLDER = ROOT / "benchmarks" / "library"
KNOWN = json.loads((FOLDER / "instances.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def library() -> dict[str, tuple[str, int, dict[str, int]]]:
    """Name -> problem, seed and sizes."""
    source = (ROOT / "benchmarks" / "library.py").read_text(encoding="utf-8")
    clocked = "import cpu_clock  # noqa: F401  # before placeopt\n"
    assert clocked in source
    code: dict[str, object] = {"__file__": str(ROOT / "benchmarks" / "library.py")}
    exec(compile(source.replace(clocked, ""), "library.py", "exec"), code)
    return {name: (kind, seed, given) for name, kind, _, seed, given in code["names"]()}  # type: ignore[operator]


def test_there_are_forty(library: dict[str, tuple[str, int, dict[str, int]]]) -> None:
    assert len(library) == 40 and set(KNOWN) <= set(library)
    assert len(set(KNOWN.values())) == len(KNOWN), "two names for one instance"


@pytest.mark.parametrize("name", KNOWN)
def test_the_best_known_front_is_of_the_instance(
    library: dict[str, tuple[str, int, dict[str, int]]], name: str
) -> None:
    """And each of its plans is worth what it says, which no bound contradicts."""
    kind, seed, given = library[name]
    problem = problem_class(kind).generate(seed, **given)
    front = placeopt.Front.read(FOLDER / f"{name}.front.json")
    assert problem.instance_name.sha256 == KNOWN[name] == front.instance.sha256
    for point in front.points[::5]:
        verdict = problem.evaluate(point.plan)
        assert verdict.feasible and verdict.values == point.values
    for values in front.values:
        assert not front.bounds or (np.array(front.bounds) <= values).all(axis=1).any()
