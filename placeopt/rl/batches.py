"""The batch of episodes of a problem: its compiled one, or one that steps decision sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.errors import UsageError, shown
from placeopt.core.interfaces import Batch, CompiledEpisodes
from placeopt.core.numbers import checked_seed
from placeopt.core.parameters import checked, require_options
from placeopt.core.problem import Problem, keyword_defaults
from placeopt.rl.sequential_batch import SequentialBatch

#: Environments of a batch, at most: their arrays are allocated at once.
MOST_ENVS = 10**6


def compiled_episodes(target: Problem | type[Problem]) -> CompiledEpisodes | None:
    """Return the compiled episodes that a problem declares; None where it declares none."""
    return target.spec.load("episodes") if target.spec.has("episodes") else None


def make_batch(
    target: Problem | type[Problem], num_envs: int = 1, seed: int = 0, **options: Any
) -> Batch:
    """Return a batch of episodes.

    Parameters
    ----------
    target : Problem or subclass of it
        An instance; or the class, for generated episodes.
    num_envs, seed : int
    **options
        Of the problem's compiled batch. Without one they are those of `SequentialBatch` and, for a
        class, the sizes of ``placeopt generate``.

    Raises
    ------
    UsageError
        An option that the batch does not have, or whose value is not legal.
    UnsupportedError
        The problem has no decision sequence.
    """
    if not isinstance(num_envs, (int, np.integer)) or not 1 <= num_envs <= MOST_ENVS:
        raise UsageError(f"num_envs is {shown(num_envs)}; give a whole number of 1 to {MOST_ENVS}")
    num_envs, seed = int(num_envs), checked_seed(seed)
    instance = target if isinstance(target, Problem) else None
    what = f"{target.spec.kind} episodes"
    own = compiled_episodes(target)
    if own is not None:
        require_options(options, keyword_defaults(own.batch), what)
        return own.batch(instance, num_envs, seed, **checked(own.batch, what, options))
    sizes = {} if instance is not None else target.sizes()
    legal = keyword_defaults(SequentialBatch) | sizes
    require_options(options, [name for name in legal if name not in ("seed", "sizes")], what)
    values_in = {name: options.pop(name) for name in sizes if name in options}
    rest = checked(SequentialBatch.__init__, what, options)
    return SequentialBatch(target, num_envs, seed=seed, sizes=values_in, **rest)
