"""The one random generator of kernels: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

A state is an array of uint64; each of its entries is a generator of its own. Seed it from the run's
`numpy.random.Generator`.

>>> import numpy as np
>>> state = np.array([1], dtype=np.uint64)
>>> below(state, 6), below(state, 6), uniform(state) < 1
(3, 1, True)
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
