"""Lists of the placements that a better plan may have, and the program that chooses among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.common import copy_row, copy_rows
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.search.placement import BIG, Shapes, weighted_sum
from placeopt.edge_cloud.search.prices import Ascent, ascend, new_ascent
from placeopt.exact.program import Program

# -- patterns --------------------------------------------------------------------------------------


class Fill(NamedTuple):
    """Scratch of the programs of nodes."""

    layer: np.ndarray  # (applications + 1, loads) most charged within a load, of the first so many
    after: np.ndarray  # (2, loads) the same of those that come later
    everyone: np.ndarray  # int64 (applications,) all of them
    payer: np.ndarray  # int64 (applications,) those that are charged anything
    useful: np.ndarray  # bool (shapes,) not more than another of the application for no more charge


def loads(known: Shapes) -> int:
    """Return the most loads that a small node of an instance can have."""
    return int((known.capacity[known.small] + 1).prod(axis=1).max(initial=1))


def new_fill(known: Shapes) -> Fill:
    """Return scratch for the small nodes of an instance."""
    most, applications = loads(known), len(known.of)
    return Fill(
        layer=np.zeros((applications + 1, most)),
        after=np.zeros((2, most)),
        everyone=np.arange(applications),
        payer=np.zeros(applications, dtype=np.int64),
        useful=np.zeros(len(known.demand), dtype=np.bool_),
    )


@kernel
def _add(known, fill, node, charge, application, before, now):
    """Write the most charged when an application's shapes come to `before` into `now`, (loads,)."""
    cpu, memory = known.capacity[node, 0], known.capacity[node, 1]
    width = memory + 1
    for load in range((cpu + 1) * width):
        now[load] = before[load]
    for shape in range(known.first[application], known.first[application + 1]):
        if not fill.useful[shape]:
            continue
        paid, more = charge[shape], known.demand[shape, 1]
        for c in range(known.demand[shape, 0], cpu + 1):
            at, come_from = c * width, (c - known.demand[shape, 0]) * width - more
            for m in range(more, width):
                now[at + m] = max(now[at + m], before[come_from + m] + paid)


@kernel
def _mark(known, fill, node, charge, applications):
    """Write which of some applications pay anything at a node, and their useful shapes; count them.

    What a node charges is (shapes,).
    """
    count = 0
    for application in applications:
        pays = False
        first, last = known.first[application], known.first[application + 1]
        for shape in range(first, last):
            useful = charge[shape] > 0.0
            for k in range(2):
                useful = useful and known.demand[shape, k] <= known.capacity[node, k]
            for other in range(first, last):
                if not useful:
                    break
                less = charge[other] >= charge[shape] and other != shape
                for k in range(2):
                    less = less and known.demand[other, k] <= known.demand[shape, k]
                useful = not less
            fill.useful[shape] = useful
            pays = pays or useful
        if pays:
            fill.payer[count] = application
            count += 1
    return count


@kernel
def _forward(known, fill, node, charge, applications):
    """Write the layers of a node; return how many of some applications pay anything there."""
    count = _mark(known, fill, node, charge, applications)
    loads = (known.capacity[node, 0] + 1) * (known.capacity[node, 1] + 1)
    for load in range(loads):
        fill.layer[0, load] = 0.0
    for k in range(count):
        _add(known, fill, node, charge, fill.payer[k], fill.layer[k], fill.layer[k + 1])
    return count


@kernel
def most_charged(known, fill, node, charge, applications, slope):
    """Return the most that a pattern of a node is charged; take 1 from the `slope` of its shapes.

    The pattern has shapes of some applications. What the node charges, and `slope`, are (shapes,).
    """
    count = _forward(known, fill, node, charge, applications)
    cpu, memory = known.capacity[node, 0], known.capacity[node, 1]
    width = memory + 1
    most = fill.layer[count, cpu * width + memory]
    for k in range(count - 1, -1, -1):
        load = cpu * width + memory
        here = fill.layer[k + 1, load]
        if here == fill.layer[k, load]:
            continue
        for shape in range(known.first[fill.payer[k]], known.first[fill.payer[k] + 1]):
            less, lower = cpu - known.demand[shape, 0], memory - known.demand[shape, 1]
            if not fill.useful[shape] or less < 0 or lower < 0:
                continue
            if fill.layer[k, less * width + lower] + charge[shape] == here:
                slope[shape] -= 1
                cpu, memory = less, lower
                break
    return most


