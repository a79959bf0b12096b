"""New vectors from the independent parts of those that a search has met.

Where plans fall into parts that share nothing (`placeopt.encoders.Parts`), any two parts that serve the same can stand in for
each other, and what that does to the goals is a difference of known sums. So the fronts of all plans that the known parts make up
are Minkowski sums of small fronts, one for each way to divide what is to be served: they are looked through without decoding
anything, and the few that add most hypervolume are handed back, to be evaluated.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.dominance import contributions, nondominated
from placeopt.core.interfaces import Parts
from placeopt.core.kernels.compile import kernel

#: Cells on each side of the grid that tells quickly what is dominated; their square for two goals.
CELLS = 256
#: Sums that are looked at in all; at most so many of one division, and so many that the grid does not rule out.
MOST_SUMS = 10_000_000
MOST_OF_ONE = 2_000
MOST_KEPT = 400_000
#: Goals are compared to so many decimals: sums in another order differ in the last bits.
DECIMALS = 9
NEAR = 10.0**-DECIMALS


@kernel
def _no_worse(one, other):
    return one[0] <= other[0] + NEAR and one[1] <= other[1] + NEAR and one[2] <= other[2] + NEAR


@kernel
def _insert(part, kept, begin, end, values):
    """Put a part among those kept from `begin` to `end`, without those that it beats, unless one is no worse; return the new end."""
    for at in range(begin, end):
        if _no_worse(values[kept[at]], values[part]):
            return end
    for at in range(end - 1, begin - 1, -1):
        if _no_worse(values[part], values[kept[at]]):
            end -= 1
            kept[at] = kept[end]
    kept[end] = part
    return end + 1


@kernel
def _interchangeable(order, key, values):
    """Return the group of each part, the non-dominated parts of all groups, and where in them each group begins.

    Parts of one key are a group; `order` sorts the parts by key.
    """
    group = np.full(len(key), -1)
    kept, first = np.empty(len(order), dtype=np.int64), np.zeros(len(order) + 1, dtype=np.int64)
    count = groups = 0
    for position in range(len(order)):
        part = order[position]
        if position == 0 or key[part] != key[order[position - 1]]:
            first[groups] = count
            groups += 1
        group[part] = groups - 1
        count = _insert(part, kept, first[groups - 1], count, values)
    first[groups] = count
    return group, kept[:count], first[: groups + 1]


@kernel
def _lower(grid, a, b, value):
    """Note in the grid that cell (a, b) and all beyond have a point of this value."""
    for i in range(a, grid.shape[0]):
        if grid[i, b] <= value:
            return
        for j in range(b, grid.shape[1]):
            if grid[i, j] <= value:
                break
            grid[i, j] = value


@kernel
def _choices(row, group, first, chosen):
    """Write the groups of a vector's parts, those of fewest alternatives first; return how many there are, and the sums to look at."""
    count, sums = 0, 1.0
    for g in group[row]:
        if g >= 0:
            size = first[g + 1] - first[g]
            sums *= size
            at = count
            while at > 0 and first[chosen[at - 1] + 1] - first[chosen[at - 1]] > size:
                chosen[at] = chosen[at - 1]
                at -= 1
            chosen[at] = g
            count += 1
    return count, sums


@kernel
def _sums(rows, group, first, kept, values, grid, low, scale, most):
    """Return the sums of alternatives of the parts of some vectors that the grid does not rule out, (k, 3), and the parts, (k, parts).

    Depth first, a part after the other, at most `most` sums a vector. A sum is ruled out where a point known is no worse in the second
    goal, nor in the first and third as far as cells tell; what is found goes into the grid.
    """
    parts, last = group.shape[1], (grid.shape[0] - 1, grid.shape[1] - 1)
    F, made_of, found = np.empty((MOST_KEPT, 3)), np.empty((MOST_KEPT, parts), dtype=np.int64), 0
    chosen, at, partial = (
        np.zeros(parts, dtype=np.int64),
        np.zeros(parts, dtype=np.int64),
        np.zeros((parts + 1, 3)),
    )
    for row in rows:
        count, sums = _choices(row, group, first, chosen)
        depth, tried, at[0] = 0 if sums > 1 else -1, 0, first[chosen[0]]
        while depth >= 0 and tried < most and found < MOST_KEPT:
            if at[depth] == first[chosen[depth] + 1]:
                depth -= 1
                if depth >= 0:
                    at[depth] += 1
                continue
            part = kept[at[depth]]
            x, y, z = (
                partial[depth, 0] + values[part, 0],
                partial[depth, 1] + values[part, 1],
                partial[depth, 2] + values[part, 2],
            )
            if depth + 1 < count:
                depth += 1
                at[depth] = first[chosen[depth]]
                partial[depth, 0], partial[depth, 1], partial[depth, 2] = x, y, z
                continue
            tried += 1
            at[depth] += 1
            a, b = (
                min(last[0], int((x - low[0]) * scale[0])),
                min(last[1], int((z - low[2]) * scale[2])),
            )
            if grid[a, b] <= y:
                continue
            F[found, 0], F[found, 1], F[found, 2] = x, y, z
            for c in range(parts):
                made_of[found, c] = kept[at[c] - (c == depth)] if c < count else -1
            found += 1
            _lower(grid, a, b, y)
    return F[:found], made_of[:found]


