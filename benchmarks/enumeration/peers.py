"""The models of the tests of MultiObjectiveAlgorithms.jl, by `placeopt.enumerate`.

    python benchmarks/enumeration/peers.py

Writes ``peers.md`` beside this file: what is stated there, the answer, and why it differs. Exit
code 1 where an answer is not what is stated. Two minutes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "exact")]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from peer_models import PEERS, Peer, judged  # noqa: E402

SOLVERS = ("highs", "scip")


def main() -> None:
    """Answer all models by both solvers, and write the table."""
    rows, false = [], 0
    for peer in PEERS:
        answers, cells = [], []
        for solver in SOLVERS:
            began = time.process_time()
            said, is_stated, calls = judged(peer, solver=solver)
            answers.append((said, is_stated))
            cells += [calls, f"{time.process_time() - began:.1f}"]
        said, is_stated = min(answers, key=lambda answer: answer[1])
        false += not is_stated
        equal = "NO" if not is_stated else "no" if peer.stated == "other" else "yes"
        rows.append([peer.name, peer.tests, stated(peer), said, equal, *cells])
        rows[-1].append(peer.why)
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    others = sum(peer.stated == "other" for peer in PEERS)
    header = ["model", "their tests", "stated", "placeopt", "equal"]
    for solver in SOLVERS:
        header += [f"{solver}: calls", "CPU s"]
    lines = [
        "# The tests of MultiObjectiveAlgorithms.jl, by `placeopt.enumerate`",
        "",
        "Written by `peers.py`. The models are those of version b71397a that have a stated set,",
        "number, status or error; `tests/exact/peer_models.py` has them. Tests that share a model",
        "share a row. Where they look for one solution, `placeopt.ask` answers.",
        f"* {facts('highspy', 'pyscipopt', 'pyomo', 'numpy')}",
        f"* {len(PEERS)} models: {len(PEERS) - false - others} answers are what is stated, by both "
        f"solvers; {others} mean something else, {false} are false",
        "",
        *table([*header, "what differs, and why"], rows),
        "",
    ]
    stamps.write(HERE / "peers.md", "\n".join(lines), __file__, {})
    sys.exit(1 if false else 0)


def stated(peer: Peer) -> str:
    """Return what a test states, in words."""
    count = peer.values if isinstance(peer.values, int) else len(peer.values)
    words = {
        "front": f"{count} points",
        "some": f"{min(count, 10) if isinstance(peer.values, int) else 3} points of the front",
        "point": str(peer.values[0]) if count == 1 and peer.stated == "point" else "",
        "other": str(peer.values[0]) if peer.stated == "other" else "",
        "ideal": f"ideal point {peer.values}",
        "extreme": f"{count} extreme points",
        "of front": f"{count} extreme points",
    }
    return words.get(peer.stated, peer.stated)


if __name__ == "__main__":
    main()
