"""How long importing the command line takes, against importing typer and rich alone.

python benchmarks/import_cost.py        # writes benchmarks/import_cost.md
"""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import stamps

ROUNDS = 25
#: What is timed; each in a fresh interpreter, in turn, so that a busy moment hits all alike.
CODES = {
    "python alone": "pass",
    "import typer, rich": "import typer, rich",
    "import placeopt": "import placeopt",
    "import placeopt.cli": "import placeopt.cli",
}
LIMIT = 1.8


def seconds(code: str) -> float:
    """Return the wall-clock seconds of a fresh interpreter that runs `code`."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Time, print and write the table."""
    taken: dict[str, list[float]] = {name: [] for name in CODES}
    for _ in range(ROUNDS):
        for name, code in CODES.items():
            taken[name].append(seconds(code))
    least = {name: min(values) for name, values in taken.items()}
    bare, base = least["python alone"], least["import typer, rich"]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("typer", "rich"))
    lines = [
        "# Import cost",
        "",
        f"{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, "
        f"{versions}; the least and the median of {ROUNDS} fresh interpreters.",
        f"The aim: `placeopt.cli` in at most {LIMIT} times `typer, rich`.",
        "",
        "| what | least s | median s | ratio | ratio without the interpreter |",
        "|---|---|---|---|---|",
    ]
    for name, values in taken.items():
        inner = (least[name] - bare) / (base - bare)
        lines.append(
            f"| `{name}` | {least[name]:.3f} | {statistics.median(values):.3f} "
            f"| {least[name] / base:.2f} | {inner:.2f} |"
        )
    met = (least["import placeopt.cli"] - bare) / (base - bare) <= LIMIT
    lines += [
        "",
        f"The aim is {'met' if met else 'missed'}, counted without the interpreter's own start.",
    ]
    text = "\n".join(lines) + "\n"
    stamps.write(Path(__file__).with_suffix(".md"), text, __file__, {})
    print(text)


if __name__ == "__main__":
    main()
