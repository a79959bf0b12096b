"""Thousands of attacks on the command line, kills and interrupts at random moments.

    python benchmarks/attacks.py [--inputs 150] [--processes 300] [--strikes 100] [--seed 1]

Rows are those of ``tests/support/attack_inputs.py``; each runs in a process of its own, so that a
crash is one failed attack. Then some of the same attacks run as a user runs them.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, Benchmark, shown, table

import attack_inputs  # isort: skip
from placeopt.core.fronts.front import Front

TOY = ROOT / "instances" / "temporal" / "toy.json"
PLACEOPT = (sys.executable, "-m", "placeopt")
#: Seconds without a line after which a row is taken for hung; the first attack compiles kernels.
SILENCE = 60
REWRITE = """from placeopt.core.fronts.front import Front
f = Front.read({0!r})
while True: f.write({0!r})"""
#: Verdict, what is wrong, seconds.
Verdict = tuple[str, str, float]
COUNTED = ("tried", "refused", "answered", "failed")


# -- many attacks in one process -------------------------------------------------------------------


def attack(row: str, first: int, count: int, seed: int) -> None:
    """Print the verdict of every attack of a row as a line of JSON."""
    for number in range(first, count):
        with tempfile.TemporaryDirectory() as folder:
            rng = np.random.default_rng([seed, number])
            arguments = attack_inputs.ROWS[row](rng, Path(folder))
            begun = time.monotonic()
            found = attack_inputs.outcome(arguments)
            seconds = time.monotonic() - begun
        print(json.dumps([number, found.verdict, found.detail, seconds]), flush=True)


def verdicts(row: str, count: int, seed: int) -> Iterator[Verdict]:
    """Yield the verdict of every attack of a row; a crash is one of them."""
    done = 0
    while done < count:
        told = json.dumps([row, done, count, seed])
        command = [sys.executable, __file__, "--call", "attack", told]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **quiet) as worker:
            for _, verdict, detail, seconds in _lines(worker, count - done):
                done += 1
                yield verdict, detail, seconds
            worker.kill()
            code = worker.wait()
        if done < count:
            yield "crash or hang", f"{row}, attack {done}, seed {seed}: exit code {code}", 0.0
            done += 1


def _lines(worker: subprocess.Popen[bytes], most: int) -> Iterator[Any]:
    """Yield what a worker prints, until it ends or is silent for too long."""
    assert worker.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        for _ in range(most):
            if not selector.select(SILENCE) or not (line := worker.stdout.readline()):
                return
            yield json.loads(line)


# -- as a user runs it -----------------------------------------------------------------------------


def processes(count: int, seed: int) -> Iterator[Verdict]:
    """Yield the verdicts of attacks of all rows in turn, each in a process of its own."""
    rows = list(attack_inputs.ROWS)
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            rng = np.random.default_rng([seed + 1, number])
            arguments = attack_inputs.ROWS[rows[number % len(rows)]](rng, Path(folder))
            begun, command = time.monotonic(), [*PLACEOPT, *arguments]
            try:
                done = subprocess.run(command, capture_output=True, timeout=SILENCE, check=False)
            except subprocess.TimeoutExpired:
                yield "crash or hang", f"process {number}, seed {seed}: {arguments}", SILENCE
                continue
        seconds = time.monotonic() - begun
        texts = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        found = attack_inputs.judged(done.returncode, *texts, seconds)
        yield found.verdict, f"{arguments}: {found.detail}" if found.failed else "", seconds


# -- kills and interrupts --------------------------------------------------------------------------


def victims(folder: Path) -> list[list[str]]:
    """Return commands that write a front into a folder: quickly, by workers, again and again."""
    target = folder / "f.json"
    solve = [*PLACEOPT, "solve", str(TOY), "-o", str(target), "--method"]
    return [
        [*solve, "greedy", "--evaluations", "50"],
        [*solve, "ensemble", "--jobs", "2", "--evaluations", "4000"],
        [sys.executable, "-c", REWRITE.format(str(target))],
    ]


def struck(
    count: int, seed: int, number: signal.Signals, judge: Callable[..., str]
) -> Iterator[Verdict]:
    """Yield the verdicts of commands that get a signal at a random moment."""
    rng = np.random.default_rng([seed, int(number)])
    kinds = 3 if number == signal.SIGKILL else 2
    for k in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder, scratch = Path(name) / "out", Path(name) / "tmp"
            folder.mkdir()
            scratch.mkdir()
            commands, places = victims(folder), ("TMPDIR", "JOBLIB_TEMP_FOLDER")
            subprocess.run(commands[0], stderr=subprocess.DEVNULL, check=True)
            with subprocess.Popen(
                commands[k % kinds],
                env=os.environ | dict.fromkeys(places, str(scratch)),
                stderr=subprocess.PIPE,
                start_new_session=True,
            ) as victim:
                time.sleep(rng.uniform(0.05, 2.5))
                victim.send_signal(number)
                try:
                    _, err = victim.communicate(timeout=SILENCE)
                except subprocess.TimeoutExpired:
                    os.killpg(victim.pid, signal.SIGKILL)
                    yield "hung", f"strike {k}, seed {seed}: hung", SILENCE
                    continue
            fault = judge(folder, victim.returncode, err.decode("utf-8", "replace"))
            fault = fault or _left(victim.pid, scratch)
        yield fault or "answered", f"strike {k}, seed {seed}: {fault}" if fault else "", 0.0


def killed(folder: Path, _code: int, _err: str) -> str:
    """Return what is wrong after a kill; the next command in the folder sweeps what is left."""
    Front.read(folder / "f.json").write(folder / "next.json")
    litter = {p.name for p in folder.iterdir()} - {"f.json", "next.json"}
    return f"litter: {sorted(litter)}" if litter else ""


def interrupted(folder: Path, code: int, err: str) -> str:
    """Return what is wrong after Ctrl-C."""
    if "Traceback" in err:
        return f"traceback: {err[-200:]}"
    if code not in (0, 3, 130, -signal.SIGINT):  # 3: it came before a feasible plan was found
        return f"exit code {code}"
    return killed(folder, code, err)


def _left(session: int, scratch: Path) -> str:
    """Return what outlives a command: its workers, files among the temporary ones."""
    end = time.monotonic() + 10
    while (workers := _of_session(session)) or any(scratch.iterdir()):
        if time.monotonic() > end:
            return f"workers {workers}, files {[p.name for p in scratch.iterdir()]}"
        time.sleep(0.1)
    return ""


def _of_session(session: int) -> list[int]:
    """Return the processes of a session that are no zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, mine = (
                    (entry / "stat").read_text().rpartition(")")[2].split(maxsplit=4)[:4]
                )
            except OSError:
                continue
            if int(mine) == session and state != "Z":
                found.append(int(entry.name))
    return found