@kernel
def _most_beside(known, fill, node, before, after, shape):
    """Return the most charged beside a shape, of the groups with layers `before` and `after`."""
    width, most = known.capacity[node, 1] + 1, -BIG
    cpu = known.capacity[node, 0] - known.demand[shape, 0]
    memory = known.capacity[node, 1] - known.demand[shape, 1]
    if cpu < 0 or memory < 0:
        return most
    for c in range(cpu + 1):
        for m in range(memory + 1):
            most = max(most, before[c * width + m] + after[(cpu - c) * width + memory - m])
    return most


@kernel
def forgone(known, fill, node, charge, row):
    """Write what a node's patterns forgo for each shape into `row`, (shapes,).

    The node charges `charge`, (shapes,). What it forgoes is the most charged of any pattern less
    the most charged beside the shape, by applications other than its own: a plan that places the
    shape there pays at least as much. It is `BIG` where the shape does not fit.
    """
    count = _forward(known, fill, node, charge, fill.everyone)
    loads = (known.capacity[node, 0] + 1) * (known.capacity[node, 1] + 1)
    most, last, now = fill.layer[count, loads - 1], count - 1, 0
    for load in range(loads):
        fill.after[0, load] = 0.0
    for application in range(len(known.of) - 1, -1, -1):
        pays = last >= 0 and fill.payer[last] == application
        before = fill.layer[last] if pays else fill.layer[last + 1]
        for shape in range(known.first[application], known.first[application + 1]):
            beside = _most_beside(known, fill, node, before, fill.after[now], shape)
            row[shape] = most - beside if beside > -BIG else BIG
        if pays:
            _add(known, fill, node, charge, application, fill.after[now], fill.after[1 - now])
            now, last = 1 - now, last - 1


@kernel
def complete(known, charge):
    """Raise the charge of each shape on small nodes to that of any of its application within it.

    In place; no pattern is then charged more than the most before.
    """
    for node in known.small:
        for application in range(len(known.of)):
            first, last = known.first[application], known.first[application + 1]
            for shape in range(first, last):
                for other in range(first, last):
                    within = True
                    for k in range(2):
                        within = within and known.demand[other, k] <= known.demand[shape, k]
                    if within:
                        charge[node, shape] = max(charge[node, shape], charge[node, other])


@allocating_kernel
def forgone_everywhere(known, fill, charge):
    """Return what each node forgoes for each shape, (nodes, shapes).

    A large node, where prices alone are charged, forgoes these.
    """
    answer = charge.copy()
    for node in known.small:
        forgone(known, fill, node, charge[node], answer[node])
    return answer


# -- what is listed --------------------------------------------------------------------------------

#: Costs that differ by less are equal.
ROUNDING = 1e-9


class Listing(NamedTuple):
    """Placements of one application at a time, and the scratch of their search.

    m is the most microservices of an application; positions count nodes by their delay.
    """

    nodes: np.ndarray  # int64 (room, m) node of each set, -1 for none
    masks: np.ndarray  # int64 (room, m) the sets
    plain: np.ndarray  # (room,) weighted sum
    value: np.ndarray  # (room,) with what is charged
    worth: np.ndarray  # (masks, nodes) of a set by position, charged
    cost: np.ndarray  # (masks, nodes) the same without charges
    least: np.ndarray  # (masks,) least worth at the positions before
    rest: np.ndarray  # (masks,) least worth of sets that make up a mask
    hosts: np.ndarray  # int64 (microservices,) -1 between searches
    used: np.ndarray  # bool (nodes,) by position; False between searches
    node_at: np.ndarray  # int64 (nodes,)
    left: np.ndarray  # int64 (m + 1,) mask that is not placed, at each depth
    others: np.ndarray  # int64 (m + 1,) what joins the first of it, at each depth
    position: np.ndarray  # int64 (m + 1,)
    sums: np.ndarray  # (m + 1, 2) plain and charged sum of what is placed


