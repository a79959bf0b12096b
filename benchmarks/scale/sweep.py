"""The README's sweep over five problems, killed in the middle and taken up by the same command.

    python benchmarks/scale/sweep.py [--kill-after 100]     # writes sweep.md; about ten minutes

300 runs: 2 instances of each problem, 3 methods, 5 seeds, 2 budgets.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

ROOT = HERE.parents[1]
COMMAND = "placeopt sweep examples/study.toml --run-dir {folder} --jobs 2"


def fronts(folder: Path) -> dict[str, bytes]:
    """Return the fronts of the finished runs by file name."""
    return {p.name: p.read_bytes() for p in (folder / "runs").glob("*.front.json")}


def command(folder: Path) -> list[str]:
    """Return the README's command; the table and the page go to `folder`."""
    return [sys.executable, "-m", *COMMAND.format(folder=folder).split()]


def killed(folder: Path, count: int) -> dict[str, bytes]:
    """Start the sweep, kill it with SIGKILL after `count` runs, return what it kept."""
    process = subprocess.Popen(
        command(folder), cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while len(fronts(folder)) < count and process.poll() is None:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return fronts(folder)


def main() -> None:
    """Run, kill, take up, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill-after", type=int, default=100)
    count = parser.parse_args().kill_after
    line = facts("pymoo", "moocore", "scipy", "joblib")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        kept = killed(folder, count)
        between = time.perf_counter()
        subprocess.run(command(folder), cwd=ROOT, check=True)
        ended = time.perf_counter()
        after = fronts(folder)
        with (folder / "results.csv").open(newline="") as file:
            runs = list(csv.DictReader(file))
        page = (folder / "index.html").read_text()
    fetched = re.findall(r'(?:src|href)="(?:https?:)?//[^"]+"', page)
    again = sum(after[name] != content for name, content in kept.items())
    rows = [
        ("runs of the plan, all with a front", len(runs), all(not r["error"] for r in runs)),
        ("kept at the kill, as they were after it", len(kept), again == 0),
        ("made by the same command after it", len(after) - len(kept), len(after) == len(runs)),
        ("links of the page that need a network", len(fetched), not fetched),
        ("seconds before the kill", f"{between - began:.0f}", ""),
        ("seconds after it, with table and page", f"{ended - between:.0f}", ""),
    ]
    text = [
        "# A sweep that is killed and taken up",
        "",
        line,
        "",
        f"`{COMMAND.format(folder='study')}`",
        "",
    ]
    text += table(("what", "measured", "holds"), rows)
    settings = {"kill_after": count}
    stamps.write(HERE / "sweep.md", "\n".join(text), __file__, settings)


if __name__ == "__main__":
    main()
