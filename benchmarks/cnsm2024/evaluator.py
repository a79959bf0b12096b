"""The batch evaluator against a straightforward Python evaluate of the published decoder, one after the other in one process.

    PLACEOPT_DATA=... python benchmarks/cnsm2024/evaluator.py        # writes benchmarks/cnsm2024/evaluator.md
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cnsm2024.instance import paper_instance
from cnsm2024.peer import PeerProblem
from machine import facts, table

from placeopt.encoders import build
from placeopt.encoders.temporal_published import PublishedEncoder

ROUNDS = 5
AIM = 70


def main() -> None:
    """Time, print and write the table."""
    text = ["# Evaluations per second on the paper's instance", "", facts("numpy", "numba", "jmetalpy"), ""]
    problem = paper_instance()
    peer = PeerProblem(problem)
    solutions = [peer.create_solution() for _ in range(300)]
    encoders = {"legal pools, cheapest bin (ours)": build(problem), "published next fit, compiled": PublishedEncoder(problem, problem.objectives)}
    vectors = {name: encoder.sample(np.random.default_rng(1), 5000) for name, encoder in encoders.items()}
    taken: dict[str, list[float]] = {name: [] for name in ("published next fit, Python", *encoders)}
    for name, encoder in encoders.items():
        encoder.evaluate(vectors[name][:2])  # compile
    for _ in range(ROUNDS):
        began = time.process_time()
        for solution in solutions:
            peer.evaluate(solution)
        taken["published next fit, Python"].append((time.process_time() - began) / len(solutions))
        for name, encoder in encoders.items():
            began = time.process_time()
            encoder.evaluate(vectors[name])
            taken[name].append((time.process_time() - began) / len(vectors[name]))
    base = min(taken["published next fit, Python"])
    rows = [(name, f"{min(t) * 1e6:.1f}", f"{np.median(t) * 1e6:.1f}", f"{base / min(t):.0f}") for name, t in taken.items()]
    text += table(("evaluator", "least us per vector (CPU)", "median us", "times faster"), rows)
    ratio = base / min(taken["legal pools, cheapest bin (ours)"])
    text += ["", f"Random feasible vectors, {ROUNDS} rounds in turn. The aim of {AIM} times is {'met' if ratio >= AIM else 'missed'}: {ratio:.0f}."]
    (Path(__file__).parent / "evaluator.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