def new_listing(instance: EdgeCloudArrays, room: int) -> Listing:
    """Return an empty listing of at most `room` placements."""
    m, nodes = int(np.diff(instance.first).max()), len(instance.capacity)
    return Listing(
        nodes=np.full((room, m), -1),
        masks=np.zeros((room, m), dtype=np.int64),
        plain=np.zeros(room),
        value=np.zeros(room),
        worth=np.zeros((1 << m, nodes)),
        cost=np.zeros((1 << m, nodes)),
        least=np.zeros(1 << m),
        rest=np.zeros(1 << m),
        hosts=np.full(len(instance.demand), -1),
        used=np.zeros(nodes, dtype=np.bool_),
        node_at=np.zeros(nodes, dtype=np.int64),
        left=np.zeros(m + 1, dtype=np.int64),
        others=np.zeros(m + 1, dtype=np.int64),
        position=np.zeros(m + 1, dtype=np.int64),
        sums=np.zeros((m + 1, 2)),
    )


@kernel
def _weigh(instance, known, weight, charge, begin, listing, application, node, position):
    """Write what each set costs on a node, with and without charges; see `list_placements`."""
    first = instance.first[application]
    count = instance.first[application + 1] - first
    listing.node_at[position] = node
    listing.cost[0, position] = 0.0
    for mask in range(1, 1 << count):
        lowest, j = mask & -mask, 0
        while lowest >> j != 1:
            j += 1
        cost = instance.operating[node] + instance.network[node] * instance.data[first + j]
        cost = weight * cost + listing.cost[mask ^ lowest, position]
        listing.cost[mask, position] = cost
        shape = known.of[application, mask]
        worth = cost + charge[node, shape - begin]
        for k in range(2):
            if known.demand[shape, k] > known.capacity[node, k]:
                worth = BIG
        listing.worth[mask, position] = worth


@kernel
def _cover(listing, full):
    """Write the least worth of sets that make up each mask."""
    listing.rest[0] = 0.0
    for mask in range(1, full + 1):
        lowest = mask & -mask
        others, best = mask ^ lowest, BIG
        joined = others
        while True:
            best = min(best, listing.least[joined | lowest] + listing.rest[others ^ joined])
            if joined == 0:
                break
            joined = (joined - 1) & others
        listing.rest[mask] = best


@kernel
def _put(instance, listing, application, mask, position):
    """Place a set, unless a flow is too long; return whether it is placed."""
    first, node = instance.first[application], listing.node_at[position]
    for i in range(first, instance.first[application + 1]):
        if not mask >> (i - first) & 1:
            continue
        for flow in range(instance.flow_first[i], instance.flow_first[i + 1]):
            host = listing.hosts[instance.flow_other[flow]]
            if host >= 0 and instance.delay[host, node] > instance.flow_limit[flow]:
                return False
    for i in range(first, instance.first[application + 1]):
        if mask >> (i - first) & 1:
            listing.hosts[i] = node
    listing.used[position] = True
    return True


@kernel
def _take(instance, listing, application, mask, position):
    """Take a set off its node."""
    first = instance.first[application]
    for i in range(first, instance.first[application + 1]):
        if mask >> (i - first) & 1:
            listing.hosts[i] = -1
    listing.used[position] = False


@kernel
def _begin(listing, depth, left):
    """Begin with the first set of a mask that is left at a depth: all of it, before any node."""
    listing.left[depth], listing.others[depth] = left, left ^ (left & -left)
    listing.position[depth] = -1


@kernel
def _set_at(listing, depth):
    """Return the set that is tried at a depth: the first that is left, and what joins it."""
    return listing.others[depth] | (listing.left[depth] & -listing.left[depth])


@kernel
def _write(listing, depth, forced, last, late, row):
    """Write what is placed, up to a depth, as a placement."""
    for k in range(listing.nodes.shape[1]):
        listing.nodes[row, k] = -1
    listing.nodes[row, 0], listing.masks[row, 0] = listing.node_at[last], forced
    for k in range(depth):
        listing.masks[row, k + 1] = _set_at(listing, k)
        listing.nodes[row, k + 1] = listing.node_at[listing.position[k]]
    listing.plain[row] = listing.sums[depth, 0] + late
    listing.value[row] = listing.sums[depth, 1] + late


@kernel
def _next(listing, depth, last, allowed):
    """Move to the next set and node at a depth; return whether there is one."""
    left = listing.left[depth]
    lowest = left & -left
    others = left ^ lowest
    while True:
        joined = listing.others[depth]
        mask = joined | lowest
        rest = listing.sums[depth, 1] + listing.rest[others ^ joined]
        if listing.least[mask] + rest <= allowed:
            for position in range(listing.position[depth] + 1, last):
                if not listing.used[position] and listing.worth[mask, position] + rest <= allowed:
                    listing.position[depth] = position
                    return True
        if joined == 0:
            return False
        listing.others[depth] = (joined - 1) & others
        listing.position[depth] = -1


