"""What is proven how fast of rolling updates, in CPU seconds.

    python benchmarks/rolling_update/run.py [--instances 20]

Writes results.md beside this file. The proofs with time-indexed models take minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts  # noqa: E402
from rolling_update import proofs  # noqa: E402


def main() -> None:
    """Run both halves and write their pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=20, help="random instances of a setting")
    given = parser.parse_args()
    said = facts("numba", "highspy", "pyscipopt", "pyomo", "numpy")
    lines = [*proofs.TITLE, said, "", *proofs.report(given.instances)]
    stamps.write(HERE / "results.md", "\n".join(lines), __file__, vars(given))


if __name__ == "__main__":
    main()
