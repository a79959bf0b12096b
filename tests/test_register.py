"""A problem that a program registers is served as installed ones are, by workers too."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyomo.environ as pyo
import pytest
from effort import tries

import placeopt
from placeopt import registry
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.values import Evaluation, Objective
from placeopt.core.interfaces import build_encoder, build_sequence
from placeopt.core.spec import ADDED, Method

SUPPORT = Path(__file__).resolve().parent / "support"
sys.path.insert(0, str(SUPPORT))

import lamps  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    """Leave no problem behind for other tests."""
    yield
    ADDED.clear()


@pytest.fixture
def problem() -> lamps.Lamps:
    placeopt.register(lamps.spec())
    return lamps.Lamps.generate(1)


def best(problem: lamps.Lamps) -> set[tuple[float, ...]]:
    """Return the front by trying all plans."""
    every = itertools.product((0, 1), repeat=len(problem.light))
    plans = ({"on": [k for k, on in enumerate(row) if on]} for row in every)
    least: dict[float, float] = {}
    for cost, dark in (problem.evaluate(plan).values for plan in plans):
        least[cost] = min(dark, least.get(cost, dark))
    found, darkest = set(), float("inf")
    for cost, dark in sorted(least.items()):
        if dark < darkest:
            found.add((cost, dark))
            darkest = dark
    return found


@pytest.mark.parametrize("how", [lamps.spec, lambda: lamps.of_texts("lamps")])
def test_the_whole_front(how: Any) -> None:
    """Exactly, though the goals declare no steps; `auto` proves small instances."""
    placeopt.register(how())
    problem = lamps.Lamps.generate(1)
    for method in ("auto", "epsilon-constraint"):
        front = placeopt.solve(problem, method)
        assert set(map(tuple, front.values.tolist())) == best(problem)
        assert front.gap() == 0 and {point.status for point in front} == {"optimal"}
    large = lamps.Lamps.generate(1, lamps=40)
    assert [name for name, _ in registry.auto(large)] == ["moead"]


@pytest.mark.parametrize("method", ["moead", "nsga2", "nsga3", "mspso", "rollout", "ensemble"])
def test_every_method(problem: lamps.Lamps, method: str) -> None:
    """Of vectors and of decisions."""
    front = placeopt.solve(problem, method, evaluations=300, seed=2)
    again = placeopt.solve(problem.to_document() and problem, method, evaluations=300, seed=2)
    assert len(front) > 3 and front.values.tolist() == again.values.tolist()


def test_documents_environments_and_proofs(problem: lamps.Lamps, tmp_path: Path) -> None:
    """Files, Gymnasium by name, `certify`, and the model by its name."""
    import gymnasium

    import placeopt.environments

    problem.write(tmp_path / "l.json")
    assert placeopt.load(tmp_path / "l.json") == problem
    env = gymnasium.make("placeopt/Lamps-v0", lamps=5)
    assert env.reset(seed=1)[1]["action_mask"].all()
    assert placeopt.environments.ENVIRONMENTS["lamps"] == "placeopt/Lamps-v0"
    front = placeopt.solve(problem, "moead", evaluations=300, certify=True)
    assert front.gap() == 0 and len(front) == len(best(problem))
    assert placeopt.models.lamps.build is lamps.build and "lamps" in dir(placeopt.models)
    assert "lamps" in registry.certified() and "lamps" in placeopt.methods()["moead"].problems


@pytest.mark.parametrize("how", ["objects", "texts"][: tries(1, 2)])
def test_workers_know_a_problem_of_a_notebook(how: str) -> None:
    """They are sent its classes; the results are those of one process."""
    command = [sys.executable, str(SUPPORT / "lamps.py"), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True ['', '']\n"


def test_what_is_no_problem_is_refused_before_anything_runs() -> None:
    """By the member that is wrong."""
    for given, message in (
        (lamps.Lamps, "a problem is registered by a ProblemSpec; this is <class"),
        (replace(lamps.spec(), kind="temporal"), "'temporal' is a problem that is installed"),
        (replace(lamps.spec(), kind=""), "kind is ''"),
        (replace(lamps.spec(), kind="lights"), "the kind is 'lights', but field 'problem' of Lamp"),
        (
            lamps.spec(instance=lamps.LampEncoder),
            "the instance of lamps is LampEncoder; give a sub",
        ),
        (lamps.spec(encoder="lamps:LampEncodr"), "lamps has no 'LampEncodr'; did you mean 'LampE"),
        (lamps.spec(encoder="lamp:LampEncoder"), "cannot be loaded: No module named 'lamp'"),
        (lamps.spec(generator=3), "the generator of lamps is 3; give a function"),
        (lamps.spec(plan=dict), "the plan of lamps is dict; give a pydantic class"),
        (
            lamps.spec(model=SimpleNamespace(build=lamps.build)),
            "the model of lamps has no function",
        ),
        (lamps.spec(methods=("moead",)), "the methods of lamps is .*; give a tuple of Method"),
    ):
        with pytest.raises(UsageError, match=message):
            placeopt.register(given)
        assert "lamps" not in registry.specs()


def test_a_problem_that_nobody_registered_says_so() -> None:
    """Where it has no spec, and where its spec is not known."""

    class Others(lamps.Lamps):
        pass

    with pytest.raises(UnsupportedError, match=r"placeopt\.register"):
        placeopt.solve(Others(name="o", light=(1.0,)), "moead")
    Others.spec = lamps.spec()
    with pytest.raises(UnsupportedError, match=r"'lamps' is no problem .*register\(spec\)"):
        placeopt.solve(Others(name="o", light=(1.0,)), "moead")


def test_a_method_says_what_it_needs(problem: lamps.Lamps, monkeypatch: Any) -> None:
    """Of a problem that does not declare it, and of a plug-in that asks for nothing known."""
    placeopt.register(lamps.spec(encoder=None, sequence=None, model=None))
    with pytest.raises(UnsupportedError, match="it needs 'encoder', which the problem does not"):
        placeopt.solve(problem, "moead")
    with pytest.raises(UnsupportedError, match="'encoder', 'sequence', 'model' or methods of its"):
        placeopt.solve(problem)
    with pytest.raises(UnsupportedError, match="neither 'bounds' nor 'model'"):
        placeopt.solve(problem, "auto", certify=True)
    odd = Method("odd", "lamps:odd", "needs what nobody has", needs="encodr")
    monkeypatch.setattr(registry, "records", lambda group, kind: [odd] * (kind is Method))
    with pytest.raises(UnsupportedError, match="no member of ProblemSpec; did you mean 'enc"):
        placeopt.solve("toy", "odd")


class Bright(lamps.Lamps):
    """A goal that is maximised."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return (Objective("cost", "EUR"), Objective("dark", "lm", sense="max"))