@kernel
def _search(instance, listing, application, forced, last, late, limit, count, only_best, most):
    """List the placements with a set `forced` on the node admitted last.

    Returns three numbers: the limit, the count of placements that are listed now, and the steps
    that were taken. With `only_best` each placement lowers the limit to its own value. The search
    stops where there is no room for more, or after `most` steps.
    """
    full = (1 << (instance.first[application + 1] - instance.first[application])) - 1
    depth, steps = 0, 0
    _begin(listing, 0, full ^ forced)
    if full == forced:
        row = 0 if only_best else count
        _write(listing, 0, forced, last, late, row)
        if only_best:
            limit = listing.value[row] - ROUNDING
        return limit, row + 1, most if row + 1 == len(listing.plain) and not only_best else 1
    while depth >= 0 and steps < most:
        steps += 1
        if not _next(listing, depth, last, limit - late):
            depth -= 1
            if depth >= 0:
                done = _set_at(listing, depth), listing.position[depth]
                _take(instance, listing, application, *done)
            continue
        position, mask = listing.position[depth], _set_at(listing, depth)
        if not _put(instance, listing, application, mask, position):
            continue
        listing.sums[depth + 1, 0] = listing.sums[depth, 0] + listing.cost[mask, position]
        listing.sums[depth + 1, 1] = listing.sums[depth, 1] + listing.worth[mask, position]
        if listing.left[depth] ^ mask:
            depth += 1
            _begin(listing, depth, listing.left[depth - 1] ^ mask)
            continue
        row = 0 if only_best else count
        _write(listing, depth + 1, forced, last, late, row)
        _take(instance, listing, application, mask, position)
        count = row + 1
        if only_best:
            limit = listing.value[row] - ROUNDING
        elif count == len(listing.plain):
            steps = most
    for k in range(depth):
        _take(instance, listing, application, _set_at(listing, k), listing.position[k])
    return limit, count, steps


@kernel
def list_placements(
    instance, known, weight, charge, begin, listing, application, limit, only_best, most
):
    """List the placements of an application of at most `limit`, charged; return how many.

    The columns of `charge`, (nodes, any), are the shapes from `begin` on.

    Where `only_best`, the list has the best one alone. Returns -1 where there are more than room,
    or the search takes more than `most` steps.
    """
    source, count, last = instance.source[application], 0, -1
    full = (1 << (instance.first[application + 1] - instance.first[application])) - 1
    for mask in range(full + 1):
        listing.least[mask] = BIG
    for node in instance.near[source]:
        late = (1 - weight) * instance.delay[source, node]
        if late > limit or instance.delay[source, node] == np.inf:
            break
        last += 1
        _weigh(instance, known, weight, charge, begin, listing, application, node, last)
        _cover(listing, full)
        for forced in range(full, 0, -1):
            worth = listing.worth[forced, last]
            if late + worth + listing.rest[full ^ forced] > limit:
                continue
            _put(instance, listing, application, forced, last)
            listing.sums[0, 0], listing.sums[0, 1] = listing.cost[forced, last], worth
            limit, count, steps = _search(
                instance, listing, application, forced, last, late, limit, count, only_best, most
            )
            _take(instance, listing, application, forced, last)
            most -= steps
            if most <= 0:
                return -1
        for mask in range(1, full + 1):
            listing.least[mask] = min(listing.least[mask], listing.worth[mask, last])
    return count


# -- charges ---------------------------------------------------------------------------------------

#: Share of all that is added up that covers rounding.
_COVER = 1e-11


class Lists(NamedTuple):
    """Placements of all applications, one after another; m is the most microservices of one."""

    first: np.ndarray  # int64 (applications + 1,)
    plain: np.ndarray  # (placements,) weighted sum
    nodes: np.ndarray  # int64 (placements, m) node of each set of microservices, -1 for none
    masks: np.ndarray  # int64 (placements, m) the sets
    shapes: np.ndarray  # int64 (placements, m) of the sets


