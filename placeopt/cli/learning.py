"""``placeopt train``, ``evaluate-policy`` and ``policies``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli import progress
from placeopt.cli.commands import LEARN, add
from placeopt.cli.completion import policy_names, target_names, words
from placeopt.cli.screen import (
    AsJson,
    Quiet,
    drop_none,
    emit_json,
    emit_table,
    keep,
    pairs,
    say,
    show,
)
from placeopt.core.errors import MissingExtraError
from placeopt.core.files.paths import require_outputs
from placeopt.core.fronts.words import counted
from placeopt.core.runs.progress import Told

if TYPE_CHECKING:
    from placeopt.core.interfaces import CompiledEpisodes
    from placeopt.core.problem import Problem
    from placeopt.rl.policy import TrainedPolicy
    from placeopt.rl.settings import TrainingSettings

Target = Annotated[
    str,
    Argument(
        metavar="PROBLEM|INSTANCE",
        help="A problem (episodes are generated) or an instance.",
        autocompletion=target_names,
    ),
]
Clusters = Annotated[int | None, Option(help="multi-cluster: number of clusters.")]
Rate = Annotated[float | None, Option(help="multi-cluster: arrivals per unit of time.")]
Env = Annotated[
    list[str] | None,
    Option(
        "--env",
        metavar="KEY=VALUE",
        help="Option of the episodes, such as applications=5. Repeatable.",
    ),
]
WeightsOption = Annotated[
    str | None, Option(metavar="A,B,..", help="Weights of the parts of the reward.")
]
PolicyArgument = Annotated[
    str,
    Argument(
        metavar="POLICY",
        help="A policy file, or a name that `placeopt policies` lists.",
        autocompletion=policy_names,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    train_example = "placeopt train multi-cluster --rate 5 --steps 400000 -o policy.npz"
    measured = "placeopt evaluate-policy multi-cluster-fixed-rate20 --episodes 20"
    add(app, policies, "placeopt policies", group=LEARN)
    add(app, train, train_example, group=LEARN)
    add(app, evaluate_policy, measured, group=LEARN, name="evaluate-policy")


def train(
    target: Target,
    output: Annotated[Path, Option("-o", "--output", help="Policy file to write.")],
    preset: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Train an agent as its paper does: its settings, episodes and weights. "
            "rescheduling: reach-ppo.",
            autocompletion=words("reach-ppo"),
        ),
    ] = None,
    weights: WeightsOption = None,
    conditioned: Annotated[
        bool,
        Option(
            "--conditioned",
            help="Train one policy for all weights (default without --weights).",
        ),
    ] = False,
    seed: Annotated[
        int, Option(min=0, help="Random seed: the same seed and steps give the same policy.")
    ] = 1,
    steps: Annotated[
        int | None, Option(min=1, help="Number of steps, over all environments.")
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", help="Time limit of the training.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        Option(help="Checkpoint file, written after every round."),
    ] = None,
    resume: Annotated[
        Path | None, Option(help="Checkpoint to resume from. Give the same options again.")
    ] = None,
    clusters: Clusters = None,
    rate: Rate = None,
    env: Env = None,
    param: Annotated[
        list[str] | None,
        Option(metavar="KEY=VALUE", help="Setting of the training, such as gamma=0.9. Repeatable."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a policy by masked PPO.

    Ctrl-C stops the training after the current round and writes the policy as it is.
    """
    from dataclasses import replace

    if not all(
        importlib.util.find_spec(module) for module in ("torch", "stable_baselines3", "sb3_contrib")
    ):
        raise MissingExtraError("training", "rl")
    from placeopt.cli.solving import cancelled_by_signals
    from placeopt.core.budget import Budget
    from placeopt.core.problem import Problem
    from placeopt.rl import policy_file, settings
    from placeopt.rl.batches import compiled_episodes, make_batch
    from placeopt.rl.play import INSTANCE
    from placeopt.rl.training import resolve_weights
    from placeopt.rl.training import train as trained

    require_outputs(output, checkpoint, inputs=(target,))
    require_outputs(output, inputs=(resume,))  # to go on in the same checkpoint is legal
    options = _options(clusters, rate, env)
    problem = _problem(target)
    own = compiled_episodes(problem)
    wanted = None if own is None else own.settings
    if preset is not None:
        wanted, its = _preset(problem, own, preset)
        options = its | options
    changed = pairs(param, "--param") | drop_none(seed=seed, steps=steps)
    wanted = (wanted or settings.TrainingSettings()).with_options(changed)
    parts = len(make_batch(problem, 1, seed, **options).rewards)
    row = wanted.weights if preset and not conditioned and weights is None else weights
    wanted = replace(wanted, weights=resolve_weights(row, conditioned or row is None, parts))
    batch = make_batch(problem, wanted.num_envs, wanted.seed, **options)
    named = {INSTANCE: problem.name} if isinstance(problem, Problem) else {}
    budget = Budget(seconds=time_limit) if time_limit is not None else Budget(evaluations=1)
    told = ""
    with cancelled_by_signals(budget), progress.shown() as tell:

        def on_round(news: Any) -> bool:
            nonlocal told
            steps = counted(news.steps, "step")
            facts = [f"{key} {show(value, 4)}" for key, value in news.facts.items()]
            told = ", ".join((f"{steps} in {news.seconds:.0f} s of CPU", *facts))
            if tell is not None:
                tell(Told(news.share, steps, facts))
            return budget.cancelled

        policy = trained(
            batch,
            problem.spec.kind,
            wanted,
            environment=options | named,
            time_limit=time_limit,
            keep=checkpoint,
            resume=resume,
            on_round=on_round,
        )
    say(told)
    keep(output, lambda path: policy_file.write(policy, path))