def test_a_maximised_goal_is_refused() -> None:
    """By files, methods, adapters and environments: nothing minimises it in silence."""
    placeopt.register(lamps.spec(instance=Bright))
    problem = Bright.generate(1)
    message = "goal 'dark' of lamps is maximised, and goals of a problem are minimised; declare"
    for method in ("auto", "moead", "nsga2", "rollout", "epsilon-constraint", "ensemble"):
        with pytest.raises(UnsupportedError, match=message):
            placeopt.solve(problem, method, evaluations=10)
    for call in (
        lambda: registry.from_document(problem.to_document()),
        lambda: build_encoder(problem),
        lambda: build_sequence(problem),
        lambda: placeopt.environments.make_env(problem),
        lambda: placeopt.sweep({"instances": [{"problem": "lamps"}], "methods": ["moead"]}),
    ):
        with pytest.raises(UnsupportedError, match=message):
            call()


class Dear(lamps.Lamps):
    """A referee that the model contradicts."""

    def evaluate(self, plan: Any) -> Evaluation:
        cost, dark = super().evaluate(plan).values
        return Evaluation((cost**1.5, dark), ())


def test_a_model_that_contradicts_the_referee_is_named() -> None:
    """Its steps would make false points of true ones."""
    placeopt.register(lamps.spec(instance=Dear))
    with pytest.raises(UsageError, match=r"says cost .* multiple of 1; referee"):
        placeopt.solve(Dear.generate(1), "epsilon-constraint")


def _without_a_goal(problem: lamps.Lamps) -> pyo.ConcreteModel:
    model = lamps.build(problem)
    model.del_component(model.dark)
    return model


def test_a_model_without_a_goal_is_named() -> None:
    """And one that is no model."""
    face = SimpleNamespace(build=_without_a_goal, extract=lamps.extract)
    placeopt.register(lamps.spec(model=face))
    with pytest.raises(UnsupportedError, match="the model of lamps has no Expression or Objective"):
        placeopt.solve(lamps.Lamps.generate(1), "epsilon-constraint")
    face = SimpleNamespace(build=lambda problem: 3, extract=lamps.extract)
    placeopt.register(lamps.spec(model=face))
    with pytest.raises(UnsupportedError, match="the model of lamps is of type int; build returns"):
        placeopt.solve(lamps.Lamps.generate(1), "epsilon-constraint")


def test_a_cell_that_is_run_again_replaces_the_problem(problem: lamps.Lamps) -> None:
    """The newer class stands."""

    class Lamps(lamps.Lamps):
        @property
        def objectives(self) -> tuple[Objective, ...]:
            return (Objective("cost", "EUR"),)

        def evaluate(self, plan: Any) -> Evaluation:
            return Evaluation(super().evaluate(plan).values[:1], ())

    placeopt.register(lamps.spec(instance=Lamps, model=None))
    assert placeopt.solve(Lamps.generate(1), "moead", evaluations=200).values.tolist() == [[0.0]]
    assert type(registry.from_document(problem.to_document())) is Lamps
