"""Temporal encoders: the kernels say of every vector what the referee says of its plan."""

from __future__ import annotations

import numpy as np

from placeopt.core.interfaces import build_encoder
from placeopt.temporal.pools import pools
from placeopt.temporal.problem import Temporal


def test_what_is_remembered_changes_no_value():
    """After many vectors, values equal those of an encoder without memory, to the last bit."""
    problem = Temporal.generate(5, requests=30)
    used, rng = build_encoder(problem), np.random.default_rng(1)
    X = used.sample(rng, 200)
    for _ in range(20):
        X = used.vary(rng, X, X[rng.permutation(200)])
        again = used.evaluate(X)[0]
    for genes, values in zip(X[::10], again[::10], strict=True):
        np.testing.assert_array_equal(build_encoder(problem).evaluate(genes[None])[0][0], values)


def test_no_two_pools_are_taken_for_each_other():
    """Of many pools with several replicas of a request none has the cost of another."""
    problem = Temporal.generate(951, requests=10)
    forwards, backwards = (build_encoder(problem, problem.objectives) for _ in range(2))
    X = forwards.sample(np.random.default_rng(1), 60_000)
    F = forwards.evaluate(X)[0]
    assert (F == backwards.evaluate(X[::-1])[0][::-1]).all()


def test_where_nothing_is_limited_every_vector_is_feasible():
    """An instance without limits needs no constraint column at all."""
    problem = Temporal.generate(3, requests=10)
    encoder = build_encoder(problem)
    X = encoder.sample(np.random.default_rng(1), 30)
    assert encoder.num_constraints == 0 and encoder.evaluate(X)[1].shape == (30, 0)
    assert all(problem.evaluate(encoder.decode(x)).feasible for x in X)


def test_no_pool_that_another_makes_pointless():
    """Spot at or above the on-demand price is no pool; without an on-demand price it is."""
    problem = Temporal.generate(1)
    dear = {
        (o.location, o.size)
        for o in problem.offers
        if o.spot_usd_per_hour >= o.on_demand_usd_per_hour
    }
    spot = {
        (problem.offers[p.offer].location, problem.offers[p.offer].size)
        for p in pools(problem)
        if p.spot
    }
    assert dear and not dear & spot


def test_a_dominated_offer_changes_no_value():
    """An offer that is dearer and farther than another is never needed.

    The old vectors keep their values.
    """
    document = Temporal.generate(2, requests=6).to_document()
    worse = {
        **document["offers"][0],
        "size": "worse",
        "on_demand_usd_per_hour": 9.0,
        "reserved_usd_per_hour": 9.0,
        "spot_usd_per_hour": 8.9,
    }
    old = Temporal.from_document(document)
    new = Temporal.from_document({**document, "offers": [*document["offers"], worse]})
    X = build_encoder(old).sample(np.random.default_rng(1), 20)
    plans = [build_encoder(old).decode(x) for x in X]
    encoder = build_encoder(new)
    np.testing.assert_allclose(
        encoder.evaluate(np.array([encoder.encode(p) for p in plans]))[0],
        build_encoder(old).evaluate(X)[0],
    )


def test_reordering_requests_and_offers_changes_no_cost_of_a_single_request():
    """With one request at a time, what is packed does not depend on how things are numbered."""
    document = Temporal.generate(4, requests=1).to_document()
    turned = {**document, "offers": document["offers"][::-1]}
    one, other = (build_encoder(Temporal.from_document(d)) for d in (document, turned))
    plan = one.decode(one.sample(np.random.default_rng(1), 1)[0])
    np.testing.assert_allclose(
        one.evaluate(one.encode(plan)[None])[0], other.evaluate(other.encode(plan)[None])[0]
    )
