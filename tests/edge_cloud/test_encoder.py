"""The edge-cloud encoder: values of the referee, plans and vectors, use by the searches."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import greedy


@given(st.integers(0, 10**6))
def test_feasible_plans_survive(seed):
    """A feasible plan is encoded and decoded as it is."""
    problem = random_instance(seed, missing=0.1)
    encoder = build_encoder(problem)
    for point in greedy(Task(problem, problem.objectives, Budget(), 1), parts=5).points:
        assert encoder.decode(encoder.encode(point.plan)) == point.plan


def test_seeds_are_good_vectors():
    """Seeds are within the bounds, feasible, and far better than random vectors."""
    problem = EdgeCloud.generate(1, applications=30)
    encoder, rng = build_encoder(problem, problem.objectives[::-1]), np.random.default_rng(0)
    X = seeds(encoder, rng)
    assert len(X) > 5 and (X <= encoder.upper).all()
    F, G = encoder.evaluate(X)
    assert (
        not G.any()
        and F[:, 0].min() < 0.7 * encoder.evaluate(encoder.sample(rng, 50))[0][:, 0].min()
    )


def scanned(encoder, genes):
    """Return the nodes of a vector by a look at all nodes, nearest first, and how many are full."""
    tables, a = encoder.tables, encoder.problem.arrays
    room, hosts = a.capacity.copy(), np.full(len(a.demand), -1)

    def fits(service, node):
        ends = range(a.flow_first[service], a.flow_first[service + 1])
        return (
            (a.demand[service] <= room[node]).all()
            and np.isfinite(a.delay[a.source[a.application_of[service]], node])
            and all(
                hosts[a.flow_other[k]] < 0
                or a.delay[hosts[a.flow_other[k]], node] <= a.flow_limit[k]
                for k in ends
            )
        )

    def nearest(start, fitting):
        near = [v for v in a.near[start] if np.isfinite(a.delay[start, v])]
        return next((v for v in near if fitting(v)), -1)

    for application in tables.order:
        services = range(a.first[application], a.first[application + 1])
        for service in services:
            if tables.legal_first[service] == tables.legal_end[service]:
                node = -1
            else:
                node = tables.legal[tables.legal_first[service] + genes[service]]
                node = node if fits(service, node) else nearest(node, partial(fits, service))
            if node < 0:
                for k in services:
                    room[hosts[k]] += a.demand[k] * (hosts[k] >= 0)
                whole = a.demand[list(services)].sum(axis=0)
                node = nearest(a.source[application], lambda v: (whole <= room[v]).all())  # noqa: B023
                for k in services:
                    hosts[k] = node
                    room[node] -= a.demand[k] * (node >= 0)
                break
            hosts[service] = node
            room[node] -= a.demand[service]
    return hosts, (room < a.demand.min(axis=0)).any(axis=1).sum()


def hard(seed, load):
    """Return an instance with delays that are equal, and delays that are unknown."""
    document = EdgeCloud.generate(seed, applications=30, load=load).to_document()
    rng = np.random.default_rng(seed)
    document["delay_ms"] = {
        one: {other: round(ms) for other, ms in row.items() if rng.random() < 0.8}
        for one, row in document["delay_ms"].items()
    }
    return EdgeCloud.from_document(document)


@pytest.mark.parametrize("make", [hard, partial(EdgeCloud.generate, applications=30)])
@pytest.mark.parametrize("load", [0.4, 0.9, 1.5])
def test_no_node_is_overlooked_where_many_are_full(make, load):
    problem = make(3, load=load)
    encoder = build_encoder(problem)
    full = 0
    for genes in encoder.sample(np.random.default_rng(1), 8):
        hosts, now_full = scanned(encoder, genes)
        np.testing.assert_array_equal(problem.hosts(encoder.decode(genes)), hosts)
        full += now_full
    assert full > 0
