"""The encoding and decoder of the CNSM 2024 paper (section V-B, Fig. 3), kept for comparison.

A gene per request is its start; a gene per replica is one of all types (offer x pricing). Replicas are packed by next fit in
the order of the vector: each type has one open machine, whose capacity is never released, and a replica that does not fit
opens another. Deviations: starts stay within [0, T - d], and machines are paid for the slots in which they host something,
as equation (7) says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.compile import kernel
from placeopt.temporal.instance import Temporal
from placeopt.temporal.referee import PRICINGS


class Types(NamedTuple):
    """Arrays of the kernel: requests n, replicas R, types Y, offers O."""

    horizon: int
    duration: np.ndarray  # (n,)
    demand: np.ndarray  # (n, 2)
    request: np.ndarray  # (R,)
    replicas: np.ndarray  # (n,)
    legal_first: np.ndarray  # (n + 1,)
    legal: np.ndarray  # types that the genes of a request may name
    capacity: np.ndarray  # (Y, 2)
    price: np.ndarray  # (Y,) per slot
    reserved: np.ndarray  # (Y,) paid for the whole horizon
    frequency: np.ndarray  # (Y,)
    latency: np.ndarray  # (n, Y)
    offer: np.ndarray  # (Y,)
    most: np.ndarray  # (O,)


@kernel
def _pack(genes, t, bin_of, kind, free, excess):
    """Pack one vector by next fit; write the violations of cpu and memory into `excess`; return the number of machines."""
    n = len(t.duration)
    opened = np.full(len(t.offer), -1)
    bins = 0
    for r in range(len(t.request)):
        i = t.request[r]
        y = t.legal[t.legal_first[i] + genes[n + r]]
        b = opened[y]
        if b < 0 or free[b, 0] < t.demand[i, 0] or free[b, 1] < t.demand[i, 1]:
            b = bins
            bins += 1
            opened[y] = b
            kind[b] = y
            free[b] = t.capacity[y]
        for k in range(2):
            free[b, k] -= t.demand[i, k]
            if free[b, k] < 0:
                excess[k] -= free[b, k] / t.capacity[y, k]
        bin_of[r] = b
    return bins


@kernel
def _evaluate(X, t):
    """Return F (len(X), 3) and G (len(X), 3): excess of cpu, memory, machines."""
    n, replicas = len(t.duration), len(t.request)
    F, G = np.zeros((len(X), 3)), np.zeros((len(X), 3))
    bin_of, kind, free = (
        np.empty(replicas, dtype=np.int64),
        np.empty(replicas, dtype=np.int64),
        np.empty((replicas, 2), dtype=np.int64),
    )
    for k in range(len(X)):
        genes = X[k]
        bins = _pack(genes, t, bin_of, kind, free, G[k])
        active = np.zeros((bins, t.horizon), dtype=np.bool_)
        worst = np.zeros(n)
        for r in range(replicas):
            i = t.request[r]
            y = kind[bin_of[r]]
            active[bin_of[r], genes[i] : genes[i] + t.duration[i]] = True
            worst[i] = max(worst[i], t.latency[i, y])
            F[k, 2] += t.frequency[y] / (t.replicas[i] * n)
        F[k, 0] = worst.sum() / n
        leased = np.zeros(len(t.most), dtype=np.int64)
        for b in range(bins):
            y = kind[b]
            F[k, 1] += t.price[y] * (t.horizon if t.reserved[y] else active[b].sum())
            leased[t.offer[y]] += 1
        for o in range(len(t.most)):
            if 0 <= t.most[o] < leased[o]:
                G[k, 2] += (leased[o] - t.most[o]) / max(1, t.most[o])
    return F, G


class PublishedEncoder(Encoder):
    """The paper's encoding of a temporal instance; see `placeopt.encoders.Encoder` for the contract.

    Parameters
    ----------
    masked : bool
        Genes name only types in which the replica fits; without it, as published, most vectors are infeasible.
    """

    problem: Temporal

    num_constraints = 3

    def __init__(self, problem: Temporal, objectives: Sequence[Objective], *, masked: bool = True):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        self.types = [
            (k, p) for k, o in enumerate(problem.offers) for p in PRICINGS if o.price(p) is not None
        ]
        offer = np.array([k for k, _ in self.types])
        duration = np.array([r.duration_slots for r in problem.requests])
        replicas = np.array([r.replicas for r in problem.requests])
        allowed = problem.usable[:, offer] if masked else np.isfinite(problem.latencies[:, offer])
        if not allowed.any(axis=1).all() or (duration > problem.horizon_slots).any():
            raise UnsupportedError(
                "the published encoding cannot leave a request out; "
                + "; ".join(problem.infeasibility())
            )
        latency = problem.latencies[:, offer]
        self.arrays = Types(
            problem.horizon_slots,
            duration,
            problem.demands,
            np.repeat(np.arange(len(replicas)), replicas),
            replicas,
            np.concatenate(([0], allowed.sum(axis=1).cumsum())),
            np.nonzero(allowed)[1],
            problem.capacities[offer],
            np.array([problem.slot_price(k, p) for k, p in self.types]),
            np.array([p == "reserved" for _, p in self.types]),
            np.array(
                [
                    (problem.offers[k].spot_interruption or 0.0) if p == "spot" else 0.0
                    for k, p in self.types
                ]
            ),
            np.where(np.isfinite(latency), latency, 0.0),
            offer,
            np.array([-1 if o.max_instances is None else o.max_instances for o in problem.offers]),
        )
        choices = np.diff(self.arrays.legal_first)
        self.upper = np.concatenate(
            (problem.horizon_slots - duration, choices[self.arrays.request] - 1)
        ).astype(np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 3)."""
        F, G = _evaluate(np.ascontiguousarray(X, dtype=np.int64), self.arrays)
        return F[:, self._columns], G

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        t, replicas = self.arrays, len(self.arrays.request)
        bin_of, kind = np.empty(replicas, dtype=np.int64), np.empty(replicas, dtype=np.int64)
        bins = _pack(
            np.ascontiguousarray(genes, dtype=np.int64),
            t,
            bin_of,
            kind,
            np.empty((replicas, 2), dtype=np.int64),
            np.zeros(3),
        )
        machines: list[dict[str, Any]] = []
        for y in kind[:bins]:
            k, pricing = self.types[y]
            machines.append(
                {
                    "location": self.problem.offers[k].location,
                    "size": self.problem.offers[k].size,
                    "pricing": pricing,
                    "replicas": [],
                }
            )
        counts = [0] * len(t.duration)
        for i, b in zip(t.request.tolist(), bin_of.tolist(), strict=True):
            machines[b]["replicas"].append([self.problem.requests[i].name, counts[i]])
            counts[i] += 1
        return {
            "starts": {
                r.name: int(start) for r, start in zip(self.problem.requests, genes, strict=False)
            },
            "instances": machines,
        }

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors drawn uniformly within the bounds."""
        return rng.integers(0, self.upper + 1, size=(count, self.num_genes))
