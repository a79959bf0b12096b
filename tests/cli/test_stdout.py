"""Only answers reach stdout, whatever C libraries and child processes print there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from effort import tries
from forks import forked

#: A command line in which C, a solver's run and a child process print to descriptor 1.
NOISY = """
import ctypes, os, sys
puts = ctypes.CDLL(None).puts
from placeopt import __main__, cli
from placeopt.exact import cp_sat, engines


def noisy(run):
    def printing(self):
        puts(b"C prints in a solver")
        os.write(1, b"so does C++\\n")
        run(self)
    return printing


for engine in (engines.HighsEngine, engines.ScipEngine, cp_sat.CpSatEngine):
    engine.run = noisy(engine.run)
command = cli.main


def run(words, began=None):
    puts(b"C prints late")
    os.system("echo a child prints")
    command(words, began=began)


cli.main = run
sys.argv[0] = "placeopt"
__main__.main()
"""
LP = "min\n f: 3 x + y\nst\n g: x + 3 y >= -inf\n c: x + y >= 2\ngeneral\n x y\nend\n"


def run(*words: object, code: int = 0, **options) -> subprocess.CompletedProcess[str]:
    """Run a command line beside which much is printed."""
    done = forked(NOISY, *words, **options)
    assert done.returncode == code, done.stderr
    return done


def is_answer(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether stdout has JSON and no more, and stderr all that was printed before the answer."""
    json.loads(done.stdout)
    return all(one in done.stderr for one in ("C prints late", "a child prints"))


@pytest.mark.parametrize("solver", ["highs", "scip", "cp-sat"])
def test_the_front_of_a_model(tmp_path, solver):
    if solver == "cp-sat":
        pytest.importorskip("ortools")
    file = tmp_path / "m.lp"
    file.write_text(LP)
    done = run("enumerate", file, "--solver", solver)
    assert is_answer(done) and "C prints in a solver" in done.stderr


@pytest.mark.parametrize("method", ["nsga3", "moead"])
def test_the_front_of_an_instance(method):
    assert is_answer(run("solve", "toy", "--method", method, "--evaluations", 300, "--quiet"))


@pytest.mark.parametrize("words", [["methods", "--json"], ["instances", "--json"]])
def test_lists_and_schemas(words):
    assert is_answer(run(*words))


@pytest.mark.parametrize(
    "words", ["-o /dev/stdout", "-o/dev/fd/1", "--output=/dev/stdout", "--output /proc/self/fd/1"]
)
def test_stdout_by_its_name_is_stdout(words):
    if not Path("/proc/self/fd/1").exists():
        pytest.skip("stdout has no names here")
    assert is_answer(run("generate", "temporal", *words.split()))


def test_errors_leave_stdout_empty(tmp_path):
    (tmp_path / "m.lp").write_text("nonsense")
    done = run("enumerate", tmp_path / "m.lp", code=2)
    assert done.stdout == "" and "error: " in done.stderr


@pytest.mark.parametrize("closed", ["1, 2", "1", "2"][: tries(1, 3)])
def test_closed_streams_do_not_lead_what_c_prints_into_files(tmp_path, closed):
    file, front = tmp_path / "m.lp", tmp_path / "front.json"
    file.write_text(LP)
    close = f"import os, sys; [os.close(k) for k in ({closed},)]"
    shut = f"{close}; os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", NOISY, "enumerate", str(file), "-o", str(front)]
    subprocess.run([sys.executable, "-c", shut, *words], capture_output=True, text=True)
    assert json.loads(front.read_text())["points"]


def test_a_reader_that_left_and_a_full_disk(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    (tmp_path / "m.lp").write_text(LP)
    command = [sys.executable, "-c", NOISY, "enumerate", str(tmp_path / "m.lp")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "<stdout>: cannot write: No space left" in done.stderr


def test_the_stdout_of_a_library_user_is_left_alone():
    """A program that imports placeopt prints where it printed before, C code of its too."""
    code = """
import ctypes, os, pyomo.environ as pyo, placeopt
m = pyo.ConcreteModel(); m.x = pyo.Var(domain=pyo.Binary); m.f = pyo.Objective(expr=m.x)
stdout = __import__("sys").stdout
print(len(placeopt.enumerate(m)), flush=True)
ctypes.CDLL(None).puts(b"C"); ctypes.CDLL(None).fflush(None)
assert stdout is __import__("sys").stdout
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "1\nC\nend\n", done.stderr


def test_a_line_of_highs_before_the_answer(tmp_path):
    """HiGHS prints a line of its own in this plan, whatever its log is set to (HiGHS#2783)."""
    folder = Path(os.environ.get("PLACEOPT_DATA", "")) / "kubernetes_cases_2"
    if "PLACEOPT_DATA" not in os.environ or not (folder / "highs_stdout.json").is_file():
        pytest.skip("PLACEOPT_DATA has no kubernetes_cases_2/highs_stdout.json")
    words = ["consolidate", folder / "highs_stdout.json", "--prices", folder / "highs_prices.csv"]
    done = run(*words, "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["format"].startswith("placeopt/consolidation@")
