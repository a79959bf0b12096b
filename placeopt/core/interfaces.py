"""What methods may ask of a problem package: encoders, sequences, batches of episodes, models.

Every member that a method uses is declared here. A member that a problem may leave out has a
default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, Plan, names_of
from placeopt.core.numbers import (
    checked_action,
    checked_count,
    checked_vector,
    checked_vectors,
)
from placeopt.core.parameters import require_options
from placeopt.core.problem import Problem, keyword_defaults

#: Random vectors of which `Encoder.start` takes one.
STARTS = 64
#: Weights whose vectors are built before the clock is asked first; then twice as many, and so on.
WEIGHTS_TOGETHER = 4


class Parts(NamedTuple):
    """The parts that plans fall into: the goals of a plan are sums over its parts.

    Parts with equal keys serve the same, so that either can stand in for the other.
    """

    label: np.ndarray  # (n, num_genes) the part that a gene belongs to, -1 for none
    key: (
        np.ndarray
    )  # (n, parts) uint64, a hash of what a part serves, 0 where there is no such part
    values: np.ndarray  # (n, parts, objectives)


class _Goals:
    """A problem, some of its objectives, and their columns in `Evaluation.values`."""

    def __init__(self, problem: Problem, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)


class Encoder(_Goals):
    """A plan as integers within bounds, for every search that moves vectors about.

    Attributes
    ----------
    problem : Problem
    objectives : tuple of Objective
        The columns of F.
    lower, upper : ndarray of int64, shape (num_genes,)
        Inclusive bounds; only choices that can be feasible.
    num_genes, num_constraints : int
        Columns of X and of G.
    trusted : bool
        Whether vectors are taken as they are. Searches set it on encoders of their own: what they
        make is within the bounds.
    every_plan : bool
        Whether the values of every feasible plan are at least those of some vector. Then all
        vectors of a small instance prove its front, where the problem has no bounds of its own.
    """

    lower: np.ndarray
    upper: np.ndarray
    num_genes: int
    num_constraints: int
    trusted: bool = False
    every_plan: bool = False

    def checked(self, X: ArrayLike) -> np.ndarray:
        """Return vectors as a contiguous array of int64, shape (k, num_genes).

        Every method that hands vectors to compiled code begins with this.

        Raises
        ------
        UsageError
            A value is not a whole number within its bounds, or the shape is wrong; not if
            `trusted`.
        """
        if self.trusted:
            return np.ascontiguousarray(X, dtype=np.int64)
        return checked_vectors(X, self.lower, self.upper)

    def checked_one(self, genes: ArrayLike) -> np.ndarray:
        """Return one vector, shape (num_genes,), as `checked` does."""
        if self.trusted:
            return np.ascontiguousarray(genes, dtype=np.int64)
        return checked_vector(genes, self.lower, self.upper)

    def checked_pairs(
        self, mothers: np.ndarray, fathers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return as many mothers as fathers, as `checked` does; one array if they are one."""
        checked = self.checked(mothers)
        if fathers is mothers:
            return checked, checked
        pair = checked, self.checked(fathers)
        if not self.trusted and len(pair[0]) != len(pair[1]):
            raise UsageError(f"{len(pair[0])} mothers and {len(pair[1])} fathers; give pairs")
        return pair

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives F and the violations G of vectors.

        Parameters
        ----------
        X : ndarray of int64, shape (n, num_genes)

        Returns
        -------
        F : ndarray, shape (n, objectives)
            The referee's values.
        G : ndarray, shape (n, num_constraints)
            0 where feasible, else the excess.
        """
        raise NotImplementedError

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector; the referee's values of it are those of `evaluate`."""
        raise NotImplementedError

    def encode(self, plan: Plan) -> np.ndarray | None:
        """Return the vector of a plan, shape (num_genes,); None where the encoder cannot."""
        return None

    def start(self) -> np.ndarray:
        """Return a vector that decisions change one after another, shape (num_genes,).

        By default it is that of some random ones which breaks least.
        """
        X = self.sample(np.random.default_rng(0), STARTS)
        return np.asarray(X[self.evaluate(X)[1].sum(axis=1).argmin()])

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random vectors, shape (count, num_genes)."""
        shape = checked_count(count), self.num_genes
        return rng.integers(self.lower, self.upper + 1, size=shape)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return one child of each pair of rows, shape of `mothers`: crossover, then mutation.

        By default every gene comes from either parent with equal odds.
        """
        mothers, fathers = self.checked_pairs(mothers, fathers)
        from_mother = rng.random(mothers.shape) < 0.5
        return self.mutate(rng, np.where(from_mother, mothers, fathers))

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return a mutated copy of X; by default one gene a row, on average, is drawn anew."""
        X = self.checked(X)
        drawn = self.sample(rng, len(X))
        return np.where(rng.random(X.shape) < 1 / self.num_genes, drawn, X)

    def parts(self, X: np.ndarray) -> Parts | None:
        """Return the parts of vectors that were evaluated before; None where there are none."""
        return None


class DecisionSequence(_Goals):
    """A problem as an episode: one decision after another, each with a cost vector.

    The costs of an episode add up to what the referee says of its plan. Only the methods below look
    inside a state.

    Attributes
    ----------
    problem : Problem
    objectives : tuple of Objective
        The columns of a cost vector.
    num_actions : int
        Actions are 0 to ``num_actions - 1``.
    num_features : int
        Columns of `features`.
    decisions : int
        Steps of a complete episode.
    costs_never_fall : bool
        No step has a negative cost, so that the cost of a partial plan bounds that of the whole.
    whole : bool
        Every state has a whole plan, so that an episode may end where time does.
    compiled : bool
        Whether `play_greedy` and `play_rollout` are there.
    """

    num_actions: int
    num_features: int
    decisions: int
    costs_never_fall: bool = False
    whole: bool = False
    compiled: bool = False

    def reset(self, rng: np.random.Generator | None = None) -> Any:
        """Return the state before the first decision; `rng` serves episodes that are random."""
        raise NotImplementedError

    def copy(self, state: Any) -> Any:
        """Return a state that steps on its own; cheap. This is for named tuples of arrays."""
        return type(state)(*(part.copy() for part in state))

    def remaining(self, state: Any) -> int:
        """Return how many decisions are still to be made; 0 when the plan is complete."""
        raise NotImplementedError

    def stage(self, state: Any) -> int:
        """Return how many groups of decisions are complete: requests, say.

        The horizon of a rollout counts in these.
        """
        return self.decisions - self.remaining(state)

    def mask(self, state: Any) -> np.ndarray:
        """Return which actions are legal, bool of shape (num_actions,).

        None is legal at a dead end and after the last decision.
        """
        raise NotImplementedError

    def step(self, state: Any, action: int) -> np.ndarray:
        """Take a legal action, in place, and return its cost, shape (objectives,).

        The costs of an episode that completes its plan sum to
        ``problem.evaluate(plan(state)).values``.
        """
        raise NotImplementedError

    def legal_action(self, state: Any, action: int) -> int:
        """Return an action as an int.

        Raises
        ------
        UsageError
            It is not a whole number of 0 to ``num_actions - 1``, or not legal in this state.
        """
        number = checked_action(action, self.num_actions)
        if not self.mask(state)[number]:
            raise illegal_action(number)
        return number

    def done(self, state: Any) -> bool:
        """Return whether the episode is over: the plan is complete, or no action is legal."""
        return self.remaining(state) == 0 or not self.mask(state).any()

    def plan(self, state: Any) -> Plan:
        """Return the plan so far; the referee reports what a dead end left out as a violation."""
        raise NotImplementedError

    def features(self, state: Any) -> np.ndarray:
        """Return the features of every action, float32 of shape (num_actions, num_features).

        They are scaled to about [-1, 1]; rows of illegal actions are 0. By default they are the
        costs c of the action as c / (1 + |c|), so that `num_features` is the number of objectives.
        """
        costs = self.costs(state)
        costs[~np.isfinite(costs)] = 0
        return (costs / (1 + np.abs(costs))).astype(np.float32)

    def costs(self, state: Any) -> np.ndarray:
        """Return the cost vector of every action, shape (num_actions, objectives); inf if illegal.

        By default every legal action is tried on a copy of the state.
        """
        result = np.full((self.num_actions, len(self.objectives)), np.inf)
        for action in np.flatnonzero(self.mask(state)):
            result[action] = self.step(self.copy(state), int(action))
        return result

    def play_greedy(self, state: Any, weights: np.ndarray, most: int) -> int:
        """Take at most `most` greedy decisions, in place, compiled; return how many were taken."""
        raise NotImplementedError

    def play_rollout(
        self, state: Any, weights: np.ndarray, beta: float, gamma: float, horizon: int, most: int
    ) -> int:
        """Take at most `most` decisions by rollout, in place, compiled; return how many were taken.

        `beta`, `gamma` and `horizon` are those of the method ``rollout``.
        """
        raise NotImplementedError


def illegal_action(action: int) -> UsageError:
    """Return the error of an action that the mask of a sequence rules out."""
    return UsageError(f"action {action} is not legal here; ask mask(state)")


class Batch:
    """N episodes of one problem that step together.

    An environment's random numbers come from a state of its own, so that an episode depends on its
    seed alone. `reset` and `step` refresh `observations` and `masks` in place; copy them to keep
    them.

    Attributes
    ----------
    num_envs : int
        N.
    num_actions : int
        A; actions are 0 to ``num_actions - 1``.
    num_features : int
        F, columns of an observation.
    rewards : tuple of str
        Names of the K parts of a reward, all to be maximised. The scalar reward is the product of
        the parts with weights that sum to 1, so that a penalty is given as itself in every part.
    observations : ndarray
        The features of every action, float32 of shape (N, A, F), scaled to about [-1, 1].
    masks : ndarray
        Which actions are legal, bool of shape (N, A).
    score : tuple of int
        Columns of the features with what an action earns at once: one for each part of the reward,
        then those that count as they are. Empty where no columns say so.
    compiled : bool
        Whether many environments at once are quicker than one after another.
    problem : Problem or None
        The instance that all episodes are of, to judge their plans; None where they are generated.
    """

    num_envs: int
    num_actions: int
    num_features: int
    rewards: tuple[str, ...]
    observations: np.ndarray
    masks: np.ndarray
    score: tuple[int, ...] = ()
    compiled: bool = True
    problem: Problem | None = None

    def _allocate(self) -> None:
        """Make the arrays of observations and masks, for batches that write into them."""
        shape = self.num_envs, self.num_actions
        self.observations = np.zeros((*shape, self.num_features), dtype=np.float32)
        self.masks = np.zeros(shape, dtype=bool)

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes.

        Parameters
        ----------
        seeds : ndarray, optional
            uint64 of shape (N,); environments go on from their own random states without.
        which : ndarray, optional
            Environments that begin anew, bool of shape (N,); all by default.
        """
        raise NotImplementedError

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment.

        Parameters
        ----------
        actions : ndarray
            Whole numbers of 0 to ``num_actions - 1``, shape (N,). Those that a mask rules out end
            the episode at a cost that the problem says.

        Returns
        -------
        rewards : ndarray
            float64 of shape (N, K).
        ended : ndarray
            Whether the episode is over, bool of shape (N,); such an environment has to be reset
            before its next step.

        Raises
        ------
        UsageError
            An action that no state has, or another number of them.
        """
        raise NotImplementedError

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes, such as the share accepted; arrays of length N."""
        raise NotImplementedError

    def plan(self, env: int) -> Plan:
        """Return the plan of an episode so far."""
        raise NotImplementedError

    def prefixes(self, plan: Plan) -> list[Plan]:
        """Return the plans worth judging that an episode's plan begins with, itself among them."""
        return [plan]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A training as a paper describes it.

    Attributes
    ----------
    settings : TrainingSettings
        A `placeopt.rl.settings.TrainingSettings`, with weights.
    options : dict
        Of the episodes.
    """

    settings: Any
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CompiledEpisodes:
    """The compiled episodes of a problem: what `ProblemSpec.episodes` names.

    Attributes
    ----------
    batch : callable
        ``batch(problem or None, num_envs, seed, **options) -> Batch``: episodes of an instance, or
        generated ones. The options are its keyword-only arguments.
    preferences : dict
        Name -> weights of the reward's parts: what is shown of a policy that serves all weights.
    settings : TrainingSettings or None
        Those to train with; the defaults of `placeopt.rl.settings` without.
    presets : dict
        Name -> `Preset`: trainings of papers, such as ``reach-ppo``.
    """

    batch: Callable[..., Batch]
    preferences: Mapping[str, Sequence[float]] = field(default_factory=dict)
    settings: Any = None
    presets: Mapping[str, Preset] = field(default_factory=dict)


class ModelModule(Protocol):
    """The Pyomo model of a problem: what `ProblemSpec.model` names, mostly a module.

    It may have ``size(problem, **options)`` as well: about how many coefficients the model has.
    What `placeopt.exact.goals.remember` notes on a model helps the exact methods.
    """

    def build(self, problem: Any, /, **options: Any) -> Any:
        """Return a ``pyomo.environ.ConcreteModel`` with linear constraints.

        It has an Expression or an Objective for every objective of the problem, by its name. The
        options are keyword-only arguments; ``epsilon-constraint`` takes them as parameters.
        """
        ...

    def extract(self, model: Any, /) -> Plan:
        """Return the plan that the values of a model's variables are."""
        ...


