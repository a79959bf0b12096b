"""The batch of episodes of a problem: its compiled one, or one that steps decision sequences.

Compiled batches are quicker by orders of magnitude than N episodes in a plain loop. To the features
of the sequence that one adds what each action earns at once, a column for each part of the reward:
a greedy policy needs no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from placeopt.core.episodes import scales
from placeopt.core.errors import UsageError, shown
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import Batch, CompiledEpisodes, build_sequence
from placeopt.core.numbers import checked_actions, checked_seed
from placeopt.core.parameters import checked, require_options
from placeopt.core.problem import Problem, keyword_defaults


class SequentialBatch(Batch):
    """Episodes of decision sequences; attributes as of `placeopt.core.interfaces.Batch`.

    The parts of the reward are minus the costs of a step over the scales of the objectives. An
    illegal action ends the episode, as a dead end does. Both cost `penalty` times the share of
    decisions that are left.

    Parameters
    ----------
    problem : Problem or subclass of it
        An instance; or the class, of which environment i has the instance generated from
        ``seed + i``. Actions that an instance does not have are illegal.
    num_envs : int
    seed : int
        Of the first generated instance.
    sizes : dict, optional
        Of generated instances, as of ``placeopt generate``.
    objectives : sequence of str, optional
        All of the problem's by default.
    order : str, optional
        Order of the decisions, where the problem has several.
    scaled : bool
        Divide costs by `placeopt.core.episodes.scales`, so that weights are comparable.
    penalty : float
    """

    compiled = False

    def __init__(
        self,
        problem: Problem | type[Problem],
        num_envs: int = 1,
        *,
        seed: int = 0,
        sizes: dict[str, Any] | None = None,
        objectives: Sequence[str] | None = None,
        order: str | None = None,
        scaled: bool = True,
        penalty: Annotated[float, Field(ge=0, le=1e9)] = 10.0,
    ):
        if isinstance(problem, Problem):
            instances = [problem]
        else:
            instances = [problem.generate(seed + i, **(sizes or {})) for i in range(num_envs)]
        options = {} if order is None else {"order": order}
        sequences = [build_sequence(one, one.select(objectives), **options) for one in instances]
        divisors = [scales(one)[0] if scaled else np.ones(len(one.objectives)) for one in sequences]
        repeats = num_envs // len(sequences)
        self.sequences, self._scales = sequences * repeats, divisors * repeats
        self.problem = instances[0] if len(instances) == 1 else None
        self.num_envs, self.penalty = num_envs, penalty
        self.num_actions = max(one.num_actions for one in sequences)
        self.rewards = tuple(o.name for o in sequences[0].objectives)
        known = sequences[0].num_features
        self.num_features = known + len(self.rewards)
        self.score = tuple(range(known, self.num_features))
        self._allocate()
        self.states: list[Any] = [None] * num_envs
        self._rngs = [np.random.default_rng([seed, i]) for i in range(num_envs)]

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes."""
        if seeds is not None:
            self._rngs = [np.random.default_rng(int(one)) for one in seeds]
        for i in range(self.num_envs) if which is None else np.flatnonzero(which).tolist():
            self.states[i] = self.sequences[i].reset(self._rngs[i])
            self._refresh(i)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment."""
        rewards = np.zeros((self.num_envs, len(self.rewards)))
        ended = np.zeros(self.num_envs, dtype=bool)
        checked = checked_actions(actions, self.num_envs, self.num_actions)
        for i, action in enumerate(checked.tolist()):
            sequence, state = self.sequences[i], self.states[i]
            legal = bool(self.masks[i, action])
            if legal:
                rewards[i] = -sequence.step(state, action) / self._scales[i]
                self._refresh(i)
            ended[i] = not legal or not self.masks[i].any()
            if ended[i]:
                rewards[i] -= self.penalty * sequence.remaining(state) / sequence.decisions
        return rewards, ended

    def info(self) -> dict[str, np.ndarray]:
        """Return the share of decisions made, which is 1 for a complete plan."""
        pairs = zip(self.sequences, self.states, strict=True)
        return {"decided": np.array([1 - one.remaining(s) / one.decisions for one, s in pairs])}

    def plan(self, env: int) -> Plan:
        """Return the plan of an episode so far."""
        return self.sequences[env].plan(self.states[env])

    def _refresh(self, i: int) -> None:
        """Write the mask and the observation of environment i."""
        sequence, state = self.sequences[i], self.states[i]
        actions = sequence.num_actions
        self.masks[i] = False
        self.masks[i, :actions] = sequence.mask(state)
        self.observations[i] = 0
        if self.masks[i].any():
            legal = self.masks[i, :actions, None]
            at_once = np.where(legal, -sequence.costs(state) / self._scales[i], 0)
            columns = (sequence.features(state), at_once)
            self.observations[i, :actions] = np.concatenate(columns, axis=1)


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
