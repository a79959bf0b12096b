"""Policies: the NumPy network is DeepSets and equals the trained one; files are checked."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.arrays import Arrays, write_arrays
from placeopt.rl import policy_file
from placeopt.rl.policy import Shape, TrainedPolicy


def make(seed=0, features=3, parts=2, hidden=(5, 4), activation="tanh", score=(0, 1)):
    """Return a policy with random arrays."""
    rng = np.random.default_rng(seed)
    shape = Shape(features, parts, hidden, activation, score)
    arrays = {key: rng.normal(size=size).astype(np.float32) for key, size in shape.arrays().items()}
    return TrainedPolicy(
        "multi-cluster",
        tuple("abcdef"[:parts]),
        shape,
        arrays,
        {"semantics": "fixed"},
        None,
        {"seed": 1},
    )


shapes = st.tuples(
    st.integers(0, 9),
    st.integers(2, 6),
    st.integers(1, 3),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.sampled_from(["tanh", "relu"]),
    st.booleans(),
)


def scene(seed, actions, features, parts):
    """Return observations, weights and masks of three situations."""
    rng = np.random.default_rng(seed)
    masks = rng.random((3, actions)) < 0.6
    masks[:2, 0] = True
    return (
        rng.normal(size=(3, actions, features)).astype(np.float32),
        rng.dirichlet(np.ones(parts), 3),
        masks,
    )


@given(shapes, st.integers(1, 9))
def test_equivariant(form, actions):
    """Logits move with their rows; illegal rows have no effect; any number of actions is legal."""
    seed, features, parts, hidden, activation, scored = form
    policy = make(
        seed,
        features,
        parts,
        tuple(hidden),
        activation,
        tuple(range(min(features, parts + 1))) if scored and features >= parts else (),
    )
    x, w, masks = scene(seed, actions, features, parts)
    order = np.random.default_rng(seed).permutation(actions)
    logits = policy.logits(x, w, masks)
    assert logits.shape == (3, actions)
    assert np.allclose(policy.logits(x[:, order], w, masks[:, order]), logits[:, order], atol=1e-4)
    noise = np.where(masks[..., None], x, 9.0).astype(np.float32)
    assert np.allclose(policy.logits(noise, w, masks)[masks], logits[masks], atol=1e-4)
    assert masks[np.arange(2), policy.act(x, w, masks)[:2]].all()
    assert np.allclose(policy.logits(x[0], w[0], masks[0]), logits[0], atol=1e-4)


@given(shapes, st.integers(1, 9))
def test_numpy_equals_torch(form, actions):
    """The same arrays give the same logits, whatever the number of actions."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    from placeopt.rl.deepsets import ILLEGAL, Network, numpy_arrays

    seed, features, parts, hidden, activation, scored = form
    policy = make(
        seed,
        features,
        parts,
        tuple(hidden),
        activation,
        tuple(range(min(features, parts + 1))) if scored and features >= parts else (),
    )
    network = Network(policy.shape)
    values = {key: torch.from_numpy(np.array(value)) for key, value in policy.arrays.items()}
    network.load_state_dict(values | {"base": values.pop("factor"), "growth": torch.zeros(parts)})
    assert all((numpy_arrays(network)[key] == value).all() for key, value in policy.arrays.items())
    x, w, masks = scene(seed, actions, features, parts)
    rows = np.concatenate(
        [x, np.broadcast_to(w[:, None], (3, actions, parts)), masks[..., None]], axis=-1
    ).astype(np.float32)
    with torch.no_grad():
        theirs = network(torch.from_numpy(rows)).numpy()
    assert np.allclose(policy.logits(x, w, masks)[masks], theirs[masks], atol=2e-4, rtol=1e-4)
    assert (theirs[~masks] == ILLEGAL).all()


