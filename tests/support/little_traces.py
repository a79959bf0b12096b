"""Small traces, and a twin that is checked after every event."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placeopt.backtest.arrays import arrays_of
from placeopt.backtest.engine import Twin
from placeopt.backtest.policies import policy_of
from placeopt.backtest.policies.base import Policy
from placeopt.backtest.room import OFF
from placeopt.backtest.trace import ClusterTrace
from placeopt.rl.batches import make_batch
from placeopt.rl.policy import Shape, TrainedPolicy
from placeopt.rl.policy_file import write
from placeopt.rolling_update.problem import RollingUpdate

SMALL = {"name": "small", "cpu_millicores": 4000, "memory_mib": 8192, "usd_per_hour": 1.0}


def trace(nodes, pods, machines=(SMALL,), seconds=3600, **more) -> ClusterTrace:
    document = {"name": "t", "seconds": seconds, "machines": machines, "nodes": nodes}
    return ClusterTrace.model_validate({**document, "pods": pods, **more})


def node(name, **more):
    return {"name": name, "machine": "small", **more}


def pod(name, cpu, begin, end=None, **more):
    life = {} if end is None else {"to_s": end}
    return {"name": name, "cpu_millicores": cpu, "memory_mib": 1, "from_s": begin, **life, **more}


def conserved(twin: Twin) -> None:
    """No pod lost, no node over its room, the rate of money is that of the nodes that are there."""
    arrays, room = twin.arrays, twin.room
    assert (room.cpu >= 0).all() and (room.memory >= 0).all() and (room.gpu >= 0).all()
    there = room.state != OFF
    assert twin.ledger.rate == pytest.approx(float(twin.price[arrays.machine[there]].sum()))
    assert twin.ledger.nodes == there.sum()
    for n, pods in enumerate(twin.on_node):
        assert all(twin.node_of[p] == n for p in pods)
        assert not pods or there[n]
    came = twin._arrival
    placed = sum(map(len, twin.on_node))
    gone = int((twin.node_of == -2).sum())
    assert placed + len(twin.waiting) + gone + sum(map(len, twin.rollouts.to_come)) == came
    moving = twin.executor._moving
    used = room.cpu_size.sum() - room.cpu.sum()
    stands = sum(twin.needs[p][0] for pods in twin.on_node for p in pods)
    assert used == stands + (twin.needs[moving[0]][0] if moving else 0)


def played(document: ClusterTrace, policy: Policy | str = "none", seed: int = 1) -> Twin:
    chosen = policy_of(policy) if isinstance(policy, str) else policy
    twin = Twin(arrays_of(document), chosen, seed, check=conserved)
    twin.run()
    return twin


def drawn_policy(path: Path, seed: int) -> None:
    """Write a policy whose arrays are drawn: it is not good, but its plans are carried out."""
    batch = make_batch(RollingUpdate, 1)
    rng = np.random.default_rng(seed)
    shape = Shape(batch.num_features, len(batch.rewards), (4,), "tanh", batch.score)
    arrays = {key: rng.normal(size=size).astype(np.float32) for key, size in shape.arrays().items()}
    weights = (0.8, 0.1, 0.1)
    write(TrainedPolicy("rolling-update", batch.rewards, shape, arrays, {}, weights, {}), path)
