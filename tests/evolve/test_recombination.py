"""Recombination of parts: against all combinations, and its gain for a search."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest

import placeopt
from placeopt.core.fronts.dominance import contributions, hypervolume, nondominated
from placeopt.core.interfaces import Parts
from placeopt.evolve import moead, recombination
from placeopt.temporal.problem import Temporal

PARTS = 4


def divided(seed: int, objectives: int = 3, size: int = 60) -> tuple[Parts, np.ndarray, np.ndarray]:
    """Return a front of vectors that divide six things among parts.

    Gene k is the part of thing k, gene 6 + k the number of the vector.
    """
    rng = np.random.default_rng(seed)
    label = rng.choice(
        [[0, 0, 1, 1, 2, 2], [0, 0, 0, 3, 3, 3], [1, 2, 2, 1, 0, 0], [3, 3, 1, 1, 1, 1]], size=size
    )
    names = rng.integers(1, 2**64, size=64, dtype=np.uint64)
    X = np.concatenate((label, np.repeat(np.arange(size), 6).reshape(-1, 6)), axis=1)
    key, values = np.zeros((size, PARTS), dtype=np.uint64), np.zeros((size, PARTS, objectives))
    for k, part in itertools.product(range(size), range(PARTS)):
        held = np.flatnonzero(label[k] == part)
        if len(held):
            key[k, part] = names[(1 << held).sum()]
            values[k, part] = len(held) * rng.dirichlet(np.ones(objectives)) + 0.1 * rng.random(
                objectives
            )
    keep = nondominated(values.sum(axis=1))
    return (
        Parts(np.tile(label, 2)[keep].astype(np.int16), key[keep], values[keep]),
        X[keep],
        values.sum(axis=1)[keep],
    )


def every_combination(parts: Parts) -> dict[frozenset[tuple[int, int]], np.ndarray]:
    """Return the goals of all plans of one alternative for each key of each vector."""
    alternatives = defaultdict(list)
    for k, part in np.argwhere(parts.key):
        alternatives[int(parts.key[k, part])].append((int(k), int(part)))
    sums = {}
    for keys in {tuple(sorted(int(x) for x in row if x)) for row in parts.key}:
        for chosen in itertools.product(*(alternatives[key] for key in keys)):
            sums[frozenset(chosen)] = sum(parts.values[k, part] for k, part in chosen)
    return sums


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_against_every_combination(seed, objectives, monkeypatch):
    """Children are combinations; none is dominated; with F they cover all combinations."""
    monkeypatch.setattr(recombination, "MAX_OF_ONE", 10**6)
    parts, X, F = divided(seed, objectives)
    number = {int(x[6]): k for k, x in enumerate(X)}
    sums = every_combination(parts)
    children = recombination.recombine(parts, X, F, 100_000)
    made = []
    for child in children:
        pieces = {
            (number[int(source)], int(place))
            for place, source in zip(child[:6], child[6:], strict=True)
        }
        assert frozenset(pieces) in sums
        made.append(sum(parts.values[k, part] for k, part in pieces))
    both = np.concatenate((F, np.array(made).reshape(-1, objectives)))
    assert nondominated(np.round(both, 9))[len(F) :].all()
    reference = 1.1 * F.max(axis=0)
    reached, best = (
        hypervolume(both, reference),
        hypervolume(np.array(list(sums.values())), reference),
    )
    assert best > hypervolume(F, reference) and best * (1 - 2e-3) <= reached <= best * (1 + 1e-9)


def test_the_most_useful_are_chosen():
    """Of a limited number, those of the largest contributions."""
    parts, X, F = divided(3)
    every, few = (
        recombination.recombine(parts, X, F, 100_000),
        recombination.recombine(parts, X, F, 5),
    )
    assert len(few) == 5 < len(every) and {tuple(x) for x in few} <= {tuple(x) for x in every}


def test_contributions_are_differences_of_hypervolumes():
    """What is lost without a row."""
    values = np.random.default_rng(1).dirichlet(np.ones(3), size=12)
    reference = values.max(axis=0) + 0.1 * (values.max(axis=0) - values.min(axis=0))
    lost = [
        hypervolume(values, reference) - hypervolume(np.delete(values, k, axis=0), reference)
        for k in range(len(values))
    ]
    np.testing.assert_allclose(contributions(values), lost, atol=1e-12)


def test_nothing_to_exchange():
    """Vectors without a key in common give no children."""
    parts, X, F = divided(4)
    own = np.where(
        parts.key > 0,
        np.random.default_rng(1).integers(1, 2**64, size=parts.key.shape, dtype=np.uint64),
        np.uint64(0),
    )
    assert len(recombination.recombine(parts._replace(key=own), X, F, 100)) == 0


@pytest.mark.thorough
def test_it_is_worth_its_evaluations(monkeypatch):
    """MOEA/D reaches more hypervolume with it, on each of three instances."""
    problems = [Temporal.generate(seed, requests=20) for seed in (1, 2, 3)]
    fronts = [placeopt.solve(p, "moead", evaluations=8000, seed=1) for p in problems]
    monkeypatch.setattr(moead, "RECOMBINATIONS", ())
    for problem, front in zip(problems, fronts, strict=True):
        without = placeopt.solve(problem, "moead", evaluations=8000, seed=1)
        assert front.hypervolume(without.reference()) > without.hypervolume(without.reference())
