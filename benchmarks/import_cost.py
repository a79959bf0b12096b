"""How long importing the command line takes, against importing typer and rich alone.

python benchmarks/import_cost.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from harness import Benchmark, table, verdict

ROUNDS, LIMIT = 25, 1.8
#: What is timed; each in a fresh interpreter, in turn, so that a busy moment hits all alike.
CODES = {
    "python alone": "pass",
    "import typer, rich": "import typer, rich",
    "import placeopt": "import placeopt",
    "import placeopt.cli": "import placeopt.cli",
}


def seconds(code: str) -> float:
    """Return the wall-clock seconds of a fresh interpreter that runs `code`."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Time and write the page."""
    run = Benchmark(__file__, __doc__, "typer", "rich")
    rounds = [{name: seconds(code) for name, code in CODES.items()} for _ in range(ROUNDS)]
    taken = {name: [one[name] for one in rounds] for name in CODES}
    least = {name: min(values) for name, values in taken.items()}
    bare, base = least["python alone"], least["import typer, rich"]
    inner = {name: (value - bare) / (base - bare) for name, value in least.items()}
    rows = []
    for name, values in taken.items():
        seconds_of = f"{least[name]:.3f}", f"{statistics.median(values):.3f}"
        rows.append((f"`{name}`", *seconds_of, f"{least[name] / base:.2f}", f"{inner[name]:.2f}"))
    run.write(
        "Import cost",
        f"The least and the median of {ROUNDS} fresh interpreters. The aim: `placeopt.cli` in at "
        f"most {LIMIT} times `typer, rich`.",
        table("what | least s | median s | ratio | ratio without the interpreter", rows),
        f"The aim is {verdict(inner['import placeopt.cli'] <= LIMIT)}, counted without the "
        "interpreter's own start.",
    )


if __name__ == "__main__":
    main()
