"""Vectors, actions and seeds from outside: one error that names the value, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from placeopt_papers.cnsm_encoding import PublishedEncoder

import placeopt
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_encoder, build_sequence
from placeopt.core.numbers import checked_vectors
from placeopt.environments import make_env, make_vec_env
from placeopt.evolve.operators import SimulatedBinary
from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation
from placeopt.multi_cluster.search.placement import PlacementEncoder

#: An instance of each problem.
INSTANCES = ("toy", "corner-5", "chain-12", "repack-10x5", "stream-4x100")
#: What no action is: too low, too high, no whole number, no number, no scalar.
NO_ACTIONS = (-1, 10**6, 10**30, 0.5, np.nan, np.inf, None, "0", [0, 0], [], np.zeros((1, 1)), {})


def encoders():
    """Yield an encoder of every kind, with its name."""
    for name in INSTANCES:
        encoder = build_encoder(placeopt.load(name))
        yield pytest.param(encoder, id=name)
    toy, stream = placeopt.load("toy"), placeopt.load("stream-4x100")
    yield pytest.param(PublishedEncoder(toy, toy.objectives), id="published")
    yield pytest.param(PlacementEncoder(stream, stream.objectives), id="placements")
    yield pytest.param(SimulatedBinary(build_encoder(toy)), id="simulated-binary")


def wrong(encoder):
    """Yield arrays that are no vectors of an encoder, and a part of the message."""
    X = np.array(encoder.sample(np.random.default_rng(0), 3))
    upper = int(encoder.upper[-1])
    for value in (-1, upper + 1, 10**9, -(10**15)):
        changed = X.copy()
        changed[1, -1] = value
        yield changed, f"vector 1, gene {encoder.num_genes - 1} is {value}; legal: whole.* {upper}$"
    for value in (0.5, np.nan, np.inf, -np.inf, 1e300):
        changed = X.astype(float)
        changed[2, 0] = value
        yield changed, f"vector 2, gene 0 is {value}".replace("+", r"\+")
    huge = X.astype(object)
    huge[0, 0] = 10**30
    yield huge, "vector 0, gene 0 is 1e\\+30"
    yield X[:, :-1], "have the shape"
    yield X[0], "have the shape"
    yield X[None], "have the shape"
    yield np.concatenate((X, X), axis=1), "have the shape"
    for given in ("genes", None, [[1], [1, 2]], X.astype(str), X.astype(complex), {"X": X}):
        yield given, "is no array of numbers; give vectors of shape"


@pytest.mark.parametrize("encoder", encoders())
def test_encoders_refuse_what_is_no_vector(encoder):
    """Each method that takes vectors names the vector, the gene, the value and its bounds."""
    rng = np.random.default_rng(1)
    good = encoder.sample(rng, 3)
    for given, message in wrong(encoder):
        calls = [
            lambda X=given: encoder.evaluate(X),
            lambda X=given: encoder.mutate(rng, X),
            lambda X=given: encoder.vary(rng, X, good),
            lambda X=given: encoder.vary(rng, good, X),
            lambda X=given: EncodedProblem(encoder).vectors(X),
        ]
        if type(encoder).parts is not SimulatedBinary.__base__.parts:
            calls.append(lambda X=given: encoder.parts(X))
        for call in calls:
            with pytest.raises(UsageError, match=message):
                call()
        if isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == 3:
            with pytest.raises(UsageError):
                for genes in given:
                    encoder.decode(genes)
    with pytest.raises(UsageError, match="3 mothers and 2 fathers"):
        encoder.vary(rng, good, good[:2])
    for genes in (good, good[0, :-1], None, "genes"):
        with pytest.raises(UsageError):
            encoder.decode(genes)


@pytest.mark.parametrize("encoder", encoders())
def test_vectors_of_any_numeric_type(encoder):
    """Whole numbers of every type are vectors; none at all is an answer too."""
    X = encoder.sample(np.random.default_rng(2), 4)
    F, G = encoder.evaluate(X)
    same = (
        X.astype(float),
        X.astype(np.int16),
        X.astype(np.uint64),
        X.tolist(),
        np.asfortranarray(X),
    )
    for given in (*same, X.astype(object)):
        again = encoder.evaluate(given)
        np.testing.assert_array_equal(again[0], F)
        np.testing.assert_array_equal(again[1], G)
    assert encoder.decode(X[0].tolist()) == encoder.decode(X[0])
    for empty in ([], X[:0], X[:0].astype(float)):
        F, G = encoder.evaluate(empty)
        assert F.shape == (0, len(encoder.objectives))
        assert G.shape == (0, encoder.num_constraints)


@pytest.mark.parametrize("name", INSTANCES)
def test_front_of_and_adapters_check_vectors(name):
    """`front_of`, pymoo's and jMetalPy's problems; real numbers are rounded where asked for."""
    pytest.importorskip("jmetal", reason="jMetalPy is not installed")
    from placeopt.evolve import jmetal_adapter as adapter

    encoder = build_encoder(placeopt.load(name))
    X = encoder.sample(np.random.default_rng(3), 3)
    plain = EncodedProblem(encoder)
    integers, reals = (
        kind(encoder) for kind in (adapter.EncodedIntegerProblem, adapter.EncodedFloatProblem)
    )
    expected = placeopt.front_of(X, plain)
    for problem in (integers, reals):
        solutions = [problem.create_solution() for _ in range(3)]
        assert placeopt.front_of(X, problem).values.tolist() == expected.values.tolist()
        for given, message in wrong(encoder):
            if problem is reals and "0.5" in message:
                continue
            if not isinstance(given, np.ndarray):
                with pytest.raises(UsageError, match="give"):
                    placeopt.front_of(given, problem)
            elif given.ndim != 1:  # one vector is a result, too
                with pytest.raises(UsageError, match=message):
                    placeopt.front_of(given, problem)
            if isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == 3:
                for solution, row in zip(solutions, given.tolist(), strict=True):
                    solution._variables = row  # past its own conversions
                with pytest.raises(UsageError, match=message):
                    problem.evaluate_all(solutions)
    nearly = np.clip(X + 0.25, encoder.lower, encoder.upper)
    assert placeopt.front_of(nearly, reals).values.tolist() == expected.values.tolist()
    assert placeopt.front_of(np.zeros((0, encoder.num_genes)), plain).points == ()
    assert plain.evaluate(X.astype(float), return_as_dictionary=True)["F"].shape[0] == 3
    assert plain.values(X[:0])["F"].shape == (0, len(encoder.objectives))


def test_an_operator_without_repair_is_named_by_its_vector():
    """pymoo's own crossover gives real numbers; the error says which, instead of cutting them."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.optimize import minimize

    encoded = EncodedProblem(build_encoder(placeopt.load("corner-5")))
    algorithm = NSGA2(pop_size=20, sampling=Sample(), crossover=SBX())
    with pytest.raises(UsageError, match=r"gene \d+ is \d+\.\d+; legal: whole numbers"):
        minimize(encoded, algorithm, ("n_eval", 400), seed=1)
    with pytest.raises(UsageError, match="vector 0, gene 0 is nan"):
        population = Sample()(encoded, 4, random_state=np.random.default_rng(1))
        population.set("X", np.full((4, encoded.n_var), np.nan))
        Variation().children(encoded, population, 4, np.random.default_rng(1))


