"""Machine reassignment: a binary for each process and machine that it may be on, in whole numbers.

HiGHS has the whole model. CP-SAT has it where it has at most `WHOLE` binaries. Beyond that it has
one neighbourhood after another, as an expert would do: what runs on some machines may be on any of
them, the rest stays. All columns of the plan at hand are hinted.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from peers.cp import WORKERS, stopped

#: Binaries of a whole model, and of a neighbourhood; CPU seconds for one neighbourhood.
WHOLE, PART, SECONDS = 100_000, 500, 1.0
#: No limit of a row.
FREE = 2**60


class Rows:
    """A linear model in numbers: columns with bounds, costs and a start, rows with entries."""

    def __init__(self) -> None:
        self.upper: list[np.ndarray] = []
        self.cost: list[np.ndarray] = []
        self.start: list[np.ndarray] = []
        self.columns = self.rows = 0
        self.entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []

    def add_columns(self, upper: Any, cost: Any, count: int, start: Any) -> np.ndarray:
        """Return the numbers of new columns of whole numbers from 0, with values to start from."""
        for kept, value in ((self.upper, upper), (self.cost, cost), (self.start, start)):
            kept.append(np.broadcast_to(np.asarray(value, dtype=np.int64), count))
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def add_rows(self, low: Any, high: Any, count: int, *parts: tuple[Any, Any, Any]) -> None:
        """Add rows; parts are (row, column, value) arrays, rows counted from 0."""
        for row, column, value in parts:
            values = np.broadcast_to(np.asarray(value, dtype=np.int64), np.shape(column))
            self.entries.append((np.asarray(row) + self.rows, np.asarray(column), values))
        self.low.append(np.broadcast_to(np.asarray(low, dtype=np.int64), count))
        self.high.append(np.broadcast_to(np.asarray(high, dtype=np.int64), count))
        self.rows += count

    def matrix(self) -> Any:
        """Return the rows as a sparse matrix."""
        from scipy.sparse import csr_array

        row, column, value = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        kept = value != 0
        shape = self.rows, self.columns
        return csr_array((value[kept], (row[kept], column[kept])), shape=shape)


class Model:
    """The model of an instance: which pairs of process and machine there are, where it starts.

    Parameters
    ----------
    a : the arrays of the instance.
    process, machine : ndarray of int, shape (pairs,)
        A process with one pair stays there.
    host : ndarray of int, shape (processes,)
        A plan that keeps all rules.
    """

    def __init__(self, a: Any, process: np.ndarray, machine: np.ndarray, host: np.ndarray):
        self.a, self.process, self.machine, self.rows = a, process, machine, Rows()
        home, rows = a.home[process], self.rows
        away = machine != home
        cost = np.where(away, a.move_cost[process] + a.between[home, machine], 0)
        self.on = rows.add_columns(1, cost, len(process), machine == host[process])
        rows.add_rows(1, 1, len(a.home), (process, self.on, 1))
        self.use = np.zeros_like(a.capacity)
        np.add.at(self.use, host, a.requirement)
        self._add_capacities(away)
        self._add_balances()
        self._add_services(host)
        self._add_moves(~away, host)

    def _add_capacities(self, away: np.ndarray) -> None:
        """Add capacities, and use above the safety capacities."""
        a, rows = self.a, self.rows
        M, R = a.capacity.shape
        for r in range(R):
            need = a.requirement[self.process, r]
            at_home = np.bincount(a.home, a.requirement[:, r], M).astype(np.int64) * a.transient[r]
            held = need * away if a.transient[r] else need
            rows.add_rows(0, a.capacity[:, r] - at_home, M, (self.machine, self.on, held))
            start = np.maximum(self.use[:, r] - a.safety[:, r], 0)
            over = rows.add_columns(a.capacity[:, r], a.load_cost[r], M, start)
            above = (self.machine, self.on, need), (np.arange(M), over, -1)
            rows.add_rows(-FREE, a.safety[:, r], M, *above)

    def _add_balances(self) -> None:
        """Add what is free without its match."""
        a, rows, M = self.a, self.rows, len(self.a.location)
        for one, other, target, cost in a.balance.tolist():
            need = target * a.requirement[:, one] - a.requirement[:, other]
            free = target * a.capacity[:, one] - a.capacity[:, other]
            used = target * self.use[:, one] - self.use[:, other]
            start = np.maximum(free - used, 0)
            lack = rows.add_columns(target * a.capacity[:, one], cost, M, start)
            spread = (self.machine, self.on, need[self.process]), (np.arange(M), lack, 1)
            rows.add_rows(free, FREE, M, *spread)

    def _there(self, place: np.ndarray, inside: np.ndarray, host: np.ndarray) -> Any:
        """Add whether processes are in each place; return columns, and their pairs' places."""
        count = int(place.max()) + 1
        start = np.isin(np.arange(count), place[host[np.unique(self.process[inside])]])
        return self.rows.add_columns(1, 0, count, start), place[self.machine[inside]]

    def _add_services(self, host: np.ndarray) -> None:
        """Add conflicts, spread over locations, and dependencies within neighbourhoods."""
        a, rows, M = self.a, self.rows, len(self.a.location)
        service = a.service[self.process]
        pairs, number = np.unique(service * M + self.machine, return_inverse=True)
        rows.add_rows(0, 1, len(pairs), (number, self.on, 1))
        order = np.argsort(service, kind="stable")
        ends = np.searchsorted(service[order], np.arange(len(a.spread) + 1))
        members = [order[ends[s] : ends[s + 1]] for s in range(len(a.spread))]
        for s in np.flatnonzero(a.spread > 1).tolist():
            there, places = self._there(a.location, members[s], host)
            seats = np.arange(len(there))
            rows.add_rows(0, FREE, len(there), (places, members[s], 1), (seats, there, -1))
            rows.add_rows(a.spread[s], FREE, 1, (np.zeros_like(there), there, 1))
        for s, inside in enumerate(members):
            for t in a.needs[a.needs_at[s] : a.needs_at[s + 1]].tolist():
                self._add_need(inside, members[t], host)

    def _add_need(self, inside: np.ndarray, others: np.ndarray, host: np.ndarray) -> None:
        """Add that one of the other processes is in each neighbourhood with one of these."""
        if not len(inside):
            return
        rows, near = self.rows, self.a.neighbourhood
        there, places = self._there(near, others, host)
        rows.add_rows(0, FREE, len(there), (places, others, 1), (np.arange(len(there)), there, -1))
        each = np.arange(len(inside))
        at = there[near[self.machine[inside]]]
        rows.add_rows(-FREE, 0, len(inside), (each, inside, 1), (each, at, -1))

    def _add_moves(self, stays: np.ndarray, host: np.ndarray) -> None:
        """Add the largest number of processes of a service that move."""
        a, rows, S = self.a, self.rows, len(self.a.spread)
        count = np.bincount(a.service, minlength=S)
        start = int(np.bincount(a.service, host != a.home, S).max())
        most = rows.add_columns(len(a.home), a.service_weight[0], 1, start)
        home = a.service[self.process[stays]], self.on[stays], 1
        rows.add_rows(count, FREE, S, home, (np.arange(S), np.repeat(most, S), 1))

    def numbers(self) -> tuple[Any, ...]:
        """Return matrix, costs, upper limits of columns, lower and upper ones of rows, start."""
        rows = self.rows
        parts = (rows.cost, rows.upper, rows.low, rows.high, rows.start)
        return rows.matrix(), *map(np.concatenate, parts)

    def neighbourhood(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns and rows that a process with several pairs has to do with."""
        matrix, several = self.rows.matrix(), np.bincount(self.process) > 1
        columns = np.zeros(matrix.shape[1], dtype=bool)
        columns[self.on[several[self.process]]] = True
        rows = np.diff(matrix[:, columns].indptr) > 0
        beside = np.bincount(matrix[rows].indices, minlength=len(columns)) > 0
        beside[self.on] = False
        columns |= beside
        return columns, np.diff(matrix[:, columns].indptr) > 0

    def hosts(self, values: np.ndarray) -> np.ndarray:
        """Return the machine of each process in a solution."""
        chosen = values[self.on] == 1
        hosts = np.empty(len(self.a.home), dtype=np.int64)
        hosts[self.process[chosen]] = self.machine[chosen]
        return hosts


def whole(a: Any) -> Model:
    """Return the model with all pairs; it starts from the first assignment."""
    P, M = len(a.home), len(a.location)
    return Model(a, np.repeat(np.arange(P), M), np.tile(np.arange(M), P), a.home)


def part(a: Any, host: np.ndarray, rng: np.random.Generator) -> Model:
    """Return the model of a neighbourhood: what runs on some machines may be on any of them.

    Machines are drawn; the first one of those that are above their safety capacities, if any is.
    """
    order, inside = rng.permutation(len(a.location)), np.zeros(len(a.location), dtype=bool)
    use = np.zeros_like(a.capacity)
    np.add.at(use, host, a.requirement)
    above = np.maximum(use - a.safety, 0) @ a.load_cost
    if above.any():
        first = rng.choice(len(order), p=above / above.sum())
        order = np.concatenate(([first], order[order != first]))
    per_machine = np.bincount(host, minlength=len(a.location))
    sizes = np.arange(1, len(order) + 1) * np.cumsum(per_machine[order])
    inside[order[: max(2, int(np.searchsorted(sizes, PART)))]] = True
    free, fixed = np.flatnonzero(inside[host]), np.flatnonzero(~inside[host])
    chosen = np.flatnonzero(inside)
    process = np.concatenate((np.repeat(free, len(chosen)), fixed))
    machine = np.concatenate((np.tile(chosen, len(free)), host[fixed]))
    return Model(a, process, machine, host)


def cp_sat(a: Any, seconds: float, seed: int = 1) -> dict[str, Any]:
    """Return the hosts that CP-SAT reaches, its bound, binaries, CPU seconds to build.

    Seconds do not count what it takes to build models.
    """
    if len(a.home) * len(a.location) <= WHOLE:
        return _by_cp_sat(whole(a), seconds, seed)
    rng, host, left, built, rounds, pairs = np.random.default_rng(seed), a.home, seconds, 0.0, 0, 0
    while left > SECONDS / 10:
        began = time.process_time()
        one = _by_cp_sat(part(a, host, rng), min(SECONDS, left), seed + rounds)
        left -= time.process_time() - began - one["build"]
        built, rounds, pairs = built + one["build"], rounds + 1, max(pairs, one["binaries"])
        host = host if one["hosts"] is None else one["hosts"]
    return {"hosts": host, "bound": None, "binaries": pairs, "build": built, "rounds": rounds}


def _by_cp_sat(peer: Model, seconds: float, seed: int) -> dict[str, Any]:
    from ortools.sat.python import cp_model

    began = time.process_time()
    matrix, costs, upper, low, high, start = peer.numbers()
    inside, rows = peer.neighbourhood()
    stays = matrix[rows] @ np.where(inside, 0, start)
    model = cp_model.CpModel()
    x = [model.new_int_var(0, most, "") for most in upper[inside].tolist()]
    limits = (low[rows] - stays).tolist(), (high[rows] - stays).tolist()
    _add_rows(model, x, matrix[rows][:, inside], *limits)
    model.minimize(cp_model.LinearExpr.weighted_sum(x, costs[inside].tolist()))
    for column, value in zip(x, start[inside].tolist(), strict=True):
        model.add_hint(column, value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = WORKERS, seed
    built = time.process_time() - began
    status = stopped(seconds, lambda: solver.solve(model), solver.stop_search)
    bound = solver.best_objective_bound + float(costs @ np.where(inside, 0, start))
    result = {"bound": bound, "binaries": int(inside[peer.on].sum()), "build": built, "rounds": 1}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return {**result, "hosts": None}
    reached = start.copy()
    reached[inside] = solver.response_proto.solution
    return {**result, "hosts": peer.hosts(reached)}


def _add_rows(model: Any, x: list[Any], matrix: Any, low: list[int], high: list[int]) -> None:
    """Add rows to a model of CP-SAT."""
    from ortools.sat.python.cp_model import LinearExpr

    at, columns, values = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    for k, (least, most) in enumerate(zip(low, high, strict=True)):
        row = slice(at[k], at[k + 1])
        total = LinearExpr.weighted_sum([x[j] for j in columns[row]], values[row])
        model.add_linear_constraint(total, least, most)


def highs(a: Any, seconds: float) -> dict[str, Any]:
    """Return the hosts that HiGHS reaches in one thread, its bound, binaries, seconds to build."""
    began, peer, stop = time.process_time(), whole(a), threading.Event()
    solver = _passed(peer)
    solver.setOptionValue("time_limit", 4.0 * seconds)

    def look(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    solver.cbMipInterrupt += look
    solver.cbSimplexInterrupt += look
    built = time.process_time() - began
    stopped(seconds, solver.solve, stop.set)
    info = solver.getInfo()
    result = {"bound": info.mip_dual_bound, "binaries": len(peer.on), "build": built, "rounds": 1}
    if info.primal_solution_status != 2:
        return {**result, "hosts": None}
    return {**result, "hosts": peer.hosts(np.round(np.array(solver.getSolution().col_value)))}


def _passed(peer: Model) -> Any:
    """Return HiGHS with a model and its start."""
    import highspy

    matrix, costs, upper, low, high, start = peer.numbers()
    lp, solver, solution = highspy.HighsLp(), highspy.Highs(), highspy.HighsSolution()
    lp.num_col_, lp.num_row_ = len(costs), matrix.shape[0]
    lp.col_cost_, lp.col_lower_ = costs.astype(float), np.zeros(len(costs))
    lp.col_upper_ = upper.astype(float)
    ends = [np.where(np.abs(side) >= FREE, np.copysign(np.inf, side), side) for side in (low, high)]
    lp.row_lower_, lp.row_upper_ = ends
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data.astype(float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(lp)
    solution.col_value = start.astype(float).tolist()
    solver.setSolution(solution)
    return solver
