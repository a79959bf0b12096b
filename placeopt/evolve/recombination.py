"""New vectors from the independent parts of known ones.

Plans may fall into parts that share nothing (`placeopt.core.interfaces.Parts`). Then any two parts
that serve the same can stand in for each other, and the goals change by a difference of known sums.
So the fronts of all plans that the known parts make up are Minkowski sums of small fronts, one for
each way to divide what is served. They are searched without decoding anything. The few vectors that
add most hypervolume are returned, to be evaluated.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.fronts.dominance import contributions, nondominated
from placeopt.core.interfaces import Parts
from placeopt.core.kernels.compile import allocating_kernel, kernel

#: Cells on each side of the grid that finds dominated sums quickly; their square for two goals.
CELLS = 256
#: Largest number of sums computed: of all divisions, of one division, and kept for the filter.
MAX_SUMS = 10_000_000
MAX_OF_ONE = 2_000
MAX_KEPT = 400_000
#: Decimals to which goals are compared: sums in another order differ in the last bits.
DECIMALS = 9
NEAR = 10.0**-DECIMALS


@kernel
def _no_worse(one, other):
    return one[0] <= other[0] + NEAR and one[1] <= other[1] + NEAR and one[2] <= other[2] + NEAR


@kernel
def _insert(part, kept, begin, end, values):
    """Add a part to those kept from `begin` to `end`, in place, and return the new end.

    Kept parts that it dominates are removed. It is not added if a kept one is no worse.
    """
    for at in range(begin, end):
        if _no_worse(values[kept[at]], values[part]):
            return end
    for at in range(end - 1, begin - 1, -1):
        if _no_worse(values[part], values[kept[at]]):
            end -= 1
            kept[at] = kept[end]
    kept[end] = part
    return end + 1


@allocating_kernel
def _interchangeable(order, key, values):
    """Return the groups of interchangeable parts: parts of one key.

    Parameters
    ----------
    order : (present,) the parts, sorted by key
    key : (n,) of every part
    values : (n, 3) goals of every part

    Returns
    -------
    group : (n,) the group of each part, -1 for none
    kept : (k,) the non-dominated parts of each group, group after group
    first : (groups + 1,) where each group begins in `kept`
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
    """Lower cell (a, b) of the grid and all cells beyond to a value, in place."""
    for i in range(a, grid.shape[0]):
        if grid[i, b] <= value:
            return
        for j in range(b, grid.shape[1]):
            if grid[i, j] <= value:
                break
            grid[i, j] = value


@kernel
def _choices(row, group, first, chosen):
    """Write the groups of a vector's parts into `chosen`, those of fewest alternatives first.

    Returns their number, and the number of sums of one alternative of each.
    """
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


@allocating_kernel
def _sums(rows, group, first, kept, values, grid, low, scale, limit):
    """Return sums of alternatives of the parts of vectors, (k, 3), and their parts, (k, parts).

    The search is depth first, part after part, over at most `limit` sums of a vector. A sum is left
    out if a known point is no worse in the second goal and, by the cells of `grid`, in the other
    two. Sums that are found change the grid.

    Parameters
    ----------
    rows : (r,) vectors
    group : (vectors, parts) as of `_interchangeable`; so are `first` and `kept`
    values : (n, 3)
    grid : (cells, cells) lowest second goal up to each cell of the first and third
    low, scale : (3,) lowest goals, and cells to a unit of each
    """
    parts, last = group.shape[1], (grid.shape[0] - 1, grid.shape[1] - 1)
    F, made_of, result = np.empty((MAX_KEPT, 3)), np.empty((MAX_KEPT, parts), dtype=np.int64), 0
    chosen, at = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int64)
    partial = np.zeros((parts + 1, 3))
    for row in rows:
        count, sums = _choices(row, group, first, chosen)
        depth, tried, at[0] = 0 if sums > 1 else -1, 0, first[chosen[0]]
        while depth >= 0 and tried < limit and result < MAX_KEPT:
            if at[depth] == first[chosen[depth] + 1]:
                depth -= 1
                if depth >= 0:
                    at[depth] += 1
                continue
            part = kept[at[depth]]
            x = partial[depth, 0] + values[part, 0]
            y = partial[depth, 1] + values[part, 1]
            z = partial[depth, 2] + values[part, 2]
            if depth + 1 < count:
                depth += 1
                at[depth] = first[chosen[depth]]
                partial[depth, 0], partial[depth, 1], partial[depth, 2] = x, y, z
                continue
            tried += 1
            at[depth] += 1
            a = min(last[0], int((x - low[0]) * scale[0]))
            b = min(last[1], int((z - low[2]) * scale[2]))
            if grid[a, b] <= y:
                continue
            F[result, 0], F[result, 1], F[result, 2] = x, y, z
            for c in range(parts):
                made_of[result, c] = kept[at[c] - (c == depth)] if c < count else -1
            result += 1
            _lower(grid, a, b, y)
    return F[:result], made_of[:result]


