"""Whether methods end by themselves, and what a certificate says: the command line's defaults.

All seconds are CPU seconds of the process, and its clock counts them too.

python benchmarks/auto/defaults.py [--part certificates ends] [--cells FILE]

writes benchmarks/defaults.md. With ``--cells FILE`` what is measured is kept there, and taken from
there: the page can be measured in several sittings.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from limits import SITTINGS, measure  # noqa: E402
from machine import facts, table  # noqa: E402
from run import FIRST_SEED, methods_of  # noqa: E402

from placeopt import registry  # noqa: E402
from placeopt.core.front import Front  # noqa: E402
from placeopt.core.gap import percent  # noqa: E402

#: The largest shipped instance of each problem.
SHIPPED = {
    "temporal": "aws-50",
    "edge-cloud": "basic-50",
    "rolling-update": "repack-10x5",
    "multi-cluster": "stream-4x100",
    "rescheduling": "chain-12",
}
#: A method ends by itself within so many seconds; a certificate is asked for within so many.
MINUTE, CERTIFIED = 60, 20
#: What the points written at the README's command may miss, of what is attainable.
AIM = 0.025


class Cells:
    """What was measured, by name; kept in a file where one is given."""

    def __init__(self, file: Path | None):
        self._file = file
        self._known: dict[str, Any] = {}
        if file is not None and file.exists():
            self._known = json.loads(file.read_text())

    def of(self, name: str, arguments: list[str]) -> Any:
        """Return exit code, CPU seconds, and the gap of the front written."""
        if name not in self._known:
            with tempfile.TemporaryDirectory() as folder:
                written = Path(folder, "front.json")
                code, seconds = measure([*arguments, "-o", str(written)])
                gap = Front.read(written).gap() if code == 0 and "--certify" in arguments else None
            self._known[name] = [code, seconds, gap]
            if self._file is not None:
                self._file.write_text(json.dumps(self._known))
        return self._known[name]


def instances(folder: Path) -> list[tuple[str, str, str]]:
    """Return problem, what it is called, and file or name of every instance."""
    found = [(kind, f"`{name}`", name) for kind, name in SHIPPED.items()]
    for kind in SHIPPED:
        file = folder / f"{kind}.json"
        registry.problem_class(kind).generate(FIRST_SEED).write(file)
        found.append((kind, "the generator's default", str(file)))
    return found


def ends(cells: Cells, folder: Path) -> list[tuple[str, ...]]:
    """Let every method answer every instance without a limit; return the rows."""
    rows = []
    for kind, called, instance in instances(folder):
        taken = {}
        for method in methods_of(kind):
            asked = ["solve", instance, "--method", method]
            code, seconds, _ = cells.of(f"ends {kind} {called} {method}", asked)
            taken[method] = (code, seconds)
        answered = {m: seconds for m, (code, seconds) in taken.items() if code == 0}
        late = [f"`{m}` {s:.0f}" for m, (_, s) in taken.items() if s > MINUTE]
        refused = [f"`{m}`" for m, (code, _) in taken.items() if code]
        last = max(answered, key=lambda m: answered[m])
        rows.append(
            (
                kind,
                called,
                str(len(answered)),
                f"{median(answered.values()):.1f}",
                f"{answered[last]:.1f} (`{last}`)",
                ", ".join(late) or "none",
                ", ".join(refused) or "none",
            )
        )
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def certificates(cells: Cells, folder: Path) -> list[tuple[str, ...]]:
    """Ask for a certificate of every instance; return the rows."""
    rows = []
    for kind, called, instance in instances(folder):
        asked = ["solve", instance, "--time-limit", str(CERTIFIED), "--certify"]
        _, seconds, gap = cells.of(f"certificate {kind} {called}", asked)
        missing = "nothing proven" if gap is None else "none" if gap == 0 else percent(gap)
        rows.append((kind, called, f"{seconds:.1f}", missing))
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def page(parts: dict[str, list[tuple[str, ...]]], said: str, arguments: str) -> str:
    """Return the page."""
    text = ["# Defaults that end, and certificates", "", said, ""]
    text += [f"`python benchmarks/auto/defaults.py {arguments}` wrote this page.", ""]
    text += [
        "The largest shipped instances, and those of `placeopt generate` with seed "
        f"{FIRST_SEED} and no sizes. "
        "All seconds are CPU seconds of the whole process, those of limits too.",
        "",
    ]
    if "ends" in parts:
        rows = parts["ends"]
        late = sum(row[5] != "none" for row in rows)
        text += [
            "## Without a limit",
            "",
            f"Every method ends by itself. Aim: within {MINUTE} s. **Some method takes longer in "
            f"{late} of {len(rows)} rows.**",
            "",
            *table(
                (
                    "problem",
                    "instance",
                    "methods",
                    "median (s)",
                    "slowest (s)",
                    "over a minute (s)",
                    "refused, or no plan",
                ),
                rows,
            ),
            "",
        ]
    if "certificates" in parts:
        rows = parts["certificates"]
        text += [
            f"## `placeopt solve INSTANCE --time-limit {CERTIFIED} --certify`",
            "",
            "What the points written miss at most of the attainable hypervolume. Aims: every "
            f"problem prints a gap; `aws-50`, the README's, at most {AIM:.1%}.",
            "",
            *table(("problem", "instance", "seconds", "at most missing"), rows),
            "",
        ]
    return "\n".join(text)


def main() -> None:
    """Measure, and write the page."""
    os.chdir(ROOT)  # shipped instances are found by their names
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"certificates": certificates, "ends": ends}
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--cells", type=Path, metavar="FILE")
    given = parser.parse_args()
    said, cells = facts("numpy", "numba", "pymoo", "highspy", "moocore"), Cells(given.cells)
    with tempfile.TemporaryDirectory() as folder:
        found = {name: parts[name](cells, Path(folder)) for name in given.part}
    if given.cells is not None:
        said += f"\n\n{SITTINGS}"
    shown = f"--part {' '.join(given.part)}"
    text = page(found, said, shown)
    stamps.write(HERE.parent / "defaults.md", text, __file__, {"part": given.part})


if __name__ == "__main__":
    main()