class Charging(NamedTuple):
    """Charges that ascend, and the best so far."""

    charge: Ascent  # (nodes, shapes); of large nodes it follows from the prices
    price: Ascent  # (nodes, 2) of a mean demand; of small nodes it is 0
    unit: np.ndarray  # (2,) the mean demand
    slope: np.ndarray  # (nodes, shapes) scratch
    price_slope: np.ndarray  # (nodes, 2) scratch
    alone: np.ndarray  # (applications,) least cost of each, charged
    best: np.ndarray  # (1,) the highest bound
    best_charge: np.ndarray  # (nodes, shapes) its charges
    best_price: np.ndarray  # (nodes, 2) its prices
    best_alone: np.ndarray  # (applications,) its least costs


def new_charging(
    instance: EdgeCloudArrays, known: Shapes, charge: np.ndarray, price: np.ndarray
) -> Charging:
    """Return charges to begin with: `charge` on small nodes, `price`, (nodes, 2), on large ones.

    Prices are of a unit of the shapes.
    """
    unit = np.maximum((instance.demand / known.unit).mean(axis=0), 1e-9)
    price = price * unit
    price[known.small] = 0
    applications = len(instance.source)
    return Charging(
        charge=new_ascent(charge),
        price=new_ascent(price),
        unit=unit,
        slope=np.zeros_like(charge),
        price_slope=np.zeros_like(price),
        alone=np.zeros(applications),
        best=np.full(1, -np.inf),
        best_charge=charge.copy(),
        best_price=price.copy(),
        best_alone=np.zeros(applications),
    )


@kernel
def _spread(known, charging):
    """Charge shapes on large nodes the price of their demand; clear the slopes."""
    charging.slope[:] = 0.0
    for node in known.large:
        cpu = charging.price.price[node, 0] / charging.unit[0]
        memory = charging.price.price[node, 1] / charging.unit[1]
        for shape in range(len(known.demand)):
            worth = cpu * known.demand[shape, 0] + memory * known.demand[shape, 1]
            charging.charge.price[node, shape] = worth


@kernel
def _choose(lists, charging):
    """Give each application its best listed placement; return the sum, charged."""
    total, charge = 0.0, charging.charge.price
    for application in range(len(charging.alone)):
        best, least = -1, BIG
        for k in range(lists.first[application], lists.first[application + 1]):
            value = lists.plain[k]
            for j in range(lists.nodes.shape[1]):
                if lists.nodes[k, j] < 0:
                    break
                value += charge[lists.nodes[k, j], lists.shapes[k, j]]
            if value < least:
                best, least = k, value
        charging.alone[application] = least
        total += least
        if best < 0:
            continue
        for j in range(lists.nodes.shape[1]):
            if lists.nodes[best, j] < 0:
                break
            charging.slope[lists.nodes[best, j], lists.shapes[best, j]] += 1
    return total


@kernel
def _place(instance, known, weight, listing, charging):
    """Place each application best; return the sum, charged, or -inf where that is not proven."""
    total, everything = 0.0, (weight, charging.charge.price, 0, listing)
    for application in range(len(charging.alone)):
        result = list_placements(
            instance, known, *everything, application, BIG / 10, True, _MOST_STEPS
        )
        if result < 1:
            return -np.inf
        charging.alone[application] = listing.value[0] - ROUNDING
        total += charging.alone[application]
        for j in range(listing.nodes.shape[1]):
            if listing.nodes[0, j] < 0:
                break
            shape = known.of[application, listing.masks[0, j]]
            charging.slope[listing.nodes[0, j], shape] += 1
    return total


@kernel
def _returned(known, fill, charging):
    """Return what the nodes return; lower the slopes by what they take."""
    total, slope = 0.0, charging.slope
    for node in known.small:
        paid = charging.charge.price[node]
        total += most_charged(known, fill, node, paid, fill.everyone, slope[node])
    for node in known.large:
        for k in range(2):
            taken = -float(known.capacity[node, k])
            for shape in range(len(known.demand)):
                taken += known.demand[shape, k] * slope[node, shape]
            charging.price_slope[node, k] = taken / charging.unit[k]
            price = charging.price.price[node, k] / charging.unit[k]
            total += price * known.capacity[node, k]
        slope[node] = 0.0
    return total