# -- the table -------------------------------------------------------------------------------------


def main() -> None:
    """Attack, and write the table."""
    begun = time.monotonic()
    run = Benchmark(
        *(__file__, __doc__, "numpy", "typer"), inputs=150, processes=300, strikes=100, seed=1
    )
    rows: dict[str, Iterator[Verdict]] = {
        row: verdicts(row, run.inputs, run.seed) for row in attack_inputs.ROWS
    }
    rows["all, each in its own process"] = processes(run.processes, run.seed)
    for name, number, judge in (
        ("kill -9", signal.SIGKILL, killed),
        ("Ctrl-C", signal.SIGINT, interrupted),
    ):
        rows[f"{name} at a random moment"] = struck(run.strikes, run.seed, number, judge)
    lines, total, failures = [], Counter[str](), []
    for name, found in rows.items():
        counts, slowest = Counter[str](), 0.0
        for verdict, detail, seconds in found:
            kind = verdict if verdict in ("refused", "answered") else "failed"
            counts.update(("tried", kind))
            slowest = max(slowest, seconds)
            if kind == "failed":
                failures.append(f"* {name}: {verdict}: {detail}")
        total += counts
        longest = f"{slowest:.1f}" if slowest else ""
        lines.append(shown([name, *(counts[key] for key in COUNTED), longest]))
    lines.append(["**all**", *(total[key] for key in COUNTED), ""])
    run.write(
        "Attacks on the command line",
        "Seeded mutations of every file type. *Refused*: exit code 2 and one line. *Answered*: "
        "exit code 0, or 3 where no plan is feasible. *Failed*: a crash, a traceback, another "
        f"code, more than {attack_inputs.LONGEST} s. A kill fails if the old front is lost, a "
        "worker outlives its parent, or a file is left after the next command that writes there; "
        "Ctrl-C fails like a kill, or by a traceback.",
        table(
            "attacked by | tried | refused with one line | answered | failed | slowest, s", lines
        ),
        ["Failed:", "", *failures] if failures else "",
        f"{time.monotonic() - begun:.0f} s.",
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
