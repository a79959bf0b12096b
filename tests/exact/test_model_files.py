"""Models in files: LP, MPS and MathOptFormat, and ``placeopt enumerate FILE``."""

from __future__ import annotations

import gzip
import json
from functools import partial

import forks
import pyomo.environ as pyo
import pytest

import placeopt
from placeopt.core.errors import DocumentError, UnsupportedError

LP = """\\ a shop
maximize
 profit: 3 a + 4 b + 2 c + 1
subject to
 hours: 2 a + 3 b + c <= 4
 co2: 2 a + 5 b + 3 c >= -infinity
bounds
 c <= 2
general
 a b c
end
"""
MPS = """NAME shop
OBJSENSE
    MAX
ROWS
 N  profit
 L  hours
 N  co2
COLUMNS
    a  profit 3  hours 2
    a  co2 2
    b  profit 4  hours 3
    b  co2 5
    c  profit 2  hours 1
    c  co2 3
RHS
    RHS  profit -1  hours 4
BOUNDS
 PL BND a
 PL BND b
 UP BND c 2
 LI BND a 0
 LI BND b 0
 LI BND c 0
ENDATA
"""
SEVERAL = """Maximize multi-objectives
  profit: Priority=2 Weight=1 AbsTol=0 RelTol=0
    3 a + 4 b + 2 c
  co2: Priority=1 Weight=-1
    2 a + 5 b + 3 c
Subject To
 hours: 2 a + 3 b + c <= 4
Bounds
 c <= 2
Generals
 a b c
End
"""


def variable(name: str) -> dict:
    return {"type": "Variable", "name": name}


def affine(terms: dict[str, float], constant: float = 0.0) -> dict:
    return {
        "type": "ScalarAffineFunction",
        "terms": [{"coefficient": c, "variable": name} for name, c in terms.items()],
        "constant": constant,
    }


def vector(rows: list[dict[str, float]], constants: list[float]) -> dict:
    terms = [
        {"output_index": k + 1, "scalar_term": {"coefficient": c, "variable": name}}
        for k, row in enumerate(rows)
        for name, c in row.items()
    ]
    return {"type": "VectorAffineFunction", "terms": terms, "constants": constants}


def mof(**changes) -> str:
    names = ("a", "b", "c")
    bounds = [({"type": "GreaterThan", "lower": 0.0}, name) for name in names]
    bounds += [({"type": "Integer"}, name) for name in names]
    bounds += [({"type": "Interval", "lower": 0.0, "upper": 2.0}, "c")]
    hours = affine({"a": 2, "b": 3, "c": 1}, 1.0)
    document = {
        "version": {"major": 1, "minor": 7},
        "variables": [{"name": name} for name in names],
        "objective": {
            "sense": "max",
            "function": vector([{"a": 3, "b": 4, "c": 2}, {"a": -2, "b": -5, "c": -3}], [1.0, 0.0]),
        },
        "constraints": [
            {"name": "hours", "function": hours, "set": {"type": "LessThan", "upper": 5.0}},
            *({"function": variable(name), "set": limits} for limits, name in bounds),
        ],
    }
    return json.dumps(document | changes)


def front(model: pyo.ConcreteModel) -> list[tuple[float, ...]]:
    return [point.values for point in placeopt.enumerate(model, solver="highs").points]


#: Profit and co2 of the shop's efficient plans, by hand: (a, b, c) is (0,0,0), (1,0,0), ...
SHOP = [(1.0, 0.0), (4.0, 2.0), (7.0, 4.0), (8.0, 8.0)]


@pytest.mark.parametrize(
    ("name", "text", "goals"),
    [
        ("shop.lp", LP, ["profit", "min:co2"]),
        ("shop.mps", MPS, ["profit", "min:co2"]),
        ("shop.mop", MPS, ["max:profit", "min:co2"]),
    ],
)
def test_files_have_the_front_of_the_model(tmp_path, name, text, goals):
    (tmp_path / name).write_text(text)
    model = placeopt.read_model(tmp_path / name, goals)
    assert list(model.x) == ["a", "b", "c"] and list(model.goal) == ["profit", "co2"]
    assert front(model) == SHOP
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert front(placeopt.read_model(tmp_path / f"{name}.gz", goals)) == SHOP


def test_several_objectives_of_an_lp_file_have_their_own_sense(tmp_path):
    (tmp_path / "shop.lp").write_text(SEVERAL)
    assert front(placeopt.read_model(tmp_path / "shop.lp")) == [(p - 1, c) for p, c in SHOP]


def test_goals_are_in_the_sense_of_the_file_unless_told(tmp_path):
    (tmp_path / "shop.lp").write_text(LP)
    model = placeopt.read_model(tmp_path / "shop.lp")
    assert [(name, goal.sense) for name, goal in model.goal.items()] == [
        ("profit", pyo.maximize),
        ("co2", pyo.maximize),
    ]
    limited = placeopt.read_model(tmp_path / "shop.lp", ["profit", "min:hours"])
    # the row keeps its limit: at most 4 hours
    assert front(limited) == [(1.0, 0.0), (3.0, 1.0), (5.0, 2.0), (6.0, 3.0), (8.0, 4.0)]


