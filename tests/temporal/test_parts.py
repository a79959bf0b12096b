"""Independent parts of temporal vectors, against a graph and against exchanges of parts."""

from __future__ import annotations

from collections import defaultdict

import networkx as nx
import numpy as np
import pytest

from placeopt.core.interfaces import build_encoder
from placeopt.temporal.problem import Temporal


def vectors(seed: int):
    """Return an encoder and related vectors; some seeds have a request that fits nowhere."""
    rng = np.random.default_rng(seed)
    document = Temporal.generate(
        seed, requests=int(rng.integers(2, 12)), horizon=int(rng.integers(10, 60))
    ).to_document()
    if seed % 3 == 0:
        document["requests"][0]["memory_gib"] = 1e6  # fits nowhere
    encoder = build_encoder(Temporal.from_document(document))
    X = encoder.sample(rng, 8)
    X[:4] = np.where(
        rng.random(X[:4].shape) < 0.7, np.minimum(X[:4, :1] % 3, encoder.upper), X[:4]
    )  # requests that stay together
    return encoder, np.concatenate((X, encoder.vary(rng, X, X[::-1].copy())))


def by_hand(encoder, genes: np.ndarray) -> set[frozenset[int]]:
    """Return the sets of requests that share locations: components of a bipartite graph."""
    t, graph = encoder.arrays, nx.Graph()
    n = len(t.duration)
    for i in np.flatnonzero(encoder.served):
        for r in range(t.first[i], t.first[i + 1]):
            graph.add_edge(
                ("request", int(i)),
                ("location", int(t.place[t.legal[t.legal_first[i] + genes[n + r]]])),
            )
    return {
        frozenset(i for kind, i in component if kind == "request")
        for component in nx.connected_components(graph)
    }


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_the_components_and_add_up(seed):
    """Labels are those of the components, keys are equal where the requests are.

    Values add up to those of the vector.
    """
    encoder, X = vectors(seed)
    n, parts = len(encoder.arrays.duration), encoder.parts(X)
    np.testing.assert_allclose(
        parts.values.sum(axis=1), encoder.evaluate(X)[0], rtol=1e-9, atol=1e-12
    )
    keys = defaultdict(set)
    for genes, label, key in zip(X, parts.label, parts.key, strict=True):
        assert (label[:n] >= 0).tolist() == encoder.served.tolist()
        np.testing.assert_array_equal(label[n:], label[encoder.arrays.request])
        assert {
            frozenset(np.flatnonzero(label[:n] == part).tolist()) for part in np.flatnonzero(key)
        } == by_hand(encoder, genes)
        for part in np.flatnonzero(key):
            keys[int(key[part])].add(frozenset(np.flatnonzero(label[:n] == part).tolist()))
    assert all(len(sets) == 1 for sets in keys.values()) and len(
        {s for sets in keys.values() for s in sets}
    ) == len(keys)


def test_a_part_stands_in_for_one_of_the_same_requests():
    """Where a new part shares no location with others, goals change by the parts' difference."""
    exchanged = 0
    for seed in range(10):
        encoder, X = vectors(seed)
        t, rng = encoder.arrays, np.random.default_rng(seed)
        for _ in range(30):
            X = encoder.mutate(rng, X)
            n, parts = len(t.duration), encoder.parts(X)
            pools = t.place[
                t.legal[t.legal_first[t.request] * encoder.served[t.request] + X[:, n:]]
            ]
            for a, b in rng.integers(0, len(X), (20, 2)):
                for p, q in np.argwhere(
                    (parts.key[a][:, None] == parts.key[b]) & (parts.key[a] > 0)[:, None]
                ):
                    mine, theirs = parts.label[a] == p, parts.label[b] == q
                    others = set(pools[a][~mine[n:] & encoder.served[t.request]].tolist())
                    if (
                        a == b
                        or others & set(pools[b][theirs[n:]].tolist())
                        or (X[a][mine] == X[b][mine]).all()
                    ):
                        continue
                    child = np.where(mine, X[b], X[a])
                    expected = parts.values[a].sum(axis=0) - parts.values[a, p] + parts.values[b, q]
                    np.testing.assert_allclose(
                        encoder.evaluate(child[None])[0][0], expected, rtol=1e-9, atol=1e-12
                    )
                    exchanged += 1
    assert exchanged > 100


def test_the_columns_are_those_of_the_objectives():
    """A selection of objectives selects columns."""
    problem = Temporal.generate(3, requests=5)
    every, some = (
        build_encoder(problem),
        build_encoder(problem, problem.select(["interruption", "cost_usd"])),
    )
    X = every.sample(np.random.default_rng(1), 5)
    np.testing.assert_array_equal(some.parts(X).values, every.parts(X).values[:, :, [2, 1]])
