"""Multi-cluster episodes to learn from: generated ones, or those of an instance."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import CompiledEpisodes, Preset
from placeopt.core.problem import keyword_defaults, keywords
from placeopt.multi_cluster.batch import MultiClusterBatch
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES
from placeopt.rl.settings import TrainingSettings

#: Columns with the one-step reward parts of an action, and with its reward if it places nothing.
SCORE = MultiClusterBatch.score
#: Options that say which actions, rewards and observations there are, of an instance too.
CHOICES = ("spreads", "first_spread", "accept", "acceptance", "masked", "observation")
#: The reward strategies of the paper, by name.
PREFERENCES = STRATEGIES
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
    options={"semantics": "published", "spreads": 1, "observation": "paper"},
)
PRESETS: dict[str, Preset] = {"ds-ppo": PAPER}


def batch(
    problem: MultiCluster | None = None,
    num_envs: int = 1,
    seed: int = 0,
    *,
    clusters: int = 4,
    semantics: str = "fixed",
    rate: float | None = None,
    duration: float = 1.0,
    replicas: Sequence[int] = (1, 7),
    steps: int = 100,
    spreads: int = 3,
    first_spread: str = "ffd",
    accept: str = "free",
    acceptance: bool = False,
    masked: bool = True,
    observation: str = "actions",
) -> MultiClusterBatch:
    """Return generated episodes, or those of an instance, which are all alike.

    Options are those of `placeopt.multi_cluster.batch.MultiClusterBatch`; an instance takes
    `CHOICES` alone, as all others say what is generated. Seeds are those of ``reset``; `seed` is
    not used.

    Raises
    ------
    UsageError
        An option that is not legal, or any together with an instance.
    """
    options = keywords(batch, locals())
    if problem is None:
        return MultiClusterBatch(num_envs, **options)
    for name, default in keyword_defaults(batch).items():
        if name not in CHOICES and options[name] != default:
            raise UsageError(
                f"{name} is an option of generated episodes; an instance says itself what they are"
            )
    return MultiClusterBatch.of(problem, num_envs, **{name: options[name] for name in CHOICES})


EPISODES = CompiledEpisodes(batch=batch, preferences=PREFERENCES, presets=PRESETS, choices=CHOICES)
