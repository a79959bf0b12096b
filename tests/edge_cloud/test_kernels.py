"""The kernels that encoder, decision sequence and local search share."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import random_instance

from placeopt.edge_cloud import arrays as kernels
from placeopt.edge_cloud.arrays import node_loads


@pytest.mark.parametrize("seed", range(20))
def test_random_placements_agree_with_the_referee(seed):
    """Nodes that fit keep the plan legal, others break it; room, cost and latency are right."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    instance, rng = problem.arrays, np.random.default_rng(seed)
    room, hosts = instance.capacity.copy(), np.full(len(instance.demand), -1)
    for service in rng.permutation(len(hosts)):
        node = int(rng.integers(len(room)))
        fits = kernels.fits(instance, kernels.Placement(hosts, room), service, node)
        kernels.put(instance, kernels.Placement(hosts, room), service, node)
        broken = {v.kind for v in problem.evaluate(problem.plan(hosts)).violations}
        assert fits == (broken <= {"not-placed"})
        if not fits:
            kernels.take(instance, kernels.Placement(hosts, room), service)
            assert hosts[service] == -1
        assert np.array_equal(room, instance.capacity - node_loads(instance, hosts))
    cost = sum(kernels.cost(instance, i, hosts[i]) for i in np.flatnonzero(hosts >= 0))
    latency = sum(kernels.latency(instance, hosts, a) for a in range(len(instance.source)))
    assert problem.evaluate(problem.plan(hosts)).values == pytest.approx((cost, latency))
