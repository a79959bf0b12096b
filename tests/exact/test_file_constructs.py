"""What writers of model files do not write: each is read rightly, or refused with its line."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

import placeopt
from placeopt.core.errors import PlaceoptError

#: What is expected where a file is refused.
NO = "refused"


def read(folder: Path, name: str, text: str) -> Any:
    (folder / name).write_text(text)
    return placeopt.read_model(folder / name)


def best(folder: Path, name: str, text: str) -> Any:
    """Return the only value of a file's goal, ``refused``, or ``infeasible``.

    A refusal is one line that names the file and, of LP and MPS, the line.
    """
    try:
        front = placeopt.enumerate(read(folder, name, text), solver="highs")
    except PlaceoptError as error:
        assert str(folder / name) in str(error) and len(str(error).splitlines()) == 1
        return NO
    values = [point.values for point in front]
    return values[0][0] if values else "infeasible"


def whole(*names: str) -> str:
    return "general\n " + " ".join(names) + "\nend\n"


XY = "bounds\n x <= 5\n y <= 30\n" + whole("x", "y")
#: LP files by what is in them, and the best value.
LP = {
    # names
    "a row of the goal's name": ("max\n c: x + y\nst\n c: x + y <= 4\n" + XY, 4),
    "a row called objective": ("max\n x + y\nst\n objective: x + y <= 4\n" + XY, 4),
    "names of gurobipy": ("max\n x[0] + y[1,-2]\nst\n c[0]: x[0] + y[1,-2] <= 4\nend\n", 4),
    "names with dots and brackets": ("max\n a.b(1) + c{2}\nst\n r: a.b(1) + c{2} <= 4\nend\n", 4),
    "names of text keys": ("max\n x['a'] + y[b_c]\nst\n r: x['a'] + y[b_c] <= 4\nend\n", 4),
    "a coefficient close to its name": ("max\n 2x + 1.5y\nst\n c: x + y <= 4\n" + XY, 8),
    "a name like an exponent": ("max\n 3 e2 + x\nst\n c: e2 + x <= 4\nend\n", 12),
    "an exponent close to a name": ("max\n 3e2x\nst\n c: x <= 4\nend\n", 1200),
    "a number and an e": ("max\n 3e + x\nst\n c: e + x <= 4\nend\n", NO),
    "a name like infinity": ("max\n infinity1\nst\n c: infinity1 <= 4\nend\n", 4),
    "infinity as a name": ("max\n inf + x\nst\n c: inf + x <= 4\nend\n", NO),
    "free as a name": ("max\n free + x\nst\n c: free + x <= 4\nend\n", NO),
    "a keyword as a name": ("max\n bin + x\nst\n c: bin + x <= 4\nend\n", NO),
    "a keyword as a row": ("max\n x\nst\n bounds: x <= 4\nend\n", NO),
    "a name that begins like a keyword": (
        "max\n endy + bound1\nst\n c: endy + bound1 <= 4\nend\n",
        4,
    ),
    "min as a goal": ("min: x\nst\n c: x >= 4\nend\n", NO),
    "capital letters": ("max\n x + X\nst\n a: x <= 1\n b: X <= 2\nend\n", 3),
    "letters beyond ASCII": ("max\n größe\nst\n c: größe <= 4\nend\n", 4),
    # constants
    "a constant on the left": ("max\n x + y\nst\n c: 3 x + y + 2 <= 7\n" + XY, 5),
    "a constant first": ("max\n x + y\nst\n c: 2 + 3 x + y <= 7\n" + XY, 5),
    "a constant with minus": ("max\n x + y\nst\n c: x + y - 2 <= 7\n" + XY, 9),
    "two constants": ("max\n x + y\nst\n c: 1 + x + y + 2 <= 7\n" + XY, 4),
    "a constant on the right of a variable": ("max\n x\nst\n c: x <= 7 + 2\nend\n", NO),
    "a constant in a range": ("max\n x + y\nst\n c: 1 <= x + y + 2 <= 7\n" + XY, 5),
    "a constant in an equality": ("max\n x + y\nst\n c: x + y + 2 = 7\n" + XY, 5),
    "a constant in the goal": ("max\n x + 10 + y\nst\n c: x + y <= 7\n" + XY, 17),
    "a goal that is a constant": ("max\n 10\nst\n c: x <= 7\nend\n", 10),
    "a row without variables": ("max\n x\nst\n c: 0 <= 3\n d: x <= 2\nend\n", 2),
    "a row without variables that fails": (
        "max\n x\nst\n c: 2 <= 1\n d: x <= 2\nend\n",
        "infeasible",
    ),
    "a row of zeros that fails": ("max\n x\nst\n c: 0 x >= 1\n d: x <= 2\nend\n", "infeasible"),
    # terms
    "a variable twice": ("max\n x + x\nst\n c: x + 2 x - x <= 4\nend\n", 4),
    "a variable that cancels": ("max\n x\nst\n c: x - x + y <= 4\n d: x <= 2\nend\n", 2),
    "two signs": ("max\n x\nst\n c: x - - y <= 4\n d: y >= 1\nend\n", 3),
    "scientific numbers": ("max\n 1.5e1 x + .5E-1 y\nst\n c: x + y <= 2.0e+0\nend\n", 30),
    "a number that ends with a point": ("max\n 2. x\nst\n c: x <= 3.\nend\n", 6),
    "a decimal comma": ("max\n 1,5 x\nst\n c: x <= 3\nend\n", NO),
    "two points": ("max\n 1.5.2 x\nst\n c: x <= 3\nend\n", NO),
    "two numbers": ("max\n 2 3 x\nst\n c: x <= 3\nend\n", NO),
    "no sign between variables": ("max\n x y\nst\n c: x <= 3\nend\n", NO),
    "a star": ("max\n 2 * x\nst\n c: x <= 3\nend\n", NO),
    "a slash": ("max\n x / 2\nst\n c: x <= 3\nend\n", NO),
    "a slash close to its number": ("max\n x/2\nst\n c: x <= 3\nend\n", NO),
    "parentheses": ("max\n 2 (x + y)\nst\n c: x + y <= 3\nend\n", NO),
    "an infinite coefficient": ("max\n 1e400 x\nst\n c: x <= 3\nend\n", NO),
    "variables on the right": ("max\n x\nst\n c: x <= 4 - y\nend\n", NO),
    "a variable on the right": ("max\n x\nst\n c: 2 x <= y\n d: y <= 4\nend\n", NO),
    "no spaces": ("max\nobj:3x+2y-1\nst\nc:x+y<=3\nend\n", 8),
    "an expression over lines": ("max\n x\n + y\nst\n c: x +\n y\n <=\n 3\nend\n", 3),
    "a coefficient on a line of its own": ("max\n 2\n x\nst\n c: x <= 3\nend\n", 6),
    "rows without names": ("max\n x + y\nst\n x + y <= 4\n x - y <= 2\n 1 <= x\n" + XY, 4),
    "rows without names that begin with a sign": ("max\n x\nst\n x + y <= 4\n - y <= -1\nend\n", 3),
    "two rows on a line": ("max\n x\nst\n a: x + y <= 4 b: y >= 1\nend\n", 3),
    "two rows of one name": ("max\n x\nst\n a: x + y <= 4\n a: y >= 1\nend\n", NO),
    # relations
    "less without equal": ("max\n x\nst\n c: x < 4\nend\n", 4),
    "equal and less": ("max\n x\nst\n c: x =< 4\nend\n", 4),
    "equal and greater": ("min\n x\nst\n c: x => 4\nend\n", 4),
    "greater": ("min\n x\nst\n c: x > 4\nend\n", 4),
    "two equals": ("min\n x\nst\n c: x == 4\nend\n", 4),
    "less than a negative number": ("max\n x\nst\n c: x<-4\nbounds\n x free\nend\n", -4),
    "no relation": ("max\n x\nst\n c: x + y\nend\n", NO),
    "no limit": ("max\n x\nst\n c: x <=\nend\n", NO),
    "not equal": ("max\n x\nst\n c: x <> 4\nend\n", NO),
    "a range": ("min\n x\nst\n c: 2 <= x + y <= 7\n d: y <= 1\nend\n", 1),
    "a range from above": ("max\n x\nst\n c: 7 >= x + y >= 2\nend\n", 7),
    "a range of two directions": ("max\n x\nst\n c: 7 >= x + y <= 2\nend\n", NO),
    "a range behind the row": ("max\n x\nst\n c: x + y <= 7 <= 9\nend\n", NO),
    "a range without room": ("max\n x\nst\n c: 7 <= x + y <= 2\nend\n", "infeasible"),
    "a number on the left": ("min\n x\nst\n c: 4 <= x\nend\n", 4),
    "at least infinity": ("min\n x\nst\n c: x >= inf\nend\n", NO),
    "equal to infinity": ("min\n x\nst\n c: x = inf\nend\n", NO),
    "at most 1e30": ("max\n x\nst\n d: x <= 3\n c: 0 <= x + y <= 1e30\nend\n", 3),
    # bounds
    "a bound twice": ("max\n x\nst\n c: x + y <= 9\nbounds\n x <= 3\n x <= 5\nend\n", NO),
    "the same bound twice": ("max\n x\nst\n c: x + y <= 9\nbounds\n x <= 3\n x <= 3\nend\n", 3),
    "free and a bound": ("max\n x\nst\n c: x + y <= 9\nbounds\n x free\n x <= 3\nend\n", NO),
    "a bound on the left": ("max\n x\nst\n c: x + y <= 9\nbounds\n 3 >= x\nend\n", 3),
    "bounds on both sides": ("min\n x\nst\n c: x + y <= 9\nbounds\n -3 <= x <= 5\nend\n", -3),
    "bounds from above": ("min\n x\nst\n c: x + y <= 9\nbounds\n 5 >= x >= -3\nend\n", -3),
    "bounds of two directions": ("min\n x\nst\n c: x + y <= 9\nbounds\n 5 >= x <= 3\nend\n", NO),
    "a fixed variable": ("max\n x\nst\n c: x + y <= 9\nbounds\n x = 2\nend\n", 2),
    "no lower bound": ("min\n x\nst\n c: x + y >= -9\nbounds\n x >= -inf\n y <= 1\nend\n", -10),
    "from minus infinity": (
        "min\n x\nst\n c: x + y >= -9\nbounds\n -Infinity <= x <= 3\n y <= 1\nend\n",
        -10,
    ),
    "free": ("min\n x\nst\n c: x + y >= -9\nbounds\n x Free\n y <= 1\nend\n", -10),
    "negative and no lower bound": ("max\n x\nst\n c: x + y <= 9\nbounds\n x <= -3\nend\n", NO),
    "negative with a lower bound": (
        "max\n x\nst\n c: x + y <= 9\nbounds\n -9 <= x <= -3\nend\n",
        -3,
    ),
    "bounds without room": (
        "max\n x\nst\n c: x + y <= 9\nbounds\n 5 <= x <= 3\nend\n",
        "infeasible",
    ),
    "a coefficient in a bound": ("max\n x\nst\n c: x + y <= 9\nbounds\n 2 x <= 3\nend\n", NO),
    "a sum in a bound": ("max\n x\nst\n c: x + y <= 9\nbounds\n x + y <= 3\nend\n", NO),
    "a bound of infinity": ("max\n x\nst\n c: x + y <= 9\nbounds\n x >= inf\nend\n", NO),
    "an upper bound of 1e20": ("max\n x\nst\n c: x + y <= 9\nbounds\n x <= 1e20\nend\n", 9),
    # kinds of variables
    "whole with a bound": ("max\n x\nst\n c: 2 x <= 9\nbounds\n x <= 8\n" + whole("x"), 4),
    "whole with a broken bound": ("max\n x\nst\n c: x <= 9\nbounds\n x <= 3.5\n" + whole("x"), 3),
    "binary with a bound": ("max\n x\nst\n c: x <= 9\nbounds\n x <= 3\nbinary\n x\nend\n", 1),
    "binary that is fixed": ("max\n x\nst\n c: x <= 9\nbounds\n x = 0\nbinary\n x\nend\n", 0),
    "binary and from 2": (
        "max\n x\nst\n c: x <= 9\nbounds\n x >= 2\nbinary\n x\nend\n",
        "infeasible",
    ),
    "binary and whole": ("max\n x\nst\n c: x <= 9\nbinaries\n x\ngenerals\n x\nend\n", 1),
    "integers": ("max\n x\nst\n c: 2 x <= 9\nintegers\n x\nend\n", 4),
    "commas in a list": ("max\n x + y\nst\n c: 2 x + 2 y <= 9\ngeneral\n x, y\nend\n", NO),
    "semicontinuous": (
        "min\n x\nst\n c: x >= 1\nbounds\n 2 <= x <= 5\nsemi-continuous\n x\nend\n",
        2,
    ),
    "semicontinuous zero": ("min\n x\nst\n c: x <= 1\nbounds\n 2 <= x <= 5\nsemis\n x\nend\n", 0),
    "semicontinuous, whole": (
        "max\n x\nst\n c: x <= 9\nbounds\n 1.5 <= x <= 4.5\ngeneral\n x\nsemi\n x\nend\n",
        4,
    ),
    "semicontinuous, whole, above zero": (
        "min\n x\nst\n c: 2 x >= 1\nbounds\n 1.5 <= x <= 4.5\nsemi\n x\ngeneral\n x\nend\n",
        2,
    ),
    # sections
    "subject to": ("Maximize\n obj: x\nSubject To\n c: x <= 4\nEnd\n", 4),
    "such that": ("MAXIMUM\n obj: x\nSUCH THAT\n c: x <= 4\nEND\n", 4),
    "s.t.": ("maximise\n obj: x\ns.t.\n c: x <= 4\nend", 4),
    "st with a colon": ("max\n obj: x\nst:\n c: x <= 4\nend", 4),
    "on one line": ("max obj: x\nst c: x <= 4\nbounds x <= 3\nend", 3),
    "two sections of bounds": (
        "max\n x + y\nst\n c: x <= 9\nbounds\n x <= 3\nbound\n y <= 2\nend\n",
        5,
    ),
    "whole variables before bounds": (
        "max\n x\nst\n c: 2 x <= 9\ngen\n x\nbounds\n x <= 3\nend\n",
        3,
    ),
    "comments": (
        "\\ first\nmax \\ sense\n x \\ goal\n\\ more\nst \\* rows *\\\n c: x <= 4 \\ c\nend\n",
        4,
    ),
    "empty lines": ("\n\nmax\n\n x\n\nst\n\n c: x <= 4\n\nend\n\n", 4),
    "ends of lines of Windows": ("max\r\n x\r\nst\r\n c: x <= 4\r\nend\r\n", 4),
    "no rows": ("max\n x\nbounds\n x <= 4\nend\n", 4),
    "no end": ("max\n x\nst\n c: x <= 4\n", NO),
    "text behind the end": ("max\n x\nst\n c: x <= 4\nend\n d: x <= 3\n", NO),
    "no sense": ("x\nst\n c: x <= 4\nend\n", NO),
    "two goals": ("max\n x\nmax\n y\nst\n c: x + y <= 4\nend\n", NO),
    "two names of a goal": ("max\n a: x\n b: y\nst\n c: x + y <= 4\nend\n", NO),
    "rows first": ("st\n c: x <= 4\nmax\n x\nend\n", NO),
    "lp_solve": ("max: 3x + 2y;\nc1: x + y <= 4;\n", NO),
    # what is not linear
    "a quadratic goal": ("min\n x + [ 2 x^2 ] / 2\nst\n c: x >= 1\nend\n", NO),
    "a quadratic goal close to a sign": ("min\n x +[x*y]/2\nst\n c: x >= 1\nend\n", NO),
    "a quadratic row": ("min\n x\nst\n c: x + [ x * y ] >= 1\nend\n", NO),
    "a square": ("min\n x ^ 2\nst\n c: x >= 1\nend\n", NO),
    "an indicator": ("max\n x\nst\n c: b = 1 -> x <= 4\nbinary\n b\nend\n", NO),
    "an ordered set": ("max\n x + y\nst\n c: x + y <= 4\nsos\n s1: S1:: x:1 y:2\nend\n", NO),
    "an ordered set of a type": ("max\n x + y\nst\n c: x + y <= 4\nsos2\n s: x:1 y:2\nend\n", NO),
    "lazy rows": ("max\n x\nst\n c: x <= 9\nlazy constraints\n d: x <= 4\nend\n", NO),
    "user cuts": ("max\n x\nst\n c: x <= 9\nuser cuts\n d: x <= 4\nend\n", NO),
    "general constraints": (
        "max\n x\nst\n c: x <= 9\ngeneral constraints\n d: x = MAX(y,z)\nend\n",
        NO,
    ),
    "pieces": ("max\n x\nst\n c: x <= 9\nPWLObj\n x: (1, 1) (2, 2)\nend\n", NO),
}


@pytest.mark.parametrize("name", LP)
def test_lp(tmp_path, name):
    text, right = LP[name]
    assert best(tmp_path, "m.lp", text) == right


@pytest.mark.parametrize("name", [name for name, (_, right) in LP.items() if right == NO])
def test_what_an_lp_file_refuses_has_a_line(tmp_path, name):
    with pytest.raises(
        PlaceoptError, match=r"in line \d+|begins with|section|before 'end'|-infinity"
    ):
        read(tmp_path, "m.lp", LP[name][0])


TAIL = "bounds\n x <= 5\n y <= 5\n" + whole("x", "y")
#: Files with two goals: 3 x + y + 10 and - x + 2 y - 5, both least, where x + y >= 2.
ST, ROW = "st\n c: x + y >= 2\n", " B: - x + 2 y - 5"
SEVERAL = {
    "a section": "min multi-objectives\n A: priority=1 weight=1\n 3 x + y + 10\n"
    " B:\n - x + 2 y - 5\n" + ST,
    "attributes of Gurobi": "minimize multi-objectives\n"
    " A: Priority=2 Weight=1 AbsTol=0 RelTol=0\n 3 x + y + 10\n"
    " B: Priority=1 Weight=1 AbsTol=1e-06 RelTol=0\n - x + 2 y - 5\n" + ST,
    "a constant first": "MIN MULTI-OBJECTIVES\n A: 10 + 3 x + y\n B: - 5 - x + 2 y\n" + ST,
    "a negative weight": "maximize multi-objectives\n"
    " A: weight=-1\n 3 x + y + 10\n B: weight = -2\n - x + 2 y - 5\n" + ST,
    "a free row": "min\n A: 3 x + y + 10\n" + ST + ROW + " >= -infinity\n",
    "a free row first": "min\n A: 3 x + y + 10\nst\n" + ROW + " >= -inf\n c: x + y >= 2\n",
    "at most infinity": "min\n A: 3 x + y + 10\n" + ST + ROW + " <= 1e30\n",
    "a constant in front": "min\n A: 3 x + y + 10\n" + ST + " B: - 5 - x + 2 y >= -1e20\n",
    "infinity on the left": "min\n A: 3 x + y + 10\n" + ST + " B: -inf <= - x + 2 y - 5\n",
    "rows alone": "min\n\n" + ST + " A: 3 x + y + 10 >= -inf\n" + ROW + " >= -inf\n",
    "a row of a goal's name": "min\n A: 3 x + y + 10\nst\n A: x + y >= 2\n" + ROW + " >= -inf\n",
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_goals_with_constants(tmp_path, name):
    front = placeopt.enumerate(read(tmp_path, "m.lp", SEVERAL[name] + TAIL), solver="highs")
    plans = [(x, y) for x, y in product(range(6), repeat=2) if x + y >= 2]
    values = {(3 * x + y + 10, -x + 2 * y - 5) for x, y in plans}
    beaten = {v for v in values for u in values if u != v and u[0] <= v[0] and u[1] <= v[1]}
    assert [point.values for point in front] == sorted(values - beaten)


# -- MPS -------------------------------------------------------------------------------------------


def mps(
    bounds: str = "",
    rhs: str = " RHS c 4\n",
    ranges: str = "",
    kind: str = "L",
    before: str = "OBJSENSE\n MAX\n",
    columns: str = " x f 1 c 1\n",
    rows: str = "",
) -> str:
    parts = [before, "ROWS\n N f\n", f" {kind} c\n", rows, "COLUMNS\n", columns, "RHS\n", rhs]
    parts += ["RANGES\n" + ranges if ranges else "", "BOUNDS\n" + bounds if bounds else ""]
    return "NAME m\n" + "".join(parts) + "ENDATA\n"


WHOLE = " M1 'MARKER' 'INTORG'\n x f 1 c 1\n M2 'MARKER' 'INTEND'\n"
LEAST = "OBJSENSE\n MIN\n"
MPS = {
    "as it is": (mps(), 4),
    "no bound of a whole column": (mps(columns=WHOLE), 1),
    "a whole column with an upper bound": (mps(" UP B x 9\n", columns=WHOLE), 4),
    "a whole column with a lower bound": (mps(" LO B x 0\n", columns=WHOLE), 4),
    "a whole column without end": (mps(" PL B x\n", columns=WHOLE), 4),
    "UP": (mps(" UP B x 3\n"), 3),
    "UP of 0": (mps(" UP B x 0\n"), 0),
    "UP below 0": (mps(" UP B x -3\n"), NO),
    "UP below 0 behind MI": (mps(" MI B x\n UP B x -3\n"), -3),
    "UP of 1e30": (mps(" UP B x 1e30\n"), 4),
    "LO": (mps(" LO B x 3\n", before=LEAST), 3),
    "FX": (mps(" FX B x 2.5\n"), 2.5),
    "FR": (mps(" FR B x\n", " RHS c -7\n", kind="G", before=LEAST), -7),
    "MI": (mps(" MI B x\n", " RHS c -7\n", kind="G", before=LEAST), -7),
    "MI leaves the upper bound open": (mps(" MI B x\n"), 4),
    "PL": (mps(" PL B x\n"), 4),
    "BV": (mps(" BV B x\n"), 1),
    "BV without a set": (mps(" BV x\n"), 1),
    "BV with a number": (mps(" BV B x 1\n"), 1),
    "LI": (mps(" LI B x 2\n", " RHS c 4.5\n"), 4),
    "UI": (mps(" UI B x 3\n", " RHS c 4.5\n"), 3),
    "SC": (mps(" SC B x 3\n"), 3),
    "SC and LO": (mps(" LO B x 2\n SC B x 3\n", " RHS c 1\n"), 0),
    "SC and LO, above zero": (
        mps(" SC B x 3\n LO B x 2\n", " RHS c 1\n", kind="G", before=LEAST),
        2,
    ),
    "SI": (mps(" SI B x 3\n LO B x 2\n", " RHS c 2.5\n"), 2),
    "SC without a number": (mps(" SC B x 0\n"), NO),
    "an unknown type of bound": (mps(" XX B x 3\n"), NO),
    "a bound of no column": (mps(" UP B z 3\n"), NO),
    "a bound twice": (mps(" UP B x 3\n UP B x 2\n"), NO),
    "bounds of two sets": (mps(" UP B x 3\n LO C x 2\n"), NO),
    "a bound without a set": (mps(" UP x 3\n"), 3),
    "a bound that is no number": (mps(" UP B x three\n"), NO),
    "types in small letters": (mps(" up B x 3\n", kind="l"), 3),
    # right-hand sides and ranges
    "no RHS": (mps(rhs=""), 0),
    "RHS without a set": (mps(rhs=" c 4\n"), 4),
    "RHS of the goal": (mps(rhs=" RHS f 10 c 4\n"), -6),
    "RHS of the goal below 0": (mps(rhs=" RHS f -10 c 4\n"), 14),
    "RHS twice": (mps(rhs=" RHS c 4\n RHS c 5\n"), NO),
    "RHS of two sets": (mps(rhs=" RHS c 4\n R2 f 5\n"), NO),
    "RHS of no row": (mps(rhs=" RHS d 4\n"), NO),
    "RHS of 1e30": (mps(" UP B x 3\n", " RHS c 1e30\n"), 3),
    "scientific numbers": (mps(rhs=" RHS c 4.5E+0\n"), 4.5),
    "numbers of Fortran": (mps(rhs=" RHS c 4.5D+0\n"), NO),
    "no number": (mps(rhs=" RHS c nan\n"), NO),
    "a number with an underscore": (mps(rhs=" RHS c 1_0\n"), NO),
    "a range of L": (mps(ranges=" RNG c 3\n", before=LEAST), 1),
    "a range of L below 0": (mps(ranges=" RNG c -3\n", before=LEAST), 1),
    "a range of G": (mps(ranges=" RNG c 3\n", kind="G"), 7),
    "a range of G below 0": (mps(ranges=" RNG c -3\n", kind="G"), 7),
    "a range of E": (mps(ranges=" RNG c 3\n", kind="E"), 7),
    "a range of E, least": (mps(ranges=" RNG c 3\n", kind="E", before=LEAST), 4),
    "a range of E below 0": (mps(ranges=" RNG c -3\n", kind="E"), 4),
    "a range of E below 0, least": (mps(ranges=" RNG c -3\n", kind="E", before=LEAST), 1),
    "a range of 0": (mps(ranges=" RNG c 0\n", kind="E"), 4),
    "a range without a set": (mps(ranges=" c 3\n", before=LEAST), 1),
    "a range twice": (mps(ranges=" RNG c 3\n RNG c 2\n"), NO),
    "a range of N": (mps(ranges=" RNG f 3\n"), NO),
    # sections and senses
    "no sense": (mps(before="", kind="G"), 4),
    "the sense on the same line": (mps(before="OBJSENSE MAX\n"), 4),
    "the sense at the margin": (mps(before="OBJSENSE\nMAXIMIZE\n"), 4),
    "a sense in small letters": (mps(before="objsense\n max\n"), 4),
    "an unknown sense": (mps(before="OBJSENSE\n UP\n"), NO),
    "sections in small letters": (mps().lower(), 4),
    "comments and empty lines": ("* first\n\n" + mps(before="* a\nOBJSENSE\n* b\n MAX\n\n"), 4),
    "five words": (mps(columns=" x f 1\n x c 1\n"), 4),
    "an entry twice": (mps(columns=" x f 1 c 1\n x c 2\n"), NO),
    "a column in two places": (mps(columns=" x f 1\n y f 1 c 1\n x c 1\n"), NO),
    "an entry of no row": (mps(columns=" x f 1 d 1\n"), NO),
    "two rows of one name": (mps(rows=" G c\n"), NO),
    "an unknown type of row": (mps(rows=" D d\n"), NO),
    "a name with a space": (mps(columns=" x one f 1 c 1\n"), NO),
    "a marker of ordered sets": (mps(columns=WHOLE.replace("INTORG", "SOSORG")), NO),
    "numbers on the right at the margin": (mps(rhs="RHS c 4\n"), NO),
    "ranges at the margin": (mps(ranges="RANGES c 3\n"), NO),
    "a bound at the margin": (mps("UP B x 3\n"), NO),
    "a column at the margin": (mps(columns="x f 1 c 1\n"), NO),
    "no NAME": (mps().removeprefix("NAME m\n"), 4),
    "no ENDATA": (mps().removesuffix("ENDATA\n"), NO),
    "text behind ENDATA": (mps() + "anything\n", 4),
    "quadratic": (mps().replace("ENDATA", "QUADOBJ\n x x 1\nENDATA"), NO),
    "quadratic rows": (mps().replace("ENDATA", "QCMATRIX c\n x x 1\nENDATA"), NO),
    "ordered sets": (mps().replace("ENDATA", "SOS\n S1 s 1\n s x 1\nENDATA"), NO),
    "indicators": (mps().replace("ENDATA", "INDICATORS\n IF c x 1\nENDATA"), NO),
    "lazy rows": (mps().replace("ENDATA", "LAZYCONS\n L d\nENDATA"), NO),
    "names like numbers": (mps(columns=" 1e5 f 1 c 1\n"), 4),
    "names like keywords": (mps(columns=" ROWS f 1 c 1\n"), 4),
    "names with brackets": (mps(columns=" x[1,-2] f 1 c 1\n"), 4),
    "columns in a fixed place": (
        "NAME          m\nOBJSENSE\n    MAX\nROWS\n N  f\n L  c\nCOLUMNS\n"
        "    x         f                  1.0   c                  1.0\n"
        "RHS\n    RHS       c                  4.0\nENDATA\n",
        4,
    ),
}


@pytest.mark.parametrize("name", MPS)
def test_mps(tmp_path, name):
    text, right = MPS[name]
    assert best(tmp_path, "m.mps", text) == right


def test_numbers_on_the_right_of_several_goals(tmp_path):
    text = mps(rows=" N g\n", columns=" x f 1 c 1\n x g 2\n", rhs=" RHS c 4 f 1\n RHS g -3\n")
    (point,) = placeopt.enumerate(read(tmp_path, "m.mps", text))
    assert point.values == (3.0, 11.0)


# -- MathOptFormat ---------------------------------------------------------------------------------

V = {"type": "Variable", "name": "x"}


def row(coefficient: float, constant: float = 0.0) -> dict[str, Any]:
    terms = [{"coefficient": coefficient, "variable": "x"}]
    return {"type": "ScalarAffineFunction", "terms": terms, "constant": constant}


def mof(sense: str, *constraints: tuple[Any, Any], **more: Any) -> str:
    listed = [{"name": f"k{i}", "function": f, "set": s} for i, (f, s) in enumerate(constraints)]
    document = {
        "version": {"major": 1, "minor": 7},
        "variables": [{"name": "x"}],
        "objective": {"sense": sense, "function": V},
        "constraints": listed,
    }
    return json.dumps(document | more)


def semi(lower: float, upper: float, kind: str = "Semicontinuous") -> dict[str, Any]:
    return {"type": kind, "lower": lower, "upper": upper}


def least(value: float) -> dict[str, Any]:
    return {"type": "GreaterThan", "lower": value}


def most(value: float) -> dict[str, Any]:
    return {"type": "LessThan", "upper": value}


INT, BIN = {"type": "Integer"}, {"type": "ZeroOne"}
MOF = {
    "a row above zero": (mof("min", (V, semi(2, 5)), (row(1.0), least(1.0))), 2),
    "a row above zero, before": (mof("min", (row(1.0), least(1.0)), (V, semi(2, 5))), 2),
    "a row of twice": (mof("min", (V, semi(2, 5)), (row(2.0), least(2.0))), 2),
    "a bound above zero": (mof("min", (V, semi(2, 5)), (V, least(1.0))), 2),
    "a bound above zero, before": (mof("min", (V, least(1.0)), (V, semi(2, 5))), 2),
    "a bound below the part": (mof("max", (V, semi(2, 5)), (V, most(1.0))), 0),
    "a bound within the part": (mof("max", (V, semi(2, 5)), (V, most(3.0))), 3),
    "a bound within the part, before": (mof("max", (V, most(3.0)), (V, semi(2, 5))), 3),
    "semicontinuous, then whole": (mof("min", (V, semi(2.5, 5)), (V, INT)), 0),
    "whole, then semicontinuous": (mof("max", (V, INT), (V, semi(2.5, 4.5))), 4),
    "whole, then semicontinuous, above zero": (
        mof("min", (V, INT), (V, semi(2.5, 4.5)), (row(1.0), least(0.5))),
        3,
    ),
    "semicontinuous and binary": (mof("max", (V, BIN), (V, semi(0.5, 4.5))), 1),
    "no whole number in the part": (mof("max", (V, INT), (V, semi(2.2, 2.8))), 0),
    "semiwhole, one row": (mof("max", (V, semi(2, 5, "Semiinteger")), (row(1.0), most(1.0))), 0),
    "semiwhole, half": (mof("max", (V, semi(2, 5, "Semiinteger")), (row(2.0), most(9.0))), 4),
    "below zero": (mof("min", (V, semi(-5, -2)), (row(1.0), most(-1.0))), -5),
    "below zero, least away": (mof("max", (V, semi(-5, -2)), (row(1.0), most(-1.0))), -2),
    "semicontinuous twice": (mof("max", (V, semi(2, 5)), (V, semi(3, 6))), NO),
    "a binary with a bound": (mof("max", (V, BIN), (V, most(0.5))), 0),
    "a bound of a binary, before": (mof("max", (V, most(0.5)), (V, BIN)), 0),
    "bounds that meet": (mof("max", (V, most(4.0)), (V, most(3.0)), (V, least(0.0))), 3),
    "a bound of a whole variable": (mof("max", (V, most(3.5)), (V, INT), (V, least(0.0))), 3),
    "a constant in a row": (mof("max", (row(1.0, 2.0), most(5.0)), (V, least(0.0))), 3),
    "a row of one variable": (mof("max", (row(2.0), most(5.0)), (V, least(0.0))), 2.5),
    "whole of a function": (mof("max", (row(1.0), INT), (V, most(4.5))), NO),
    "binary of a function": (mof("max", (row(2.0), BIN), (V, most(4.5))), NO),
    "semicontinuous of a function": (mof("max", (row(2.0), semi(2, 5))), NO),
    "an ordered set of functions": (
        mof(
            "max",
            (
                {"type": "VectorAffineFunction", "terms": [], "constants": [1.0]},
                {"type": "SOS1", "weights": [1]},
            ),
        ),
        NO,
    ),
    "an indicator": (
        mof(
            "max",
            (
                {"type": "VectorOfVariables", "variables": ["x", "x"]},
                {"type": "Indicator", "set": most(1.0)},
            ),
        ),
        NO,
    ),
    "an unknown sense": (mof("maximise", (V, most(4.0))), NO),
    "another version": (mof("max", (V, most(4.0)), version={"major": 2, "minor": 0}), NO),
    "no number": (mof("max", (V, {"type": "LessThan", "upper": "4"})), NO),
    "true for a number": (mof("max", (V, {"type": "LessThan", "upper": True})), NO),
    "nan": (mof("max", (V, most(4.0))).replace("4.0", "NaN"), NO),
    "infinity": (mof("max", (V, most(4.0))).replace("4.0", "Infinity"), NO),
    "an index of 0": (
        mof(
            "max",
            (
                {
                    "type": "VectorAffineFunction",
                    "terms": [
                        {"output_index": 0, "scalar_term": {"coefficient": 1, "variable": "x"}}
                    ],
                    "constants": [0.0],
                },
                {"type": "Nonpositives", "dimension": 1},
            ),
        ),
        NO,
    ),
    "a key twice": (mof("max", (V, most(4.0))).replace('"upper"', '"upper": 5, "upper"'), NO),
    "deep lists": ("[" * 100_000, NO),
    "deep objects": ('{"a":' * 100_000, NO),
    "a deep row": ('{"variables": ' + "[" * 5000 + "]" * 5000 + "}", NO),
}


@pytest.mark.parametrize("name", MOF)
def test_mof(tmp_path, name):
    text, right = MOF[name]
    assert best(tmp_path, "m.mof.json", text) == right


def test_rows_of_one_name_and_without_names(tmp_path):
    document = json.loads(mof("max", (row(1.0), most(9.0)), (row(2.0), most(8.0))))
    for one, name in zip(document["constraints"], ("", "c1"), strict=True):
        one["name"] = name
    model = read(tmp_path, "m.mof.json", json.dumps(document))
    assert len(model.row) == 2
    document["constraints"][0]["name"] = "c1"
    with pytest.raises(PlaceoptError, match="two rows are called 'c1'"):
        read(tmp_path, "m.mof.json", json.dumps(document))


# -- blocks ----------------------------------------------------------------------------------------


def blocks() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), domain=pyo.Binary)
    m.c = pyo.Constraint(expr=m.x[0] + m.x[1] >= 1)
    m.f = pyo.Objective(expr=m.x[0] + 2 * m.x[1])
    m.b = pyo.Block()
    m.b.o = pyo.Objective(expr=m.x[0], sense=pyo.maximize)
    m.b.inner = pyo.Block()
    m.b.inner.o = pyo.Objective(expr=m.x[1])
    m.many = pyo.Block([1, 2])
    for k in (1, 2):
        m.many[k].o = pyo.Objective(expr=k * m.x[0] + m.x[1])
    return m


def names(m: pyo.ConcreteModel) -> list[str]:
    return [objective.name for objective in placeopt.enumerate(m, solver="highs").objectives]


ALL = ["f", "b.o", "b.inner.o", "many[1].o", "many[2].o"]


@pytest.mark.parametrize(
    ("off", "gone"),
    [
        ((), ()),
        (("b",), ("b.o", "b.inner.o")),
        (("b.inner",), ("b.inner.o",)),
        (("many",), ("many[1].o", "many[2].o")),
        (("many[1]",), ("many[1].o",)),
        (("b", "many"), ("b.o", "b.inner.o", "many[1].o", "many[2].o")),
    ],
)
def test_goals_of_deactivated_blocks_do_not_count(off, gone):
    m = blocks()
    for name in off:
        m.find_component(name).deactivate()
    assert sorted(names(m)) == sorted(one for one in ALL if one not in gone)


def test_deactivated_goals_of_active_blocks_count():
    m = blocks()
    m.b.o.deactivate()
    assert sorted(names(m)) == sorted(ALL)


def test_a_goal_of_a_deactivated_block_may_be_named():
    m = blocks()
    m.b.deactivate()
    front = placeopt.enumerate(m, ["f", "b.o"], solver="highs")
    assert [o.name for o in front.objectives] == ["f", "b.o"] and math.isfinite(front[0].values[0])
