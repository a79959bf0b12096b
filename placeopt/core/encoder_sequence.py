"""Decisions for any problem that has an encoder: one gene after another.

An episode begins with a whole plan, `Encoder.start`. Decision k sets the k-th gene that has a
choice, and leaves the others as they are. Therefore every state is a plan; the last one is the
answer. Changes of single genes meet fewer plans than decisions that build a plan from nothing do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence, build_encoder
from placeopt.core.problem import Problem


@dataclass
class EncoderState:
    """How far an episode is."""

    vector: np.ndarray  # (num_genes,)
    taken: int  # decisions
    value: np.ndarray  # (objectives,) that the decisions so far have cost
    violation: float  # of the vector
    known: tuple[np.ndarray, np.ndarray] | None = None  # values and violations by action


class EncoderSequence(DecisionSequence):
    """Gene after gene; action a is the a-th value of a gene.

    An action is legal if the plan with it breaks no more than the plan at hand, and at the last
    decision nothing: a complete episode is a feasible plan. The cost of the first decision is the
    value of the whole plan, and of the others what they change.
    """

    whole = True

    def __init__(self, problem: Problem, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.encoder = encoder = build_encoder(problem, objectives)
        encoder.trusted = True
        choices = encoder.upper - encoder.lower
        self._genes = np.flatnonzero(choices) if choices.any() else np.zeros(1, dtype=np.int64)
        self.num_actions, self.decisions = int(choices.max()) + 1, len(self._genes)
        self.num_features = len(self.objectives)
        first = encoder.start()
        violation = float(_total(encoder.evaluate(first[None])[1])[0])
        self._state = EncoderState(first, 0, np.zeros(self.num_features), violation)

    def reset(self, rng: np.random.Generator | None = None) -> EncoderState:
        """Return the state before the first decision; episodes are not random."""
        return self.copy(self._state)

    def copy(self, state: EncoderState) -> EncoderState:
        """Return a state that steps on its own."""
        return replace(state, vector=state.vector.copy())

    def remaining(self, state: EncoderState) -> int:
        """Return how many genes are still to be decided."""
        return self.decisions - state.taken

    def _known(self, state: EncoderState) -> tuple[np.ndarray, np.ndarray]:
        """Return the values (actions, objectives) and violations that the actions lead to."""
        if state.known is None:
            gene = self._genes[state.taken]
            low, high = self.encoder.lower[gene], self.encoder.upper[gene]
            X = np.repeat(state.vector[None], high - low + 1, axis=0)
            X[:, gene] = np.arange(low, high + 1)
            values, violations = self.encoder.evaluate(X)
            state.known = values, _total(violations)
        return state.known

    def mask(self, state: EncoderState) -> np.ndarray:
        """Return which values the next gene may have."""
        mask = np.zeros(self.num_actions, dtype=bool)
        if self.remaining(state):
            violations = self._known(state)[1]
            most = state.violation if self.remaining(state) > 1 else 0.0
            mask[: len(violations)] = violations <= most
        return mask

    def step(self, state: EncoderState, action: int) -> np.ndarray:
        """Set the next gene; the cost is the change of the values."""
        action = self.legal_action(state, action)
        values, violations = self._known(state)
        gene = self._genes[state.taken]
        state.vector[gene] = self.encoder.lower[gene] + action
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


def _total(violations: np.ndarray) -> np.ndarray:
    """Return how much vectors break, shape (n,), of violations (n, num_constraints)."""
    return np.asarray(np.maximum(violations, 0.0).sum(axis=1))
