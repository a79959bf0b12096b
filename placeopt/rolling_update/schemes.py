"""What runs in clusters today to save nodes: Karpenter's consolidation, the descheduler.

Written after their documents, not their code: the page "Disruption" of karpenter.sh (consolidation:
empty, multi-node, single-node; deletion, or one cheaper replacement), the comments on multi-node
consolidation in kubernetes-sigs/karpenter, and the section "HighNodeUtilization" of the README of
kubernetes-sigs/descheduler. Both evict: what runs on a node ends before its new copies start, each
a disruption. Where the documents leave a choice open, it is made in favour of the scheme: budgets,
waiting times and the minimum of spot types do not hold it back, and a pod that would come back to
its own node is not evicted. What would break a rule of a pod that is not touched is not done: that
is illegal here, though Kubernetes would let the pod run on. Neither knows latency limits, nor what
is asked for the loss of a node: where their plan breaks that, the front has no point, but the plan
and what it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.kernels.compile import kernel
from placeopt.core.task import Candidate, Task
from placeopt.rolling_update import rules
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.problem import RollingUpdate

# -- as Kubernetes rolls out -----------------------------------------------------------------------

#: Weights of three scores. NodeResourcesFit (most allocated) and NodeAffinity (cheap nodes) have
#: the default weights of kube-scheduler. PodAffinity (the cluster of the peers) is above both
#: together, as the paper gives it "high affinity values".
_FIT, _PRICE, _PEERS = 1.0, 2.0, 4.0


def rolling_update(task: Task[RollingUpdate]) -> Front:
    """Replace every microservice in turn, where a Kubernetes scheduler would put it."""
    return front_of_one(task, "rolling-update", rolling_update_plan(task.problem), {})


def recreate(task: Task[RollingUpdate]) -> Front:
    """Stop every microservice, then start new copies where a Kubernetes scheduler would."""
    return front_of_one(task, "recreate", recreate_plan(task.problem), {})


def front_of_one(
    task: Task[RollingUpdate], method: str, plan: dict[str, Any], parameters: dict[str, Any]
) -> Front:
    """Return the front of a single plan."""
    task.budget.spend(1)
    return task.front([Candidate(plan)], method=method, parameters=parameters, libraries=("numpy",))


class FreeNodes:
    """Free resources, and the nodes that a microservice may go to."""

    def __init__(self, arrays: UpdateArrays, load: np.ndarray):
        self.arrays = arrays
        self.free = arrays.capacity - load  # (N, R)
        self.scale = np.maximum(arrays.capacity, 1)

    def fitting(self, m: int) -> np.ndarray:
        """Return the nodes with room for the new copy of microservice m, of those it may be on."""
        a = self.arrays
        fits = (self.free >= a.new[m]).all(axis=1)
        if a.pinned[m]:
            return a.home[[m]][fits[a.home[[m]]]]
        return np.flatnonzero(fits & a.may_host(m))

    def take(self, n: int, size: np.ndarray) -> None:
        self.free[n] -= size


def rolling_update_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan of a Kubernetes rolling update.

    Every microservice in turn is replaced, new copy first, where the scheduler puts it. A copy that
    fits nowhere waits until something else has moved; one that waits for ever changes nothing.
    """
    a = problem.arrays
    early = a.removed & ~a.late
    nodes = FreeNodes(a, a.initial_load - a.load_of(early, a.old))
    where = np.where((a.home == a.waiting) | early, -1, a.home)
    return problem.plan(_around_removals(a, _scheduled_steps(nodes, where, a.old)))


def recreate_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan that stops all reschedulable microservices, then schedules new copies."""
    a = problem.arrays
    nodes = FreeNodes(a, a.fixed_load + a.load_of(a.late, a.old))
    where = np.where(a.fixed | a.late, a.home, -1)
    stops = [(m, -1) for m in np.flatnonzero(a.movable & (a.home != a.waiting)).tolist()]
    starts = _scheduled_steps(nodes, where, np.zeros_like(a.old))
    return problem.plan(_around_removals(a, stops + starts))


def _around_removals(a: UpdateArrays, steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return steps after what may be removed at once, and before what waits for them."""
    return [*a.removals(late=False), *steps, *a.removals(late=True)]


