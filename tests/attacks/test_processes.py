"""Processes and time: workers end with their parent, time limits keep what was found, Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from effort import tries

from placeopt import api, cli
from placeopt.core.budget import Budget
from placeopt.core.files.documents import write_json
from placeopt.core.fronts.front import Front

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "instances" / "temporal" / "toy.json"
BASIC = ROOT / "instances" / "temporal" / "aws-50.json"
REPACK = ROOT / "instances" / "rolling-update" / "repack-10x5.json"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@contextlib.contextmanager
def process(*arguments: object, **more: object) -> Iterator[subprocess.Popen[str]]:
    """Start the command line; whatever happens, it does not outlive the test."""
    command = [sys.executable, "-m", "placeopt", *map(str, arguments)]
    more |= {"stderr": subprocess.PIPE, "text": True}
    run: subprocess.Popen[str] = subprocess.Popen(command, **more)  # type: ignore[call-overload]
    try:
        yield run
    finally:
        run.kill()
        run.wait()
        for stream in (run.stdout, run.stderr):
            if stream is not None:
                stream.close()


def descendants(parent: int) -> set[int]:
    """Return the processes that `parent` started, and those that they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
    found: set[int] = set()
    while new := {p for p, above in parents.items() if above in found | {parent}} - found:
        found |= new
    return found


def alive(number: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def within(seconds: float, true: Callable[[], bool]) -> bool:
    """Wait until something is true; return whether it became so in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# -- the ensemble ----------------------------------------------------------------------------------


def test_no_more_processes_than_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are asked for."""
    from joblib.externals import loky

    asked = []

    def counting(jobs: int, **options: Any) -> ThreadPoolExecutor:
        asked.append(jobs)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(loky, "get_reusable_executor", counting)
    front = api.solve(TOY, "ensemble", evaluations=80, jobs=100_000, methods="nsga2,moead")
    assert asked == [2] and len(front) > 0


@needs_proc
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """Even when it is killed; and no file of theirs stays behind."""
    limit = ("--method", "ensemble", "--jobs", 2, "--time-limit", 60)
    places = os.environ | {"TMPDIR": str(tmp_path), "JOBLIB_TEMP_FOLDER": str(tmp_path)}
    with process("solve", BASIC, *limit, "-o", tmp_path / "f.json", env=places) as run:
        assert within(60, lambda: len(descendants(run.pid)) >= 3), "the workers never came"
        time.sleep(2)  # they are at work
        workers = descendants(run.pid)
        run.kill()
        run.wait(10)
        assert within(10, lambda: not any(map(alive, workers))), "workers outlive their parent"
    assert within(10, lambda: not list(tmp_path.iterdir())), list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [1e-9, 0.05, 0.3])
def test_an_ensemble_keeps_what_was_found_in_time(seconds: float) -> None:
    """Methods for which no time is left are skipped."""
    front = api.solve(BASIC, "ensemble", seconds=seconds)
    assert len(front) > 0 and not front.runs[0].completed


def test_a_method_that_overruns_leaves_the_others_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its front is the answer."""
    monkeypatch.setattr(Budget, "seconds_left", property(lambda self: 0.0))
    front = api.solve(TOY, "ensemble", seconds=5.0)
    assert len(front) > 0 and {run.method for run in front.runs} == {"ensemble", "nsga2"}


# -- check -----------------------------------------------------------------------------------------


def test_check_takes_seconds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also of a rolling update that is hard: it never looks for longer than it says."""
    from placeopt.cli import instances

    looked = []
    solve = api.solve

    def timed(*arguments: object, seconds: float, **more: object) -> Front:
        looked.append(seconds)
        return solve(*arguments, seconds=seconds, **more)  # type: ignore[arg-type]

    document = json.loads(REPACK.read_text())
    document["nodes"][2]["memory_mib"] = 0
    write_json(tmp_path / "x.json", document)
    for path in (tmp_path / "x.json", BASIC, TOY):  # kernels are compiled before the clock runs
        with pytest.raises(SystemExit):
            cli.main(["check", str(path)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api, "solve", timed)
            with pytest.raises(SystemExit):
                cli.main(["check", str(path)])
    assert looked == [instances._LOOK_SECONDS] * 3 and instances._LOOK_SECONDS <= 2


# -- Ctrl-C ----------------------------------------------------------------------------------------

SLOW_IMPORT = """
import sys, time
print("importing", flush=True)
try:
    time.sleep(600)
except BaseException:  # as some packages do
    raise ImportError("half imported") from None
"""


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_ctrl_c_while_importing_is_one_line(tmp_path: Path, module: str) -> None:
    """Whatever the imported module makes of it."""
    (tmp_path / f"{module}.py").write_text(SLOW_IMPORT)
    paths = f"{tmp_path}{os.pathsep}{ROOT}"
    environment = os.environ | {"PYTHONPATH": paths}
    with process("check", TOY, env=environment, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stdout.readline() == "importing\n"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=300)
        assert (run.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.parametrize("delay", [0.6, 1.6, 0.3, 1.0][: tries(2, 4)])
def test_ctrl_c_at_any_moment_is_no_traceback(tmp_path: Path, delay: float) -> None:
    """One line; and a front if the search had begun."""
    target = tmp_path / "f.json"
    with process("solve", BASIC, "--method", "nsga3", "--time-limit", 60, "-o", target) as run:
        time.sleep(delay)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=300)
        assert "Traceback" not in err
        if "stopping" in err:
            assert run.returncode == 0 and len(Front.read(target)) > 0
        else:
            assert (run.returncode, err.strip()) in ((130, "interrupted"), (-signal.SIGINT, ""))
    assert {p.name for p in tmp_path.iterdir()} <= {"f.json"}


def test_ctrl_c_while_the_front_is_written_loses_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is over, the file is not there yet."""
    to_json = Front.to_json

    def interrupted(front: Front) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return to_json(front)

    monkeypatch.setattr(Front, "to_json", interrupted)
    target = tmp_path / "f.json"
    with pytest.raises(SystemExit) as end:
        cli.main(["solve", str(TOY), "--method", "greedy", "-o", str(target)])
    assert (end.value.code or 0) == 0 and len(Front.read(target)) > 0
