"""Every parameter of every method: described, and safe against every value.

A hostile value is refused with one message or gives a front; nothing crashes or hangs.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from hands import within

import placeopt
from placeopt import cli
from placeopt.cli.catalogue import parameters_of
from placeopt.core.errors import MissingExtraError, UsageError
from placeopt.core.parameters import Parameter, parameters
from placeopt.core.problem import Problem
from placeopt.parameters import Parameters
from placeopt.registry import PACKAGES, methods, problem_class

HOSTILE = (0, -1, 1e9, 1.5, "abc", "nan", "", "inf")
#: Sizes of instances that every method answers at once.
SIZES: dict[str, dict[str, Any]] = {
    "temporal": {"requests": 2, "horizon": 12, "places": 1, "max_replicas": 1},
    "edge-cloud": {"applications": 2, "near": 2, "far": 1, "cloud": 1},
    "rolling-update": {"applications": 2, "microservices": 2},
    "rescheduling": {"application": "chain", "replicas": 1},
    "multi-cluster": {"requests": 4, "clusters": 2},
}
#: Parameters that other ones need.
GIVEN = {"policy": {"policy": "rescheduling-testbed"}}
KIND = {"policy": "rescheduling"}


def declared() -> list[tuple[str, str, Parameter]]:
    """Return (method, kind, parameter), each method of a function once."""
    assert {kind.replace("-", "_") for kind in SIZES} == set(PACKAGES)
    found = {}
    for name, method in methods().items():
        for kind in method.problems:
            if kind not in SIZES or kind != KIND.get(name, kind):
                continue
            try:
                run = method.load(kind)
            except MissingExtraError:
                continue
            for parameter in parameters(run):
                if parameter.name == "jobs":  # an argument of `solve` itself
                    continue
                found.setdefault((method.of[kind].entry, parameter.name), (name, kind, parameter))
    return list(found.values())


DECLARED = declared()


def label(case: tuple[str, str, Parameter]) -> str:
    """Return the name of a case."""
    method, kind, parameter = case
    return f"{method}-{kind}-{parameter.name}"


@pytest.fixture(scope="module")
def instances() -> dict[str, Problem]:
    return {kind: problem_class(kind).generate(1, **sizes) for kind, sizes in SIZES.items()}


@pytest.mark.parametrize("case", DECLARED, ids=label)
def test_is_described(case: tuple[str, str, Parameter]) -> None:
    """In one line, with bounds where it is a number."""
    parameter = case[2]
    assert parameter.help.endswith(".") and "\n" not in parameter.help
    if parameter.type.split(" | ")[0] in ("int", "float"):
        assert parameter.legal


@pytest.mark.parametrize("case", DECLARED, ids=label)
def test_a_hostile_value_is_refused_or_works(
    case: tuple[str, str, Parameter], instances: dict[str, Problem]
) -> None:
    method, kind, parameter = case
    for value in HOSTILE:
        given = GIVEN.get(method, {}) | {parameter.name: value}
        with within(20, 40):  # compiling kernels takes most of it
            try:
                front = placeopt.solve(instances[kind], method, evaluations=40, seconds=20, **given)
            except placeopt.PlaceoptError as error:
                assert len(str(error).splitlines()) == 1
            else:
                assert front.points or front.rejected is not None or front.reasons


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("nsga2", "offspring=0", "offspring of nsga2 is 0 .*legal: at least 1, at most 100000"),
        ("nsga2", "population=abc", "population of nsga2 is 'abc' .*legal: at least 2"),
        ("nsga3", "points=0", "points of nsga3 is 0 .*legal: at least 1"),
        ("moead", "neighbours=0", "neighbours of moead is 0 .*legal: at least 2"),
        ("moead", "fineness=1e9", r"fineness of moead is 1000000000\.0 .*at most 4"),
        ("mspso", "particles=1.5", r"particles of mspso is 1\.5 .*legal: at least 1"),
        ("rollout", "beta=nan", "beta of rollout is 'nan' .*legal: above 0, at most 1"),
        ("policy", "samples=-1", "samples of policy is -1 .*legal: at least 0"),
    ],
)
def test_a_wrong_value_is_one_message_with_exit_code_2(
    method: str,
    given: str,
    says: str,
    tmp_path: Path,
    instances: dict[str, Problem],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "i.json"
    instances["edge-cloud"].write(path)
    with pytest.raises(SystemExit) as end:
        cli.main(["solve", str(path), "--method", method, "--param", given])
    _, error = capsys.readouterr()
    assert end.value.code == 2 and len(error.splitlines()) == 1
    with pytest.raises(UsageError, match=says):
        raise UsageError(error.strip())


def test_none_is_legal_where_it_is_listed(instances: dict[str, Problem]) -> None:
    """The text "none" of a command line too."""
    front = placeopt.solve(instances["temporal"], "nsga2", evaluations=40, points="none")
    assert front.runs[0].parameters["points"] is None
    with pytest.raises(UsageError, match="population of nsga2 is 'none'"):
        placeopt.solve(instances["temporal"], "nsga2", population="none")


def test_parameters_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """By name, for people and for programs."""
    import json

    def shown(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            cli.main(["methods", *arguments])
        assert not end.value.code
        return capsys.readouterr().out

    one = json.loads(shown("moead", "--json"))
    assert one == next(m for m in json.loads(shown("--json")) if m["name"] == "moead")
    listed = {parameter["name"]: parameter for parameter in one["parameters"]}
    assert listed["neighbours"]["default"] == 20 and "temporal" in listed["fineness"]["problems"]
    assert listed["neighbours"]["legal"] == "at least 2, at most 10000"
    text = shown("moead")
    assert all(name in text and listed[name]["help"] in text for name in listed)
    assert shown("karmada-greedy") == ""


@pytest.mark.parametrize("kind", ["temporal", "edge-cloud", "rolling-update", "multi-cluster"])
def test_weights_are_one_for_each_goal_asked_for(
    kind: str, tmp_path: Path, instances: dict[str, Problem], capsys: pytest.CaptureFixture[str]
) -> None:
    """A single weight is a number to a command line, and a text to the method."""
    problem = instances[kind]
    path = tmp_path / "i.json"
    problem.write(path)
    names = [goal.name for goal in problem.objectives]
    for goals, weights in (
        (names[:1], "1"),
        (names[-1:], "2.5"),
        (names[-1:], "1e-3"),
        (names[1:], ",".join("1" * len(names[1:]))),
    ):
        words = ["--objectives", ",".join(goals), "--param", f"weights={weights}"]
        with pytest.raises(SystemExit) as end:
            cli.main(["solve", str(path), "--method", "rollout", *words, "--evaluations", "2"])
        assert end.value.code in (0, None), capsys.readouterr().err
    assert placeopt.solve(problem, "rollout", objectives=names[:1], evaluations=2, weights=1)
    with pytest.raises(UsageError, match="weights is '1'; give 2 numbers"):
        placeopt.solve(problem, "rollout", objectives=names[:2], evaluations=2, weights=1)


def test_a_text_may_look_like_a_number(instances: dict[str, Problem]) -> None:
    """Names of encodings, files and strategies are never taken for numbers; nor is true a text."""
    from placeopt.core.parameters import checked

    def run(task: object, *, name: str = "a", width: int = 3, exact: bool = False) -> None:
        """Do nothing."""

    given = {"name": 12, "width": "4", "exact": True}
    assert checked(run, "m", given) == {"name": "12", "width": 4, "exact": True}
    assert checked(run, "m", {"name": True}) == {"name": "true"}
    assert checked(run, "m", {"name": 2.5}) == {"name": "2.5"}
    with pytest.raises(UsageError, match="width of m is 'wide'"):
        checked(run, "m", {"width": "wide"})
    with pytest.raises(UsageError, match="name of m is"):
        checked(run, "m", {"name": ["a"]})


def test_editors_know_all_parameters() -> None:
    """By name and type: what `placeopt.solve` declares is what the methods take."""
    kinds: dict[str, set[str]] = {}
    for method in methods().values():
        for parameter, _ in parameters_of(method):
            words = parameter.type.replace("text", "str").replace("none", "None").split(" | ")
            kinds.setdefault(parameter.name, set()).update(words)
    declared = inspect.get_annotations(Parameters)
    told = {name: set(one.__forward_arg__.split(" | ")) for name, one in declared.items()}
    assert told == kinds
