"""Rolling updates as integer vectors: the node of every microservice that may move.

The order of the moves is found, not encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.common import below, mix, next_bits
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.numbers import begins
from placeopt.rolling_update import order
from placeopt.rolling_update.arrays import FleetArrays, UpdateArrays
from placeopt.rolling_update.order import moves_of, plan_moves
from placeopt.rolling_update.packing.loads import fits, overloaded
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.rules import Survival, counted, may_start, num_broken, tally

# -- the loss of a node ----------------------------------------------------------------------------


def num_unplaceable(
    a: FleetArrays, survival: Survival, packed_rules: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return how many microservices find no place when their node is lost, shape (K,).

    Every node is lost by itself.

    Parameters
    ----------
    a : FleetArrays
    survival : Survival
    packed_rules : int array
        Packed tables of the rules that must be kept.
    targets : int array (K, M)
        The node of every microservice in K deployments.
    """
    order, standing = survival.largest_first(a.new), np.zeros(len(a.price), dtype=np.bool_)
    standing[: len(survival.standing)] = survival.standing
    result = np.zeros(len(targets), dtype=np.int64)
    for k, final in enumerate(targets):
        used = standing.copy()
        used[final] = True
        hosts, lost = np.flatnonzero(used & ~a.shut), len(survival.standing)
        result[k] = _num_homeless(packed_rules, final, order, a.new, a.capacity, hosts, lost)
    return result