@allocating_kernel
def climb(instance, known, weight, lists, listing, fill, charging, lengths):
    """Let charges and prices ascend by steps of these lengths, in place.

    Applications choose among `lists`; where these are empty, among all placements. Only then is the
    bound one of the problem.
    """
    for length in lengths:
        _spread(known, charging)
        if len(lists.plain) > 0:
            placed = _choose(lists, charging)
        else:
            placed = _place(instance, known, weight, listing, charging)
        returned = _returned(known, fill, charging)
        bound = placed - returned - _COVER * (abs(placed) + 3 * returned)
        if bound > charging.best[0]:
            charging.best[0] = bound
            copy_rows(charging.charge.price, charging.best_charge)
            copy_rows(charging.price.price, charging.best_price)
            copy_row(charging.alone, charging.best_alone)
        ascend(charging.charge, charging.slope, length)
        ascend(charging.price, charging.price_slope, length)


# -- lists -----------------------------------------------------------------------------------------

#: Placements of one application, beyond which they are not compared with each other.
_COMPARED = 4000
#: A list is refused before its needless placements are dropped where it has so many times the
#: placements that are allowed.
_REPEATED = 12
#: Steps of the search for the placements of one application.
_MOST_STEPS = 10**6


def no_lists(listing: Listing) -> Lists:
    """Return empty lists."""
    none = np.zeros((0, listing.nodes.shape[1]), dtype=np.int64)
    return Lists(np.zeros(0, dtype=np.int64), np.zeros(0), none, none, none)


def list_all(
    instance: EdgeCloudArrays,
    known: Shapes,
    weight: float,
    charge: np.ndarray,
    listing: Listing,
    limits: np.ndarray,
    most: int,
    budget: Budget,
) -> Lists | None:
    """Return each application's placements of at most its limit.

    Returns None if they are more than `most`, or time is over.

    Parameters
    ----------
    charge : ndarray, shape (nodes, shapes)
    limits : ndarray, shape (applications,)
        Of the weighted sums, charged.
    most : int
        A list is refused as well where it would be many times as long before the needless go.
    """
    rows: list[tuple[np.ndarray, ...]] = []
    first, arguments, total = [0], (instance, known, weight, charge, 0, listing), 0
    for application, limit in enumerate(limits):  # to count takes a tenth of the time
        count = list_placements(*arguments, application, limit, False, _MOST_STEPS)
        total += count
        if count < 0 or total > _REPEATED * most or budget.out_of_time:
            return None
    for application, limit in enumerate(limits):
        count = list_placements(*arguments, application, limit, False, _MOST_STEPS)
        kept = _needed(known, application, listing, count)
        rows.append(kept)
        first.append(first[-1] + len(kept[0]))
        if first[-1] > most or budget.out_of_time:
            return None
    return Lists(np.array(first), *map(np.concatenate, zip(*rows, strict=True)))


def _needed(
    known: Shapes, application: int, listing: Listing, count: int
) -> tuple[np.ndarray, ...]:
    """Return what `Lists` says of the placements of an application, without needless ones."""
    order = np.argsort(listing.plain[:count], kind="stable")
    nodes, masks, plain = listing.nodes[order], listing.masks[order], listing.plain[order]
    shapes = np.where(nodes >= 0, known.of[application][masks], 0)
    _, once = np.unique(_keys(known, nodes, shapes), axis=0, return_index=True)
    once.sort()
    plain, nodes, masks, shapes = plain[once], nodes[once], masks[once], shapes[once]
    if len(plain) <= _COMPARED:
        kept = np.ones(len(plain), dtype=np.bool_)
        _drop_needless(known, plain, nodes, shapes, kept)
        plain, nodes, masks, shapes = plain[kept], nodes[kept], masks[kept], shapes[kept]
    return plain, nodes, masks, shapes


