"""Small kernels that many share: random numbers, rows, disjoint sets, lists, annealing.

The one random generator of kernels is splitmix64 (Steele, Lea, Flood, OOPSLA 2014). A state is an
array of uint64; each of its entries is a generator of its own. Seed it from the run's
`numpy.random.Generator`.

>>> import numpy as np
>>> state = np.array([1], dtype=np.uint64)
>>> below(state, 6), below(state, 6), uniform(state) < 1
(3, 1, True)

Disjoint sets are an array: each member leads to another of its set, or to itself, the root.

>>> parent = np.arange(4)
>>> join(parent, 0, 3)
True
>>> join(parent, 3, 0), root(parent, 0) == root(parent, 3), root(parent, 1)
(False, True, 1)
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel


@kernel
def mix(bits):
    """Return 64 bits that look random: the output function of splitmix64 (uint64 -> uint64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@kernel
def next_bits(state, k=0):
    """Return the next 64 random bits of generator k; advances ``state[k]``, state (generators,)."""
    state[k] += np.uint64(0x9E3779B97F4A7C15)
    return mix(state[k])


@kernel
def below(state, bound, k=0):
    """Return a random integer of [0, bound) from generator k; advances ``state[k]``."""
    return np.int64((next_bits(state, k) >> np.uint64(11)) % np.uint64(bound))


@kernel
def uniform(state, k=0):
    """Return a random float of [0, 1) from generator k, 53 bits; advances ``state[k]``."""
    return np.float64(next_bits(state, k) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def copy_row(source, target):
    """Copy numbers to the begin of another row.

    ``target[:] = source`` asks for memory, and takes two seconds to compile.
    """
    for k in range(len(source)):
        target[k] = source[k]


@kernel
def copy_rows(source, target):
    """Copy all rows of a table to the first rows of another one that is as wide, or wider."""
    for k in range(len(source)):
        copy_row(source[k], target[k])


@kernel
def root(parent, member):
    """Return the root of a member's set; shortens the path in `parent`, shape (members,)."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@kernel
def join(parent, one, other):
    """Make one set of two, in place; return whether they were two."""
    one, other = root(parent, one), root(parent, other)
    parent[one] = other
    return one != other


@kernel
def link(head, before, after, item, place):
    """Put an item, which stands in no list, first in the list of a place.

    ``head[place]`` is the first item of a place, ``after[item]`` and ``before[item]`` are the items
    beside one; -1 for none.
    """
    first = head[place]
    before[item], after[item] = -1, first
    if first >= 0:
        before[first] = item
    head[place] = item


@kernel
def unlink(head, before, after, item, place):
    """Take an item out of the list of its place; see `link`."""
    one, other = before[item], after[item]
    if one >= 0:
        after[one] = other
    else:
        head[place] = other
    if other >= 0:
        before[other] = one


@kernel
def most_worse(temperature, random, k=0):
    """Return the largest worsening that annealing accepts this time: -T ln(1 - u), u uniform.

    Annealing so accepts a change that is worse by d with odds exp(-d / T), and at temperature 0
    none (Metropolis et al., 1953). A caller that draws this limit first may stop computing a change
    that exceeds it. The call advances generator `k` of `random`.
    """
    return -temperature * np.log(1.0 - uniform(random, k))


@kernel
def factor(first, last, rounds):
    """Return the factor of each round that leads from the first temperature to the last one."""
    return (last / first) ** (1.0 / max(1, rounds))
