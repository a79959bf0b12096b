"""The packing kernels against a slow twin in Python, which reads the instance itself."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from placeopt.rolling_update.packing import emptying
from placeopt.rolling_update.packing import kernels as packing
from placeopt.rolling_update.packing.consolidation import packing_instance
from placeopt.rolling_update.problem import RollingUpdate

SEEDS = range(60)


def instance(seed: int) -> RollingUpdate:
    """Return a small instance with pins, drained nodes, growth, and nodes of several sizes."""
    rng = np.random.default_rng(seed)
    document: dict[str, Any] = RollingUpdate.generate(
        seed,
        applications=4,
        microservices=3,
        clusters=int(rng.integers(1, 4)),
        nodes=8,
        reschedulable=3,
        occupancy=0.3,
    ).to_document()
    for node in document["nodes"]:
        node["cpu_millicores"] = int(rng.choice([4000, 6000, 8000]))
        node["memory_mib"] = int(rng.choice([900, 65536]))
        node["drain"] = bool(rng.random() < 0.1)
    for application in document["applications"]:
        for m in application["microservices"] if application["reschedulable"] else ():
            m["new_cpu_millicores"] = int(m["cpu_millicores"] * rng.choice([0.5, 1, 1, 1.5]))
            m["pinned"] = bool(rng.random() < 0.1)
    return RollingUpdate.from_document(document)


class Twin:
    """A deployment: the microservices of every node in a list, the last one to arrive first."""

    def __init__(self, problem: RollingUpdate, node: list[int], is_open: np.ndarray):
        self.a = a = problem.arrays
        self.node, self.open = list(node), is_open.copy()
        self.movers = [m for m in range(len(node)) if a.movable[m] and not a.pinned[m]]
        self.hosted: list[list[int]] = [[] for _ in a.price]
        for m in self.movers:
            self.hosted[node[m]].insert(0, m)
        flows = [f[:2] for f in a.flows if (a.latency > f[2]).any()]
        self.groups = nx.Graph([f for f in flows if set(f) <= set(self.movers)])
        self.groups.add_nodes_from(self.movers)

    def put(self, m: int, n: int) -> None:
        self.hosted[self.node[m]].remove(m)
        self.hosted[n].insert(0, m)
        self.node[m] = n

    def load(self, n: int) -> np.ndarray:
        return sum((self.a.new[m] for m, k in enumerate(self.node) if k == n), np.zeros(2, int))

    def overflow(self, n: int, load: np.ndarray) -> float:
        capacity = self.a.capacity[n]
        return float((np.maximum(0, load - capacity) / np.maximum(1, capacity)).sum())

    def fits(self, n: int, load: np.ndarray) -> bool:
        return bool((load <= self.a.capacity[n]).all())

    def legal(self, m: int, n: int) -> bool:
        """Whether all flows of m keep their limits with m on node n."""
        a, where = self.a, [*self.node]
        where[m] = n
        return all(
            a.latency[a.cluster[where[x]], a.cluster[where[y]]] <= limit
            for x, y, limit in a.flows
            if m in (x, y)
        )

    def swap_legal(self, i: int, j: int) -> bool:
        n, o = self.node[j], self.node[i]
        if self.a.cluster[n] == self.a.cluster[o]:
            return True
        return not nx.has_path(self.groups, i, j) and self.legal(i, n) and self.legal(j, o)

    def open_nodes(self) -> list[int]:
        return sorted(np.flatnonzero(self.open).tolist(), key=lambda n: (self.a.cluster[n], n))

    def evacuate(self, n: int) -> bool:
        """Empty node n; return False where a group would have to move."""
        a = self.a
        while self.hosted[n]:
            m = max(self.hosted[n], key=lambda m: (a.new[m] / np.maximum(1, a.capacity[n])).max())
            best, to = np.inf, -1
            for k in self.open_nodes():
                after = self.load(k) + a.new[m]
                over = self.overflow(k, after) - self.overflow(k, self.load(k))
                full = (after / np.maximum(1, a.capacity[k])).max()
                score = 10 + over if over > 0 else 1 - full
                if k != n and score < best and self.legal(m, k):
                    best, to = score, k
            if to < 0:
                return False
            self.put(m, to)
        return True

    def move_back_home(self) -> None:
        while sum(self._settle(m) for m in self.movers):
            pass

    def _settle(self, m: int) -> bool:
        a, h, o = self.a, int(self.a.home[m]), self.node[m]
        if a.mandatory[m] or o == h or not self.open[h]:
            return False
        if self.legal(m, h) and self.fits(h, self.load(h) + a.new[m]):
            self.put(m, h)
            return True
        for j in self.hosted[h]:
            change = a.new[m] - a.new[j]
            fits = self.fits(h, self.load(h) + change) and self.fits(o, self.load(o) - change)
            away = a.mandatory[j] or a.home[j] != h
            if away and fits and self.swap_legal(m, j):
                self.put(m, h)
                self.put(j, o)
                return True
        return False

    def evict_unrestartable(self) -> None:
        a = self.a
        for m in self.movers:
            h = int(a.home[m])
            if not a.mandatory[m] or self.node[m] != h:
                continue
            beside = a.initial_load[h] + a.new[m]
            for j in self.movers:
                if a.home[j] == h and j != m:
                    stays = self.node[j] == h
                    beside = beside - a.old[j] + stays * np.minimum(a.old[j], a.new[j])
            if self.fits(h, beside):
                continue
            room = [
                n
                for n in self.open_nodes()
                if n != h and self.fits(n, self.load(n) + a.new[m]) and self.legal(m, n)
            ]
            score = {n: self.overflow(n, a.initial_load[n] + a.new[m]) for n in room}
            self.put(m, min(room, key=lambda n: score[n], default=h))


def started(seed: int, at_home: bool = True) -> tuple[Any, packing.PackingState, Twin, np.ndarray]:
    """Return an instance, its state, the twin of the state, and which microservices move."""
    problem, rng = instance(seed), np.random.default_rng(seed)
    a = problem.arrays
    case, movers = packing_instance(problem)
    node = a.home.copy()
    if not at_home:
        node[movers] = rng.integers(0, len(a.price), size=len(movers))
    is_open = ~a.drain & (rng.random(len(a.price)) < 0.9)
    state = packing.start(case, node[movers], is_open, seed)
    return case, state, Twin(problem, node.tolist(), is_open), movers


def check(case: Any, state: packing.PackingState, twin: Twin, movers: np.ndarray) -> None:
    """Compare all that a state knows with the twin of its deployment."""
    assert state.node.tolist() == [twin.node[m] for m in movers]
    nodes = range(len(twin.open))
    for n in nodes:
        assert state.load[n].tolist() == twin.load(n).tolist()
        members, i = [], int(state.head[n])
        while i >= 0:
            assert state.before[i] == (np.flatnonzero(movers == members[-1])[0] if members else -1)
            members.append(int(movers[i]))
            i = int(state.after[i])
        assert members == twin.hosted[n]
    listed = state.overloaded[: state.num_overloaded[0]].tolist()
    assert sorted(listed) == [n for n in nodes if not twin.fits(n, twin.load(n))]
    assert [int(state.overloaded_at[n]) for n in listed] == list(range(len(listed)))
    assert state.open_nodes[: state.open_first[-1]].tolist() == twin.open_nodes()


def follow(state: packing.PackingState, twin: Twin, movers: np.ndarray) -> None:
    """Bring the twin to the deployment of a state, with its lists."""
    for i, m in enumerate(movers):
        twin.put(int(m), int(state.node[i]))
    for n, members in enumerate(twin.hosted):
        members.clear()
        i = int(state.head[n])
        while i >= 0:
            members.append(int(movers[i]))
            i = int(state.after[i])


@pytest.mark.parametrize("at_home", [True, False])
def test_a_state_starts_as_it_is_given(at_home: bool) -> None:
    overloaded = 0
    for seed in SEEDS:
        case, state, twin, movers = started(seed, at_home)
        check(case, state, twin, movers)
        overloaded += int(state.num_overloaded[0])
    assert overloaded > 0


def test_a_node_is_evacuated_as_by_the_twin() -> None:
    alone = together = 0
    for seed in SEEDS:
        for n in range(8):
            case, state, twin, movers = started(seed)
            if not twin.open[n]:
                continue
            twin.open[n] = state.open[n] = False
            packing.list_open(case, state)
            moved = packing.evacuate(case, state, n)
            if twin.evacuate(n):
                alone += bool(moved)
                assert moved
            else:  # the kernel moves whole groups then
                together += bool(moved)
                follow(state, twin, movers)
            check(case, state, twin, movers)
            assert not moved or not twin.hosted[n]
    assert alone > 100
    assert together > 5


def test_microservices_settle_at_home_as_by_the_twin() -> None:
    settled = 0
    for seed in SEEDS:
        case, state, twin, movers = started(seed, at_home=False)
        before = state.node.copy()
        packing.move_back_home(case, state)
        twin.move_back_home()
        check(case, state, twin, movers)
        settled += int((before != state.node).sum())
    assert settled > 50


def test_microservices_that_cannot_restart_leave_as_by_the_twin() -> None:
    left = 0
    for seed in SEEDS:
        case, state, twin, movers = started(seed)
        packing.evict_unrestartable(case, state)
        twin.evict_unrestartable()
        check(case, state, twin, movers)
        left += int((state.node != case.home).sum())
    assert left > 20


def test_mending_makes_all_flows_legal_or_says_that_it_cannot() -> None:
    mended = 0
    for seed in SEEDS:
        case, state, twin, movers = started(seed, at_home=False)
        broken = any(not twin.legal(m, twin.node[m]) for m in twin.movers)
        fine = packing.mend(case, state)
        follow(state, twin, movers)
        check(case, state, twin, movers)
        assert not fine or all(twin.legal(m, twin.node[m]) for m in twin.movers)
        assert fine or broken
        mended += bool(fine) and broken
    assert mended > 10


def test_a_repair_ends_without_overload_and_breaks_no_flow() -> None:
    repaired = given_up = 0
    for seed in range(200):
        case, state, twin, movers = started(seed, at_home=False)
        if not packing.mend(case, state):
            continue
        before = int(state.num_overloaded[0])
        done = packing.repair(case, state, 3000, 0.03, 0.001)
        follow(state, twin, movers)
        check(case, state, twin, movers)
        assert done == (state.num_overloaded[0] == 0)
        assert all(twin.legal(m, twin.node[m]) for m in twin.movers)
        repaired += bool(done) and before > 0
        given_up += not done
    assert repaired > 50
    assert given_up > 0


def test_a_repair_without_open_nodes_says_whether_all_is_well() -> None:
    case, state, *_ = started(0)
    state.open[:] = False
    packing.list_open(case, state)
    assert packing.repair(case, state, 10, 0.03, 0.001) == (state.num_overloaded[0] == 0)


def test_a_node_is_emptied_by_exchanges_that_overload_nothing_and_break_no_flow() -> None:
    emptied = in_part = 0
    for seed in SEEDS:
        for n in range(8):
            case, state, twin, movers = started(seed)
            if not twin.open[n]:
                continue
            twin.open[n] = state.open[n] = False
            packing.list_open(case, state)
            hosted, total = len(twin.hosted[n]), twin.load(n).copy()
            within = [k for k in range(8) if twin.fits(k, twin.load(k))]
            legal = [m for m in twin.movers if twin.legal(m, twin.node[m])]
            done = emptying.empty_node(case, state, n, 1000)
            follow(state, twin, movers)
            check(case, state, twin, movers)
            assert done == (not twin.hosted[n])
            assert all(twin.fits(k, twin.load(k)) for k in within)
            assert all(twin.legal(m, twin.node[m]) for m in legal)
            emptied += bool(done) and hosted > 0
            in_part += not done and bool((twin.load(n) < total).any())
    assert emptied > 100
    assert in_part > 5


def test_the_exchange_that_is_found_takes_most_weight_off() -> None:
    rng, found = np.random.default_rng(0), 0
    for _ in range(300):
        size = rng.integers(1, 10, size=(8, 2))
        load = np.array([size[:4].sum(axis=0), size[4:].sum(axis=0)])
        capacity = load + rng.integers(0, 4, size=(2, 2))
        weight, best = rng.random(8), np.empty(8, np.int64)
        mine, theirs = np.arange(4), np.arange(4, 8)
        gains = []
        for out in subsets(mine)[1:]:
            for back in subsets(theirs):
                moved = size[out].sum(axis=0) - size[back].sum(axis=0)
                if (load[1] + moved <= capacity[1]).all() and (
                    load[0] - moved <= capacity[0]
                ).all():
                    gains.append(weight[out].sum() - weight[back].sum())
        some = emptying._find(capacity, load, size, weight, 0, 1, mine, theirs, 1e-9, best)
        assert some == (max(gains, default=0) > 1e-9)
        if some:
            out, back = ([k for k in pair if k >= 0] for pair in (best[:2], best[2:4]))
            assert weight[out].sum() - weight[back].sum() == pytest.approx(max(gains))
            found += 1
    assert found > 100


def subsets(of: np.ndarray) -> list[list[int]]:
    """Return the subsets of at most two."""
    return [list(k) for size in range(3) for k in itertools.combinations(of.tolist(), size)]
