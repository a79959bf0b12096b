"""The configuration program against a linear program over all patterns, solved by SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from temporal_instances import tiny

from placeopt.core.budget import Budget
from placeopt.temporal.exact.bounds import ConfigurationLP
from placeopt.temporal.exact.tables import Numbers, numbers
from placeopt.temporal.problem import Temporal


def limited(seed: int) -> Temporal:
    """Return a tiny instance; on odd seeds the first offer is a single machine."""
    problem = tiny(seed, requests=3, offers=4)
    document = problem.to_document()
    if seed % 2:
        document["offers"][0]["max_instances"] = 1
    return Temporal.from_document(document)


def runs_at_once(data: Numbers, lease) -> list[np.ndarray]:
    """Return all patterns of replicas that fit a machine and reach its place."""
    return [
        np.array(counts)
        for counts in itertools.product(*(range(r + 1) for r in data.replicas))
        if any(counts)
        and (np.array(counts) @ data.demands <= data.sizes[lease.size]).all()
        and not (np.array(counts) * (data.latency[:, lease.place] < 0)).any()
    ]


def by_scipy(data: Numbers, latency: float, interruption: float) -> float:
    """Return the optimum of the program as ``models/temporal/bin_plans.md`` prints it."""
    n, work = len(data.replicas), data.replicas * data.durations
    limits = {lease.offer: lease.limit for lease in data.leases if lease.limit is not None}
    reserved = [k for k, lease in enumerate(data.leases) if lease.reserved]
    time = {k: n + 2 + q for q, k in enumerate(reserved)}
    once = {
        (k, i): n + 2 + len(reserved) + q
        for q, (k, i) in enumerate(itertools.product(reserved, range(n)))
    }
    last = n + 2 + len(reserved) * (1 + n)
    limit = {offer: last + q for q, offer in enumerate(limits)}
    upper = np.zeros(last + len(limits))
    upper[:n], upper[n], upper[n + 1] = -work, latency, interruption
    for offer, row in limit.items():
        upper[row] = data.horizon * limits[offer]
    columns, cost = [], []
    for k, lease in enumerate(data.leases):
        for counts in runs_at_once(data, lease):
            column = np.zeros(len(upper))
            column[:n] = -counts
            column[n] = (counts * data.latency[:, lease.place] / work).sum()
            column[n + 1] = (counts * data.share / data.durations).sum() * lease.frequency
            if lease.reserved:
                column[time[k]] = 1
                for i in np.flatnonzero(counts):
                    column[once[k, i]] = 1
            elif lease.offer in limit:
                column[limit[lease.offer]] = 1
            columns.append(column)
            cost.append(0 if lease.reserved else lease.price)
        if lease.reserved:
            column = np.zeros(len(upper))
            column[time[k]] = -data.horizon
            for i in range(n):
                column[once[k, i]] = -data.durations[i]
            if lease.offer in limit:
                column[limit[lease.offer]] = data.horizon
            columns.append(column)
            cost.append(lease.price * data.horizon)
    result = linprog(cost, A_ub=np.array(columns).T, b_ub=upper)
    return float(result.fun) if result.success else np.inf


@pytest.mark.parametrize("seed", range(12))
def test_value_and_cuts(seed: int) -> None:
    """The value is near the optimum from above, the cut from below, at limits of all kinds."""
    problem = limited(seed)
    if problem.infeasibility():
        pytest.skip("the single machine is too small for a request")
    data = numbers(problem, problem.objectives)
    program = ConfigurationLP(data)
    usable = problem.arrays.usable
    places = [data.places.index(offer.location) for offer in problem.offers]
    near = int(np.where(usable, data.latency[:, places], 2**40).min(axis=1).sum())
    for latency in (data.max_latency, (near + data.max_latency) // 2):
        for interruption in (data.max_interruption, data.max_interruption // 3, 0):
            optimum = by_scipy(data, latency, interruption)
            value = program.solve(latency, interruption, Budget())
            if np.isinf(optimum):
                continue
            cut = program.cuts[-1]
            assert value is not None and optimum * (1 - 1e-9) <= value <= optimum * (1 + 2e-3)
            assert (1 - 2e-3) * optimum <= cut.at(latency, interruption) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_every_cut_holds_at_all_limits(seed: int) -> None:
    """A cut that is proven at one pair of limits bounds the optimum at every other."""
    problem = tiny(seed, requests=3, offers=4)
    data = numbers(problem, problem.objectives)
    program = ConfigurationLP(data)
    grid = list(
        itertools.product(
            np.linspace(0, data.max_latency, 4), np.linspace(0, data.max_interruption, 3)
        )
    )
    for latency, interruption in grid[::2]:
        program.solve(latency, interruption, Budget())
    for latency, interruption in grid:
        optimum = by_scipy(data, latency, interruption)
        for cut in program.cuts:
            assert cut.at(latency, interruption) <= optimum * (1 + 1e-9) + 1e-6
