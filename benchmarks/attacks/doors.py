"""Public functions and adapters of Python, called with what they are not made for.

python benchmarks/attacks/doors.py                   # writes benchmarks/attacks/doors.md

All calls of ``tests/support/door_calls.py``, each place of an argument by itself, then random ones
with up to three wrong arguments. Every door is called in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUPPORT = HERE.parents[1] / "tests" / "support"
sys.path[:0] = [str(HERE.parent), str(SUPPORT)]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

CALLS = SUPPORT / "door_calls.py"
#: Seconds of all calls of a door.
LONGEST = 1200


def called(options: Sequence[str]) -> list[list[object]]:
    """Return what the calls say; a crash of the process is one of the lines."""
    command = [sys.executable, str(CALLS), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return [["wrong", options[0], "", "no end"]]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        said.append(["wrong", options[0], "", f"exit code {done.returncode}: {last}"])
    return said


def main() -> None:
    """Call every door and write doors.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=200, help="random calls of a door")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun, machine = time.monotonic(), facts("numpy", "pydantic", "pymoo")
    names = [str(line[1]) for line in called(["--random", "1"]) if line[0] == "begun"]
    rows, wrong = [], []
    for name in names:
        counts = {"answered": 0, "refused": 0, "wrong": 0}
        for more in ([], ["--random", str(given.random), "--seed", str(given.seed)]):
            for kind, _, *rest in called([name, *more]):
                if kind == "wrong":
                    counts["wrong"] += 1
                    wrong.append(f"* {name}: {rest[0]}: {rest[1]}")
                    print(wrong[-1], flush=True)
                elif kind == "ended" and isinstance(rest[0], dict):
                    counts = {key: counts[key] + rest[0].get(key, 0) for key in counts}
        rows.append((name, sum(counts.values()), *counts.values()))
    total = ("**all**", *(sum(row[k] for row in rows) for k in range(1, 5)))
    text = [
        "# Wrong arguments to public functions",
        "",
        "*Refused*: an error of placeopt's own, in one line. *Wrong*: a crash of the process,",
        "an error of Python or of another library, a call that takes too long.",
        "",
        f"`python benchmarks/attacks/doors.py --random {given.random} --seed {given.seed}`. "
        f"{machine} {time.monotonic() - begun:.0f} s.",
        "",
        *table(("door", "calls", "answered", "refused", "wrong"), [*rows, total]),
        *(["", *wrong] if wrong else []),
        "",
    ]
    stamps.write(HERE / "doors.md", "\n".join(text), __file__, vars(given))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
