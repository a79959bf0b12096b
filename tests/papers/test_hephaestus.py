"""The published multi-cluster environment: equal to plain Python; the choices of its episodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multi_cluster_plain import Plain
from placeopt_papers import hephaestus_rules as published_rules
from placeopt_papers.hephaestus import PublishedEpisodes

from placeopt.core.errors import UsageError
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.state import allocate
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rl.evaluation import evaluate, greedy

SEEDS = np.arange(30, dtype=np.uint64)
CROWDED = {"replicas": (32, 32)}
BALANCED = np.array(STRATEGIES["balanced"])


def begun(count=30, first=0, **options):
    """Return episodes that have begun."""
    made = PublishedEpisodes(count, **options)
    made.reset(np.arange(first, first + count, dtype=np.uint64))
    return made


def any_legal(batch, rng):
    return np.where(batch.masks, rng.random(batch.masks.shape), -1).argmax(axis=1)


def played(**options) -> dict[str, float]:
    """Return reward and facts of the myopic policy, means over episodes."""
    made = begun(**options)
    weights = np.append(BALANCED, 0.0)[: len(made.rewards)]
    earned = policies.play(made, policies.of("myopic", weights), np.random.default_rng(0))
    return {key: float(value.mean()) for key, value in made.info().items()} | {
        "reward": float((earned @ weights).mean()),
        "parts": earned.shape[1],
    }


# -- the rules -------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    clusters=st.integers(2, 9),
    rate=st.sampled_from((5.0, 100.0)),
    most=st.sampled_from((7, 16, 32)),
)
def test_episodes_equal_plain_python(seed: int, clusters: int, rate: float, most: int) -> None:
    """Masks, observations, splits, rewards and latencies of every step, illegal actions too."""
    batch = begun(3, seed, clusters=clusters, rate=rate, replicas=(1, most), steps=40)
    plain, rng = [Plain(batch, k) for k in range(3)], np.random.default_rng(seed)
    for _ in range(40):
        for k, one in enumerate(plain):
            assert one.mask() == batch.masks[k].tolist()
            assert np.allclose(one.rows(), batch.observations[k], rtol=1e-5, atol=1e-6)
            assert [one.latency(c) for c in range(clusters)] == pytest.approx(
                batch.state.latency[k].tolist(), rel=1e-12
            )
            for s in range(3):
                if batch.outcomes.accepts[k, clusters + s]:
                    assert one.spread(s)[0] == batch.outcomes.split[k, s].tolist()
        actions = any_legal(batch, rng)
        if rng.random() < 0.1:
            actions[:] = rng.integers(batch.num_actions)
        rewards, _ = batch.step(actions)
        for k, one in enumerate(plain):
            assert one.step(int(actions[k])) == pytest.approx(
                rewards[k].tolist(), rel=1e-12, abs=1e-12
            )


def test_published_steps_by_hand() -> None:
    """All on cluster 0, a spread, and a refused BF1B1; nothing accumulates but loads and `free`."""
    traces, state, outcomes = allocate(1, 2, 3)
    everyone, rewards = np.arange(1), np.zeros((1, 3))
    traces.scale[:] = 1, 16
    traces.capacity[:], traces.price[:] = 100, (1, 4)
    state.matrix[0] = [[0, 100], [300, 0]]
    traces.demand[:], traces.replicas[0] = 10, (2, 2, 20)
    published_rules.begin_all(traces, state, everyone)
    assert state.latency[0].tolist() == [50, 150]
    published_rules.refresh_all(traces, state, outcomes, everyone)
    assert outcomes.outcome[0, 0] == pytest.approx((1.15 * 50, 1, 0.5))
    published_rules.step_all(traces, state, outcomes, np.array([0]), rewards)
    assert rewards[0] == pytest.approx((1 - 56.5 / 999, 1, 0.5))
    assert state.load[0].tolist() == [2, 0] and (state.used == 0).all()
    assert state.matrix[0] == pytest.approx(np.array([[0, 100], [100, 0]]))
    published_rules.refresh_all(traces, state, outcomes, everyone)
    assert outcomes.split[0].tolist() == [[1, 1], [1, 1], [2, 0]]
    assert outcomes.outcome[0, 2] == pytest.approx(((50 + 1.05 * 50) / 2, 2.5, 0.25))
    published_rules.step_all(traces, state, outcomes, np.array([2]), rewards)
    assert state.load[0].tolist() == [3, 1]
    assert state.matrix[0, 0, 1] == pytest.approx(100 * 1.05**2 / 1.1**2)
    published_rules.refresh_all(traces, state, outcomes, everyone)
    assert outcomes.masks[0].tolist() == [False, False, True, True, True, True]
    assert outcomes.refusal[0] == 1 and outcomes.split[0, 2].tolist() == [10, 10]
    assert not outcomes.accepts[0, 4], "masks fill clusters to 95 percent"
    published_rules.step_all(traces, state, outcomes, np.array([4]), rewards)
    assert rewards[0].tolist() == [1, 1, 1] and (state.free == 0).all()


def test_refusals_earn_what_the_rules_say() -> None:
    """-1 where one cluster could take it all, else +1."""
    batch, found = begun(50, replicas=(1, 40)), set()
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = any_legal(batch, rng)
        actions[rng.random(50) < 0.3] = batch.num_actions - 1
        could = batch.masks[:, : batch.clusters].any(axis=1)
        rewards, _ = batch.step(actions)
        refused = actions == batch.num_actions - 1
        assert (rewards[refused] == np.where(could[refused], -1.0, 1.0)[:, None]).all()
        found |= set(rewards[refused, 0].tolist())
    assert found == {-1.0, 1.0}


def test_results_do_not_depend_on_the_number_of_environments() -> None:
    """Environment k of many and a single one with its seed: the same, over two episodes."""
    many, one = begun(5, 7, steps=30), begun(1, 10, steps=30)
    rng = np.random.default_rng(1)
    for _ in range(70):
        assert (many.observations[3] == one.observations[0]).all()
        assert (many.masks[3] == one.masks[0]).all()
        actions = any_legal(many, rng)
        rewards, ended = many.step(actions)
        alone, over = one.step(actions[3:4])
        assert (rewards[3] == alone[0]).all() and ended[3] == over[0]
        if ended.any():
            many.reset(which=ended)
            one.reset(which=over)


def test_myopic_beats_the_baselines() -> None:
    """For each goal and their mixture."""
    for strategy in ("latency", "cost", "inequality", "balanced"):
        weights, earned = np.array(STRATEGIES[strategy]), {}
        for name in ("myopic", *policies.BASELINES):
            rule = policies.of(name, weights)
            earned[name] = policies.play(begun(60), rule, np.random.default_rng(0)) @ weights
        mine = earned.pop("myopic")
        assert all((mine - other).mean() > 0 for other in earned.values()), strategy


# -- choices of the episodes -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [CROWDED, {"replicas": (1, 40)}])
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


@pytest.mark.parametrize("spreads", [0, 1, 2])
def test_fewer_spreads_are_the_same_game_with_actions_masked(spreads):
    """C + 1 to C + 3 actions, against C + 4 of which some are not taken."""
    few, all_four = begun(spreads=spreads), begun()
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


def test_karmada_divided_places_whole_requests() -> None:
    """Whatever it accepts; half of the crowded requests at least."""
    crowded = begun(**CROWDED)
    policies.play(crowded, policies.of("karmada-divided", ()), np.random.default_rng(0))
    facts = crowded.info()
    assert facts["whole"].tolist() == facts["acceptance"].tolist()
    assert facts["acceptance"].mean() > 0.5


@pytest.mark.parametrize("first_spread", ["printed", "divide"])
def test_a_first_spread_that_places_whatever_fits(first_spread):
    """Where several clusters together have room, it places all replicas."""
    crowded = {**CROWDED, "accept": "first"}
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
    assert whole > of_others + 0.1, "one pass leaves replicas out"


def test_the_paper_sees_ten_columns():
    """Table 3, computed one number at a time; spreads and the refusal have no cluster."""
    made = begun(observation="paper", spreads=1, clusters=3)
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
        ({"observation": "all"}, "observation of published episodes is 'all'"),
    ):
        with pytest.raises(UsageError, match=said):
            begun(**options)


def test_options_are_checked() -> None:
    """With what is legal."""
    with pytest.raises(UsageError, match="accept of published episodes is 'late'"):
        PublishedEpisodes(1, accept="late")
    with pytest.raises(UsageError, match="clusters"):
        PublishedEpisodes(1, clusters=1)
