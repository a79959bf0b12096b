"""Prices where latency has no weight: what requests share is then a linear program.

First-order steps (`placeopt.multi_cluster.prices`) come near to its least value slowly. HiGHS has
it in a tenth of a second for a hundred requests, and its dual values are the prices.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.sparse as sp

from placeopt.core.budget import Budget
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.multi_cluster.prices import Shared, State, within


class Straight:
    """The linear program of sums of cost and inequality.

    Columns: parts of each request on each cluster (T, C); the difference of two clusters' loads
    after each request, above 0 and below (2, T, P); the inequality after it that counts (T,).
    """

    def __init__(self, terms: Shared, running: np.ndarray):
        self._terms = terms
        (T, C), runs = terms.share.shape, sp.csr_matrix(running.astype(float))
        pairs = list(combinations(range(C), 2))
        ways = sp.csr_matrix([[float(c == a) - float(c == b) for c in range(C)] for a, b in pairs])
        counts = runs.multiply(terms.replicas / (C * terms.most)[:, None])
        each = sp.kron(sp.eye(T), np.ones((1, C)))
        differences, eye = sp.eye(T * len(pairs)), sp.eye(T)
        apart = sp.kron(eye, np.ones((1, len(pairs))))
        uses = [sp.kron(runs, sp.eye(C)) @ sp.diags(size.ravel()) for size in terms.size]
        rows = sp.bmat(
            [
                *([use, None, None, None] for use in uses),
                [sp.kron(counts, ways), -differences, differences, None],
                [-sp.diags(terms.without) @ each, -apart, -apart, eye],
                [-sp.diags(terms.least) @ each, None, None, eye],
                [np.ones((1, T * C)), None, None, None],
                [each, None, None, None],
            ]
        )
        free, at_least = np.full(2 * T * C, -np.inf), np.zeros(differences.shape[0])
        self._lower = np.concatenate(
            [free, at_least, -terms.without, np.zeros(T), [0.0], np.full(T, -np.inf)]
        )
        upper = np.concatenate(
            [np.ones(2 * T * C), at_least, np.full(2 * T + 1, np.inf), np.ones(T)]
        )
        most = np.append(terms.share.ravel(), np.full(rows.shape[1] - T * C, np.inf))
        nothing = np.zeros(rows.shape[1])
        program = Program(nothing, rows, self._lower, upper, nothing, most, nothing)
        self._session = Session(program)

    def prices(self, weights: np.ndarray, accepted: int, budget: Budget) -> State | None:
        """Return the parts and prices of least cost for weights; None where time runs out."""
        s, (T, C) = self._terms, self._terms.share.shape
        P = C * (C - 1) // 2
        cost = np.concatenate(
            [np.tile(weights[1] * s.price, T), np.zeros(2 * T * P), np.full(T, weights[2])]
        )
        ends = np.cumsum([2 * T * C, T * P, T, T])  # room, differences, both rows of inequality
        at = int(ends[-1])
        self._lower[at] = accepted
        self._session.change(c=cost, row_lower=self._lower.copy())
        outcome = self._session.solve(budget=budget)
        if outcome.status != "optimal" or outcome.row_duals is None or outcome.x is None:
            return None
        room, differences, first, second = np.split(outcome.row_duals[:at], ends[:-1])
        state = State(
            np.ascontiguousarray(outcome.x[: T * C].reshape(T, C)),
            np.maximum(0.0, -room).reshape(2, T, C),
            -differences.reshape(T, P),
            np.column_stack((first, second)),
            np.array([max(0.0, float(outcome.row_duals[at]))]),
        )
        for t in range(T):
            within(state.differences, state.unequal, t, weights[2])
        return state