class MethodFunction(Protocol):
    """A method: ``run(task, **parameters)``.

    The task is a `placeopt.core.task.Task`. The front holds what the method found when the budget
    ended. A problem that the method does not support is an `UnsupportedError`.
    """

    def __call__(self, task: Any, /, **parameters: Any) -> Front: ...


def build_encoder(
    problem: Problem, objectives: Sequence[Objective] | None = None, encoding: str = "own"
) -> Encoder:
    """Return an encoder of a problem; all of its objectives by default.

    Parameters
    ----------
    encoding : str
        ``own`` for the problem's own, or the name of another: see `ProblemSpec.encodings`.

    Raises
    ------
    UnsupportedError
        The problem has no encoder, or none of this name.
    """
    build: Callable[..., Encoder] = problem.spec.encoding(encoding)
    return build(problem, _goals(problem, objectives))


def seeds(encoder: Encoder, rng: np.random.Generator, seconds: float | None = None) -> np.ndarray:
    """Return good vectors to start a search from, spread over the objectives.

    Building them costs no evaluations; whoever evaluates them counts them.

    Parameters
    ----------
    seconds : float, optional
        What building them may take; without it there are as many as the problem thinks good.

    Returns
    -------
    ndarray of int64, shape (k, num_genes)
        k is 0 for problems that declare no seeds.
    """
    spec = encoder.problem.spec
    if not spec.has("seeds"):
        return np.empty((0, encoder.num_genes), dtype=np.int64)
    return spec.load("seeds")(encoder, rng, seconds)