@kernel
def _assemble(children, made_of, X, label):
    """Write into each child the genes of its parts."""
    parts = made_of.shape[1]
    for k in range(len(children)):
        for part in made_of[k]:
            if part >= 0:
                row, name = part // parts, part % parts
                for gene in range(X.shape[1]):
                    if label[row, gene] == name:
                        children[k, gene] = X[row, gene]


def _one_of_each_division(key: np.ndarray) -> np.ndarray:
    """Return a row of each different set of keys."""
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.unique((mixed ^ (mixed >> np.uint64(32))).sum(axis=1), return_index=True)[1]


def _grid(F: np.ndarray, low: np.ndarray, flat: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the least second goal of all rows up to each cell of the first and third goal, and how many cells there are to a unit."""
    shape = (CELLS**2, 1) if flat else (CELLS, CELLS)
    width = 1.25 * (F.max(axis=0) - low)  # some sums are beyond
    scale = np.array([shape[0] - 1, 0, shape[1] - 1]) / np.where(width > 0, width, 1.0)
    cells = ((F - low) * scale).astype(np.int64)
    grid = np.full(shape, np.inf)
    np.minimum.at(grid, (cells[:, 0], cells[:, 2]), F[:, 1])
    return np.minimum.accumulate(np.minimum.accumulate(grid, axis=0), axis=1), scale


def _least(
    group: np.ndarray, first: np.ndarray, kept: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return what no sum can be below, in each goal."""
    least = np.minimum.reduceat(values[kept], first[:-1])
    return np.where(group[:, :, None] >= 0, least[group], 0.0).sum(axis=1).min(axis=0) - NEAR


def _padded(values: np.ndarray) -> np.ndarray:
    """Return goals as three columns."""
    return np.concatenate((values, np.zeros((*values.shape[:-1], 3 - values.shape[-1]))), axis=-1)


def recombine(parts: Parts, X: np.ndarray, F: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` new vectors that are made up of parts of X, those that by their sums add most hypervolume.

    Parameters
    ----------
    parts : Parts
        Of the rows of X.
    X, F : ndarray
        Vectors that do not dominate each other, shape (k, num_genes), and their two or three objectives.
    most : int
    """
    key, values = parts.key.ravel(), _padded(parts.values).reshape(-1, 3)
    present = np.flatnonzero(key)
    order = present[np.argsort(key[present], kind="stable")]
    group, kept, first = _interchangeable(order, key, values)
    group = group.reshape(parts.key.shape)
    rows, low = _one_of_each_division(parts.key), _least(group, first, kept, values)
    grid, scale = _grid(_padded(F), low, flat=F.shape[1] < 3)
    sums, made_of = _sums(
        rows, group, first, kept, values, grid, low, scale, min(MOST_OF_ONE, MOST_SUMS // len(rows))
    )
    every = np.round(np.concatenate((F, sums[:, : F.shape[1]])), DECIMALS)
    front = np.flatnonzero(nondominated(every))
    new = front >= len(F)
    if new.sum() > most:
        gain = np.where(new, contributions(every[front]), -1.0)
        new[np.argsort(-gain, kind="stable")[most:]] = False
    chosen = made_of[front[new] - len(F)]
    children = X[chosen[:, 0] // parts.key.shape[1]]  # genes of no part are as good as any
    _assemble(children, chosen, X, parts.label)
    return children