def test_the_check_reads_numbers_of_every_size():
    """Unsigned numbers do not wrap around, and 2**63 is no vector."""
    lower, upper = np.zeros(2, dtype=np.int64), np.full(2, 5)
    with pytest.raises(UsageError, match="gene 1 is 18446744073709551615"):
        checked_vectors(np.array([[0, 2**64 - 1]], dtype=np.uint64), lower, upper)
    with pytest.raises(UsageError, match=r"gene 0 is 9\.2"):
        checked_vectors([[2.0**63, 0.0]], lower, upper)
    with pytest.raises(UsageError, match="no array of numbers"):
        checked_vectors([[10**400, 0]], lower, upper)


@pytest.mark.parametrize("name", INSTANCES)
def test_environments_name_what_is_no_action(name):
    """One environment, many at once, and the sequence of decisions."""
    problem = placeopt.load(name)
    env, many = make_env(problem), make_vec_env(problem, 3)
    env.reset(seed=1), many.reset(seed=1)
    sequence = build_sequence(problem)
    state = sequence.reset()
    for action in NO_ACTIONS:
        message = "legal: whole numbers from 0 to|have the shape|no array of numbers"
        with pytest.raises(UsageError, match=message):
            env.step(action)
        with pytest.raises(UsageError, match=message):
            many.step([0, action, 0])
        with pytest.raises(UsageError, match=message):
            many.step(action)
        with pytest.raises(UsageError, match=message):
            sequence.step(state, action)
    with pytest.raises(UsageError, match=rf"environment 2 is {sequence.num_actions + 10**6}"):
        many.step([0, 0, sequence.num_actions + 10**6])
    legal = int(sequence.mask(state).argmax())  # nothing was taken
    assert sequence.remaining(state) == sequence.decisions
    sequence.step(state, np.int32(legal))
    first = env.action_masks().argmax()
    assert env.step(np.array(first))[0].shape == env.observation_space.shape


@pytest.mark.parametrize("name", INSTANCES)
def test_masked_actions_end_an_episode_or_are_refused(name):
    """Environments count them against the policy, as papers do; a sequence refuses them."""
    problem = placeopt.load(name)
    sequence = build_sequence(problem)
    state, rng = sequence.reset(), np.random.default_rng(0)
    while sequence.mask(state).all():
        sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))
    masked = int(sequence.mask(state).argmin())
    with pytest.raises(UsageError, match=f"action {masked} is not legal here"):
        sequence.step(state, masked)
    env = make_env(problem)
    env.reset(seed=1)
    ended = False
    while not ended:
        masks = env.action_masks()
        action = masks.argmax() if masks.all() else masks.argmin()
        _, reward, ended, _, _ = env.step(action)
    assert np.isfinite(reward)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "one", True, np.nan])
def test_seeds_are_whole_numbers(seed):
    """Of environments and of runs."""
    message = r"seed is .*; give a whole number from 0 to 2\*\*63 - 1"
    for env in (make_env("edge-cloud"), make_vec_env("edge-cloud", 2)):
        with pytest.raises(UsageError, match=message):
            env.reset(seed=seed)
    with pytest.raises(UsageError, match=message):
        placeopt.solve("toy", "greedy", seed=seed)
    with pytest.raises(UsageError, match="3 seeds for 2 environments"):
        make_vec_env("edge-cloud", 2).reset(seed=[1, 2, 3])
