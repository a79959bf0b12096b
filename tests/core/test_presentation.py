"""Fronts in notebooks: the picture shows all points, or says how many."""

from __future__ import annotations

import re

import numpy as np
import pytest

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.presentation import sample
from placeopt.core.fronts.values import InstanceName, Objective, Point


def curve(count: int) -> Front:
    """Return a front of points on a curve."""
    x = np.linspace(1, 2, count)
    points = [Point((float(a), float(4 - a)), {}) for a in x]
    goals = (Objective("cost", "USD"), Objective("latency", "ms"))
    return Front(InstanceName("temporal", "toy", "0" * 64), goals, tuple(points))


@pytest.mark.parametrize("count", [1, 2, 20, 499, 501, 2000, 2001, 7000])
def test_the_picture_spans_the_front(count: int) -> None:
    text = curve(count)._repr_html_()
    dots = [float(x) for x in re.findall(r'<circle cx="([0-9.]+)" [^>]*fill="#0072B2"', text)]
    assert max(dots) == max(float(x) for x in re.findall(r'cx="([0-9.]+)"', text))
    if count > 1:
        assert max(dots) - min(dots) > 170, "the points reach both ends of the axis"
        middles = np.histogram(dots, bins=10)[0]
        assert count < 20 or middles.min() >= 0.5 * middles.mean(), "and lie all along it"
    said = re.findall(r"The picture has ([0-9,]+) of ([0-9,]+) points", text)
    assert said == ([] if len(dots) == count else [(f"{len(dots):,}", f"{count:,}")])


@pytest.mark.parametrize("goals", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_the_best_and_worst_of_every_goal(goals: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(6000, goals))
    drawn = values[sample(values)]
    assert len(drawn) < 2100
    assert (drawn.min(axis=0) == values.min(axis=0)).all()
    assert (drawn.max(axis=0) == values.max(axis=0)).all()
