"""Fronts in notebooks: the picture shows all points, or says how many."""

from __future__ import annotations

import re

import numpy as np
import pytest

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.plot.front_scene import spread


def fronts(values: np.ndarray) -> Front:
    """Return a front of these points."""
    goals = tuple(Objective(f"goal{k}", "ms") for k in range(values.shape[1]))
    name = InstanceName("temporal", "toy", "0" * 64)
    return Front(name, goals, tuple(Point(tuple(v), {}) for v in values.tolist()))


@pytest.mark.parametrize("count", [1, 2, 20, 501, 2000, 2001, 7000])
def test_the_picture_spans_the_front(count: int) -> None:
    x = np.linspace(1, 2, count)
    text = fronts(np.column_stack((x, 4 - x)))._repr_html_()
    picture = text[text.index("<svg") : text.index("</svg>")]
    dots = [float(x) for x in re.findall(r'<circle cx="([0-9.]+)"[^>]* r="3"', picture)]
    if count > 1:
        assert max(dots) - min(dots) > 600, "the points reach both ends of the axis"
        middles = np.histogram(dots, bins=10)[0]
        assert count < 20 or middles.min() >= 0.5 * middles.mean(), "and lie all along it"
    said = re.findall(r"The picture has ([0-9,]+) of ([0-9,]+) points", text)
    assert said == ([] if len(dots) == count else [(f"{len(dots):,}", f"{count:,}")])


@pytest.mark.parametrize("goals", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_spread_has_the_best_and_worst_of_every_goal(goals: int, seed: int) -> None:
    whole = fronts(np.random.default_rng(seed).dirichlet(np.ones(goals), size=6000))
    drawn = spread(whole)
    assert len(whole) == 6000 and len(drawn) < 2100
    assert (drawn.ideal == whole.ideal).all() and (drawn.nadir == whole.nadir).all()
