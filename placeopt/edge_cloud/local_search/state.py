"""What the compiled parts of the edge-cloud heuristics work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import Arrays

#: Most applications that the large neighbourhood search takes out at once.
MOST_REMOVED = 16


class Work(NamedTuple):
    """Scratch memory of `_best_placement`; positions count the nodes with room, by their delay from the source."""

    nodes: np.ndarray  # (nodes,) by position
    cost: np.ndarray  # (most microservices, nodes) by position
    least: np.ndarray  # least cost up to a position
    order: np.ndarray  # positions worth trying, sorted by cost
    candidates: np.ndarray  # (most microservices,) how many
    sequences: np.ndarray  # (microservices, most microservices) its application in an order that keeps neighbours early, from each
    sequence: np.ndarray  # the one of the search
    chosen: np.ndarray  # node of each microservice in the search
    pointer: np.ndarray
    value: np.ndarray
    rest: np.ndarray
    found: np.ndarray  # best nodes so far


@kernel
def _sequences(table, most):
    """Return the microservices of each one's application, numbered within it, along the flows from that one."""
    sequences = np.zeros((len(table.demand), most), dtype=np.int64)
    for a in range(len(table.source)):
        base, count = table.first[a], table.first[a + 1] - table.first[a]
        for start in range(count):
            row, known = sequences[base + start], np.zeros(count, dtype=np.bool_)
            row[0], known[start] = start, True
            placed, head = 1, 0
            while placed < count:
                if head == placed:  # no flow leads to the others
                    row[placed] = np.argmin(known)
                    known[row[placed]] = True
                    placed += 1
                i = base + row[head]
                head += 1
                for e in range(table.flow_first[i], table.flow_first[i + 1]):
                    other = table.flow_other[e] - base
                    if not known[other]:
                        row[placed], known[other] = other, True
                        placed += 1
    return sequences


def work(table: Arrays) -> Work:
    """Return scratch memory for an instance."""
    most, nodes = int(np.diff(table.first).max()), len(table.capacity)
    whole = [np.zeros(most + 1, dtype=np.int64) for _ in range(5)]
    return Work(
        np.zeros(nodes, dtype=np.int64),
        np.zeros((most, nodes)),
        np.zeros((most, nodes)),
        np.zeros((most, nodes), dtype=np.int64),
        whole[0],
        _sequences(table, most),
        whole[1],
        whole[2],
        whole[3],
        np.zeros(most + 1),
        np.zeros(most + 1),
        whole[4],
    )


class Search(NamedTuple):
    """State of the large neighbourhood search; the microservices on a node are a doubly linked list."""

    hosts: np.ndarray  # (microservices,) -1 throughout an application without a place
    best: np.ndarray  # (microservices,) the best plan so far
    room: np.ndarray  # (nodes, 2)
    values: np.ndarray  # (applications,)
    target: (
        np.ndarray
    )  # (applications,) what each would cost, prices included, if all nodes were empty
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


def search(
    table: Arrays, hosts: np.ndarray, rng: np.random.Generator, target: np.ndarray, unplaced: float
) -> Search:
    """Return the state of a search from a plan; ``enter`` has yet to fill the lists.

    Parameters
    ----------
    target : ndarray, shape (applications,)
        What each application costs under the prices of the search where it is alone.
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
        target=target,
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