def test_a_mathoptformat_file(tmp_path):
    (tmp_path / "shop.mof.json").write_text(mof())
    model = placeopt.read_model(tmp_path / "shop.mof.json")
    assert list(model.goal) == ["f1", "f2"]
    assert front(model) == [(p, -c) for p, c in SHOP]
    one = mof(objective={"sense": "min", "function": variable("a")})
    (tmp_path / "shop.mof.json").write_text(one)
    assert front(placeopt.read_model(tmp_path / "shop.mof.json")) == [(0.0,)]


def test_vectors_and_domains_of_a_mathoptformat_file(tmp_path):
    constraints = [
        {"function": variable("a"), "set": {"type": "ZeroOne"}},
        {"function": variable("b"), "set": {"type": "Semiinteger", "lower": 2, "upper": 4}},
        {"function": variable("c"), "set": {"type": "Semicontinuous", "lower": 1, "upper": 3}},
        {
            "name": "both",
            "function": vector([{"a": 1, "b": 1}, {"b": 1, "c": -1}], [-5.0, 1.0]),
            "set": {"type": "Nonpositives", "dimension": 2},
        },
        {
            "function": {"type": "VectorOfVariables", "variables": ["a", "b"]},
            "set": {"type": "SOS1", "weights": [1, 2]},
        },
    ]
    goal = {"sense": "max", "function": affine({"a": 5, "b": 2, "c": -1})}
    (tmp_path / "m.mof.json").write_text(mof(constraints=constraints, objective=goal))
    model = placeopt.read_model(tmp_path / "m.mof.json")
    # c is 0 or 1..3, and at least b + 1; a excludes b: a = 1, b = 0, c = 1
    (point,) = placeopt.enumerate(model).points
    assert point.values == (4.0,) and point.plan == {"x[a]": 1, "x[c]": 1}


BAD = [
    (
        "m.lp",
        "maximize\n p: 3 x + 2 y +\nst\n c: x <= 1\nend",
        "a number or a variable is expected",
    ),
    ("m.lp", "", "no variables"),
    (
        "m.lp",
        "minimize\n o: x + [ x^2 ] / 2\nst\n c: x >= 1\nend",
        "the objective is quadratic, in line 2",
    ),
    ("m.mps", "ROWS\n N obj\nCOLUMNS\n x nowhere 1\nENDATA\n", "no row 'nowhere', in line 4"),
    ("m.mps", MPS.replace("ENDATA", "") + "GARBAGE 1 2 3\n", "section 'GARBAGE', in line 2"),
    ("m.mof.json", "{", "invalid JSON|no JSON|JSON"),
    ("m.json", "[1]", "no MathOptFormat: it has no variables"),
    ("m.json", '{"variables": [{"nom": "x"}]}', "no MathOptFormat: KeyError 'name'"),
    ("m.json", mof(variables=[{"name": "a"}, {"name": "a"}]), "two variables have one name"),
    ("m.json", mof(objective={"sense": "min", "function": variable("z")}), "no variable 'z'"),
    (
        "m.json",
        mof(objective={"sense": "min", "function": {"type": "ScalarNonlinearFunction"}}),
        r"objective.function is a ScalarNonlinearFunction; placeopt reads linear",
    ),
    (
        "m.json",
        mof(constraints=[{"function": variable("a"), "set": {"type": "SecondOrderCone"}}]),
        r"constraints\[0\], a Variable, is in the set SecondOrderCone, which is no linear row",
    ),
    ("m.lp", "\x00\xff", "no text"),
    ("m.foo", "", "tells no format; name it .lp, .mps"),
    ("m.lp.gz", "no gzip", "no gzip"),
    ("gone.lp", None, "no such file"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_bad_files_get_one_message_that_names_them(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises((DocumentError, UnsupportedError), match=message) as caught:
        model = placeopt.read_model(tmp_path / name)
        placeopt.enumerate(model, seconds=5)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert len(str(caught.value).splitlines()) == 1


def test_a_goal_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    (tmp_path / "shop.lp").write_text(LP)
    with pytest.raises(DocumentError, match="no goal or row 'profitt'; did you mean 'profit'"):
        placeopt.read_model(tmp_path / "shop.lp", ["profitt"])


# -- the command -----------------------------------------------------------------------------------


command = partial(forks.placeopt, "enumerate")


def test_the_command_prints_json_to_a_pipe_and_writes_files(tmp_path):
    file = tmp_path / "shop.lp"
    file.write_text(LP)
    wanted = ("--goal", "profit", "--goal", "min:co2")
    done = command(file, *wanted, "--solver", "highs")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert sorted(tuple(point["values"]) for point in document["points"]) == SHOP
    assert {"a": 1} in [point["plan"] for point in document["points"]]
    assert "complete: every point of the front is found and proven" in done.stderr
    again = command(file, *wanted, "-o", tmp_path / "front.json", "--time-limit", "6000")
    assert again.returncode == 0 and again.stdout == ""
    assert len(placeopt.Front.read(tmp_path / "front.json")) == len(SHOP)


def test_the_command_ends_with_2_for_bad_input_and_3_where_there_is_no_solution(tmp_path):
    file = tmp_path / "shop.lp"
    file.write_text(LP.replace("<= 4", "<= -1"))
    done = command(file)
    assert done.returncode == 3 and "infeasible" in done.stderr
    file.write_text("nonsense")
    for bad in ((file,), (tmp_path / "gone.lp",), (file, "--gap", "x"), (file, "--step", "a=b")):
        done = command(*bad)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("error: ")
