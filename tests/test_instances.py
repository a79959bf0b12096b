"""The bundled instances: written by their script, valid, and what their fronts claim is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from placeopt import registry
from placeopt.core.files.documents import read_json
from placeopt.core.fronts.front import Front
from placeopt.plot import find_instance
from placeopt.temporal.generator import CORRECTIONS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = {path: read_json(path) for path in sorted((ROOT / "instances").rglob("*.json"))}
FRONTS = [path for path, document in DOCUMENTS.items() if "bounds" in document]
INSTANCES = [path for path, document in DOCUMENTS.items() if "problem" in document]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def script(file: str) -> ModuleType:
    path = ROOT / "benchmarks" / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_writes_them_byte_for_byte(tmp_path: Path) -> None:
    """Nobody edits them by hand."""
    made = script("make_instances.py")
    made.main(tmp_path)
    for path in made.bundled():
        assert (tmp_path / path).read_bytes() == (ROOT / "instances" / path).read_bytes(), path


def test_a_script_writes_the_cluster_and_what_is_imported_from_it(tmp_path: Path) -> None:
    """Its dump, its prices, the instance and the names of the cluster."""
    script("make_shop.py").main(tmp_path)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(map(str, written)) == [
        "clusters/shop/cluster.json",
        "clusters/shop/prices.csv",
        "rolling-update/shop.json",
        "rolling-update/shop.origin.json",
    ]
    for path in written:
        assert (tmp_path / path).read_bytes() == (ROOT / "instances" / path).read_bytes(), path


@pytest.mark.parametrize("path", INSTANCES, ids=name)
def test_every_instance_is_valid_and_feasible(path: Path) -> None:
    """It lies in its problem's folder, under its own name, and nothing rules out a plan."""
    problem = registry.read(path)
    assert (problem.problem, problem.name) == (path.parent.name, path.stem)
    assert problem.infeasibility() == ()


@pytest.mark.parametrize("path", INSTANCES, ids=name)
def test_every_instance_keeps_to_the_exported_schema(path: Path) -> None:
    """The JSON Schema that other programs use accepts it."""
    jsonschema = pytest.importorskip("jsonschema")
    kind = registry.problem_class(DOCUMENTS[path]["problem"])
    jsonschema.validate(DOCUMENTS[path], kind.model_json_schema(by_alias=True))


@pytest.mark.parametrize("path", FRONTS, ids=name)
def test_every_front_is_what_it_claims(path: Path) -> None:
    """The referee finds every plan feasible and confirms every value."""
    front = Front.read(path)
    problem = find_instance(front, path)
    assert problem is not None, "its instance lies beside it"
    columns = problem.columns(front.objectives)
    for point in front.points:
        verdict = problem.evaluate(point.plan)
        assert verdict.feasible
        assert tuple(verdict.values[c] for c in columns) == point.values


def test_the_published_prices_and_their_corrected_twin() -> None:
    """The published instance warns of its two impossible prices; the twin differs in these only."""
    folder = ROOT / "instances" / "temporal"
    published, corrected = (
        registry.read(folder / "aws-50.json"),
        registry.read(folder / "aws-50-corrected.json"),
    )
    assert {w.split(":")[0] for w in published.warnings()} == {
        " ".join(offer) for offer in CORRECTIONS
    }
    assert corrected.warnings() == ()
    one, two = DOCUMENTS[folder / "aws-50.json"], DOCUMENTS[folder / "aws-50-corrected.json"]
    assert one["requests"] == two["requests"] and one["latency_ms"] == two["latency_ms"]
    assert sum(a != b for a, b in zip(one["offers"], two["offers"], strict=True)) == 2
