"""Standard streams that are closed, full, or left by their reader: exit code 0, or one line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from effort import THOROUGH, tries
from forks import placeopt

#: Results, tables, help, drawings, errors; those in the first half are tried in every state.
LINES = (
    "--help",
    "check toy",
    "methods",
    "solve toy --method greedy",
    "solve toy --method greedy -o again.json",
    "solve nowhere.json",
    "solve toy --no-such-option",
    "--version",
    "check toy --json",
    "generate temporal --size requests=3",
    "instances",
    "schema front",
    "pick front.json",
    "pick front.json -o plan.json",
    "plot front.json",
    "plot front.json --point knee -o plan.svg",
    "compare front.json front.json",
    "merge front.json front.json",
    "evaluate toy front.json",
    "report front.json",
    "consolidate shop --prices shop",
    "policies",
)
#: What the shell writes behind a line; stdout of `lost` lines takes nothing.
STATES = {
    "closed stdout": ">&-",
    "closed all": "<&- >&- 2>&-",
    "full stdout": ">/dev/full",
    "full stderr": "2>/dev/full",
    "closed stderr": "2>&-",
    "closed both": ">&- 2>&-",
    "closed stdin": "<&-",
}

#: Runs each line in a process forked from one that has imported the commands.
RUNNER = """
import json, os, sys
import placeopt.__main__ as program
import placeopt.api, placeopt.cli, placeopt.kubernetes.commands, placeopt.plot, placeopt.registry
results = []
for line in json.load(open(sys.argv[1])):
    child = os.fork()
    if child == 0:
        sys.argv = ["placeopt", *line]
        program.main()
    results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
json.dump(results, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a front."""
    path = tmp_path_factory.mktemp("streams")
    done = placeopt("solve", "toy", "--method", "greedy", "-o", "front.json", cwd=path)
    assert done.returncode == 0
    return path


COMMAND = [sys.executable, "-m", "placeopt"]


def results(folder: Path, behind: str, count: int = len(LINES)) -> tuple[list[int], str]:
    """Return the exit code of the first lines, and what all of them printed on stderr."""
    (folder / "lines.json").write_text(json.dumps([shlex.split(line) for line in LINES[:count]]))
    words = [sys.executable, "-c", RUNNER, "lines.json", "codes.json"]
    shell = f"{shlex.join(words)} {behind}"
    done = subprocess.run(
        shell,
        shell=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "codes.json").read_text()), done.stderr


@pytest.fixture(scope="module")
def usual(folder: Path) -> list[int]:
    """Return the exit codes where all streams are open."""
    return results(folder, "")[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("state", list(STATES)[: tries(2, len(STATES))])
def test_every_command_ends_with_its_code_or_one_line(
    folder: Path, usual: list[int], state: str
) -> None:
    count = len(LINES) if state == "closed stdout" and THOROUGH else len(LINES) // 3
    codes, err = results(folder, STATES[state], count)
    assert "Traceback" not in err and "Exception ignored" not in err, err
    lost = "stdout" in state or state in ("closed both", "closed all")
    for line, code, before in zip(LINES, codes, usual, strict=False):
        assert code == before or (lost and (before, code) == (0, 1)), line
    if "stdout" in state:
        why = "it is closed" if "closed" in state else "No space left on device"
        said = [line for line in err.splitlines() if line.startswith("error: <stdout>: cannot")]
        assert len(said) == sum(c == 1 for c in codes) > 2
        assert all(line.startswith(f"error: <stdout>: cannot write: {why}") for line in said)
    if not lost:
        assert codes == usual[: len(codes)]


def test_a_reader_that_left_changes_no_exit_code(folder: Path, usual: list[int]) -> None:
    """Who reads no further has what he wanted; a plan that breaks its instance is still said."""
    codes, err = results(folder, "2>&1 | true", len(LINES) // 3)
    assert codes == usual[: len(codes)]
    assert "Traceback" not in err and "Exception ignored" not in err, err


def test_no_file_gets_what_belongs_on_a_closed_stream(folder: Path) -> None:
    """The first file that a process opens has the number of a closed stream."""
    shell = f"exec {shlex.join(COMMAND)} solve toy --method nsga2 --evaluations 300 -o own.json"
    done = subprocess.run(f"{shell} <&- >&- 2>&-", shell=True, cwd=folder)
    assert done.returncode == 0
    json.loads((folder / "own.json").read_text())


def test_a_front_that_stdout_does_not_take_is_kept(folder: Path) -> None:
    """The message names the file."""
    shell = f"exec {shlex.join(COMMAND)} solve toy --method greedy --quiet >&-"
    done = subprocess.run(
        shell,
        shell=True,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    kept = Path(done.stderr.rpartition("kept in ")[2].strip())
    assert json.loads(kept.read_text())["format"] == "placeopt/front@1"
