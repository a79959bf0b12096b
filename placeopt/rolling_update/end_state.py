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
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.encoder import may_end
from placeopt.rolling_update.end_classes import World
from placeopt.rolling_update.end_program import EndProgram
from placeopt.rolling_update.every_state import cheapest_reached
from placeopt.rolling_update.problem import RollingUpdate

#: Products of classes and nodes up to which every node is a kind by itself, up to which nodes are
#: packed one by one, and of classes and kinds up to which there is a program at all.
_EACH_NODE, _PACKED, _LARGEST = 1500, 12_000, 12_000
#: Sets of nodes that are packed at most, and packings that make one cut stronger.
_SETS, _PACKINGS = 12, 6
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
    steps : list of (microservice, node), optional
        A way there that stops nothing, where it is known.
    """

    lowest: int
    node: np.ndarray | None
    exact: bool = False
    steps: list[tuple[int, int]] | None = None


#: What is known of instances, by their arrays: with stops, and without, and whether an end was
#: looked for; and what moves reach.
_KNOWN: WeakKeyDictionary[UpdateArrays, dict[tuple[bool, bool], EndState]] = WeakKeyDictionary()
_REACHED: WeakKeyDictionary[UpdateArrays, EndState] = WeakKeyDictionary()


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
    found = _first_of_their_kind(problem.arrays, found)
    in_time = _LEAST_SECONDS <= seconds and time.perf_counter() - began < seconds
    if in_time:  # else more time might find more
        known[stops, found.lowest < below] = found
    return found


def reached_end(problem: RollingUpdate, seconds: float = math.inf) -> EndState:
    """Return as much as `cheapest_end` of plans that stop nothing, or more.

    Where moves reach few states all of them are met.
    """
    found = _REACHED.get(problem.arrays)
    if found is None:
        met = None if problem.infeasibility() else cheapest_reached(problem.arrays)
        if met is None:
            return cheapest_end(problem, seconds, stops=False)
        found = _REACHED[problem.arrays] = EndState(met.price, met.node, True, met.steps)
    return found


def _first_of_their_kind(a: UpdateArrays, found: EndState) -> EndState:
    """Return the same end where the first of nodes that are alike and to be bought are bought."""
    if found.node is None or not a.candidate.any():
        return found
    name = np.arange(len(a.price))
    for nodes in World(a).kinds():
        nodes = nodes[a.candidate[nodes]]
        unused = ~np.isin(nodes, found.node)
        name[nodes[np.argsort(unused, kind="stable")]] = nodes
    return found._replace(node=name[found.node])


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

    def _program(self, bins: list[np.ndarray]) -> EndProgram:
        return EndProgram(self.world, bins, self.seconds, least_hosts=self.least_hosts)

    def run(self) -> EndState:
        """Return the cheapest end that is found."""
        world = self.world
        each = [np.array([n]) for n in np.flatnonzero(world.real).tolist()]
        small = len(world.classes) * len(each) <= _EACH_NODE
        bins = each if small else world.kinds()
        if len(world.classes) * len(bins) > _LARGEST:
            return EndState(lower_bound(self.problem), None)
        program, proven, lowest = self._program(bins), True, 0
        for k in range(1 if small else _SETS):
            bound, x = program.solve()
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
                return EndState(lowest, found, small and certain and program.cost(x) == lowest)
            if not paid:
                break
            proven = proven and certain
            self._cut(program, paid)
        return EndState(lowest, None)

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
        packed = self._program(nodes)
        for k in self.evenly:
            packed.spread_evenly(k, self.least_hosts[k])
        return *packed.with_most_at_home(cost), paid

    def _chosen(self, program: EndProgram, paid: dict[int, int]) -> list[np.ndarray]:
        """Return nodes by themselves: so many of each kind that host most now, and the others."""
        result: list[np.ndarray] = []
        for b, nodes in enumerate(program.bins):
            order = self.world.fullest_first(nodes)[: paid.get(b, len(nodes))]
            result += [np.array([n]) for n in order.tolist()]
        return result

    def _cut(self, program: EndProgram, paid: dict[int, int]) -> None:
        """Ask for more nodes of some kind, but of those of which all nodes would not do either."""
        few = {b: count for b, count in paid.items() if count < len(program.bins[b])}
        left, parts = _PACKINGS, [list(few)]
        while parts and left:
            part, left = parts.pop(), left - 1
            more = {b: len(program.bins[b]) if b in part else n for b, n in paid.items()}
            if self._program(self._chosen(program, more)).is_possible() is False:
                paid = more
                few = {b: count for b, count in few.items() if b not in part}
            elif len(part) > 1:
                middle = len(part) // 2
                parts += [part[:middle], part[middle:]]
        program.ask_for_more(few)