def vectors_at(encoder: Encoder, weights: np.ndarray, budget: Budget | None = None) -> np.ndarray:
    """Return vectors to start a search for the least weighted sums from, shape (k, num_genes).

    Parameters
    ----------
    weights : ndarray, shape (w, objectives)
        Above 0. Problems that declare no vectors for weights give their seeds.
    budget : Budget, optional
        Once it is out of time, the weights that are left get none; the first ones have theirs.
    """
    spec = encoder.problem.spec
    timed = budget is not None and budget.seconds_limit is not None
    if not spec.has("vectors_at"):
        seconds = max(1e-3, budget.seconds_left) if budget is not None and timed else None
        return seeds(encoder, np.random.default_rng(0), seconds)
    build = spec.load("vectors_at")
    if budget is None or not timed:
        return build(encoder, weights)
    left = weights[_spread(len(weights))]
    blocks: list[np.ndarray] = []
    size = WEIGHTS_TOGETHER
    while len(left) and not (blocks and budget.out_of_time):
        blocks.append(build(encoder, left[:size]))
        left, size = left[size:], 2 * size
    return np.unique(np.concatenate(blocks), axis=0)


def _spread(size: int) -> np.ndarray:
    """Return numbers below `size` in an order that has some of everywhere from the start."""
    return np.argsort(np.arange(size) * (math.sqrt(5) - 1) / 2 % 1.0, kind="stable")


