"""Decisions for any problem that has an encoder: one gene after another.

An episode begins with a whole plan, `Encoder.start`. The first decision may replace it by one of
the problem's seeds. Each later decision sets one gene that has a choice, and leaves the others as
they are. Therefore every state is a plan; the last one is the answer. Without the seeds, changes of
single genes would meet far fewer plans than decisions that build a plan from nothing do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeopt.core.fronts.dominance import farthest, nondominated
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence, Encoder, build_encoder, seeds
from placeopt.core.problem import Problem

#: Plans that the first decision chooses from, at most.
BASES = 16


@dataclass
class EncoderState:
    """How far an episode is."""

    vector: np.ndarray  # (num_genes,)
    taken: int  # decisions
    value: np.ndarray  # (objectives,) that the decisions so far have cost
    violation: float  # of the vector
    known: tuple[np.ndarray, np.ndarray] | None = None  # values and violations by action


class EncoderSequence(DecisionSequence):
    """A plan to begin with, then gene after gene.

    Action a of the first decision is plan a of `bases`, of which number 0 is there already; later,
    action a is the a-th value of a gene. Without other bases there is no such decision.

    An action is legal if the plan with it breaks no more than the plan at hand, and at the last
    decision nothing: a complete episode is a feasible plan. The cost of the first decision is the
    value of the whole plan, and of the others what they change.

    Attributes
    ----------
    bases : ndarray, shape (k, num_genes)
        `Encoder.start`, then seeds of the problem that no other seed dominates.
    """

    whole = True

    def __init__(self, problem: Problem, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.encoder = encoder = build_encoder(problem, objectives)
        encoder.trusted = True
        first = encoder.start()
        self._violation = float(_total(encoder.evaluate(first[None])[1])[0])
        self.bases = np.concatenate((first[None], _best(encoder)))
        choices = encoder.upper - encoder.lower
        genes = np.flatnonzero(choices) if choices.any() else np.zeros(1, dtype=np.int64)
        self._genes: list[int] = ([-1] if len(self.bases) > 1 else []) + genes.tolist()
        self.num_actions = max(int(choices.max()) + 1, len(self.bases))
        self.decisions, self.num_features = len(self._genes), len(self.objectives)

    def reset(self, rng: np.random.Generator | None = None) -> EncoderState:
        """Return the state before the first decision; episodes are not random."""
        nothing = np.zeros(len(self.objectives))
        return EncoderState(self.bases[0].copy(), 0, nothing, self._violation)

    def copy(self, state: EncoderState) -> EncoderState:
        """Return a state that steps on its own."""
        return replace(state, vector=state.vector.copy())

    def remaining(self, state: EncoderState) -> int:
        """Return how many decisions are still to be made."""
        return self.decisions - state.taken

    def _vectors(self, state: EncoderState) -> np.ndarray:
        """Return the vectors that the actions lead to, shape (actions, num_genes)."""
        gene = self._genes[state.taken]
        if gene < 0:
            return self.bases
        values = np.arange(self.encoder.lower[gene], self.encoder.upper[gene] + 1)
        X = np.repeat(state.vector[None], len(values), axis=0)
        X[:, gene] = values
        return X

    def _known(self, state: EncoderState) -> tuple[np.ndarray, np.ndarray]:
        """Return the values (actions, objectives) and violations that the actions lead to."""
        if state.known is None:
            values, violations = self.encoder.evaluate(self._vectors(state))
            state.known = values, _total(violations)
        return state.known

    def mask(self, state: EncoderState) -> np.ndarray:
        """Return which plans may be begun with, or which values the next gene may have."""
        mask = np.zeros(self.num_actions, dtype=bool)
        if self.remaining(state):
            violations = self._known(state)[1]
            most = state.violation if self.remaining(state) > 1 else 0.0
            mask[: len(violations)] = violations <= most
        return mask

    def step(self, state: EncoderState, action: int) -> np.ndarray:
        """Choose the plan to begin with or the next gene; the cost is the change of the values."""
        action = self.legal_action(state, action)
        values, violations = self._known(state)
        state.vector = self._vectors(state)[action].copy()
        cost = values[action] - state.value
        state.value, state.violation = values[action].copy(), float(violations[action])
        state.taken, state.known = state.taken + 1, None
        return np.asarray(cost)

    def costs(self, state: EncoderState) -> np.ndarray:
        """Return the change of the values by every action; inf where illegal."""
        result, mask = np.full((self.num_actions, self.num_features), np.inf), self.mask(state)
        if mask.any():
            result[mask] = self._known(state)[0][mask[: len(self._known(state)[0])]] - state.value
        return result

    def plan(self, state: EncoderState) -> Plan:
        """Return the plan at hand."""
        return self.encoder.decode(state.vector)


def _best(encoder: Encoder) -> np.ndarray:
    """Return seeds that break nothing and that no other dominates, shape (k < `BASES`, genes)."""
    X = seeds(encoder, np.random.default_rng(0))
    if not len(X):
        return X
    values, violations = encoder.evaluate(X)
    X, values = X[_total(violations) == 0], values[_total(violations) == 0]
    if not len(X):
        return X
    kept = nondominated(values)
    X, values = X[kept], values[kept]
    return np.asarray(X[farthest(values, BASES - 1)])


def _total(violations: np.ndarray) -> np.ndarray:
    """Return how much vectors break, shape (n,), of violations (n, num_constraints)."""
    return np.asarray(np.maximum(violations, 0.0).sum(axis=1))
