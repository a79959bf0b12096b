"""Policies in files: an .npz of plain arrays with a JSON header.

Nothing is unpickled, and everything is checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from placeopt.core.errors import DocumentError, UsageError, did_you_mean
from placeopt.core.files import documents
from placeopt.core.files.arrays import Arrays, read_arrays, write_arrays
from placeopt.core.files.paths import AnyPath
from placeopt.core.goals import read_weights
from placeopt.rl.policy import Shape, TrainedPolicy

FORMAT = "placeopt/policy@1"
#: Suffix of policy files, and where those that come with placeopt are.
SUFFIX = ".npz"
BUNDLED = Path(__file__).parent / "policies"
#: Files that unpack to more bytes are not read: a policy is some ten thousand numbers.
MAX_BYTES = 64 * 2**20


class _Header(BaseModel):
    """What stands beside the arrays; the network has as many parts as there are rewards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["placeopt/policy@1"]
    problem: str
    rewards: tuple[str, ...] = Field(min_length=1, max_length=64)
    network: Shape
    environment: dict[str, Any] = Field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    card: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _with_parts(cls, header: Any) -> Any:
        network, rewards = header.get("network"), header.get("rewards")
        if not isinstance(network, dict) or not isinstance(rewards, (list, tuple)):
            return header
        return header | {"network": {"parts": len(rewards), **network}}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n, parts = self.network, len(self.rewards)
        inside = all(0 <= column < n.features for column in n.score)
        if n.parts != parts or (n.score and not (inside and len(n.score) - parts in (0, 1))):
            remedy = f"legal: {parts} of the {n.features} columns"
            path = "network.score"
            raise DocumentError(f"{list(n.score)} is not legal", path=path, remedy=remedy)
        if self.weights is not None:
            try:
                read_weights(self.weights, parts)
            except UsageError as error:
                raise DocumentError("not legal", path="weights", remedy=str(error)) from None
        return self


def check_arrays(
    arrays: Mapping[str, np.ndarray], wanted: Mapping[str, tuple[int, ...]], file: str
) -> dict[str, np.ndarray]:
    """Return the arrays as float32.

    Raises
    ------
    DocumentError
        One is missing, too many, of another shape or kind, or not finite.
    """
    if arrays.keys() != wanted.keys():
        odd = sorted(arrays.keys() ^ wanted.keys())
        raise DocumentError(
            f"the array {odd[0]!r} is missing or too many",
            file=file,
            remedy="the header is of another network than the arrays",
        )
    checked = {}
    for key, shape in wanted.items():
        array = arrays[key]
        if array.shape != shape or array.dtype.kind != "f":
            raise DocumentError(
                f"{array.dtype} of shape {array.shape} is not legal",
                file=file,
                path=key,
                remedy=f"legal: float32 of shape {shape}",
            )
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(array, dtype=np.float32)
        if not np.isfinite(single).all():
            raise DocumentError(
                "holds a value that is not finite",
                file=file,
                path=key,
                remedy="train the policy anew",
            )
        checked[key] = single
    return checked


def header_of(policy: TrainedPolicy) -> dict[str, Any]:
    """Return the JSON header of a policy."""
    network = asdict(policy.shape)
    del network["parts"]  # as many as rewards
    weights = None if policy.weights is None else [float(w) for w in policy.weights]
    return {
        "format": FORMAT,
        "problem": policy.problem,
        "rewards": list(policy.rewards),
        "network": network,
        "environment": policy.environment,
        "weights": weights,
        "card": policy.card,
    }


def write(policy: TrainedPolicy, path: AnyPath) -> None:
    """Write a policy, atomically."""
    write_arrays(path, Arrays(header_of(policy), policy.arrays))


def bundled() -> dict[str, Path]:
    """Return the policies that come with placeopt, by name."""
    return {path.stem: path for path in sorted(BUNDLED.glob(f"*{SUFFIX}"))}


def find(name: AnyPath) -> Path:
    """Return the file of a policy: a path, or the name of one that comes with placeopt.

    Raises
    ------
    DocumentError
        There is neither.
    """
    path, known = Path(name), bundled()
    if path.exists():
        return path
    if str(name) in known:
        return known[str(name)]
    if path.suffix != SUFFIX and os.sep not in str(name):
        raise DocumentError(
            "no such file or policy",
            file=str(name),
            remedy=did_you_mean(str(name), known) if known else "give a path",
        )
    return path


def read(name: AnyPath, problem: str | None = None) -> TrainedPolicy:
    """Read a policy.

    Parameters
    ----------
    name : path or str
        A file, or the name of a policy that comes with placeopt.
    problem : str, optional
        What it has to be for.

    Raises
    ------
    DocumentError
        The file is damaged, of another kind or version, or for another problem.
    """
    path = find(name)
    return policy_of(read_arrays(path, "policy", MAX_BYTES), str(path), problem)


def policy_of(stored: Arrays, file: str, problem: str | None = None) -> TrainedPolicy:
    """Return the policy that arrays and their header describe; `file` is where they stood.

    Raises
    ------
    DocumentError
        As of `read`.
    """
    document = stored.header
    if document.get("format") != FORMAT:
        shown = str(document.get("format"))[:60]
        raise DocumentError(
            f"{shown!r} is not a format that this version reads",
            file=file,
            path="format",
            remedy=f"legal: {FORMAT}",
        )
    header = documents.validate(_Header, document, file=file)
    if problem is not None and header.problem != problem:
        raise DocumentError(
            f"the policy is for {header.problem}, not for {problem}",
            file=file,
            remedy=f"give a policy trained on {problem}",
        )
    checked = check_arrays(stored.arrays, header.network.arrays(), file)
    kept = header.model_dump(exclude={"format", "network"})
    return TrainedPolicy(shape=header.network, arrays=checked, **kept)
