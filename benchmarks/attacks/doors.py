"""Public functions and adapters of Python, called with what they are not made for.

python benchmarks/attacks/doors.py                   # writes benchmarks/attacks/doors.md

All calls of ``tests/support/door_calls.py``, each place of an argument by itself, then random ones
with up to three wrong arguments. They are made in a process of their own, so that a crash is seen.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SUPPORT = HERE.parents[1] / "tests" / "support"
sys.path[:0] = [str(HERE.parent), str(SUPPORT)]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

CALLS = SUPPORT / "door_calls.py"
#: Seconds of all calls.
LONGEST = 5400


def called(names: Sequence[str], options: Sequence[str]) -> Iterator[list[Any]]:
    """Yield what the calls say; after a crash of the process, which is a line too, go on."""
    left = list(names)
    while left:
        command = [sys.executable, str(CALLS), *options, *left]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
            out, code, last = done.stdout, done.returncode, done.stderr.strip().splitlines()[-1:]
        except subprocess.TimeoutExpired as error:
            out, code, last = (error.stdout or b"").decode(), -1, ["no end"]
        said = [json.loads(line) for line in out.splitlines() if line.endswith("]")]
        yield from said
        if code == 0:
            return
        begun = next((line[1] for line in reversed(said) if line[0] == "begun"), left[0])
        yield ["wrong", begun, "", f"exit code {code}: {last}"]
        left = left[left.index(begun) + 1 :]


def main() -> None:
    """Call every door and write doors.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=200, help="random calls of a door")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun, machine = time.monotonic(), facts("numpy", "pydantic", "pymoo")
    names = json.loads(subprocess.check_output([sys.executable, str(CALLS), "--names"]))
    counts = {name: {"answered": 0, "refused": 0, "wrong": 0} for name in names}
    wrong: list[str] = []
    for options in ([], ["--random", str(given.random), "--seed", str(given.seed)]):
        for kind, name, *rest in called(names, options):
            if kind == "wrong":
                counts[name]["wrong"] += 1
                wrong.append(f"* {name}: {rest[0]}: {rest[1]}")
                print(wrong[-1], flush=True)
            elif kind == "ended":
                for end, count in rest[0].items():
                    counts[name][end] += count
    rows = [(name, sum(ends.values()), *ends.values()) for name, ends in counts.items()]
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
