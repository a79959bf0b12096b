"""A problem that declares its instance alone: pages and commands serve it, or say why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import pytest

pytest.importorskip("matplotlib")

from placeopt import cli, registry, report
from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Evaluation, Objective, Point, Run
from placeopt.core.problem import Problem
from placeopt.core.spec import ProblemSpec
from placeopt.kubernetes.export import export
from placeopt.plot import find_instance, plot_front, plot_plan

SPEC = ProblemSpec(kind="stub", instance="stub_problem:Stub", generator="stub_problem:generate")


class Stub(Problem):
    """Split ten units in two; both goals want the other's."""

    spec: ClassVar[ProblemSpec] = SPEC
    problem: Literal["stub"] = "stub"

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return Objective("here", "units"), Objective("there", "units")

    def evaluate(self, plan: Any) -> Evaluation:
        return Evaluation((float(plan["here"]), 10.0 - plan["here"]), ())


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """The stub, known to the registry as if a distribution had an entry point for it."""
    module = ModuleType("stub_problem")
    vars(module).update(Stub=Stub, generate=lambda seed: {"problem": "stub", "name": "a stub"})
    monkeypatch.setitem(sys.modules, "stub_problem", module)
    known = registry.specs() | {"stub": SPEC}
    monkeypatch.setattr(registry, "specs", lambda: known)
    yield Stub.generate()


def front_of(problem: Stub) -> Front:
    plans: list[dict[str, Any]] = [{"here": here} for here in (1, 4, 9)]
    points = tuple(Point(problem.evaluate(plan).values, plan, "heuristic") for plan in plans)
    return Front(problem.instance_name, problem.objectives, points, (), (Run("own", 1, 0.1, 3),))


def test_pages_are_made_without_a_drawing_and_a_summary(problem: Stub, tmp_path: Path) -> None:
    front = front_of(problem)
    text = report.html(front, problem=problem)
    assert "Confirmed" in text and "Not confirmed" not in text and 'class="drawing"' not in text
    for name in ("f.html", "f.png"):
        plot_front(front, tmp_path / name, problem=problem)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(UnsupportedError, match="plans of stub have no drawing; draw the front"):
        plot_plan(front, 0, tmp_path / "p.png", problem=problem)
    with pytest.raises(UnsupportedError, match="are not Kubernetes objects"):
        export(problem, {"here": 1})
    problem.write(tmp_path / "stub.json")
    assert find_instance(front, tmp_path / "front.json") == problem


def test_a_report_of_a_kind_that_is_not_installed(problem: Stub) -> None:
    """A front file alone is enough."""
    front = front_of(problem)
    registry.specs().pop("stub")
    assert "The instance was not at hand" in report.html(front)


def test_commands_serve_it(
    problem: Stub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    instance, front = str(tmp_path / "stub.json"), str(tmp_path / "front.json")
    problem.write(instance)
    front_of(problem).write(front)

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert not end.value.code
        return capfd.readouterr().out

    verdict = json.loads(run("check", instance, "--json"))
    assert verdict["valid"] and verdict["feasible"] is None
    (clue,) = verdict["clues"]
    assert clue.startswith("no search was made: no method serves stub; its spec has to declare")
    assert "not known" in run("check", instance)
    assert json.loads(run("pick", front, "--budget", "here=2"))["plan"] == {"here": 1}
    assert json.loads(run("compare", front, "--json"))["fronts"][0]["points"] == 3
    assert len(json.loads(run("evaluate", instance, front))["points"]) == 3
    run("report", front, "-o", str(tmp_path / "r.html"))
    run("plot", front, "-o", str(tmp_path / "f.html"))
    assert "a stub" in (tmp_path / "r.html").read_text(encoding="utf-8")