def amiss(a: UpdateArrays, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes that deployments, (K, M), use, and by how much these break what must hold.

    Returns
    -------
    used : bool array (K, N)
    excess : float array (K,)
        Overload, copies where none may be, limits of nodes, room that the loss of a node leaves too
        little of, and what it leaves without a place.
    broken : float array (K,)
        Rules, and latencies over their limits.
    """
    (n, nodes), starts = (len(target), len(a.price)), a.starts_of(target)
    flat = (target + nodes * np.arange(n)[:, None]).ravel()
    counts = [
        np.bincount(flat, weights, n * nodes).reshape(n, nodes)
        for weights in (None, *(np.tile(size, n) for size in a.new.T))
    ]
    used, load = counts[0] > 0, np.stack(counts[1:], axis=2)
    overload = np.maximum(0, load - a.capacity) / np.maximum(1, a.capacity)
    wrong = (a.drain[target] | (a.shut[target] & starts)) & ~a.removed
    excess = overload.sum(axis=(1, 2)) + wrong.sum(axis=1)
    if a.limits.any:
        excess += a.limits.excess(used, a.num_real)
    if a.survival.room:
        lacking = a.survival.lacking(used, a.new.sum(axis=0))
        excess += lacking
        fits = lacking == 0
        excess[fits] += num_unplaceable(a, a.survival, a.packed_rules, target[fits])
    broken = np.zeros(n)
    if a.rules.any:
        broken += num_broken(a.packed_rules, target, ~starts)
    cluster, limits = a.cluster[target[:, a.tight[:, :2].astype(np.int64)]], a.tight[:, 2]
    over = np.maximum(0.0, a.latency[cluster[:, :, 0], cluster[:, :, 1]] - limits)
    broken += np.minimum(1.0, over / np.maximum(limits, 1.0)).sum(axis=1)
    return used, excess, broken


def may_end(a: UpdateArrays, node: np.ndarray) -> bool:
    """Return whether a plan may end with these nodes, (M,): room, rules, limits, flows, losses."""
    _, excess, broken = amiss(a, node[None])
    return bool(excess[0] == 0 and broken[0] == 0)


@allocating_kernel
def _num_homeless(rules, final, order, new, capacity, hosts, nodes):
    """Return how many of M microservices on N nodes are homeless when a node is lost.

    Of each of the first `nodes` nodes.

    Parameters
    ----------
    rules : int array
        Packed tables.
    final, order : int array (M,)
        The node of each; all of them, the largest first.
    new, capacity : int array (M, R), (N, R)
    hosts : int array
        The nodes that copies may start on.
    """
    free, count = capacity.copy(), counted(rules, final)
    for m in range(len(final)):
        free[final[m]] -= new[m]
    first, member = _by_node(final, order, len(capacity))
    to, homeless = np.full(len(final), -1), 0
    for n in range(nodes):
        lost = member[first[n] : first[n + 1]]
        for m in lost:
            tally(rules, count, m, n, -1)
        for m in lost:
            to[m] = _place(rules, count, m, n, new, free, capacity, hosts)
            if to[m] < 0:
                homeless += 1
            else:
                free[to[m]] -= new[m]
                tally(rules, count, m, to[m], 1)
        for m in lost:
            if to[m] >= 0:
                free[to[m]] += new[m]
                tally(rules, count, m, to[m], -1)
            tally(rules, count, m, n, 1)
    return homeless


@allocating_kernel
def _by_node(final, order, nodes):
    """Return where each node begins among its microservices, and these as `order` has them."""
    first = np.zeros(nodes + 1, np.int64)
    for n in final:
        first[n + 1] += 1
    first = np.cumsum(first)
    member, at = np.empty(len(final), np.int64), first.copy()
    for m in order:
        member[at[final[m]]] = m
        at[final[m]] += 1
    return first, member


@kernel
def _place(rules, count, m, lost, new, free, capacity, hosts):
    """Return the host where most is left of the scarcest resource beside m, -1 for none."""
    best, most = -1, -1.0
    for n in hosts:
        if n == lost:
            continue
        left = np.inf
        for r in range(new.shape[1]):
            after = free[n, r] - new[m, r]
            if after < 0 and new[m, r] > 0:
                left = -1.0
                break
            left = min(left, max(0.0, after / max(1, capacity[n, r])))
        if left > most and may_start(rules, count, m, n):
            best, most = n, left
    return best


# -- children --------------------------------------------------------------------------------------

#: Random nodes that are tried before a microservice goes anywhere.
_MAX_TRIES = 12


class GeneTables(NamedTuple):
    """Q microservices with a gene each, N nodes ranked by cluster and price."""

    legal_first: np.ndarray  # (Q + 1,) where each microservice begins in legal
    legal: np.ndarray  # (choices,) ranks of nodes, ascending
    size: np.ndarray  # (Q, R)
    application: np.ndarray  # (Q,)
    home: np.ndarray  # (Q,) gene of the node now, -1 where that is not legal
    base: np.ndarray  # (N, R) load of what has no gene, by rank
    capacity: np.ndarray  # (N, R) by rank


@allocating_kernel
def _gene(tables, i, rank):
    """Return the gene that puts microservice i on the node of a rank, -1 where it may not be."""
    first, end = tables.legal_first[i], tables.legal_first[i + 1]
    at = first + np.searchsorted(tables.legal[first:end], rank)
    return at - first if at < end and tables.legal[at] == rank else -1


@kernel
def _rank(tables, genes, i):
    """Return the rank of the node of microservice i; genes (Q,)."""
    return tables.legal[tables.legal_first[i] + genes[i]]


@kernel
def _put(child, load, tables, i, gene):
    """Change gene i; changes `child` (Q,) and `load` (N, R)."""
    was = _rank(tables, child, i)
    child[i] = gene
    now = _rank(tables, child, i)
    for r in range(load.shape[1]):
        load[was, r] -= tables.size[i, r]
        load[now, r] += tables.size[i, r]


@kernel
def _send_away(child, load, tables, i, random):
    """Move microservice i beside a random other one where it fits, else to any of its nodes."""
    here = _rank(tables, child, i)
    for _ in range(_MAX_TRIES):
        rank = _rank(tables, child, below(random, len(child)))
        gene = _gene(tables, i, rank)
        if rank != here and gene >= 0 and fits(tables.capacity, load, tables.size, i, rank):
            _put(child, load, tables, i, gene)
            return
    choices = tables.legal_first[i + 1] - tables.legal_first[i]
    _put(child, load, tables, i, below(random, choices))


@kernel
def _swap(child, load, tables, random):
    """Swap the nodes of two random microservices where both are legal."""
    i, j = below(random, len(child)), below(random, len(child))
    one = _gene(tables, i, _rank(tables, child, j))
    other = _gene(tables, j, _rank(tables, child, i))
    if one >= 0 and other >= 0 and i != j:
        _put(child, load, tables, i, one)
        _put(child, load, tables, j, other)


@kernel
def _mutate(child, load, tables, random):
    """Make one change of `child` (Q,) and of its `load` (N, R)."""
    kind, i = below(random, 8), below(random, len(child))
    if kind <= 1:
        _swap(child, load, tables, random)
    elif kind == 2:
        if tables.home[i] >= 0:
            _put(child, load, tables, i, tables.home[i])
    elif kind == 3:
        _send_away(child, load, tables, i, random)
    elif kind == 4:  # empty a node
        here = _rank(tables, child, i)
        for j in range(len(child)):
            if _rank(tables, child, j) == here:
                _send_away(child, load, tables, j, random)
    else:  # relieve overloaded nodes
        for _ in range(len(child)):
            if overloaded(tables.capacity, load, _rank(tables, child, i)):
                _send_away(child, load, tables, i, random)
            i = (i + 1) % len(child)


@kernel
def _cross(child, father, tables, random):
    """Copy the genes of random applications, or of random nodes, from `father` to `child`."""
    by_node, salt = below(random, 2) == 0, next_bits(random)
    for i in range(len(child)):
        kind = np.uint64(_rank(tables, father, i) if by_node else tables.application[i])
        if mix(kind + salt) >> np.uint64(63):
            child[i] = father[i]


@allocating_kernel
def _vary(children, fathers, tables, seed):
    """Vary `children` in place, shape (n, Q)."""
    random = np.full(1, seed, np.uint64)
    for k in range(len(children)):
        child = children[k]
        if below(random, 4) > 0:
            _cross(child, fathers[k], tables, random)
        load = tables.base.copy()
        for i in range(len(child)):
            for r in range(load.shape[1]):
                load[_rank(tables, child, i), r] += tables.size[i, r]
        for _ in range(1 + below(random, 3)):
            _mutate(child, load, tables, random)


def vary(
    rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray, tables: GeneTables
) -> np.ndarray:
    """Return one child of each pair of rows, shape (n, Q)."""
    children = np.array(mothers, dtype=np.int64, order="C")
    fathers = np.ascontiguousarray(fathers, dtype=np.int64)
    _vary(children, fathers, tables, np.uint64(rng.integers(2**63)))
    return children


# -- the encoder -----------------------------------------------------------------------------------

#: Choices of all genes together that are still held in memory.
_MAX_CHOICES = 50_000_000


class RollingUpdateEncoder(Encoder):
    """A gene per reschedulable microservice; see `placeopt.core.interfaces.Encoder`.

    A gene is an index into the nodes that are large enough, ranked by cluster, then price. The
    moves are made in the first order that comes: safe moves, then what fits, then hops, then stops.

    Raises
    ------
    UnsupportedError
        Too many microservices and nodes for vectors; the compiled heuristics have no such limit.
    """

    problem: RollingUpdate

    def __init__(self, problem: RollingUpdate, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        a = problem.arrays
        self._genes = np.flatnonzero(a.movable)
        if len(self._genes) * len(a.price) > _MAX_CHOICES:
            raise UnsupportedError(
                f"{len(self._genes)} microservices on {len(a.price)} nodes are too many for "
                "vectors; use method 'repack'"
            )
        self._by_rank = np.lexsort((np.arange(len(a.price)), a.price, a.cluster))
        self._rank_of = np.argsort(self._by_rank)
        self.tables = self._tables()
        choices = np.diff(self.tables.legal_first)
        self.upper = np.maximum(choices, 1) - 1 if len(choices) else np.zeros(1, dtype=np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)
        self.num_constraints = 2
        self._moves = moves_of(a, np.arange(len(a.home)), a.home)
        self._count = counted(a.packed_rules, a.home)

    def _tables(self) -> GeneTables:
        a, ranks = self.problem.arrays, self._by_rank
        fits = self._legal()
        first = begins(fits.sum(axis=1))
        legal = np.flatnonzero(fits) % max(1, len(ranks))
        names = [a.names[m][0] for m in self._genes]
        return GeneTables(
            legal_first=first,
            legal=legal,
            size=a.new[self._genes],
            application=np.unique(names, return_inverse=True)[1].astype(np.int64),
            home=_places(first, legal, self._rank_of[a.home[self._genes]]),
            base=a.fixed_load[ranks],
            capacity=a.capacity[ranks],
        )

    def _legal(self) -> np.ndarray:
        """Return which nodes, by rank, a gene may name, bool (genes, N): its home if no other."""
        a, genes = self.problem.arrays, self._genes
        fits = a.may_host(genes)[:, self._by_rank]
        rows, home = np.arange(len(genes)), a.home[genes]
        at_home = self._rank_of[home]
        may_rest = ~a.mandatory[genes] & ~a.drain[home]
        may_rest &= (a.new[genes] <= a.capacity[home]).all(axis=1)
        stays = fits[rows, at_home] | may_rest
        fits[a.pinned[genes]] = False
        fits[rows, at_home] = stays
        fits[rows, at_home] |= ~fits.any(axis=1)
        return fits

    def targets(self, X: np.ndarray) -> np.ndarray:
        """Return the node of every microservice, shape (n, M)."""
        X = self.checked(X)
        result = np.repeat(self.problem.arrays.stays_on[None], len(X), axis=0)
        if len(self._genes):
            ranks = self.tables.legal[self.tables.legal_first[:-1] + X]
            result[:, self._genes] = self._by_rank[ranks]
        return result

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives F and the violations G of vectors.

        Parameters
        ----------
        X : ndarray of int64, shape (n, num_genes)

        Returns
        -------
        F : ndarray, shape (n, objectives)
        G : ndarray, shape (n, 2)
            Overload at the end, copies on nodes to drain or new ones on closed nodes, limits of
            nodes, room that the loss of a node leaves too little of, and what it leaves without a
            place; latencies over
            their limits at the end, rules that are broken, and moves that no order makes without
            breaking some.
        """
        a = self.problem.arrays
        target = self.targets(X)
        used, excess, broken = amiss(a, target)
        every = np.zeros((len(target), len(self.problem.objectives)))
        every[:, 0] = (used @ a.price) / a.price_scale
        if a.rules.any or set(self._columns) & {1, 2}:
            made = order.count_all(target, self._moves, a.mandatory, a.ordered.load, self._count)
            every[:, 1:3] = made[:, :2] - np.array([a.removed.sum(), 0])
            broken += made[:, 2]
        if a.survival.asked:
            every[:, 3] = a.survival.lost(target)
        return every[:, self._columns], np.stack((excess, broken), axis=1)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; a copy that fits nowhere is started all the same."""
        target = self.targets(self.checked_one(genes)[None])[0]
        result = plan_moves(self.problem, target, states=0)
        steps = list(result.steps)
        if not result.complete:
            last = dict(steps)
            todo = np.flatnonzero(self.problem.arrays.starts_of(target)).tolist()
            steps += [(m, int(target[m])) for m in todo if last.get(m) != int(target[m])]
        return self.problem.plan(steps)

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of the deployment that a plan ends in.

        A microservice on a node that is not legal, or on none, has gene 0.
        """
        return self.encode_target(self.problem.arrays.final_nodes(self.problem.steps(plan)))

    def encode_target(self, target: np.ndarray) -> np.ndarray:
        """Return the vector of a deployment, int array (M,) of nodes; see `encode`."""
        genes = np.zeros(self.num_genes, dtype=np.int64)
        if len(self._genes):
            nodes = target[self._genes]
            ranks = np.where(nodes >= 0, self._rank_of[nodes], -1)
            places = _places(self.tables.legal_first, self.tables.legal, ranks)
            genes[:] = np.maximum(0, places)
        return genes

    def start(self) -> np.ndarray:
        """Return the running deployment; what may not stay is on its first node."""
        return np.maximum(self.tables.home, 0) if len(self._genes) else self.lower.copy()

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, half of them uniform, half near the running deployment."""
        X = super().sample(rng, count)
        count = len(X)
        if not len(self._genes):
            return X
        near = rng.random((count, 1)) < 0.5
        at_home = rng.random(X.shape) < rng.random((count, 1))
        return np.where(near & at_home & (self.tables.home >= 0), self.tables.home, X)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by application or node crossover and one to three changes."""
        pairs = self.checked_pairs(mothers, fathers)
        return vary(rng, *pairs, self.tables) if len(self._genes) else pairs[0].copy()

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X with one to three changes."""
        return self.vary(rng, X, X)


def _places(first: np.ndarray, legal: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the place of each gene's rank among its legal ones, -1 where it is not there.

    Parameters
    ----------
    first : int array (genes + 1,)
        Where each gene's ranks begin in `legal`; no gene has none.
    legal : int array
        Ascending for each gene.
    ranks : int array (genes,)
    """
    low, high = first[:-1].copy(), first[1:].copy() - 1
    while (low < high).any():  # a binary search for all genes at once
        middle = (low + high) // 2
        below = legal[middle] < ranks
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        low = np.minimum(low, high)
    places: np.ndarray = np.where(legal[low] == ranks, low - first[:-1], -1)
    return places