def test_file_round_trip(tmp_path):
    """What is written is read; the same policy gives the same bytes."""
    policy = replace(make(), weights=(0.25, 0.75))
    policy_file.write(policy, tmp_path / "a.npz")
    policy_file.write(policy, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = policy_file.read(tmp_path / "a.npz", "multi-cluster")
    assert (
        found.card == {"seed": 1} and found.shape == policy.shape and found.weights == (0.25, 0.75)
    )
    assert all((found.arrays[key] == value).all() for key, value in policy.arrays.items())
    assert found.preferences() == pytest.approx([0.25, 0.75]) and found.preferences(
        "1,1"
    ) == pytest.approx([0.5, 0.5])


def test_wrong_number_of_features(tmp_path):
    """A policy for another environment says so."""
    with pytest.raises(UsageError, match="reads 3 features, the environment has 4"):
        make().logits(np.zeros((2, 4), dtype=np.float32), np.ones(2) / 2, np.ones(2, dtype=bool))


def test_damaged_and_foreign_files(tmp_path):
    """Each is one clear error; a pickle inside is not touched."""
    path = tmp_path / "p.npz"
    policy_file.write(make(), path)
    whole = path.read_bytes()
    bad = tmp_path / "bad.npz"
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:length])
        with pytest.raises(DocumentError, match="not a policy"):
            policy_file.read(bad)
    for place in range(40, len(whole), 97):
        bad.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            policy_file.read(bad)
        except DocumentError as error:
            assert "bad.npz" in str(error)
    for content in (b"{}", b"\x80\x04K\x01.", b"PK\x05\x06" + b"\0" * 18):
        bad.write_bytes(content)
        with pytest.raises(DocumentError, match="not a policy"):
            policy_file.read(bad)
    np.savez(bad, header=np.array(["x"], dtype=object), allow_pickle=True)
    with pytest.raises(DocumentError, match="not a policy"):
        policy_file.read(bad)
    np.savez(bad, x=np.zeros(3))
    with pytest.raises(DocumentError, match="no header"):
        policy_file.read(bad)
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"\0" * (policy_file.MAX_BYTES + 1))
    with pytest.raises(DocumentError, match="unpacks to"):
        policy_file.read(bad)
    with pytest.raises(DocumentError, match="No such file"):
        policy_file.read(tmp_path / "none.npz")
    with pytest.raises(DocumentError, match="no such file or policy"):
        policy_file.read("none")


def rewritten(path, change):
    """Write a policy whose header `change` has edited."""
    policy = make()
    header = json.loads(json.dumps(policy_file.header_of(policy)))
    arrays = dict(policy.arrays)
    change(header, arrays)
    write_arrays(path, Arrays(header, arrays))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda h, a: h.update(format="placeopt/policy@9"),
            "is not a format that this version reads",
        ),
        (lambda h, a: h.update(extra=1), "unknown field 'extra'"),
        (lambda h, a: h.pop("problem"), "missing"),
        (lambda h, a: h["network"].update(activation="sin"), "activation"),
        (lambda h, a: h["network"].update(hidden=[5, 9999]), "network.hidden"),
        (lambda h, a: h["network"].update(parts=3), "not legal"),
        (lambda h, a: h.update(network=3), "network"),
        (lambda h, a: h["network"].update(odd=3), "odd"),
        (lambda h, a: h.update(rewards=3), "rewards"),
        (lambda h, a: h["network"].update(score=[0, 7]), "network.score"),
        (lambda h, a: h["network"].update(features=4), "is not legal"),
        (lambda h, a: h.update(weights=[1.0]), "weights"),
        (lambda h, a: a.pop("factor"), "'factor' is missing"),
        (lambda h, a: a.update(odd=np.zeros(1)), "'odd' is missing or too many"),
        (lambda h, a: a.update(factor=np.full(2, np.nan, dtype=np.float32)), "not finite"),
        (lambda h, a: a.update(factor=np.array([1, 1])), "int64"),
    ],
)
def test_wrong_headers_and_arrays(tmp_path, change, says):
    """The message says what is wrong."""
    rewritten(tmp_path / "p.npz", change)
    with pytest.raises(DocumentError, match=says):
        policy_file.read(tmp_path / "p.npz")


def test_wrong_problem(tmp_path):
    """A policy for another problem is refused by name."""
    policy_file.write(make(), tmp_path / "p.npz")
    with pytest.raises(DocumentError, match="for multi-cluster, not for rescheduling"):
        policy_file.read(tmp_path / "p.npz", "rescheduling")