def _scheduled_steps(
    nodes: FreeNodes, where: np.ndarray, freed: np.ndarray
) -> list[tuple[int, int]]:
    """Return the starts of all reschedulable microservices, in rounds until nothing fits.

    Parameters
    ----------
    nodes : FreeNodes
        Changed in place.
    where : int array (M,)
        Node of every microservice, -1 for none; changed in place.
    freed : int array (M, 2)
        What each frees on its home when its new copy runs.
    """
    a = nodes.arrays
    steps: list[tuple[int, int]] = []
    todo, count = np.flatnonzero(a.movable).tolist(), rules.counted(a.packed_rules, where)
    while todo:
        waiting = []
        for m in todo:
            n = _scheduled(nodes, where, m, count)
            if n < 0:
                waiting.append(m)
                continue
            nodes.take(n, a.new[m])
            nodes.take(a.home[m], -freed[m])
            if where[m] >= 0:
                rules.tally(a.packed_rules, count, m, where[m], -1)
            rules.tally(a.packed_rules, count, m, n, 1)
            where[m] = n
            steps.append((m, n))
        if len(waiting) == len(todo):
            break
        todo = waiting
    return steps


def _scheduled(nodes: FreeNodes, where: np.ndarray, m: int, count: np.ndarray) -> int:
    """Return the node with room and the best score of those that rules allow, -1 for none.

    Every score is scaled to [0, 1], as kube-scheduler does; `count` are the counts of the rules.
    """
    a = nodes.arrays
    choice = nodes.fitting(m)
    if rules.is_ruled(a.packed_rules, m):
        choice = choice[[bool(rules.may_start(a.packed_rules, count, m, n)) for n in choice]]
    if len(choice) == 0:
        return -1
    allocated = 1 - ((nodes.free[choice] - a.new[m]) / nodes.scale[choice]).mean(axis=1)
    cheap = 1 - a.price[choice] / max(1, a.price.max())
    placed = [where[peer] for peer, _ in a.tight_peers[m] if where[peer] >= 0]
    peers = np.bincount(a.cluster[placed], minlength=len(a.clusters))
    near = (peers / max(1, peers.max()))[a.cluster[choice]]
    return int(choice[(_FIT * allocated + _PRICE * cheap + _PEERS * near).argmax()])


# -- as others consolidate -------------------------------------------------------------------------

#: Nodes that one multi-node consolidation looks at, at most: Karpenter's own limit.
_MAX_TOGETHER = 100

#: Where pods start: (microservice, node).
Starts = list[tuple[int, int]]


def karpenter(task: Task[RollingUpdate]) -> Front:
    """Run Karpenter's consolidation until it finds nothing more to do."""
    return front_of_one(task, "karpenter", karpenter_plan(task.problem), {})


def descheduler(
    task: Task[RollingUpdate],
    *,
    threshold: Annotated[
        float, Field(ge=0, le=100, description="Per cent of every resource below which a node is.")
    ] = 20.0,
    rounds: Annotated[int, Field(ge=1, le=1000, description="Runs of the strategy at most.")] = 10,
) -> Front:
    """Run the descheduler's HighNodeUtilization with a scheduler that fills nodes up."""
    plan = descheduler_plan(task.problem, threshold, rounds)
    return front_of_one(task, "descheduler", plan, {"threshold": threshold, "rounds": rounds})