@kernel
def _assemble(children, made_of, X, label):
    """Write the genes of its parts into each child.

    Parameters
    ----------
    children : (k, num_genes), changed in place
    made_of : (k, parts) parts, -1 for none
    X, label : (vectors, num_genes) genes, and the part that each belongs to
    """
    parts = made_of.shape[1]
    for k in range(len(children)):
        for part in made_of[k]:
            if part >= 0:
                row, name = part // parts, part % parts
                for gene in range(X.shape[1]):
                    if label[row, gene] == name:
                        children[k, gene] = X[row, gene]


def _one_of_each_division(key: np.ndarray) -> np.ndarray:
    """Return one row of each different set of keys, shape (divisions,)."""
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.unique((mixed ^ (mixed >> np.uint64(32))).sum(axis=1), return_index=True)[1]


def _grid(F: np.ndarray, low: np.ndarray, flat: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid of `_sums` for known goals F, (k, 3), and the cells to a unit, (3,)."""
    shape = (CELLS**2, 1) if flat else (CELLS, CELLS)
    width = 1.25 * (F.max(axis=0) - low)  # some sums are larger than all of F
    scale = np.array([shape[0] - 1, 0, shape[1] - 1]) / np.where(width > 0, width, 1.0)
    cells = ((F - low) * scale).astype(np.int64)
    grid = np.full(shape, np.inf)
    np.minimum.at(grid, (cells[:, 0], cells[:, 2]), F[:, 1])
    return np.minimum.accumulate(np.minimum.accumulate(grid, axis=0), axis=1), scale


def _lowest(
    group: np.ndarray, first: np.ndarray, kept: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return a lower bound of all sums, shape (3,)."""
    lowest = np.minimum.reduceat(values[kept], first[:-1])
    return np.where(group[:, :, None] >= 0, lowest[group], 0.0).sum(axis=1).min(axis=0) - NEAR


def _padded(values: np.ndarray) -> np.ndarray:
    """Return goals with columns of 0 up to three, shape (..., 3)."""
    return np.concatenate((values, np.zeros((*values.shape[:-1], 3 - values.shape[-1]))), axis=-1)


def recombine(parts: Parts, X: np.ndarray, F: np.ndarray, limit: int) -> np.ndarray:
    """Return new vectors made up of parts of X, shape (at most `limit`, num_genes).

    They are those that add most hypervolume by the sums of their parts.

    Parameters
    ----------
    parts : Parts
        Of the rows of X.
    X, F : ndarray
        Vectors that do not dominate each other, shape (k, num_genes), and their two or three
        objectives.
    limit : int
    """
    key, values = parts.key.ravel(), _padded(parts.values).reshape(-1, 3)
    present = np.flatnonzero(key)
    order = present[np.argsort(key[present], kind="stable")]
    group, kept, first = _interchangeable(order, key, values)
    group = group.reshape(parts.key.shape)
    rows, low = _one_of_each_division(parts.key), _lowest(group, first, kept, values)
    grid, scale = _grid(_padded(F), low, flat=F.shape[1] < 3)
    sums, made_of = _sums(
        rows, group, first, kept, values, grid, low, scale, min(MAX_OF_ONE, MAX_SUMS // len(rows))
    )
    every = np.round(np.concatenate((F, sums[:, : F.shape[1]])), DECIMALS)
    front = np.flatnonzero(nondominated(every))
    new = front >= len(F)
    if new.sum() > limit:
        gain = np.where(new, contributions(every[front]), -1.0)
        new[np.argsort(-gain, kind="stable")[limit:]] = False
    chosen = made_of[front[new] - len(F)]
    children = X[chosen[:, 0] // parts.key.shape[1]]  # genes of no part may have any value
    _assemble(children, chosen, X, parts.label)
    return children
