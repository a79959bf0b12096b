"""Whether a time limit is the whole of a run: every method on every problem, as a process.

All seconds are CPU seconds of the process, and its clock counts them too: what else runs on the
machine makes no difference. `placeopt warm-up` and a short run before each do not count.

python benchmarks/auto/limits.py [--limits .5 1 5] [--certify .5 1] [--small 20]

writes benchmarks/limits.md. With ``--cells FILE`` measured cells are kept there, and taken from
there: the page can be measured in several sittings. With ``--measured`` it has the rows that are in
the file, and no others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from run import FIRST_SEED, SIZES, methods_of  # noqa: E402

from placeopt import registry  # noqa: E402

#: The command line with CPU seconds for a clock.
PROGRAM = (
    "import time; time.perf_counter = time.process_time\nfrom placeopt.__main__ import main; main()"
)
#: What every run imports before it begins.
IMPORTS = "import placeopt.api, placeopt.cli.solving, placeopt.core.kernels.compile"
#: What may be added to a limit: a share of it, and seconds for Python to start and end.
SHARE, SECONDS = 0.1, 0.7
#: Said of a page whose rows were measured before.
SITTINGS = (
    "Put together from several sittings of a day on which the package changed, two runs side by "
    "side; the load above is that at the end."
)
#: Limit of the run before, which does not count.
BEFORE = 1.0
#: Real seconds after which a process is ended.
PATIENCE = 300


class Cell(NamedTuple):
    """One run: whether it answered, and the CPU seconds of its process."""

    method: str
    answered: bool
    seconds: float


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


def cell(instance: str, method: str, limit: float, certify: bool) -> Cell:
    """Run a method, after a short run that finds everything on the disk."""
    asked = ["solve", instance, "--method", method, "-o", os.devnull, *["--certify"] * certify]
    measure([*asked, "--time-limit", str(min(limit, BEFORE))])
    code, seconds = measure([*asked, "--time-limit", str(limit)])
    return Cell(method, code == 0, seconds)


def imports() -> float:
    """Return the CPU seconds of Python and of `IMPORTS`, the median of five."""
    return median(measure([], IMPORTS)[1] for _ in range(5))


def late(limit: float, seconds: float) -> bool:
    """Return whether a run took longer than its limit allows."""
    return seconds > limit * (1 + SHARE) + SECONDS


def row_of(kind: str, size: str, limit: float, certify: bool, cells: list[Cell]) -> list[str]:
    """Return a row of the table."""
    answered = [c for c in cells if c.answered]
    worst = max(answered, key=lambda c: c.seconds)
    over = [c for c in answered if late(limit, c.seconds)]
    refused = ", ".join(f"`{c.method}`" for c in cells if not c.answered)
    return [
        kind,
        size,
        f"{limit:g}",
        "yes" if certify else "no",
        str(len(answered)),
        f"{median(c.seconds for c in answered):.2f}",
        f"{worst.seconds:.2f} (`{worst.method}`)",
        ", ".join(f"`{c.method}` {c.seconds:.2f}" for c in over) or "none",
        refused or "none",
    ]


def page(rows: list[list[str]], said: str, arguments: list[str], absent: list[str]) -> str:
    """Return the page; `absent` are the rows that were asked for and not measured."""
    kept = sum(row[7] == "none" for row in rows)
    return "\n".join(
        [
            "# Time limits",
            "",
            said,
            "",
            f"`python benchmarks/auto/limits.py {' '.join(arguments)}` wrote this page.",
            "",
            "Every method of each problem answers an instance of benchmarks/auto.md "
            f"(generator seed {FIRST_SEED}) by `placeopt solve --method M --time-limit L`: a "
            "process of its own, from its start to the front that is written. All seconds are CPU "
            "seconds, those of the limit too. `placeopt warm-up` came before, and a short run.",
            "",
            f"Aim: at most {1 + SHARE:g} L + {SECONDS:g} s. **Kept by all methods in {kept} of "
            f"{len(rows)} rows.** To import what every run needs takes {imports():.2f} s of these.",
            "",
            *([f"Not measured: {'; '.join(absent)}.", ""] if absent else []),
            *table(
                (
                    "problem",
                    "size",
                    "limit (s)",
                    "--certify",
                    "methods",
                    "median (s)",
                    "worst (s)",
                    "over the aim (s)",
                    "refused, or no plan",
                ),
                rows,
            ),
            "",
        ]
    )


def cells_of(
    kind: str,
    sizes: dict[str, Any],
    limit: float,
    certify: bool,
    kept: Path | None,
    measured: bool = False,
) -> list[Cell]:
    """Measure every method of a problem; take what is kept of it, and keep it.

    Of what is not kept nothing is measured where only what is `measured` is asked for.
    """
    key = f"{kind} {json.dumps(sizes)} {limit:g} {certify}"
    known = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    if key not in known and measured:
        return []
    if key not in known:
        with tempfile.TemporaryDirectory() as folder:
            instance = str(Path(folder, f"{kind}.json"))
            registry.problem_class(kind).generate(FIRST_SEED, **sizes).write(instance)
            measure(["warm-up", kind])
            known[key] = [cell(instance, m, limit, certify) for m in methods_of(kind)]
        if kept is not None:
            kept.write_text(json.dumps(known))
    return [Cell(*one) for one in known[key]]


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=float, nargs="*", default=[0.5, 1, 5])
    parser.add_argument("--certify", type=float, nargs="*", default=[0.5, 1])
    parser.add_argument("--small", type=float, nargs="*", default=[], help="on small instances")
    parser.add_argument("--kinds", nargs="+", default=[kind for kind, *_ in SIZES[1::2]])
    parser.add_argument("--cells", type=Path, metavar="FILE")
    parser.add_argument("--measured", action="store_true", help="only rows that FILE has")
    given = parser.parse_args()
    said, rows = facts("numpy", "numba", "pymoo", "highspy", "moocore"), []
    absent: list[str] = []
    asked = [(limit, one) for limit in given.limits for one in SIZES[1::2]]
    asked += [(limit, one) for limit in given.small for one in SIZES[::2]]
    for limit, (kind, size, sizes) in asked:
        if kind not in given.kinds:
            continue
        for certify in [False, True][: 1 + (limit in given.certify)]:
            cells = cells_of(kind, sizes, limit, certify, given.cells, given.measured)
            if not cells:
                absent.append(f"{kind} at {limit:g} s{' with --certify' * certify}")
                continue
            rows.append(row_of(kind, size, limit, certify, cells))
            print(*rows[-1], sep=" | ", flush=True)
    if given.measured:
        said += f"\n\n{SITTINGS}"
    settings = {k: value for k, value in vars(given).items() if k not in ("cells", "measured")}
    shown = [f"--{name} {' '.join(map(str, value))}" for name, value in settings.items() if value]
    stamps.write(HERE.parent / "limits.md", page(rows, said, shown, absent), __file__, settings)


if __name__ == "__main__":
    main()
