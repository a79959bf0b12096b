"""What the measures of the CNSM 2024 paper share: instance, settings, reference points, runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from placeopt_papers import cnsm_csv

import placeopt
from placeopt.core.fronts.front import Front
from placeopt.temporal.problem import Temporal

NAMES = ("latency_ms", "cost_usd", "interruption")
#: Choices of goals by the figure that shows their fronts.
GOALS = {"Fig. 4a": (0, 1), "Fig. 4b": (1, 2), "Fig. 5": (0, 1, 2)}
#: Fixed reference points of the repository: for random starts, and for good fronts.
WIDE, TIGHT = (190.2, 1484.5, 0.0760), (105.0, 581.0, 0.073)
_AS_PUBLISHED = {"encoding": "published", "operators": "sbx", "seeded": False}
#: The paper's three algorithms.
PUBLISHED = ("NSGA-II", "NSGA-III", "MSPSO")


def published(name: str, goals: int) -> tuple[str, dict[str, Any]]:
    """Return our method and its parameters for an algorithm of the paper.

    Encoding, operators, sizes and random starts are those of its code, solve.py. That asks for at
    most 30 reference directions of NSGA-III: jMetalPy makes 30 for two goals and 28 for three.
    """
    if name == "NSGA-II":
        return "nsga2", {**_AS_PUBLISHED, "population": 150, "offspring": 80}
    if name == "NSGA-III":
        sizes = {"divisions": {2: 29, 3: 6}[goals], "population": 150, "offspring": 150}
        return "nsga3", {**_AS_PUBLISHED, **sizes}
    return "mspso", dict(_AS_PUBLISHED)


def paper_instance() -> tuple[Temporal, str]:
    """Return the paper's own instance, or ``aws-50`` without PLACEOPT_DATA, and which it is."""
    if "PLACEOPT_DATA" not in os.environ:
        return placeopt.load("aws-50"), "aws-50, drawn as the paper says: PLACEOPT_DATA is not set"
    folder = Path(os.environ["PLACEOPT_DATA"]) / "cnsm2024"
    files = ("Services.csv", "AWS_EC2_Pricing.csv", "AWS_EC2_Latency.csv")
    document = cnsm_csv.read(*(folder / name for name in files), name="cnsm-2024")
    return Temporal.from_document(document), "the paper's own, of its repository"


def solved(
    problem: Temporal,
    method: str,
    goals: tuple[int, ...],
    evaluations: int,
    seed: int,
    **parameters: Any,
) -> dict[str, Any]:
    """Return the values of a front, and CPU seconds with and without judging it."""
    from placeopt.evolve.search import VectorSearch

    judging = [0.0]
    conclude = VectorSearch.conclude

    def timed(self: VectorSearch, *args: Any, **kwargs: Any) -> Front:
        began = time.process_time()
        front = conclude(self, *args, **kwargs)
        judging[0] += time.process_time() - began
        return front

    VectorSearch.conclude = timed  # type: ignore[method-assign]
    began = time.process_time()
    try:
        front = placeopt.solve(
            problem,
            method,
            objectives=[NAMES[c] for c in goals],
            evaluations=evaluations,
            seed=seed,
            **parameters,
        )
    finally:
        VectorSearch.conclude = conclude  # type: ignore[method-assign]
    seconds = time.process_time() - began
    return {
        "values": [[float(f"{v:.7g}") for v in row] for row in front.values],
        "seconds": seconds,
        "search_seconds": seconds - judging[0],
    }


def worst_reference(fronts: list[Any]) -> np.ndarray:
    """Return the published rule: 1.1 times the worst value of all fronts, (objectives,)."""
    return 1.1 * np.concatenate([np.array(front) for front in fronts]).max(axis=0)


def hypervolume(values: Any, reference: Any) -> float:
    """Return the volume between a front and a reference point, as the published code takes it."""
    from moocore import hypervolume as volume

    return float(volume(np.array(values), ref=np.array(reference)))


def sparsity(values: Any) -> float:
    """Return (19): squared differences of neighbours, goal by goal, over the points less one."""
    F = np.sort(np.array(values), axis=0)
    return float((np.diff(F, axis=0) ** 2).sum() / max(1, len(F) - 1))
