"""What the compiled parts of the edge-cloud heuristics work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.problems.edge_cloud_arrays import Arrays

#: Most applications that the large neighbourhood search takes out at once.
MOST_REMOVED = 16


class Work(NamedTuple):
    """Scratch memory of `_best_placement`; positions are ranks of nodes by their delay from the source."""

    cost: np.ndarray  # (most microservices, nodes) by position
    least: np.ndarray  # least cost up to a position
    order: np.ndarray  # positions worth trying, sorted by cost
    candidates: np.ndarray  # (most microservices,) how many
    sequence: np.ndarray  # microservices, in the order of the search
    chosen: np.ndarray  # node of each microservice in the search
    pointer: np.ndarray
    value: np.ndarray
    rest: np.ndarray
    found: np.ndarray  # best nodes so far


def work(table: Arrays) -> Work:
    """Return scratch memory for an instance."""
    most, nodes = int(np.diff(table.first).max()), len(table.capacity)
    whole = [np.zeros(most + 1, dtype=np.int64) for _ in range(5)]
    return Work(
        np.zeros((most, nodes)), np.zeros((most, nodes)), np.zeros((most, nodes), dtype=np.int64),
        whole[0], whole[1], whole[2], whole[3], np.zeros(most + 1), np.zeros(most + 1), whole[4],
    )  # fmt: skip


class Search(NamedTuple):
    """State of the large neighbourhood search; the microservices on a node are a doubly linked list."""

    hosts: np.ndarray  # (microservices,) -1 throughout an application without a place
    best: np.ndarray  # (microservices,) the best plan so far
    room: np.ndarray  # (nodes, 2)
    values: np.ndarray  # (applications,)
    totals: np.ndarray  # (3,) value of hosts, of best; what an application without a place counts
    head: np.ndarray  # (nodes,)
    after: np.ndarray  # (microservices,)
    before: np.ndarray  # (microservices,)
    owner: np.ndarray  # (microservices,) application
    by_source: np.ndarray  # applications sorted by source
    source_first: np.ndarray  # (nodes + 1,)
    noise: np.ndarray  # factors of prices, drawn beforehand
    price: np.ndarray  # (nodes, 2) noisy prices of the moment
    removed: np.ndarray  # applications taken out
    old: np.ndarray  # (removed, most microservices) where they were
    random: np.ndarray  # (1,) uint64 state of the generator


def search(table: Arrays, hosts: np.ndarray, rng: np.random.Generator, unplaced: float) -> Search:
    """Return the state of a search from a plan; ``enter`` has yet to fill the lists.

    Parameters
    ----------
    unplaced : float
        What an application without a place counts: more than any that has one.
    """
    nodes, services, applications = len(table.capacity), len(table.demand), len(table.source)

    def whole(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    by_source = np.argsort(table.source, kind="stable")
    return Search(
        hosts=hosts.copy(),
        best=hosts.copy(),
        room=whole(nodes, 2),
        values=np.zeros(applications),
        totals=np.array([0.0, 0.0, unplaced]),
        head=whole(nodes),
        after=whole(services),
        before=whole(services),
        owner=np.repeat(np.arange(applications), np.diff(table.first)),
        by_source=by_source,
        source_first=np.searchsorted(table.source[by_source], np.arange(nodes + 1)),
        noise=rng.uniform(0.5, 1.5, nodes + 4096),
        price=np.zeros((nodes, 2)),
        removed=whole(MOST_REMOVED),
        old=whole(MOST_REMOVED, int(np.diff(table.first).max())),
        random=np.array([rng.integers(1, 2**63)], dtype=np.uint64),
    )
