"""Public functions and adapters of Python, called with what they are not made for.

    python benchmarks/attack_doors.py [--random 200] [--seed 1]

All calls of ``tests/support/door_calls.py``, each place of an argument by itself, then random ones
with up to three wrong arguments. They are made in a process of their own, so that a crash is seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from harness import ROOT, Benchmark, table

CALLS = ROOT / "tests" / "support" / "door_calls.py"
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
    """Call every door and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "pydantic", "pymoo", random=200, seed=1)
    names = json.loads(subprocess.check_output([sys.executable, str(CALLS), "--names"]))
    counts = {name: {"answered": 0, "refused": 0, "wrong": 0} for name in names}
    wrong: list[str] = []
    for options in ([], ["--random", str(run.random), "--seed", str(run.seed)]):
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
    run.write(
        "Wrong arguments to public functions",
        "*Refused*: an error of placeopt's own, in one line. *Wrong*: a crash of the process, an "
        "error of Python or of another library, a call that takes too long.",
        table("door | calls | answered | refused | wrong", [*rows, total]),
        wrong,
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
