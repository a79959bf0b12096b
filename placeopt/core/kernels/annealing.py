"""Which changes simulated annealing takes, for kernels that anneal (Metropolis et al., 1953)."""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import uniform


@kernel
def most_worse(temperature, random, k=0):
    """Return the largest worsening that annealing accepts this time: -T ln(1 - u), u uniform.

    Annealing so accepts a change that is worse by d with odds exp(-d / T), and at temperature 0
    none. A caller that draws this limit first may stop computing a change that exceeds it. The call
    advances generator `k` of `random`.
    """
    return -temperature * np.log(1.0 - uniform(random, k))


@kernel
def factor(first, last, rounds):
    """Return the factor of each round that leads from the first temperature to the last one."""
    return (last / first) ** (1.0 / max(1, rounds))
