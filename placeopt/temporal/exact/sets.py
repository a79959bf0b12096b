"""Sets of replicas as whole numbers.

A set has n_i of the r_i replicas of each request i, 0 <= n_i <= r_i. Its *code* is the sum of
n_i * stride_i, with stride_0 = 1 and stride_(i+1) = stride_i * (r_i + 1). A part of a set has a
smaller code than the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from placeopt.core.kernels.compile import kernel

#: Tables hold the best split of every set of replicas in two, for each weight vector: seconds of
#: all tables for a split, measured on an instance of 10 requests and 31 replicas.
_SECONDS_A_SPLIT = 3e-7


def seconds_of_tables(replicas: Iterable[int]) -> float:
    """Return about how many seconds the tables of all splits of sets take."""
    return _SECONDS_A_SPLIT * math.prod((n + 1.0) * (n + 2.0) / 2 for n in map(int, replicas))


def strides(replicas: np.ndarray) -> np.ndarray:
    """Return the stride of each request, and last the number of sets, shape (requests + 1,).

    These are Python's whole numbers, which do not overflow.
    """
    return np.concatenate(([1], np.cumprod(replicas.astype(object) + 1))).astype(object)


def count_sets(replicas: np.ndarray) -> int:
    """Return how many sets there are."""
    return int(strides(replicas)[-1])


def all_counts(replicas: np.ndarray) -> np.ndarray:
    """Return the counts of every set, shape (sets, requests)."""
    digits = np.unravel_index(np.arange(count_sets(replicas)), tuple(replicas[::-1] + 1))
    return np.stack(digits[::-1], axis=1).astype(np.int16)


@kernel
def write_counts(code, replicas, counts):
    """Write the counts of a set into `counts`, shape (requests,)."""
    for i in range(len(replicas)):
        counts[i] = code % (replicas[i] + 1)
        code //= replicas[i] + 1


@kernel
def next_part(part, code, counts, replicas, first, stride):
    """Count a part of a set up, in place in `part`, shape (requests,); return its new code.

    Requests before `first`, whose stride is `stride`, stay as they are. `code` is that of the part,
    `counts` are those of the set. Returns -1 after the last part.
    """
    i = first
    while i < len(replicas) and part[i] == counts[i]:
        code -= part[i] * stride
        part[i] = 0
        stride *= replicas[i] + 1
        i += 1
    if i == len(replicas):
        return -1
    part[i] += 1
    return code + stride
