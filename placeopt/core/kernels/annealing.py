"""Which changes simulated annealing takes, for kernels that anneal (Metropolis et al., 1953)."""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import uniform


@kernel
def most_worse(temperature, random, k=0):
    """Return by how much a change may be worse and is taken still: -T ln(1 - u), u drawn evenly.

    A change that is worse by d is taken with odds exp(-d / T), at temperature 0 with none. Where
    this is drawn first, a change can be given up as soon as it turns out worse than that. Advances
    generator `k` of `random`.
    """
    return -temperature * np.log(1.0 - uniform(random, k))
