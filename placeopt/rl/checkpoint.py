"""A training run in a file, without pickles.

It holds the arrays of the networks and the optimiser, what the learner adds, and a JSON header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.arrays import Arrays, read_arrays, write_arrays
from placeopt.core.files.paths import AnyPath

FORMAT = "placeopt/checkpoint@1"
#: Bytes of a file: a learner may keep a replay buffer.
MAX_BYTES = 4 * 2**30


def save(
    model: Any,
    learner: Any,
    path: AnyPath,
    facts: dict[str, Any],
    rounds: int,
    steps: int,
    seconds: float,
) -> None:
    """Write the state of a model after a round, atomically."""
    header = {"format": FORMAT, **facts, "rounds": rounds, "steps": steps, "cpu_seconds": seconds}
    write_arrays(path, Arrays(header, _arrays(model) | learner.arrays(model)))


def _arrays(model: Any) -> dict[str, np.ndarray]:
    results = {
        f"policy.{key}": value.detach().numpy() for key, value in model.policy.state_dict().items()
    }
    for number, state in model.policy.optimizer.state_dict()["state"].items():
        results |= {
            f"optimiser.{number}.{key}": value.detach().numpy() for key, value in state.items()
        }
    return results


def restore(
    model: Any, learner: Any, path: AnyPath, facts: dict[str, Any]
) -> tuple[int, int, float]:
    """Set a model to what a checkpoint holds.

    Returns
    -------
    rounds, steps : int
    seconds : float
        CPU seconds spent.

    Raises
    ------
    DocumentError
        The file is damaged or something else.
    UsageError
        It is of another run than `facts` describe.
    """
    stored = read_arrays(path, "checkpoint", MAX_BYTES)
    header, file = stored.header, str(path)
    if header.get("format") != FORMAT:
        raise DocumentError(
            f"{str(header.get('format'))[:60]!r} is not a checkpoint",
            file=file,
            path="format",
            remedy=f"legal: {FORMAT}",
        )
    _same(header, facts, file)
    try:
        _load(model, stored.arrays)
        learner.load(model, stored.arrays)
        return int(header["rounds"]), int(header["steps"]), float(header["cpu_seconds"])
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError):
        raise DocumentError(
            "its arrays are not those of this network", file=file, remedy="begin a new run"
        ) from None


def _same(header: Mapping[str, Any], facts: dict[str, Any], file: str) -> None:
    settings = header.get("settings") or {}
    pairs = [(f"on {key}", header.get(key), facts[key]) for key in ("problem", "environment")]
    pairs += [
        (f"with {key}", settings.get(key), value)
        for key, value in facts["settings"].items()
        if key != "steps"
    ]
    for what, theirs, ours in pairs:
        if theirs != ours:
            raise UsageError(
                f"{file} was trained {what} {theirs!r}, not {ours!r}; go on with the same"
            )


def _load(model: Any, arrays: Mapping[str, np.ndarray]) -> None:
    model.policy.load_state_dict(
        {
            key: torch.from_numpy(np.array(arrays[f"policy.{key}"]))
            for key in model.policy.state_dict()
        }
    )
    optimiser = model.policy.optimizer
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in arrays.items():
        if key.startswith("optimiser."):
            _, number, name = key.split(".")
            state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(value))
    optimiser.load_state_dict(
        {"state": state, "param_groups": optimiser.state_dict()["param_groups"]}
    )
