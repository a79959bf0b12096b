"""A tree of maxima over a row of values: where the next one of at least some level is.

It has ``2 * size`` entries, `size` a power of two: those of the values from `size` on, and of each
two neighbours the larger one at half their place. Entry 1 is the largest of all.

>>> import numpy as np
>>> tree = np.zeros(8)
>>> for place, value in enumerate((3.0, 5.0, 4.0, 0.0)):
...     put(tree, 4, place, value)
>>> next_above(tree, 4, 0, 4.0), next_above(tree, 4, 2, 4.0), next_above(tree, 4, 3, 4.0)
(1, 2, -1)
>>> tree[1].item()
5.0
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def power_above(count):
    """Return the least power of two that is at least `count`."""
    size = 1
    while size < count:
        size *= 2
    return size


@kernel
def put(tree, size, place, value):
    """Set the value at a place; changes `tree`."""
    i = size + place
    while tree[i] != value:
        tree[i] = value
        if i == 1:
            break
        i >>= 1
        value = max(tree[2 * i], tree[2 * i + 1])


@kernel
def fill(tree, size):
    """Make all larger entries, once the values are there; changes `tree`."""
    for i in range(size - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])


@kernel
def following(i):
    """Return the entry to the right of entry i that covers most; 0 where there is none."""
    while i & 1:
        i >>= 1
    return i + 1 if i else 0


@kernel
def next_above(tree, size, place, level):
    """Return the first place from `place` on whose value is at least `level`, else -1."""
    if place >= size:
        return -1
    i = size + place
    while tree[i] < level:
        i = following(i)
        if i == 0:
            return -1
    while i < size:
        i *= 2
        if tree[i] < level:
            i += 1
    return i - size
