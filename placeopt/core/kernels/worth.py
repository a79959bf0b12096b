"""Which rows of many goals are worth most, by rays from the reference point.

The hypervolume of a set of points is an integral over the rays from the reference point: of the
distance to where a ray leaves what the points dominate, to the power of the number of goals. So a
sample of rays says what a point adds to others, whatever the number of goals. See K. Shang, H.
Ishibuchi and X. Ni, "R2-based hypervolume contribution approximation", IEEE Transactions on
Evolutionary Computation 24(1), 2020.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def reach(room, inverse, levels):
    """Write how far along each ray each row dominates, to the power of the number of goals.

    Parameters
    ----------
    room : (n, m) from each value to the reference point, positive
    inverse : (m, rays) of the coordinates of each ray
    levels : (n, rays) written
    """
    goals, rays = inverse.shape
    for row in range(len(room)):
        for ray in range(rays):
            levels[row, ray] = room[row, 0] * inverse[0, ray]
        for goal in range(1, goals):
            for ray in range(rays):
                levels[row, ray] = min(levels[row, ray], room[row, goal] * inverse[goal, ray])
        for ray in range(rays):
            distance = levels[row, ray]
            for _ in range(1, goals):
                levels[row, ray] *= distance


@kernel
def choose(levels, covered, most, fresh, chosen):
    """Write the rows that add most, one after another.

    Parameters
    ----------
    levels : (n, rays) as of `reach`
    covered : (rays,) the highest level of the rows that are chosen already; changed
    most : (n,) what each row adds at most, as more rows cannot make it more; -1 for chosen ones;
        changed
    fresh : (n,) -1 each; changed
    chosen : (size,) written
    """
    for place in range(len(chosen)):
        row = most.argmax()
        while fresh[row] != place:
            gain = 0.0
            for ray in range(len(covered)):
                gain += max(levels[row, ray] - covered[ray], 0.0)
            most[row], fresh[row] = gain, place
            row = most.argmax()
        chosen[place], most[row] = row, -1.0
        for ray in range(len(covered)):
            covered[ray] = max(covered[ray], levels[row, ray])