def build_sequence(
    problem: Problem, objectives: Sequence[Objective] | None = None, **options: Any
) -> DecisionSequence:
    """Return a problem as a sequence of decisions; options are those of the problem's own.

    Raises
    ------
    UnsupportedError
        The problem has no sequence.
    UsageError
        The sequence does not have an option.
    """
    build: Callable[..., DecisionSequence] = problem.spec.load("sequence")
    require_options(options, keyword_defaults(build), f"the decisions of {problem.spec.kind}")
    return build(problem, _goals(problem, objectives), **options)


def _goals(problem: Problem, objectives: Sequence[Objective] | None) -> tuple[Objective, ...]:
    """Return the goals chosen, all by default."""
    return problem.select(None if objectives is None else names_of(objectives))


def preferred_plan(
    plan: Plan,
    others: Callable[[Plan], Iterator[Plan | None]],
    is_as_good: Callable[[Plan], bool],
    tries: int,
    ended: Callable[[], bool] = bool,
) -> tuple[Plan, int]:
    """Return the plan that one would rather carry out than all others that are as good.

    Parameters
    ----------
    plan : mapping
    others : callable
        Yields plans that are preferred to a plan; None where it tried one in vain.
    is_as_good : callable
        Whether such a plan may take the place of the one before it.
    tries : int
        Plans that are tried at most.
    ended : callable
        Whether time is over.

    Returns
    -------
    plan : mapping
    tried : int
    """
    tried, better = 0, True
    while better and tried < tries and not ended():
        better = False
        for other in others(plan):
            if tried == tries or ended():
                return plan, tried
            tried += 1
            if other is not None and is_as_good(other):
                plan, better = other, True
                break
    return plan, tried
