"""Files of the challenge and documents that are wrong are refused by name; commands serve both."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest
from forks import PROGRAM, forked
from machine_reassignment import files
from machine_reassignment.instance import MachineReassignment

from placeopt.core.errors import DocumentError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "machine_reassignment"
#: Tokens that are no code.
_LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
#: Two resources, two machines, two services, three processes, one balance.
MODEL = """2
1 10
0 20
2
0 0 30 30 20 20 0 5
0 1 30 30 20 20 5 0
2
2 0
1 1 0
3
0 10 5 7
0 10 5 7
1 5 15 3
1
0 1 2
10
1 10 100
"""


def written(folder: Path, model: str = MODEL, assignment: str = "0 1 0") -> MachineReassignment:
    """Return the instance of two texts."""
    (folder / "model_a.txt").write_text(model)
    (folder / "assignment_a.txt").write_text(assignment)
    return files.read(folder / "model_a.txt", folder / "assignment_a.txt")


def test_an_instance_of_two_files(tmp_path: Path) -> None:
    problem = written(tmp_path)
    assert problem.name == "a"
    assert [r.transient for r in problem.resources] == [True, False]
    # machine 0: used 15, 20; free 15, 10: 10 * (2 * 15 - 10); machine 1: free 20, 25
    assert problem.evaluate({"machines": [0, 1, 0]}).values == (0.0, 10.0 * (20 + 15), 0.0)
    # process 2 moves: 3, its service once: 10, from 0 to 1: 100 * 5
    assert problem.evaluate({"machines": [0, 1, 1]}).values[2] == 513.0


@pytest.mark.parametrize(
    ("model", "assignment", "said"),
    [
        ("2\n1 10\n", "0", "ends after 3 numbers"),
        (MODEL + "4", "0 1 0", "1 numbers stand after"),
        (MODEL.replace("1 10\n0 20", "1 x\n0 20"), "0 1 0", "number 3 is 'x'"),
        (MODEL.replace("0 20\n", "0 -20\n"), "0 1 0", "'-20'"),
        (MODEL, "0 1", "ends after 2 numbers"),
        (MODEL, "0 1 0 1", "1 numbers stand after"),
        (MODEL, "0 1 2", "there is no machine 2"),
        (MODEL, "0 0 0", "processes of service 0"),
        (MODEL.replace("1 1 0\n3", "1 1 7\n3"), "0 1 0", "there is no service 7"),
        (MODEL.replace("1 5 15 3", "4 5 15 3"), "0 1 0", "there is no service 4"),
        (MODEL.replace("0 1 2\n10", "0 4 2\n10"), "0 1 0", "there is no resource 4"),
        (MODEL.replace("1 5 15 3", "1 5 99 3"), "0 1 0", "104 are used"),
        (MODEL.replace("1 10\n", "1 999999999999\n", 1), "0 1 0", None),
        ("", "", "ends after 0 numbers"),
    ],
)
def test_malformed_files(tmp_path: Path, model: str, assignment: str, said: str | None) -> None:
    if said is None:
        assert written(tmp_path, model, assignment).resources[0].load_cost == 999999999999
        return
    with pytest.raises(DocumentError, match=said) as caught:
        written(tmp_path, model, assignment)
    assert ".txt" in str(caught.value)


@pytest.mark.parametrize(
    "plan", [{"machines": [0]}, {"machines": [0, 1, 9]}, {"machines": "x"}, {}]
)
def test_malformed_plans(tmp_path: Path, plan: dict[str, object]) -> None:
    with pytest.raises(DocumentError):
        written(tmp_path).evaluate(plan)


def test_numbers_that_would_not_fit_are_refused(tmp_path: Path) -> None:
    model = MODEL.replace("0 1 2\n10", "0 1 999999999999\n999999999999")
    with pytest.raises(DocumentError, match="64 bits"):
        written(tmp_path, model)


def test_commands_serve_the_installed_example(tmp_path: Path) -> None:
    """Its entry points are found as pip would leave them."""
    facts = tmp_path / "site" / "placeopt_machine_reassignment-1.0.dist-info"
    facts.mkdir(parents=True)
    name = "Name: placeopt-machine-reassignment\nVersion: 1.0\n"
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}")
    (facts / "entry_points.txt").write_text(
        "[placeopt.problems]\nmachine-reassignment = machine_reassignment:SPEC\n"
        "[placeopt.doors]\nroadef-2012 = machine_reassignment:DOOR\n"
    )
    (tmp_path / "model_a.txt").write_text(MODEL)
    (tmp_path / "first.txt").write_text("0 1 0")
    for command in (
        "import roadef-2012 model_a.txt first.txt -o a.json",
        "check a.json",
        "solve a.json --method annealing --param weights=1,1,1 --evaluations 9000 -o f.json",
        "solve a.json --evaluations 900 --certify --run-dir run -o g.json",
        "solve a.json --evaluations 900 --certify --run-dir run -o g.json",
        "plot g.json -o g.html",
        "report g.json -o r.html",
        "export roadef-2012 f.json -o new.txt",
    ):
        done = forked(PROGRAM, *command.split(), path=["", facts.parent, EXAMPLE], cwd=tmp_path)
        assert done.returncode == 0, (command, done.stdout + done.stderr)
    assert len((tmp_path / "new.txt").read_text().split()) == 3


def code_lines(file: Path) -> int:
    """Return the lines of a file without blank ones, comments and docstrings."""
    lines, begins = set[int](), True
    for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
        if token.type in _LAYOUT:
            begins = begins or token.type == tokenize.NEWLINE
        elif not (begins and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
            begins = False
    return len(lines)


def test_the_example_is_short_and_uses_no_inner_name() -> None:
    sources = list((EXAMPLE / "machine_reassignment").glob("*.py"))
    assert sum(map(code_lines, sources)) < 1500
    text = "".join(file.read_text() for file in sources)
    assert "import _" not in text
    assert "placeopt._" not in text
    project = (EXAMPLE / "pyproject.toml").read_text()
    assert 'machine-reassignment = "machine_reassignment:SPEC"' in project
