"""The published environment of HephaestusForge, number for number, and the knobs of its tables.

Placements never accumulate: each is undone before the next request, which has no effect on rate and
duration. The rules are in ``models/multi_cluster/README.md``, the compiled ones in
`placeopt_papers.hephaestus_rules`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from placeopt_papers import hephaestus_rules
from pydantic import Field

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import Preset
from placeopt.core.numbers import checked_actions
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords
from placeopt.multi_cluster.episodes.state import (
    EXTRA,
    FFD,
    MAX_MS,
    REFUSAL,
    EnvironmentState,
    EpisodeData,
)
from placeopt.multi_cluster.episodes.stream import FEATURES, PARTS, EpisodeBatch, write_observations
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.rl.settings import TrainingSettings

#: The problem that policies of this environment name; placeopt has none of this name.
KIND = "multi-cluster-published"
#: The further part of the reward that can be asked for.
ACCEPTANCE = "acceptance"
#: Columns with the one-step reward parts of an action, and with its reward if it places nothing.
SCORE = (5, 6, 7, 8)
#: Columns of the paper's observation; cores and GiB of the largest cluster, which scale them.
PAPER_FEATURES, LARGEST = 10, (8.0, 32.0)
#: An agent of the HephaestusForge paper: one strategy, C + 2 actions, ten columns, no one-step
#: reward in the network. Numbers are those of the published code; both layers have ReLU here, the
#: second has ELU there.
PAPER = Preset(
    settings=TrainingSettings(
        weights=STRATEGIES["latency"],
        steps=200_000,
        num_envs=8,
        hidden=(64, 64),
        activation="relu",
        factor=0.0,
        learning_rate=2.5e-4,
        final_learning_rate=1.0,
        gamma=0.95,
        batch_size=100,
        n_steps=100,
        epochs=4,
        gae_lambda=0.97,
        entropy=0.001,
    ),
    options={"spreads": 1, "observation": "paper"},
)


class PublishedEpisodes(EpisodeBatch):
    """N environments by the published rules, with observations.

    Parameters
    ----------
    num_envs, clusters, rate, duration, replicas, steps
        As of `EpisodeBatch`.
    spreads : int
        How many of FFD, FFI and BF1B1, in this order, are among the actions.
    first_spread : {"ffd", "printed", "divide"}
        What stands in the place of FFD: the code's one pass; algorithm 1 as the paper prints it,
        repeated until nothing is left; Karmada's division, see `divide`.
    accept : {"free", "first", "whole"}
        When a refusal is legal: always; only where no other action places the request; or, beyond
        that, a spread that leaves replicas out only where no action places all.
    acceptance : bool
        Whether ``acceptance`` is a fourth part of the reward: the share of the request's replicas
        that are placed. An observation then ends with one more column, the share of the replicas
        that the action would place, less column 8.
    masked : bool
        Whether masks tell which actions are legal. If not, they allow all, and learners find out.
    observation : {"actions", "paper"}
        What a row says of its action: all that it leads to, rewards too; or the ten columns of the
        paper.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        spreads: Annotated[int, Field(ge=0, le=3)] = 3,
        first_spread: Literal["ffd", "printed", "divide"] = "ffd",
        accept: Literal["free", "first", "whole"] = "free",
        acceptance: bool = False,
        masked: bool = True,
        observation: Literal["actions", "paper"] = "actions",
        rate: float = 100.0,
        **options: Any,
    ):
        value = keywords(PublishedEpisodes.__init__, locals())
        value = checked(PublishedEpisodes.__init__, "published episodes", value)
        self.spreads, self.first_spread = value["spreads"], value["first_spread"]
        self.accept, self.acceptance = value["accept"], value["acceptance"]
        self.masked, self.observation = value["masked"], value["observation"]
        if self.accept != "free" and not self.masked:
            raise UsageError(
                f"accept is {self.accept} and masked is false; legal: accept=free, as only masks "
                "can rule refusals out"
            )
        self.rewards = (*PARTS, ACCEPTANCE) if self.acceptance else PARTS
        self.num_features: int = FEATURES + self.acceptance
        self.score: tuple[int, ...] = (*SCORE[:3], FEATURES, SCORE[3]) if self.acceptance else SCORE
        if self.observation == "paper":
            self.num_features, self.score = PAPER_FEATURES, ()
        super().__init__(num_envs, rate=value["rate"], **options)

    def _bind(self) -> None:
        super()._bind()
        self.num_actions = self.clusters + self.spreads + 1
        #: Of an action, its number among the C + 4 of the kernels.
        self._actions = np.append(np.arange(self.num_actions - 1), self.clusters + REFUSAL)
        self._rows = np.zeros((self.num_envs, self.clusters + EXTRA, FEATURES), dtype=np.float32)
        self._show()

    def _show(self) -> None:
        """Bring `masks`, `parts` and `observations` up to date with the outcomes."""
        self.masks, self.parts = self.outcomes.masks, self.outcomes.parts
        if self.acceptance:
            self.parts = np.concatenate((self.parts, self.placed_shares()[:, :, None]), axis=2)
        self.masks, self.parts = self.masks[:, self._actions], self.parts[:, self._actions]
        if not self.masked:
            self.masks = np.ones_like(self.masks)
        if self.observation == "paper":
            sizes = self.num_actions, self.replicas[1], self.rate
            self.observations = paper_rows(self.traces, self.state, *sizes)
            return
        self.observations = self._rows[:, self._actions]
        if self.acceptance:
            # The last column of `score` counts in every part; refusing earns no acceptance.
            placed = self.parts[:, :, -1:] - self.observations[:, :, SCORE[3] : SCORE[3] + 1]
            column = (placed * self.masks[:, :, None]).astype(np.float32)
            self.observations = np.concatenate((self.observations, column), axis=2)

    def placed_shares(self) -> np.ndarray:
        """Return the share of the replicas at hand that every action would place, (N, C + 4)."""
        wanted = self.traces.replicas[self._everyone, np.minimum(self.state.now, self.steps - 1)]
        shares = self.outcomes.accepts.astype(float)
        shares[:, -1] = 0.0
        spread = slice(self.clusters, self.clusters + REFUSAL)
        shares[:, spread] *= self.outcomes.split.sum(axis=2) / np.maximum(wanted, 1)[:, None]
        return shares

    def _begin(self, chosen: np.ndarray) -> None:
        hephaestus_rules.begin_all(self.traces, self.state, chosen)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`."""
        rewards = np.zeros((self.num_envs, len(PARTS)))
        chosen = self._actions[checked_actions(actions, self.num_envs, self.num_actions)]
        if self.acceptance:
            placed = self.placed_shares()[self._everyone, chosen] * ~self.ended
        hephaestus_rules.step_all(self.traces, self.state, self.outcomes, chosen, rewards)
        self._refresh(self._everyone)
        return (np.column_stack((rewards, placed)) if self.acceptance else rewards), self.ended

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes.

        ``whole`` is the share of requests whose replicas are all placed, ``replicas`` the share of
        their replicas that are: below ``acceptance`` where spreads leave replicas out.
        """
        now, placed = self.state.now, self.state.placed.sum(axis=2)
        wanted = self.traces.replicas * (np.arange(self.steps) < now[:, None])
        return super().info() | {
            "whole": ((placed == wanted) & (wanted > 0)).sum(axis=1) / np.maximum(now, 1),
            "replicas": placed.sum(axis=1) / np.maximum(wanted.sum(axis=1), 1),
        }

    def divide(self) -> np.ndarray:
        """Put Karmada's division of the requests at hand in the place of FFD, until the next step.

        Clusters take replicas until they are as full as masks allow; returns as in `EpisodeBatch`.
        """
        actions = np.zeros(self.num_envs, dtype=np.int64)
        hephaestus_rules.divide_all(self.traces, self.state, self.outcomes, actions)
        return np.where(actions == self.clusters + REFUSAL, self.num_actions - 1, actions)

    def silent(self, index: ArrayLike) -> Self:
        """Return copies as `fork` does: their rules need the observations' class."""
        return self.fork(np.asarray(index))

    def _take(self, index: np.ndarray) -> None:
        rows = self._rows[index]
        super()._take(index)
        self._rows = rows
        self._show()

    def _refresh(self, chosen: np.ndarray) -> None:
        """Bring what every action leads to, masks and observations up to date."""
        hephaestus_rules.refresh_all(self.traces, self.state, self.outcomes, chosen)
        self._replace_first_spread()
        if self.accept != "free" or self.num_actions < self.clusters + EXTRA:
            self._restrict(chosen)
        if self.observation == "actions":
            write_observations(
                self.traces, self.state, self.outcomes, chosen, self.replicas[1], self._rows
            )
        self._show()

    def _replace_first_spread(self) -> None:
        """Put what `first_spread` says in the place of FFD."""
        if self.first_spread == "ffd":
            return
        divided = self.first_spread == "divide"
        replace = hephaestus_rules.divide_all if divided else hephaestus_rules.repeat_all
        replace(self.traces, self.state, self.outcomes, np.zeros(self.num_envs, dtype=np.int64))
        self.outcomes.accepts[self.ended, self.clusters + FFD] = False

    def _restrict(self, chosen: np.ndarray) -> None:
        """Take out of the masks, in place, the spreads left out and what `accept` rules out."""
        kept = np.isin(np.arange(self.clusters + EXTRA), self._actions)
        masks = self.outcomes.masks[chosen] & kept
        if self.accept != "free":
            placed = self.placed_shares()[chosen]
            masks = _narrowed(masks, placed > 0.0)
            if self.accept == "whole":
                masks = _narrowed(masks, placed == 1.0)
        self.outcomes.masks[chosen] = masks


def _narrowed(masks: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the masks (N, A), of those wanted alone in rows that have any."""
    wanted = wanted & masks
    return np.where(wanted.any(axis=1, keepdims=True), wanted, masks)


def paper_rows(
    traces: EpisodeData, state: EnvironmentState, actions: int, max_replicas: int, rate: float
) -> np.ndarray:
    """Return the observation of the paper's Table 3, float32 of shape (N, `actions`, 10).

    Columns 0 to 4 are of the cluster: cpu in use, cpu, memory in use, memory, latency; -1 for
    spreads and the refusal. Columns 5 to 9 are of the request: replicas, cpu, memory, latency
    threshold, time since the request before. Each is divided by a constant so that networks can
    read it: cores and GiB by those of the largest cluster, ms by 1000, replicas by `max_replicas`,
    times by the mean one, 1 / `rate`. All rows are 0 after the end of an episode.
    """
    clusters, steps = state.load.shape[1], traces.replicas.shape[1]
    now = np.minimum(state.now, steps - 1)
    everyone = np.arange(len(now))
    before = np.where(now > 0, traces.arrival[everyone, now - 1], 0.0)
    demand = traces.demand[everyone, now] * traces.unit[:2]
    request = np.column_stack(
        (
            traces.replicas[everyone, now] / max_replicas,
            demand,
            traces.threshold[everyone, now] / MAX_MS,
            (traces.arrival[everyone, now] - before) * traces.unit[2] * rate,
        )
    )
    rows = np.full((len(now), actions, PAPER_FEATURES), -1.0, dtype=np.float32)
    scale = traces.unit[:2] / np.array(LARGEST)
    rows[:, :clusters, 0:4:2] = state.used * scale
    rows[:, :clusters, 1:4:2] = traces.capacity * scale
    rows[:, :clusters, 4] = state.latency / MAX_MS
    rows[:, :, 5:] = request[:, None]
    rows[state.now == steps] = 0.0
    return rows
