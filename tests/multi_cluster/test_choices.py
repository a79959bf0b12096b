"""Which actions and rewards episodes have: accept first, fewer spreads, acceptance; a division."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placeopt
from placeopt.core.errors import UsageError
from placeopt.multi_cluster import environment as multi_cluster
from placeopt.multi_cluster import policies
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES
from placeopt.multi_cluster.simulator.outcomes import replicas_that_fit, take_by_weight
from placeopt.multi_cluster.simulator.stream import EpisodeBatch
from placeopt.rl.evaluation import evaluate, greedy

SEEDS = np.arange(30, dtype=np.uint64)
CROWDED = {"semantics": "published", "replicas": (32, 32)}
BALANCED = np.array(STRATEGIES["balanced"])


def begun(**options):
    """Return episodes that have begun."""
    made = multi_cluster.batch(None, len(SEEDS), **options)
    made.reset(SEEDS)
    return made


def played(**options) -> dict[str, float]:
    """Return reward and facts of the myopic policy, means over episodes."""
    made = begun(**options)
    weights = np.append(BALANCED, 0.0)[: len(made.rewards)]
    earned = policies.play(made, policies.of("myopic", weights), np.random.default_rng(0))
    return {key: float(value.mean()) for key, value in made.info().items()} | {
        "reward": float((earned @ weights).mean()),
        "parts": earned.shape[1],
    }


@pytest.mark.parametrize("options", [CROWDED, {"rate": 20.0, "replicas": (1, 16)}])
def test_accept_first_refuses_only_where_nothing_places_the_request(options):
    """Step by step: the masks are those that the outcomes ask for."""
    free, first, whole = (begun(accept=accept, **options) for accept in ("free", "first", "whole"))
    rng = np.random.default_rng(1)
    narrowed = 0
    for _ in range(40):
        shares = free.placed_shares()
        for made, least in ((first, 1e-9), (whole, 1.0)):
            for i in range(len(SEEDS)):
                legal = free.masks[i]
                wanted = legal & (shares[i] >= least)
                if not wanted.any():
                    wanted = legal & (shares[i] > 0)
                expected = wanted if wanted.any() else legal
                assert made.masks[i].tolist() == expected.tolist()
                narrowed += made.masks[i].sum() < legal.sum()
                assert (made.observations[i][~made.masks[i]] == 0).all()
        actions = np.where(whole.masks, rng.random(whole.masks.shape), -1).argmax(axis=1)
        for made in (free, first, whole):
            made.step(actions)
    assert narrowed > 100


def test_accept_first_is_the_trade_of_rewards_for_rejections():
    """At eight replicas a cluster, where refusing earns +1; whole leaves fewer replicas out."""
    free, first, whole = (played(accept=accept, **CROWDED) for accept in ("free", "first", "whole"))
    assert free["acceptance"] < 0.8 and first["acceptance"] > 0.95
    assert free["reward"] > first["reward"] > whole["reward"]
    assert first["whole"] < whole["whole"] and first["replicas"] < whole["replicas"]
    assert whole["whole"] <= whole["acceptance"] and whole["replicas"] < 1
    fixed = played(rate=5.0)
    assert fixed["whole"] == fixed["acceptance"], "fixed rules place requests whole"


@pytest.mark.parametrize("semantics", ["fixed", "published"])
@pytest.mark.parametrize("spreads", [0, 1, 2])
def test_fewer_spreads_are_the_same_game_with_actions_masked(semantics, spreads):
    """C + 1 to C + 3 actions, against C + 4 of which some are not taken."""
    few, all_four = begun(semantics=semantics, spreads=spreads), begun(semantics=semantics)
    kept = [*range(4 + spreads), 7]
    rng = np.random.default_rng(2)
    assert few.num_actions == len(kept)
    for _ in range(30):
        assert (few.masks == all_four.masks[:, kept]).all()
        assert (few.parts == all_four.parts[:, kept]).all()
        assert (few.observations == all_four.observations[:, kept]).all()
        actions = np.where(few.masks, rng.random(few.masks.shape), -1).argmax(axis=1)
        rewards, _ = few.step(actions)
        others, _ = all_four.step(np.array(kept)[actions])
        assert (rewards == others).all()
    copies = few.fork([3, 3])
    assert (copies.observations == few.observations[[3, 3]]).all()


def test_acceptance_is_the_share_of_replicas_placed():
    """The fourth part sums to what `info` counts, and the last column says it beforehand."""
    made = begun(acceptance=True, **CROWDED)
    assert made.rewards[-1] == "acceptance" and made.score == (5, 6, 7, 31, 8)
    rng, placed = np.random.default_rng(3), np.zeros(len(SEEDS))
    for _ in range(made.steps):
        actions = np.where(made.masks, rng.random(made.masks.shape), -1).argmax(axis=1)
        row = made.observations[np.arange(len(SEEDS)), actions]
        rewards, _ = made.step(actions)
        assert rewards[:, 3] == pytest.approx(row[:, 31] + row[:, 8], abs=1e-6)
        placed += rewards[:, 3]
    assert placed / made.steps == pytest.approx(made.info()["replicas"])
    assert (made.step(actions)[0] == 0).all(), "after the end"
    assert played(acceptance=True, **CROWDED)["parts"] == 4


def test_a_preference_for_acceptance_refuses_less():
    """Weights of four parts: half of it for acceptance outweighs what refusing earns."""
    made = [begun(acceptance=True, **CROWDED) for _ in range(2)]
    for one, share in zip(made, (0.0, 0.6), strict=True):
        weights = np.append((1 - share) * BALANCED, share)
        policies.play(one, policies.of("myopic", weights), np.random.default_rng(0))
    kept = [one.info()["acceptance"].mean() for one in made]
    assert kept[1] > kept[0] + 0.1
    weights = np.append(0.4 * BALANCED, 0.6)
    facts = evaluate(begun(acceptance=True, **CROWDED), greedy(made[0].score), 30, weights)
    assert facts["acceptance"].mean() == pytest.approx(kept[1]), "the columns of `score` say it too"


def test_choices_hold_on_an_instance():
    """By methods too; other options are refused there."""
    problem = MultiCluster.generate(seed=2, requests=30, semantics="published")
    batch = multi_cluster.batch(problem, 1, accept="first", spreads=1, acceptance=True)
    assert batch.num_actions == 6 and batch.observations.shape[-1] == 32
    fronts = [
        placeopt.solve(problem, "policy", policy="multi-cluster-published", episodes=text)
        for text in ("", "accept=first")
    ]
    assert fronts[1].values[:, 3].max() <= fronts[0].values[:, 3].max()
    for accept in ("free", "whole"):
        assert placeopt.solve(problem, "myopic", accept=accept, weights="balanced").points
    with pytest.raises(UsageError, match="accept of multi-cluster episodes is 'late'"):
        multi_cluster.batch(None, 1, accept="late")
    with pytest.raises(UsageError, match="write it as key=value,key=value"):
        placeopt.solve(problem, "policy", policy="multi-cluster-published", episodes="accept")


@given(weights=st.lists(st.integers(0, 12), min_size=2, max_size=6), asked=st.integers(1, 30))
def test_division_is_in_proportion_and_fits(weights, asked):
    """All or nothing; nobody gets more than its weight, or less than its share rounded down."""
    split = np.full(len(weights), -1)
    answer = take_by_weight(np.array(weights), asked, split)
    if sum(weights) < asked:
        assert answer == len(weights) + 3
        return
    assert split.sum() == asked
    for weight, given_ in zip(weights, split.tolist(), strict=True):
        exact = weight * asked / sum(weights)
        assert np.floor(exact) <= given_ <= min(weight, np.floor(exact) + 1)
    alone = [c for c, given_ in enumerate(split.tolist()) if given_ == asked]
    assert answer == (alone[0] if alone else len(weights))


def test_division_by_hand():
    """Largest weights get what rounding leaves; room is the scarcer of cpu and memory."""
    split = np.zeros(3, dtype=np.int64)
    assert take_by_weight(np.array([5, 3, 2]), 4, split) == 3 and split.tolist() == [3, 1, 0]
    assert replicas_that_fit(np.array([10, 9]), np.array([2, 3])) == 3
    assert replicas_that_fit(np.array([10, -1]), np.array([2, 3])) == 0


@pytest.mark.parametrize("semantics", ["fixed", "published"])
def test_karmada_divided_plans_are_what_the_referee_says(semantics):
    """Objectives of the episodes and of the referee agree; spreads are used."""
    problem = MultiCluster.generate(seed=4, requests=25, semantics=semantics)
    point = placeopt.solve(problem, "karmada-divided").points[0]
    assert sum(len(decision) > 1 for decision in point.plan["decisions"]) > 5
    stream = EpisodeBatch.of(problem)
    policies.play(stream, policies.karmada_divided, np.random.default_rng(0))
    worst = [1000.0, 16.0, 0.75, 1.0]
    assert point.values == pytest.approx(stream.values(worst)[0])
    crowded = begun(**CROWDED)
    policies.play(crowded, policies.of("karmada-divided", ()), np.random.default_rng(0))
    facts = crowded.info()
    assert facts["whole"].tolist() == facts["acceptance"].tolist()
    assert facts["acceptance"].mean() > 0.5


@pytest.mark.parametrize("semantics", ["fixed", "published"])
@pytest.mark.parametrize("first_spread", ["printed", "divide"])
def test_a_first_spread_that_places_whatever_fits(semantics, first_spread):
    """Where several clusters together have room, it places all replicas, and the referee agrees."""
    crowded = {**CROWDED, "semantics": semantics, "accept": "first"}
    common, placing = begun(**crowded), begun(**crowded, first_spread=first_spread)
    assert placing.num_actions == common.num_actions
    first, rng = placing.clusters, np.random.default_rng(5)
    for _ in range(placing.steps):
        splits, asked = placing.outcomes.split[:, 0], placing.traces.replicas
        at_hand = asked[np.arange(len(SEEDS)), np.minimum(placing.state.now, placing.steps - 1)]
        accepted = placing.outcomes.accepts[:, first]
        assert (splits.sum(axis=1) == at_hand)[accepted].all(), "no replica is left out"
        actions = np.where(placing.masks, rng.random(placing.masks.shape), -1).argmax(axis=1)
        placing.step(np.where(accepted, first, actions))
    policies.play(common, policies.of("myopic", BALANCED), np.random.default_rng(0))
    assert placing.ended.all() and not placing.masks[:, :-1].any()
    whole, of_others = placing.info()["whole"].mean(), common.info()["whole"].mean()
    if semantics == "published":
        assert whole > of_others + 0.1, "one pass leaves replicas out"

    problem = MultiCluster.generate(seed=4, requests=25, semantics=semantics)
    stream = EpisodeBatch.of(problem, first_spread=first_spread)
    policies.play(stream, policies.of("myopic", BALANCED), np.random.default_rng(0))
    verdict = problem.evaluate(stream.plan(0))
    assert verdict.feasible
    assert verdict.values == pytest.approx(stream.values([1000.0, 16.0, 0.75, 1.0])[0])


@pytest.mark.parametrize("semantics", ["fixed", "published"])
def test_the_paper_sees_ten_columns(semantics):
    """Table 3, computed one number at a time; spreads and the refusal have no cluster."""
    made = begun(observation="paper", spreads=1, semantics=semantics, clusters=3)
    assert made.observations.shape == (len(SEEDS), 5, 10) and made.score == ()
    rng = np.random.default_rng(2)
    for t in range(5):
        traces, state = made.traces, made.state
        for i in (0, 7):
            before = traces.arrival[i, t - 1] if t else 0.0
            request = [
                traces.replicas[i, t] / 7,
                traces.demand[i, t, 0] * 1e-9,
                traces.demand[i, t, 1] * 1e-9,
                traces.threshold[i, t] / 1000,
                (traces.arrival[i, t] - before) * made.rate,
            ]
            for c in range(5):
                cluster = [-1.0] * 5
                if c < 3:
                    used, size = state.used[i, c] * 1e-9, traces.capacity[i, c] * 1e-9
                    cluster = [used[0] / 8, size[0] / 8, used[1] / 32, size[1] / 32]
                    cluster.append(state.latency[i, c] / 1000)
                assert made.observations[i, c] == pytest.approx([*cluster, *request], abs=1e-5)
        made.step(np.where(made.masks, rng.random(made.masks.shape), -1).argmax(axis=1))
    assert (made.fork([3]).observations == made.observations[[3]]).all()


def test_without_masks_every_action_is_legal():
    """What places nothing counts as a refusal; to rule refusals out takes masks."""
    made, masked = begun(masked=False, **CROWDED), begun(**CROWDED)
    assert made.masks.all() and not masked.masks.all()
    where = ~masked.masks
    actions = np.where(where.any(axis=1), where.argmax(axis=1), made.num_actions - 1)
    refused = np.full(len(SEEDS), made.num_actions - 1)
    assert (made.step(actions)[0] == masked.step(refused)[0]).all()
    for options, said in (
        ({"masked": False, "accept": "first"}, "accept is first"),
        ({"observation": "all"}, "unknown observation 'all'"),
    ):
        with pytest.raises(UsageError, match=said):
            begun(**options)
