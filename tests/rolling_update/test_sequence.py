"""Rolling updates as sequences: costs are the referee's; complete episodes break nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.core.task import Task
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rollout import rollout


def random_instance(seed: int) -> RollingUpdate:
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(1, 4))
    sizes = {
        "applications": int(rng.integers(1, 6)),
        "microservices": int(rng.integers(1, 5)),
        "occupancy": float(rng.choice([0.3, 0.45])),
    }
    try:
        drawn = RollingUpdate.generate(
            seed,
            clusters=clusters,
            nodes=int(rng.integers(max(4, 2 * clusters), 9)),
            downscaled=0.5,
            **sizes,
        )
    except UsageError:  # too few nodes in a cluster for what was drawn
        reject()
    document: dict[str, Any] = drawn.to_document()
    document["semantics"] = str(rng.choice(["stay", "strict"]))
    for node in document["nodes"]:
        node |= {
            "price": float(rng.choice([0.0, 0.5, 1.0, 2.0])),
            "drain": bool(rng.random() < 0.1),
        }
    if rng.random() < 0.4:
        document["applications"][0] = document["applications"][0] | {"reschedulable": False}
        for m in document["applications"][0]["microservices"]:
            m.pop("new_cpu_millicores", None)
    document["applications"][-1]["microservices"][0]["pinned"] = bool(rng.random() < 0.2)
    return RollingUpdate.from_document(document)


@given(st.integers(0, 10**6))
def test_costs_of_an_episode_sum_to_the_referee(seed: int) -> None:
    problem = random_instance(seed)
    sequence, rng = (
        build_sequence(problem, order=("emptiest-first", "given")[seed % 2]),
        np.random.default_rng(seed),
    )
    state, total, steps = sequence.reset(rng), np.zeros(3), 0
    while not sequence.done(state):
        assert sequence.remaining(state) == sequence.decisions - steps
        before = sequence.plan(state)
        table, mask, twin = sequence.features(state), sequence.mask(state), sequence.copy(state)
        assert (
            table.shape == (sequence.num_actions, sequence.num_features)
            and table.dtype == np.float32
        )
        assert np.abs(table).max() <= 1 and not table[~mask].any() and np.isfinite(table).all()
        np.testing.assert_allclose(sequence.costs(state), DecisionSequence.costs(sequence, state))
        total += sequence.step(state, int(rng.choice(np.flatnonzero(mask))))
        assert sequence.plan(twin) == before
        steps += 1
    verdict = problem.evaluate(sequence.plan(state))
    if sequence.remaining(state) == 0 and sequence.decisions:
        assert total == pytest.approx(verdict.values, abs=1e-9)
        # What cannot move may break the instance; nothing that was decided does.
        assert verdict.feasible or problem.infeasibility()
    assert not sequence.features(state).any() and np.isinf(sequence.costs(state)).all()


def test_what_is_refused() -> None:
    problem = RollingUpdate.generate(0, applications=2)
    with pytest.raises(UsageError, match="did you mean 'given'"):
        build_sequence(problem, order="givn")
    sequence = build_sequence(problem)
    state = sequence.reset()
    for action in (-1, sequence.num_actions, *np.flatnonzero(~sequence.mask(state))):
        with pytest.raises(UsageError, match=r"mask|the action is -?[0-9]+; legal"):
            sequence.step(state, int(action))


def test_the_first_decisions_empty_the_least_loaded_paid_node() -> None:
    problem = RollingUpdate.generate(0)
    a, sequence = problem.arrays, build_sequence(problem)
    paid = np.flatnonzero(a.price > 0)
    emptiest = paid[a.initial_load[paid, 0].argmin()]
    assert a.home[sequence.order[0]] == emptiest  # type: ignore[attr-defined]


def test_rollout_repacks() -> None:
    """Greedy decisions alone empty nodes, as leaving them pays at every step."""
    problem = RollingUpdate.generate(1)
    front = rollout.run(
        Task(problem, problem.select(["node_cost", "starts"]), Budget(evaluations=12)), gamma=0.0
    )
    assert front.points
    assert min(p.values[0] for p in front.points) <= 10 < problem.initial_cost


def test_an_environment_can_be_played() -> None:
    """The Gymnasium environment over this sequence follows Gymnasium's own rules."""
    from gymnasium.utils.env_checker import check_env

    from placeopt.environments import make_env

    check_env(make_env(RollingUpdate.generate(0, applications=3)), skip_render_check=True)
