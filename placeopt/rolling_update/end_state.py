"""The cheapest end of a rolling update: which nodes are paid.

Microservices that are alike are one *class*. A program in whole numbers says how many of each class
end on each *kind* of nodes, and how many nodes of the kind are paid. Where every node is a kind by
itself it asks for room, for all rules and for limits of nodes; where nodes that are alike are one
kind it asks for less, so that its value is a bound: then the nodes that it pays are packed one by
one, and what cannot be packed is cut off. Latencies, and what a loss of nodes needs, are left out,
so that it is a bound there, too. Of the way there it knows how far groups can shrink without a
stop. ``models/rolling_update/README.md`` has the maths.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.values import Objective
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.bounds import bound_vectors, lower_bound
from placeopt.rolling_update.encoder import may_end
from placeopt.rolling_update.end_classes import World
from placeopt.rolling_update.end_program import EASY, EndProgram
from placeopt.rolling_update.every_state import Reached, reached
from placeopt.rolling_update.problem import RollingUpdate

#: Products of classes and nodes up to which every node is a kind by itself, up to which nodes are
#: packed one by one, and of classes and kinds up to which there is a program at all.
_EACH_NODE, _PACKED, _LARGEST = 1500, 12_000, 12_000
#: Products of classes and kinds above which nodes that are no better share the kind of others.
_MANY_KINDS = 12_000
#: Sets of nodes that are packed at most, and packings that make one cut stronger.
_SETS, _PACKINGS = 12, 6
#: Corners of the front of price and starts at most, and of large programs, and these times
#: variables; where there are more starts, some are left out.
_CORNERS, _FEW_CORNERS, _VARIABLES = 40, 3, 12_000
#: Seconds below which nothing but the quick bound is asked for.
_LEAST_SECONDS = 0.5


class EndState(NamedTuple):
    """What is proven of the cheapest end, and an end.

    Attributes
    ----------
    lowest : int
        A price, in units of ``1 / price_scale``, that no plan beats.
    node : int array (M,) or None
        The node of every microservice in a cheap legal end, reached or not; None where none was
        found.
    exact : bool
        Whether no end is cheaper, nor reached by fewer starts at that price.
    easy : bool
        Whether the program took few branches.
    steps : list of (microservice, node), optional
        A way there that stops nothing, where it is known.
    """

    lowest: int
    node: np.ndarray | None
    exact: bool = False
    easy: bool = False
    steps: list[tuple[int, int]] | None = None


class EndFront(NamedTuple):
    """What is known of the front of price and starts.

    Attributes
    ----------
    bounds : list of (price, starts)
        Every plan costs at least the price of one of them, in units of ``1 / price_scale``, and
        takes at least its starts. Empty: nothing is known.
    ends : list of (node, steps)
        Legal ends, int arrays (M,), and ways there that stop nothing, None where none is known.
    """

    bounds: list[tuple[int, int]]
    ends: list[tuple[np.ndarray, list[tuple[int, int]] | None]]


#: What is known of instances, by their arrays: with stops, and without, and whether an end was
#: looked for; and what moves reach.
_KNOWN: WeakKeyDictionary[UpdateArrays, dict[tuple[bool, bool], EndState]] = WeakKeyDictionary()
_REACHED: WeakKeyDictionary[UpdateArrays, list[Reached]] = WeakKeyDictionary()
#: Fronts with the time that they had, endless where it was enough.
_FRONTS: WeakKeyDictionary[UpdateArrays, dict[tuple[bool, float], tuple[EndFront, float]]] = (
    WeakKeyDictionary()
)


def cheapest_end(
    problem: RollingUpdate,
    seconds: float = math.inf,
    *,
    stops: bool = True,
    below: float = math.inf,
) -> EndState:
    """Return the cheapest end that is found, and the price that no plan beats.

    Without `stops` it is of plans that stop nothing. Where no end is cheaper than `below`, none is
    looked for. A limit of `seconds` is a last resort: the same call may then answer differently.
    """
    known = _KNOWN.setdefault(problem.arrays, {})
    for key in ((stops, True), (stops, False)):
        if key in known and (key[1] or known[key].lowest >= below):
            return known[key]
    began = time.perf_counter()
    found = _cheapest_end(problem, seconds, stops, below)
    if found.node is not None:
        found = found._replace(node=_first_of_their_kind(problem.arrays, found.node))
    in_time = _LEAST_SECONDS <= seconds and time.perf_counter() - began < seconds
    if in_time:  # else more time might find more
        known[stops, found.lowest < below] = found
    return found


def reached_end(problem: RollingUpdate, seconds: float = math.inf) -> EndState:
    """Return as much as `cheapest_end` of plans that stop nothing, or more.

    Where moves reach few states all of them are met.
    """
    met = _reached(problem)
    if not met:
        return cheapest_end(problem, seconds, stops=False)
    return EndState(met[0].price, met[0].node, exact=True, steps=met[0].steps)


def _reached(problem: RollingUpdate) -> list[Reached]:
    """Return the front of what moves reach without a stop, the cheapest first; or nothing."""
    if problem.arrays not in _REACHED:
        _REACHED[problem.arrays] = [] if problem.infeasibility() else reached(problem.arrays)
    return _REACHED[problem.arrays]


def end_front(
    problem: RollingUpdate,
    seconds: float = math.inf,
    *,
    stops: bool = True,
    level: float = math.inf,
) -> EndFront:
    """Return the front of price and starts of ends; without `stops` of plans that stop nothing.

    Where corners are many some are left out, but not the cheapest end of at most `level` starts.
    """
    known = _FRONTS.setdefault(problem.arrays, {})
    if (stops, level) in known and seconds <= known[stops, level][1]:
        return known[stops, level][0]
    began = time.perf_counter()
    found = _end_front(problem, seconds, stops, level)
    in_time = _LEAST_SECONDS <= seconds and time.perf_counter() - began < seconds
    known[stops, level] = found, math.inf if in_time else seconds  # more might find more
    return found


def _end_front(problem: RollingUpdate, seconds: float, stops: bool, level: float) -> EndFront:
    a, end = problem.arrays, cheapest_end(problem, seconds, stops=stops)
    if not stops and (met := _reached(problem)):
        return EndFront([one[:2] for one in met], [one[2:] for one in met])
    if a.tight_flows or a.survival.room or not end.easy or seconds < _LEAST_SECONDS:
        return EndFront([], [])  # the program knows too little, or knows it too late
    world = World(a)
    least_hosts = {} if stops else world.least_hosts
    if not stops and not least_hosts:
        return end_front(problem, seconds, level=level)
    return _Search(problem, world, seconds, least_hosts).front(end, level)


def floors(
    problem: RollingUpdate, objectives: Sequence[Objective], seconds: float, level: float = math.inf
) -> np.ndarray:
    """Return the lower-bound set of `bounds.bound_vectors`, with what the program proves.

    Returns
    -------
    float array (k, objectives)
    """
    lowest, unstopped = (cheapest_end(problem, seconds, stops=s).lowest for s in (True, False))
    quick = bound_vectors(problem, objectives, lowest, unstopped)
    every = end_front(problem, seconds, level=level).bounds
    free = end_front(problem, seconds, stops=False, level=level).bounds or every
    kinds = [(free, 0)] if free is every else [(free, 0), (every or [(lowest, 0)], 1)]
    scale = problem.arrays.price_scale
    rows = [(price / scale, starts, stops, 0) for own, stops in kinds for price, starts in own]
    if not rows:
        return quick
    proven = np.array(rows, dtype=float)[:, problem.columns(objectives)]
    return minimal(np.maximum(quick[:, None], proven[None]).reshape(-1, len(objectives)))


def _first_of_their_kind(
    a: UpdateArrays, node: np.ndarray, kinds: list[np.ndarray] | None = None
) -> np.ndarray:
    """Return the same end where the first of nodes that are alike and to be bought are bought."""
    if not a.candidate.any():
        return node
    name = np.arange(len(a.price))
    for nodes in World(a).kinds() if kinds is None else kinds:
        nodes = nodes[a.candidate[nodes]]
        unused = ~np.isin(nodes, node)
        name[nodes[np.argsort(unused, kind="stable")]] = nodes
    renamed: np.ndarray = name[node]
    return renamed


def wider_end(
    problem: RollingUpdate,
    least_hosts: dict[int, int],
    end: np.ndarray,
    left: np.ndarray,
    below: float,
    seconds: float,
) -> np.ndarray | None:
    """Return another cheap end, where groups of what did not get to the last one have more nodes.

    None where none is found that is cheaper than `below`.

    Parameters
    ----------
    least_hosts : dict
        What was asked for so far: counter -> nodes. Changed.
    end : int array (M,)
        The last end.
    left : int array
        The microservices that did not get there.
    """
    world = World(problem.arrays)
    before = dict(least_hosts)
    for k in {k for m in left.tolist() for k in world.counters[m].tolist()}:
        if world.fine[k] and world.a.rules.shrinks[k]:
            members = [m for m, own in enumerate(world.counters) if k in own]
            least_hosts[k] = max(least_hosts.get(k, 0), len(np.unique(end[members]))) + 1
    if least_hosts == before:
        return None
    wider = world.least_hosts | least_hosts
    search = _Search(problem, world, seconds, wider, evenly=tuple(least_hosts), below=below)
    return search.run().node


def lowest_price(problem: RollingUpdate, price: int, *, stops: bool) -> int:
    """Return the price that no plan beats, where a plan of some price is known."""
    lowest = cheapest_end(problem, stops=stops, below=price).lowest
    return lowest if stops or price <= lowest else reached_end(problem).lowest


def _cheapest_end(problem: RollingUpdate, seconds: float, stops: bool, below: float) -> EndState:
    if problem.infeasibility() or seconds < _LEAST_SECONDS:
        return EndState(lower_bound(problem), None)
    world = World(problem.arrays)
    least_hosts = {} if stops else world.least_hosts
    if not stops and not least_hosts:
        return cheapest_end(problem, seconds, below=below)
    return _Search(problem, world, seconds, least_hosts, below=below).run()


def _halved(low: float, high: float, level: float) -> float:
    """Return the number of starts in a part that is looked at next; `level` comes first."""
    if low <= level < high:
        return level
    return high if math.isinf(high) or high - low < 2 else (low + high) // 2


def _least_at(least: Mapping[float, float], starts: float) -> float:
    """Return the price that is known of at most so many starts."""
    return max(price for most, price in least.items() if most >= starts)


def _staircase(least: Mapping[float, float]) -> Iterator[tuple[int, int]]:
    """Yield (price, starts) of the least prices of at most so many starts, the cheapest first."""
    price, levels = 0.0, sorted((most for most in least if most >= 0), reverse=True)
    for most, fewer in zip(levels, [*levels[1:], -1], strict=True):
        price = max(price, least[most])
        if math.isinf(price):
            return
        yield int(price), int(fewer) + 1


class _Search:
    """Kinds say which nodes, and these are packed one by one."""

    def __init__(
        self,
        problem: RollingUpdate,
        world: World,
        seconds: float,
        least_hosts: dict[int, int],
        evenly: tuple[int, ...] = (),
        below: float = math.inf,
    ):
        self.problem, self.world, self.seconds = problem, world, seconds
        self.least_hosts, self.evenly, self.below = least_hosts, evenly, below

    def _program(self, bins: list[np.ndarray], *, packs: bool = False) -> EndProgram:
        """Return the program, by CP-SAT where it only packs, if that is there."""
        least = self.least_hosts
        return EndProgram(self.world, bins, self.seconds, least_hosts=least, cp_sat=packs)

    def _bins(self) -> tuple[list[np.ndarray], bool]:
        """Return the bins of the first program, and whether each is a node."""
        each = [np.array([n]) for n in np.flatnonzero(self.world.real).tolist()]
        small = len(self.world.classes) * len(each) <= _EACH_NODE
        kinds = each if small else self.world.kinds()
        many = not small and len(self.world.classes) * len(kinds) > _MANY_KINDS
        return self.world.widest_kinds() if many else kinds, small

    def front(self, end: EndState, level: float) -> EndFront:
        """Return the front of price and starts, as far as effort allows.

        Of what is open the widest part is halved, so that what is known is spread over all of it.
        """
        (bins, small), began, found = self._bins(), time.perf_counter(), EndFront([], [])
        program = self._program(bins)
        #: The least price of at most so many starts, and from which to which more may be met.
        least, parts = {math.inf: float(end.lowest)}, [(0.0, math.inf)]
        for _ in range(min(_CORNERS, max(_FEW_CORNERS, _VARIABLES // len(program.lower)))):
            if not parts or time.perf_counter() - began > self.seconds:
                break
            low, high = part = max(parts, key=lambda part: part[1] - part[0])
            parts.remove(part)
            most = _halved(low, high, level)
            bound, x = program.solve(most, EASY)
            least[most] = max(bound, _least_at(least, most))
            if x is not None:
                price = program.cost(x)
                x, certain = program.of_few_starts(price, EASY)
            if math.isinf(bound):  # no end takes so few starts
                parts += [(most + 1, high)] if most < high else []
                continue
            if x is None or not certain:
                break  # what takes long once would do so again
            starts = program.starts(x)
            least[starts - 1] = max(least.get(starts - 1, 0), price + program.unit)
            parts += [(low, starts - 1)] if low < starts else []
            parts += [(most + 1, high)] if most < high and _least_at(least, high) < price else []
            node = program.decoded(x) if small else self._packed_of_few_starts(program, x)
            if node is not None and may_end(self.world.a, node):
                found.ends.append((_first_of_their_kind(self.world.a, node, bins), None))
        found.bounds.extend(_staircase(least))
        return found

    def _packed_of_few_starts(self, program: EndProgram, x: np.ndarray) -> np.ndarray | None:
        """Return an end on the nodes that a solution pays, those where most rests."""
        paid = program.paid_in(x)
        nodes = self._chosen(program, paid, self.world.most_resting_first)
        if len(self.world.classes) * len(nodes) > _PACKED:
            return None
        price = max(program.cost(x), self._price_of(nodes))
        return self._packed_on(nodes, price)[0]

    def _price_of(self, nodes: list[np.ndarray]) -> int:
        """Return what is paid where all of these nodes are."""
        world = self.world
        used = np.concatenate([np.flatnonzero(world.forced), *nodes])
        return int(world.a.price[np.unique(used)].sum())

    def run(self) -> EndState:
        """Return the cheapest end that is found."""
        world, (bins, small) = self.world, self._bins()
        if len(world.classes) * len(bins) > _LARGEST:
            return EndState(lower_bound(self.problem), None)
        program, proven, lowest, easy = self._program(bins), True, 0, False
        for k in range(1 if small else _SETS):
            bound, x = program.solve()
            easy = easy or (k == 0 and program.is_easy)
            if k == 0 and (x is None or program.cost(x) > bound or world.a.survival.room):
                lowest = lower_bound(self.problem)  # else the program knows all that this knows
            if proven and math.isfinite(bound):
                lowest = max(lowest, int(bound))
            if x is None or lowest >= self.below:
                break
            found, certain, paid = self._packed(program, x, small)
            if found is not None:
                if not may_end(world.a, found):
                    return EndState(lowest, None)
                exact = small and certain and program.cost(x) == lowest
                return EndState(lowest, found, exact, easy)
            if not paid:
                break
            proven = proven and certain
            self._cut(program, paid)
        return EndState(lowest, None, easy=easy)

    def _packed(
        self, program: EndProgram, x: np.ndarray, small: bool
    ) -> tuple[np.ndarray | None, bool, dict[int, int]]:
        """Return an end on the nodes that a solution pays, whether it is proven, and their numbers.

        What is proven is that none has more at home, or that there is none. Numbers are of each
        kind; where other nodes of the kinds are not to be tried there are none.
        """
        cost = program.cost(x)
        if small:
            return *program.with_most_at_home(cost), {}
        roomy = program.with_most_room(cost)
        paid = program.paid_in(x if roomy is None else roomy)
        nodes = self._chosen(program, paid)
        if len(self.world.classes) * len(nodes) > _PACKED:
            return None, False, {}
        found, certain = self._packed_on(nodes, max(cost, self._price_of(nodes)))
        first = all(self.world.are_alike(program.bins[b][:count]) for b, count in paid.items())
        return found, certain and first, paid  # of those behind others might do

    def _packed_on(self, nodes: list[np.ndarray], price: int) -> tuple[np.ndarray | None, bool]:
        """Return an end on some nodes of at most a price, and what is proven as `_packed` does.

        CP-SAT, where it is installed, is asked what HiGHS leaves open: so the end is the same
        whether or not it is there, where both find one.
        """
        for by_cp_sat in (False, True):
            program = self._program(nodes, packs=by_cp_sat)
            for k in self.evenly:
                program.spread_evenly(k, self.least_hosts[k])
            if by_cp_sat == program.by_cp_sat:
                found, certain = program.with_most_at_home(price)
                if certain or found is not None:
                    break
        return found, certain

    def _chosen(
        self,
        program: EndProgram,
        paid: dict[int, int],
        ordered: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> list[np.ndarray]:
        """Return nodes by themselves: so many of each kind that host most now, and the others."""
        result, ordered = list[np.ndarray](), ordered or self.world.fullest_first
        for b, nodes in enumerate(program.bins):
            order = ordered(nodes)[: paid.get(b, len(nodes))]
            result += [np.array([n]) for n in order.tolist()]
        return result

    def _cut(self, program: EndProgram, paid: dict[int, int]) -> None:
        """Ask for more nodes of some kind, but of those of which all nodes would not do either."""
        few = {b: count for b, count in paid.items() if count < len(program.bins[b])}
        left, parts = _PACKINGS, [list(few)]
        while parts and left:
            part, left = parts.pop(), left - 1
            more = {b: len(program.bins[b]) if b in part else n for b, n in paid.items()}
            if self._program(self._chosen(program, more), packs=True).is_possible() is False:
                paid = more
                few = {b: count for b, count in few.items() if b not in part}
            elif len(part) > 1:
                middle = len(part) // 2
                parts += [part[:middle], part[middle:]]
        program.ask_for_more(few)
