"""Figures 2 to 5 of the re-orchestration paper, and what is proven how fast, in CPU seconds.

    python benchmarks/rolling_update/run.py [--instances 20] [--only figures|proofs]

Writes figures.md with fig2.png to fig5.png, and results.md, the proofs, beside this file. The
proofs with time-indexed models take minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts  # noqa: E402
from rolling_update import figures, proofs  # noqa: E402


def main() -> None:
    """Run both halves and write their pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--instances", type=int, default=20, help="random instances per setting (the paper: 50)"
    )
    parser.add_argument("--only", choices=("figures", "proofs"))
    arguments = parser.parse_args()
    said = facts("numba", "highspy", "pyscipopt", "pyomo", "numpy")
    for name, page, half in (("figures", "figures.md", figures), ("proofs", "results.md", proofs)):
        if arguments.only in (None, name):
            lines = [*half.TITLE, said, "", *half.report(arguments.instances)]
            stamps.write(HERE / page, "\n".join(lines), __file__, vars(arguments))


if __name__ == "__main__":
    main()