class _Running:
    """What runs where, and the steps that led there."""

    def __init__(self, arrays: UpdateArrays):
        a = self.arrays = arrays
        self.where = np.where(a.home == a.waiting, -1, a.home)
        self.size, self.started = a.old.copy(), np.zeros(len(a.home), dtype=bool)
        self.free = a.capacity - a.initial_load
        self.counts = rules.counted(a.packed_rules, self.where)
        self.visited = self.used()
        self.steps: Starts = []

    def copy(self) -> _Running:
        """Return the same state, to try something out."""
        made = object.__new__(_Running)
        made.arrays, made.steps = self.arrays, list(self.steps)
        made.where, made.size = self.where.copy(), self.size.copy()
        made.started = self.started.copy()
        made.free, made.counts = self.free.copy(), self.counts.copy()
        made.visited = self.visited.copy()
        return made

    def used(self) -> np.ndarray:
        """Return which nodes host something, bool (N,)."""
        return np.bincount(self.where[self.where >= 0], minlength=len(self.free)) > 0

    def stop(self, m: int) -> None:
        """End the running copy of microservice m: stop it, or remove it."""
        n = int(self.where[m])
        self.free[n] += self.size[m]
        rules.tally(self.arrays.packed_rules, self.counts, m, n, -1)
        self.where[m] = -1
        self.steps.append((m, self.arrays.waiting if self.arrays.removed[m] else -1))

    def start(self, m: int, n: int) -> None:
        """Start a copy of microservice m, which does not run, on node n."""
        self.free[n] -= self.arrays.new[m]
        rules.tally(self.arrays.packed_rules, self.counts, m, n, 1)
        self._note(np.array([m]), np.array([n]))

    def is_legal(self) -> bool:
        """Return whether all rules hold where everything runs now."""
        a, gone = self.arrays, self.arrays.removed & (self.where < 0)
        where = np.where(gone, a.waiting, self.where)
        if (where < 0).any():
            return True
        return bool(rules.num_broken(a.packed_rules, where[None], ~self.started[None])[0] == 0)

    def place(self, pods: Sequence[int] | np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Start what may start on the first node that takes it; return what is left.

        What is left is tried again as long as others start: it may wait for their company.
        """
        left = np.array(pods, dtype=np.int64)
        while len(left):
            at = self._pass(left, nodes)
            if (at < 0).all():
                break
            left = left[at < 0]
        return left

    def _pass(self, pods: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Start each of some pods, in their order, if a node takes it; return where, -1 for none.

        Where limits of nodes hold, what one starts may close nodes to the next.
        """
        a, at = self.arrays, np.full(len(pods), -1)
        size = 1 if a.limits.any else len(pods)
        for k in range(0, len(pods), size):
            part = slice(k, k + size)
            legal = ~a.shut & a.limits.open_to(self.visited)
            hosts = nodes[legal[nodes]]
            _fill(a.packed_rules, self.counts, self.free, a.new, pods[part], hosts, at[part])
            started = at[part] >= 0
            self._note(pods[part][started], at[part][started])
        return at

    def _note(self, pods: np.ndarray, nodes: np.ndarray) -> None:
        """Note what has started where, and is counted already."""
        self.where[pods], self.size[pods], self.started[pods] = nodes, self.arrays.new[pods], True
        self.visited[nodes] = True
        self.steps += zip(pods.tolist(), nodes.tolist(), strict=True)


@kernel
def _fill(packed, count, free, size, pods, nodes, at):
    """Start each pod on the first node with room whose rules allow it: `at`, -1 for none.

    Changes `count` and `free`.
    """
    for k in range(len(pods)):
        m = pods[k]
        for n in nodes:
            fits = True
            for r in range(size.shape[1]):
                fits &= free[n, r] >= size[m, r]
            if fits and rules.may_start(packed, count, m, n):
                rules.tally(packed, count, m, n, 1)
                for r in range(size.shape[1]):
                    free[n, r] -= size[m, r]
                at[k] = n
                break


def _begin(problem: RollingUpdate) -> _Running:
    """Return the state after what has to start has started.

    What is removed ends first, or as soon as others of its name have started. New sizes start in
    place. What waits goes to nodes in use, then to the cheapest that takes it.
    """
    a = problem.arrays
    state = _Running(a)
    for m, _ in a.removals(late=False):
        state.stop(m)
    for m in np.flatnonzero(a.mandatory & (state.where >= 0)).tolist():
        home = int(state.where[m])
        state.stop(m)
        state.start(m, home)
    waiting = _largest_first(a, np.flatnonzero(a.movable & (state.where < 0)).tolist())
    by_price = np.argsort(a.price, kind="stable")
    for m in state.place(waiting, np.flatnonzero(state.used())):
        used = state.used()
        state.place([m], np.concatenate((np.flatnonzero(used), by_price[~used[by_price]])))
    for m, _ in a.removals(late=True):
        state.stop(m)
    return state


def _largest_first(a: UpdateArrays, pods: Iterable[int]) -> list[int]:
    """Return pods by cpu, then memory, the largest first: the order of Karpenter's queue."""
    return sorted(pods, key=lambda m: (-a.new[m, 0], -a.new[m, 1], m))


# -- Karpenter -------------------------------------------------------------------------------------


def karpenter_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan of Karpenter's consolidation.

    Multi-node consolidation comes first: of the nodes by number of pods, as many of the first as
    can end together, found by halving. Then single nodes, in the same order. What runs on them goes
    to nodes that stay, and the rest to one new node that costs less than those that end. After
    every action it begins anew.
    """
    return problem.plan(_consolidated(problem).steps)


def started_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan that starts what has to start, and moves nothing else."""
    return problem.plan(_begin(problem).steps)


def _consolidated(problem: RollingUpdate) -> _Running:
    """Return the state after Karpenter's consolidation."""
    state = _begin(problem)
    while True:
        order = _candidates(state)
        result = _several(state, order) or _single(state, order)
        if result is None:
            return state
        state = result


def _candidates(state: _Running) -> list[int]:
    """Return the priced nodes in use that nothing keeps, those with fewest pods first."""
    a = state.arrays
    count = np.bincount(state.where[state.where >= 0], minlength=len(a.price))
    may = (count > 0) & (a.price > 0) & ~a.hosting(a.stuck)
    return sorted(np.flatnonzero(may).tolist(), key=lambda n: (count[n], n))


def _several(state: _Running, order: list[int]) -> _Running | None:
    """Return the state after as many of the first nodes as possible, two at least, have ended."""
    low, high = 1, min(len(order) - 1, _MAX_TOGETHER)
    best = None
    while low <= high:
        middle = (low + high) // 2
        result = _without(state, order[: middle + 1])
        if result is None:
            high = middle - 1
        else:
            best, low = result, middle + 1
    return best


def _single(state: _Running, order: list[int]) -> _Running | None:
    """Return the state after the first node that can end has ended."""
    return next((result for n in order if (result := _without(state, [n])) is not None), None)


def _without(state: _Running, nodes: list[int]) -> _Running | None:
    """Return the state after nodes have ended, with one cheaper node more if that is necessary."""
    a, trial = state.arrays, state.copy()
    pods = _largest_first(a, np.flatnonzero(np.isin(state.where, nodes)).tolist())
    stay = state.used()
    stay[nodes] = False
    for m in pods:
        trial.stop(m)
    left = trial.place(pods, np.flatnonzero(stay))
    if len(left):
        return _replaced(trial, left, nodes, ~state.used() & ~a.shut)
    return trial if trial.is_legal() else None


def _replaced(
    trial: _Running, left: np.ndarray, nodes: list[int], may_launch: np.ndarray
) -> _Running | None:
    """Return the state with what is left on one new node, the cheapest that takes it all.

    The new node costs less than `nodes` together; where a type that would do is among theirs, it
    costs less than the cheapest of them.
    """
    a = trial.arrays
    cheaper = may_launch & (a.price < a.price[nodes].sum())
    options = _kinds(a, _roomy(trial, left, cheaper))
    for k, n in enumerate(options):
        made = _hosting(trial, left, n)
        if made is not None:
            own = {_kind(a, old) for old in nodes if a.price[old] <= a.price[n]}
            same = (other for other in options[k:] if _kind(a, other) in own)
            return None if any(_hosting(trial, left, other) for other in same) else made
    return None


def _roomy(trial: _Running, left: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the nodes among some, (N,), with room for all that is left, the cheapest first."""
    a = trial.arrays
    need = a.new[left].sum(axis=0)
    roomy = among & (trial.free >= need).all(axis=1) & a.may_host(left).all(axis=0)
    nodes = np.flatnonzero(roomy)
    return nodes[np.argsort(a.price[nodes], kind="stable")]


def _hosting(trial: _Running, left: np.ndarray, n: int) -> _Running | None:
    """Return the state with all that is left on node n; None where that breaks a rule."""
    made = trial.copy()
    return made if len(made.place(left, np.array([n]))) == 0 and made.is_legal() else None


def _kind(a: UpdateArrays, n: int) -> tuple[int, ...]:
    """Return what makes two nodes of one machine type: their capacity."""
    return tuple(a.capacity[n].tolist())


def _kinds(a: UpdateArrays, nodes: np.ndarray) -> list[int]:
    """Return one node of each price, capacity, place and set of what may run there."""
    places = a.rules.domain[a.rules.domain.max(axis=1, initial=-1) + 1 < len(a.price)]
    existing: dict[tuple[Any, ...], int] = {}
    for n in nodes.tolist():
        same = (a.price[n], *_kind(a, n), a.cluster[n], *a.rules.allowed[:, n], *places[:, n])
        existing.setdefault(same, n)
    return list(existing.values())


# -- the descheduler -------------------------------------------------------------------------------


def descheduler_plan(problem: RollingUpdate, threshold: float, rounds: int) -> dict[str, Any]:
    """Return the plan of HighNodeUtilization.

    A node is underutilized where every resource is asked for by less than `threshold` per cent. Its
    pods are evicted, those of the emptiest node first, and start where most is allocated. Nothing
    is done where no node, or every node, is underutilized.
    """
    state = _begin(problem)
    for _ in range(rounds):
        before = int(state.used().sum())
        _evict(state, threshold)
        if int(state.used().sum()) == before:
            break
    return problem.plan(state.steps)


def _evict(state: _Running, threshold: float) -> None:
    """Evict the pods of underutilized nodes, and start them; changes `state`."""
    a, used = state.arrays, state.used()
    scale = np.maximum(a.capacity, 1)
    usage = np.where(a.capacity > 0, 100.0 * (a.capacity - state.free) / scale, 0.0)
    low = used & (usage < threshold).all(axis=1)
    if not low.any() or not (used & ~low).any():
        return
    nodes = np.flatnonzero(low)
    for source in nodes[np.argsort(usage[nodes].sum(axis=1), kind="stable")].tolist():
        for m in np.flatnonzero((state.where == source) & ~a.stuck).tolist():
            _reschedule(state, m, np.flatnonzero(used & ~low))


def _reschedule(state: _Running, m: int, nodes: np.ndarray) -> None:
    """Move microservice m to the node where most is allocated, if one of `nodes` takes it."""
    a, packed = state.arrays, state.arrays.packed_rules
    source = int(state.where[m])
    roomy = nodes[(state.free[nodes] >= a.new[m]).all(axis=1) & ~a.shut[nodes]].tolist()
    legal = [n for n in roomy if rules.may_move(packed, state.counts, m, source, n, False)]
    if legal:
        share = 1 - (state.free[legal, :2] - a.new[m, :2]) / np.maximum(a.capacity[legal, :2], 1)
        n = int(np.array(legal)[share.mean(axis=1).argmax()])
        state.stop(m)
        state.start(m, n)
