"""How many files of placeopt a command runs code of: what a newcomer opens who follows it.

    python benchmarks/files_run.py                       # `solve toy --method nsga3`, enumerate
    python benchmarks/files_run.py consolidate shop --prices shop

A file counts if a function of it is called; what only stands there, or is run when it is imported,
does not: the bodies of its classes, decorators, and what those call. The second line of the default
is `placeopt.enumerate` on a model of six binaries.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import placeopt

PACKAGE = str(Path(placeopt.__file__).parent) + "/"
#: Two goals that conflict, six binaries.
MODEL = """
import placeopt, pyomo.environ as pyo
m = pyo.ConcreteModel()
m.x = pyo.Var(range(6), domain=pyo.Binary)
m.need = pyo.Constraint(expr=sum(m.x.values()) >= 2)
m.cost = pyo.Objective(expr=sum((k + 1) * m.x[k] for k in range(6)))
m.risk = pyo.Objective(expr=sum((6 - k) * m.x[k] for k in range(6)))
"""


def is_imported(frame: FrameType | None) -> bool:
    """Whether code runs because a module of placeopt is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False


def run(code: str) -> Counter[str]:
    """Run code; return how often functions of each file of placeopt were called."""
    counts: Counter[str] = Counter()

    def called(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        name = file.removeprefix(PACKAGE)
        if name in counts or not is_imported(frame):
            counts[name] += 1

    sys.setprofile(called)
    try:
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "<followed>", "exec"), {})
    finally:
        sys.setprofile(None)
    return counts


def main() -> None:
    """Follow a command, each in a process of its own; print the files."""
    if len(sys.argv) == 3 and sys.argv[1] == "--code":
        found = run(sys.argv[2])
        sys.stdout.write(f"{len(found)} files\n  " + "\n  ".join(sorted(found)) + "\n")
        return
    words = sys.argv[1:] or [
        "solve",
        "toy",
        "--method",
        "nsga3",
        "--evaluations",
        "2000",
        "-o",
        "t.json",
        "-q",
    ]
    codes = [f"from placeopt.cli import main\nmain({words!r})"]
    if not sys.argv[1:]:
        codes.append(f"{MODEL}\nplaceopt.enumerate(m)")
    with tempfile.TemporaryDirectory() as folder:
        for code in codes:
            script = [sys.executable, str(Path(__file__).resolve()), "--code", code]
            subprocess.run(script, cwd=folder, check=True)


if __name__ == "__main__":
    main()
