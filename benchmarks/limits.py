"""Whether a time limit is the whole of a run: every method on every problem, as a process.

    python benchmarks/limits.py [--limits .5 1 5] [--certify .5 1] [--small 20] [--kinds ...]

All seconds are CPU seconds of the process, and its clock counts them too. `placeopt warm-up` and a
short run before each do not count. A stopped run goes on where it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from auto import FIRST_SEED, SIZES, methods_of
from harness import Benchmark, shown, table

from placeopt import registry

#: The command line with CPU seconds for a clock.
PROGRAM = (
    "import time; time.perf_counter = time.process_time\nfrom placeopt.__main__ import main; main()"
)
#: What every run imports before it begins.
IMPORTS = "import placeopt.api, placeopt.cli.solving, placeopt.core.kernels.compile"
#: What may be added to a limit: a share of it, and seconds for Python to start and end.
SHARE, SECONDS = 0.1, 0.7
#: Limit of the run before, which does not count; real seconds after which a process is ended.
BEFORE, PATIENCE = 1.0, 300
COLUMNS = (
    "problem | size | limit (s) | --certify | methods | median (s) | worst (s) | over the aim (s) "
    "| refused, or no plan"
)
WORDS = """Every method of each problem answers an instance of benchmarks/auto.md (generator seed \
{seed}) by `placeopt solve --method M --time-limit L`: a process of its own, from its start to the \
front that is written. All seconds are CPU seconds, those of the limit too. `placeopt warm-up` \
came before, and a short run.

Aim: at most {share:g} L + {seconds:g} s. **Kept by all methods in {kept} of {rows} rows.** To \
import what every run needs takes {imports:.2f} s of these."""


def measure(arguments: list[str], program: str = PROGRAM) -> tuple[int, float]:
    """Return exit code and CPU seconds of ``placeopt``, or another program, with some arguments.

    Bytecode is kept, as at a user's: to compile it in each process would take .1 s.
    """
    child = subprocess.Popen(
        ["timeout", str(PATIENCE), sys.executable, "-c", program, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


def answers(kind: str, sizes: dict[str, Any], limit: float, certify: bool) -> list[Any]:
    """Return method, exit code and CPU seconds of every method of a problem."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        instance = str(Path(folder, f"{kind}.json"))
        registry.problem_class(kind).generate(FIRST_SEED, **sizes).write(instance)
        measure(["warm-up", kind])
        for method in methods_of(kind):
            asked = ["solve", instance, "--method", method, "-o", os.devnull]
            asked += ["--certify"] * certify
            measure([*asked, "--time-limit", str(min(limit, BEFORE))])
            found.append((method, *measure([*asked, "--time-limit", str(limit)])))
    return found


def row_of(kind: str, size: str, limit: float, certify: bool, cells: list[Any]) -> list[object]:
    """Return a row of the table."""
    answered = {method: seconds for method, code, seconds in cells if code == 0}
    worst = max(answered, key=lambda m: answered[m])
    most = limit * (1 + SHARE) + SECONDS
    over = ", ".join(f"`{m}` {s:.2f}" for m, s in answered.items() if s > most)
    refused = ", ".join(f"`{m}`" for m, code, _ in cells if code)
    middle = f"{median(answered.values()):.2f}", f"{answered[worst]:.2f} (`{worst}`)"
    certified = "yes" if certify else "no"
    head = (kind, size, f"{limit:g}", certified, len(answered))
    return [*head, *middle, over or "none", refused or "none"]


def main() -> None:
    """Measure, and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numpy", "numba", "pymoo", "highspy", "moocore"),
        limits=[0.5, 1.0, 5.0],
        certify=[0.5, 1.0],
        small=[20.0],
        kinds=[kind for kind, *_ in SIZES[1::2]],
    )
    asked = [(limit, one) for limit in run.limits for one in SIZES[1::2]]
    asked += [(limit, one) for limit in run.small for one in SIZES[::2]]
    rows = []
    for limit, (kind, size, sizes) in asked:
        for certify in (False, True)[: 1 + (limit in run.certify)] if kind in run.kinds else ():
            args = (kind, sizes, limit, certify)
            cells = run.cell(f"{args}", lambda args=args: answers(*args))
            rows.append(shown(row_of(kind, size, limit, certify, cells)))
    imports = median(measure([], IMPORTS)[1] for _ in range(5))
    kept = sum(row[7] == "none" for row in rows)
    told = {"share": 1 + SHARE, "seconds": SECONDS, "kept": kept, "rows": len(rows)}
    words = WORDS.format(seed=FIRST_SEED, imports=imports, **told)
    run.write("Time limits", words, table(COLUMNS, rows))


if __name__ == "__main__":
    main()
