"""The parameters of all methods by name and type: an editor sees a typo in `placeopt.solve`.

``placeopt methods NAME`` says what each does. Those of own methods are given as ``**options``, a
``dict[str, Any]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from placeopt.rl.policy import TrainedPolicy


class Parameters(TypedDict, total=False):
    """What `placeopt.solve` hands to the method; each method takes some of them."""

    base: str
    beta: float
    block: int
    cells: int | None
    directions: int
    divisions: int | None
    effort: float
    encoding: str
    episodes: str
    fineness: float | None
    gamma: float
    grid: int | None
    horizon: float
    leaders: int
    lines: int
    main: str | None
    max_coefficients: int
    max_hops: int | None
    max_moves: int | None
    max_removed: int
    methods: Sequence[str] | str
    min_gain_ms: float
    min_saving_per_move: float
    neighbours: int
    offspring: int | None
    operators: str
    order: str | None
    part_evaluations: int
    part_size: int
    particles: int
    parts: int
    points: int | None
    policy: TrainedPolicy | str
    population: int | None
    replacements: int
    restarts: int | None
    rounds: int
    samples: int
    seeded: bool
    solver: str
    strength: float
    threshold: float
    tried: int
    weight: float | None
    weights: Sequence[float] | str | None
