"""Environments to learn in, by the name of a problem or for an instance.

>>> import gymnasium, placeopt.environments
>>> env = gymnasium.make("placeopt/EdgeCloud-v0", applications=5)
>>> many = gymnasium.make_vec("placeopt/MultiCluster-v0", num_envs=64, clusters=8, rate=5.0)

Importing this gives Gymnasium the ids; it loads no learning library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.problem import Problem
from placeopt.registry import problem_class, specs

if TYPE_CHECKING:
    from placeopt.rl.environment import BatchEnv, BatchVectorEnv
    from placeopt.rl.episodes import Weights

__all__ = ["ENVIRONMENTS", "make_env", "make_vec_env", "register"]


class _Environments(Mapping[str, str]):
    """The ids of all problems that have decisions, those too that a program registers later."""

    def __getitem__(self, kind: str) -> str:
        spec = specs()[kind]
        if not spec.has("sequence"):
            raise KeyError(kind)
        name = f"placeopt/{spec.class_name}-v0"
        _give(kind, name)
        return name

    def __iter__(self) -> Iterator[str]:
        return (kind for kind, spec in specs().items() if spec.has("sequence"))

    def __len__(self) -> int:
        return len(list(iter(self)))


#: Kind of a problem -> the Gymnasium id of its environment.
ENVIRONMENTS: Mapping[str, str] = _Environments()


def make_env(
    problem: Problem | type[Problem] | str,
    weights: Weights = None,
    append: Sequence[str] | None = None,
    **options: Any,
) -> BatchEnv:
    """Return one environment.

    Parameters
    ----------
    problem : Problem, subclass of it, or str
        An instance; or the class or the kind of a problem, for generated episodes.
    weights : sequence of float, "drawn" or None
        Of the parts of the reward; drawn for every episode; or equal ones.
    append : tuple of {"weights", "legal"}, optional
        Columns of an observation beside the features; by default the weights if they are drawn.
    **options
        As of `placeopt.rl.batches.make_batch`; `seed` too.
    """
    from placeopt.rl.batches import make_batch
    from placeopt.rl.environment import BatchEnv

    return BatchEnv(make_batch(_resolved(problem), 1, **options), weights, append)


def make_vec_env(
    problem: Problem | type[Problem] | str,
    num_envs: int = 1,
    weights: Weights = None,
    append: Sequence[str] | None = None,
    **options: Any,
) -> BatchVectorEnv:
    """Return `num_envs` environments that step together; parameters as of `make_env`."""
    from placeopt.rl.batches import make_batch
    from placeopt.rl.environment import BatchVectorEnv

    return BatchVectorEnv(make_batch(_resolved(problem), num_envs, **options), weights, append)


def _resolved(problem: Problem | type[Problem] | str) -> Problem | type[Problem]:
    return problem_class(problem) if isinstance(problem, str) else problem


def register() -> None:
    """Give Gymnasium the ids of `ENVIRONMENTS`."""
    for kind, name in ENVIRONMENTS.items():
        _give(kind, name)


def _give(kind: str, name: str) -> None:
    """Give Gymnasium the id of a problem."""
    from gymnasium.envs import registration

    if name not in registration.registry:
        registration.register(
            id=name,
            entry_point="placeopt.environments:make_env",
            vector_entry_point="placeopt.environments:make_vec_env",
            kwargs={"problem": kind},
        )


register()