def _preset(
    target: Problem | type[Problem], episodes: CompiledEpisodes | None, name: str
) -> tuple[TrainingSettings, dict[str, Any]]:
    """Return settings and options of the episodes; on an instance the settings alone."""
    from placeopt.core.errors import require_known
    from placeopt.core.problem import Problem

    known = {} if episodes is None else episodes.presets
    require_known(f"preset of {target.spec.kind}", name, known)
    generated = not isinstance(target, Problem)
    return known[name].settings, dict(known[name].options) if generated else {}


def evaluate_policy(
    policy: PolicyArgument,
    instance: Annotated[
        Path | None, Argument(help="Instance to play on (default: generated episodes).")
    ] = None,
    episodes: Annotated[int, Option(min=1, help="Number of episodes per row of weights.")] = 200,
    weights: WeightsOption = None,
    seed: Annotated[int, Option(min=0, help="Random seed of the first episode.")] = 1_000_000,
    clusters: Clusters = None,
    rate: Rate = None,
    env: Env = None,
    as_json: AsJson = False,
) -> None:
    """Measure a policy on episodes, next to the greedy choice.

    It prints the mean reward with its 95 % confidence interval, and other facts.
    """
    from placeopt.rl import policy_file
    from placeopt.rl.evaluation import evaluate, greedy, summary
    from placeopt.rl.play import episodes_for

    known = policy_file.read(policy)
    options = _options(clusters, rate, env)
    batch = episodes_for(known, _played_on(known, instance), min(episodes, 250), **options)
    results = {}
    for name, row in _preferences(known, weights).items():
        results[name] = summary(evaluate(batch, known.act, episodes, row, seed))
        if known.shape.score:
            results[f"{name}, greedy"] = summary(
                evaluate(batch, greedy(known.shape.score), episodes, row, seed)
            )
    if as_json:
        emit_json(
            {
                name: {key: {"mean": m, "half_width": h} for key, (m, h) in facts.items()}
                for name, facts in results.items()
            }
        )
        return
    columns = [
        key for key in next(iter(results.values())) if key not in ("steps", "episode_length")
    ]
    rows = [
        (name, *(_shown(key, *facts[key]) for key in columns)) for name, facts in results.items()
    ]
    emit_table(("weights", *columns), rows)


def policies(
    as_json: Annotated[bool, Option("--json", help="Print the whole cards as JSON.")] = False,
) -> None:
    """List the policies that come with placeopt.

    Use one with `placeopt solve INSTANCE --method policy --policy NAME`.
    """
    from placeopt.rl import policy_file

    results = {name: policy_file.read(path) for name, path in policy_file.bundled().items()}
    if as_json:
        emit_json({name: policy_file.header_of(one) for name, one in results.items()})
        return
    rows = [
        (
            name,
            one.problem,
            "any" if one.weights is None else ",".join(show(w, 3) for w in one.weights),
            str(one.card.get("summary", "")),
        )
        for name, one in results.items()
    ]
    emit_table(("policy", "problem", "weights", "trained on"), rows, left=4, text=(3,))


def _shown(key: str, mean: float, half: float) -> str:
    return f"{mean:.2f} ± {half:.2f}" if key == "reward" else show(mean, 4)


def _options(clusters: int | None, rate: float | None, env: list[str] | None) -> dict[str, Any]:
    return drop_none(clusters=clusters, rate=rate) | pairs(env, "--env")


def _problem(target: str) -> Problem | type[Problem]:
    """Return the instance of a file, or the class of the problem of this name."""
    from placeopt import registry

    return registry.problem_class(target) if target in registry.specs() else registry.read(target)


def _played_on(policy: TrainedPolicy, instance: Path | None) -> Problem | type[Problem]:
    """Return the given instance, or the problem that the policy serves."""
    from placeopt import registry

    return registry.problem_class(policy.problem) if instance is None else registry.read(instance)


def _preferences(policy: TrainedPolicy, weights: str | None) -> dict[str, Any]:
    """Return the rows of weights to play with, by name."""
    from placeopt.registry import problem_class
    from placeopt.rl.batches import compiled_episodes

    if weights is not None or policy.weights is not None:
        row = policy.preferences(weights)
        return {",".join(show(float(w), 3) for w in row): row}
    own = compiled_episodes(problem_class(policy.problem))
    count = len(policy.rewards)
    named = {} if own is None else own.preferences
    if named and all(len(row) == count for row in named.values()):
        return dict(named)
    corners = {name: [float(k == j) for j in range(count)] for k, name in enumerate(policy.rewards)}
    return corners | ({"equal": [1 / count] * count} if count > 1 else {})
