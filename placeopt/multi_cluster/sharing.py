"""What requests share, as a convex program, and bounds that prices prove.

Requests in parts share clusters while they run, whose loads have a Gini coefficient. What they add
to each other's latency is a convex function (`placeopt.multi_cluster.shared_latency`). Kernels look
for prices of what is shared (`placeopt.multi_cluster.prices`); any prices prove bounds, so that
nothing depends on how near to the best they are.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.budget import Budget
from placeopt.multi_cluster import prices
from placeopt.multi_cluster.alone import Requests
from placeopt.multi_cluster.prices import Shared, State
from placeopt.multi_cluster.shared_latency import SharedLatency
from placeopt.multi_cluster.straight import Straight

#: Rounds of steps, steps in each, and how large steps of prices are beside those of parts. They are
#: larger where latency, whose steps are small, has no weight.
_ROUNDS, _STEPS, _RATIO, _RATIO_STRAIGHT = 4, 50, 0.3, 3.0


class Sharing:
    """The convex program: requests in parts on clusters, and what they share.

    The inequality after a refused request does not count: it is taken off.
    """

    def __init__(self, table: Requests, weights: np.ndarray):
        self.table, self.weights = table, weights
        self._states = dict[int, State]()
        self._straight: Straight | None = None
        arrays, (T, C) = table.arrays, table.room.shape
        # running[t, j]: request j still runs, if it was accepted, when t has arrived.
        earlier = np.tri(T, k=-1, dtype=bool)
        self.running = earlier & (arrays.departure > arrays.arrival[:, None]) | np.eye(
            T, dtype=bool
        )
        self.share = np.minimum(1.0, table.room / arrays.replicas[:, None])
        self.share[~table.acceptable] = 0.0
        self.shared = SharedLatency(arrays, self.share, self.running)
        free = np.maximum(arrays.capacity - arrays.used, 1)
        size = arrays.replicas[:, None] * arrays.demand.T[:, :, None] / free.T[:, None, :]
        most = table.most_running.astype(float)
        together = self.running | self.running.T
        self._pairs = np.nonzero(together)
        self._terms = Shared(
            last=T - 1 - self.running[::-1].argmax(axis=0),
            size=np.ascontiguousarray(size),
            replicas=arrays.replicas.astype(float),
            share=self.share,
            most=most,
            without=(1 - 1 / C) * (most - arrays.replicas) / most,
            least=table.least_gini(),
            price=arrays.price,
            linear=self.shared.linear,
            quadratic=self._quadratic(),
            starts=np.append(0, together.sum(axis=1).cumsum()),
            others=self._pairs[1],
        )

    def _quadratic(self) -> np.ndarray:
        """Return the entries of the sum of latencies for pairs that run together, (pairs, C)."""
        return np.ascontiguousarray(self.shared.quadratic.transpose(1, 2, 0)[self._pairs])

    def _nothing(self) -> State:
        """Return a state without parts, where nothing has a price."""
        T, C = self.share.shape
        return State(
            np.zeros((T, C)),
            np.zeros((2, T, C)),
            np.zeros((T, C * (C - 1) // 2)),
            np.zeros((T, 2)),
            np.zeros(1),
        )

    def proven(self, row: int, accepted: int, numbers: np.ndarray) -> np.ndarray:
        """Return bounds on the least cost of each of `numbers` requests by a row of weights.

        Prices are for `accepted` requests, from those that were best for this row before.
        """
        weights, state = self.weights[row], self._states.get(row)
        if state is None:
            state = self._nothing()
        ratio = _RATIO if weights[0] > 0 else _RATIO_STRAIGHT
        args = self._terms, state, weights, accepted, _ROUNDS, _STEPS, ratio
        self._states[row] = state = State(*prices.improve(*args)[0])
        return self.by_prices(state, weights, numbers)

    def proven_straight(
        self, row: int, accepted: int, numbers: np.ndarray, budget: Budget
    ) -> np.ndarray | None:
        """Return bounds as `proven` does, for a row of weights without latency.

        Prices are the dual values of a linear program. None where the time is not enough for it.
        """
        if self._straight is None:
            self._straight = Straight(self._terms, self.running)
        state = self._straight.prices(self.weights[row], accepted, budget)
        return None if state is None else self.by_prices(state, self.weights[row], numbers)

    def by_prices(self, state: State, weights: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the bounds that any legal prices prove."""
        result = np.empty(len(self.share))
        prices.bounds_of(self._terms, state, weights, result)
        return result[numbers - 1]

    def lean(self, row: int) -> None:
        """Make the sum of latencies tighter near the solution of a row."""
        self.shared.lean(self._states[row].parts)
        self._terms = self._terms._replace(linear=self.shared.linear, quadratic=self._quadratic())

    def most_accepted(self, budget: Budget, seconds: float) -> int:
        """Return a number of requests that no plan accepts more of: a whole-number program."""
        import scipy.sparse as sp

        from placeopt.exact.program import Program
        from placeopt.exact.solvers import solve

        table, arrays, (T, C) = self.table, self.table.arrays, self.share.shape
        free = arrays.capacity - arrays.used
        # Where the next request arrives before any departs, more runs after that one.
        full = [t for t in range(T) if t + 1 == T or (self.running[t] & ~self.running[t + 1]).any()]
        rows = [sp.hstack([sp.kron(sp.eye(T), np.ones((1, C))), -sp.diags(arrays.replicas * 1.0)])]
        for r in range(2):
            size = sp.csr_matrix(self.running[full] * arrays.demand[:, r].astype(float))
            rows.append(sp.hstack([sp.kron(size, sp.eye(C)), sp.csr_matrix((len(full) * C, T))]))
        high = np.concatenate([np.zeros(T), *(np.tile(free[:, r], len(full)) for r in range(2))])
        program = Program(
            np.append(np.zeros(T * C), -np.ones(T)),
            sp.vstack(rows),
            np.where(np.arange(len(high)) < T, 0.0, -np.inf),
            high,
            np.zeros(T * C + T),
            np.append(table.room.ravel(), table.acceptable),
            np.ones(T * C + T, bool),
        )
        bound = solve(program, seconds=seconds, budget=budget, absolute_gap=0.5).bound
        most = int(table.acceptable.sum())
        return most if math.isinf(bound) else min(most, math.floor(1e-6 - bound))