def _keys(known: Shapes, nodes: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """Return for each placement, (k, m), numbers that are equal where the same shapes share nodes.

    They do not depend on the order of the nodes.
    """
    return np.sort(np.where(nodes >= 0, nodes * len(known.demand) + shapes, -1), axis=1)


@kernel
def _demands_less(known, nodes, shapes, one, other):
    """Return whether a placement demands no more of any node than another."""
    for k in range(nodes.shape[1]):
        if nodes[one, k] < 0:
            break
        result = False
        for j in range(nodes.shape[1]):
            if nodes[other, j] == nodes[one, k]:
                result = True
                for r in range(2):
                    less = known.demand[shapes[one, k], r] <= known.demand[shapes[other, j], r]
                    result = result and less
        if not result:
            return False
    return True


@kernel
def _drop_needless(known, plain, nodes, shapes, kept):
    """Keep no placement that costs no less, and demands no less of each node, than another.

    They are in the order of their costs; changes `kept`.
    """
    for one in range(len(plain)):
        if not kept[one]:
            continue
        for other in range(one + 1, len(plain)):
            if kept[other] and plain[one] <= plain[other] + ROUNDING:
                kept[other] = not _demands_less(known, nodes, shapes, one, other)


def with_plan(
    instance: EdgeCloudArrays, known: Shapes, weight: float, lists: Lists, hosts: np.ndarray
) -> tuple[Lists, np.ndarray]:
    """Return lists with the placements of a plan, and 1 for each that the plan chooses, else 0.

    A listed placement of the same shapes stands for the plan's own: it costs no more.
    """
    rows, first, chosen = [], [0], []
    for application in range(len(instance.source)):
        low, high = lists.first[application : application + 2]
        own = tuple(part[low:high] for part in lists[1:])
        row = _row_of(instance, known, weight, application, hosts, lists.nodes.shape[1])
        alike = _keys(known, own[1], own[3]) == _keys(known, row[1], row[3])
        same = np.flatnonzero(alike.all(axis=1))
        chosen.append(first[-1] + (int(same[0]) if len(same) else len(own[0])))
        if not len(same):
            own = tuple(map(np.concatenate, zip(own, row, strict=True)))
        rows.append(own)
        first.append(first[-1] + len(own[0]))
    x = np.zeros(first[-1])
    x[chosen] = 1
    return Lists(np.array(first), *map(np.concatenate, zip(*rows, strict=True))), x


def _row_of(
    instance: EdgeCloudArrays,
    known: Shapes,
    weight: float,
    application: int,
    hosts: np.ndarray,
    width: int,
) -> tuple[np.ndarray, ...]:
    """Return a list of one placement: that of an application in a plan."""
    begin, end = instance.first[application : application + 2]
    masks: dict[int, int] = {}
    for j, node in enumerate(hosts[begin:end].tolist()):
        masks[node] = masks.get(node, 0) | 1 << j
    nodes = np.full((1, width), -1)
    sets = np.zeros((1, width), dtype=np.int64)
    nodes[0, : len(masks)], sets[0, : len(masks)] = [*masks], [*masks.values()]
    shapes = np.where(nodes >= 0, known.of[application][sets], 0)
    return np.array([weighted_sum(instance, weight, hosts, application)]), nodes, sets, shapes


def hosts_of(instance: EdgeCloudArrays, lists: Lists, chosen: np.ndarray) -> np.ndarray:
    """Return the nodes of the microservices, (microservices,), of one placement for each."""
    hosts = np.full(len(instance.demand), -1)
    for begin, k in zip(instance.first, chosen, strict=False):
        for node, mask in zip(lists.nodes[k].tolist(), lists.masks[k].tolist(), strict=True):
            for j in range(mask.bit_length() if node >= 0 else 0):
                if mask >> j & 1:
                    hosts[begin + j] = node
    return hosts


def program(known: Shapes, fill: Fill, charge: np.ndarray, lists: Lists) -> Program:
    """Return the choice of a placement for each application, within nodes and what patterns pay.

    No pattern of a small node is charged more than the most of any. These rows hold what the
    charges prove, so that the relaxation begins there.
    """
    import scipy.sparse as sp

    k, j = np.nonzero(lists.nodes >= 0)
    node, shape, count = lists.nodes[k, j], lists.shapes[k, j], len(lists.plain)
    nodes, applications = len(known.capacity), len(lists.first) - 1
    of, slope = np.repeat(np.arange(applications), np.diff(lists.first)), np.zeros(charge.shape[1])

    def by_node(worth: np.ndarray) -> sp.csr_matrix:
        return sp.csr_matrix((worth.astype(float), (node, k)), (nodes, count))

    once = sp.csr_matrix((np.ones(count), (of, np.arange(count))))
    loads = [by_node(known.demand[shape, resource]) for resource in range(2)]
    paid = by_node(charge[node, shape])[known.small]
    most = np.array(
        [most_charged(known, fill, v, charge[v], fill.everyone, slope) for v in known.small]
    )
    ones = np.ones(applications)
    upper = np.concatenate((ones, *known.capacity.T, most * (1 + 1e-9) + 1e-9))
    lower = np.concatenate((ones, np.full(len(upper) - applications, -np.inf)))
    rows = sp.vstack((once, *loads, paid))
    free = np.zeros(count), np.ones(count), np.ones(count, dtype=np.bool_)
    return Program(lists.plain, rows, lower, upper, *free)
