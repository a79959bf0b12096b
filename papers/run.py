"""Every table, figure and numbered claim of the five papers: measure, and write the page.

    make papers                      # the full settings; what an earlier run left is taken up
    make papers QUICK=1              # few seeds, short runs, under 10 minutes: out/papers
    make papers ONLY=name,name       # these measures alone, then the page
    make papers MINUTES=5            # measures of many instances end after 5 CPU minutes each
                                     # a measure that dies fails the run; the others' results stay
    python papers/run.py --page     # the page alone, from the results that there are

Full results go to ``results/*.json`` and ``results/*.md`` here, the page to ``results.md`` and,
with pictures, to ``build/papers.html``; the site has it, too. Measures that train need PyTorch
(``make rl``). ``entry.py`` says what an entry is, ``measure.py`` how a measure is written.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import math
import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "benchmarks")]
#: Times are of one core: a second thread of NumPy's BLAS spins, 8 ms a decision instead of .3.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import stamps  # noqa: E402
from papers import measure, page  # noqa: E402
from papers.entry import Paper  # noqa: E402

#: One file each in ``entries/``, in the order of the page.
PAPERS = ("hephaestusforge", "cnsm", "edge_cloud", "reach", "rolling_update")
#: Measures that train, for which PyTorch is needed: `make rl`. Without it committed results stay.
TRAINING = ("hephaestus_training", "hephaestus_masks", "reach_training")


def papers() -> list[Paper]:
    """Return the five papers with their entries."""
    return [importlib.import_module(f"papers.entries.{key}").PAPER for key in PAPERS]


def write_pages(*, quick: bool) -> str:
    """Write the page from the results that there are; return the count in a sentence."""
    found = measure.documents(quick=quick)
    known = papers()
    results = {name: document["result"] for name, document in found.items()}
    if quick:
        page.write_html(measure.SCRATCH / "papers.html", page.html(known, found, quick=True))
        return page.summary(known, results)
    stamps.write(HERE / "results.md", page.markdown(known, found), __file__, {})
    write_html(stamps.ROOT / "build" / "papers.html")
    return page.summary(known, results)


def write_html(path: Path) -> None:
    """Write the page with pictures, from the committed results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page.write_html(path, page.html(papers(), measure.documents(quick=False), quick=False))


def main() -> None:
    """Run the measures asked for, one after the other, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few seeds, short runs")
    parser.add_argument("--only", default="", help="names of measures, with commas between")
    parser.add_argument("--minutes", type=float, default=math.inf, help="CPU minutes a measure")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--no-page", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    chosen = [name for name in asked.only.split(",") if name] or measure.names()
    if unknown := sorted(set(chosen) - set(measure.names())):
        parser.error(f"no measure {', '.join(unknown)}; there are {', '.join(measure.names())}")
    if importlib.util.find_spec("torch") is None and not asked.page:
        left = [name for name in chosen if name in TRAINING]
        chosen = [name for name in chosen if name not in TRAINING]
        if left:
            print(f"left as they are: {', '.join(left)}; to train, `make rl`", file=sys.stderr)
    died: dict[str, str] = {}
    if len(chosen) > 1 and not asked.page:  # each in a process of its own
        settings = ["--no-page", "--minutes", str(asked.minutes)]
        settings += ["--quick"] if asked.quick else []
        for name in chosen:
            command = [sys.executable, __file__, "--only", name, *settings]
            if last_lines := failure(command):
                died[name] = last_lines
    elif chosen and not asked.page:
        began = time.process_time()
        measure.run(chosen[0], quick=asked.quick, minutes=asked.minutes)
        print(f"{chosen[0]}: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    if asked.no_page:
        return
    print(write_pages(quick=asked.quick))
    if died:
        told = "\n".join(f"{name} died:\n{lines}" for name, lines in died.items())
        sys.exit(f"{told}\nfailed: {', '.join(died)}; the page has their earlier results, if any")


def failure(command: list[str]) -> str:
    """Run a command, its output shown as it comes; return its end if it failed, else nothing."""
    last: deque[str] = deque(maxlen=30)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", file=sys.stderr, flush=True)
            last.append(f"  {line.rstrip()}")
    if process.returncode == 0:
        return ""
    return "\n".join([*last, f"  exit status {process.returncode}"])


if __name__ == "__main__":
    main()
