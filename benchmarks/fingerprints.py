"""Record and check fingerprints of what the package computes, to notice changes in a refactoring.

    python benchmarks/fingerprints.py record [--only SUBSTRING] [--jobs N]
    python benchmarks/fingerprints.py check [--only SUBSTRING] [--jobs N]

``record`` writes ``benchmarks/fingerprints.json``, one entry a line. With ``--only`` it replaces
the entries whose key contains the text and keeps the others. ``check`` computes the entries again,
prints every difference and exits with 1 if there is one.

Every run has a seed and a budget in evaluations, never in seconds. Hashes are SHA-256 of values
rounded to 12 significant digits. They hold for one machine and one set of library versions:
another version of HiGHS or NumPy may return other plans.

Keys
----
``<problem>/<instance>/<method>``
    The front of a method: hashes of its values, bounds, statuses and plans. Policies have their
    name behind a colon.
``<problem>/<instance>/certified``
    The front of ``auto`` with a proven lower-bound set.
``<problem>/<instance>/encoder``
    F and G of random vectors, the results of the operators, and the referee's values of decoded
    vectors.
``<problem>/<instance>/environment``
    Observations and rewards of an episode of random legal actions.
``<problem>/<instance>/model``
    Variables and constraints of the Pyomo model, and the least value of every objective by HiGHS.
``<problem>/seed-<seed>/generator``
    The generated document.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

import placeopt

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "benchmarks" / "fingerprints.json"
SEED = 1
EVALUATIONS = 600
VECTORS = 200
DECODED = 20
EPISODE_STEPS = 500

# -- internal interfaces: adapt only these functions when the modules of the package move -


def method_problems() -> dict[str, tuple[str, ...]]:
    """Return the problems that each method serves, by the method's name."""
    from placeopt.registry import methods

    return {name: method.problems for name, method in methods().items()}


def certified_problems() -> tuple[str, ...]:
    """Return the problems for which ``solve(certify=True)`` is legal."""
    from placeopt.registry import specs

    return tuple(kind for kind, spec in specs().items() if spec.has("bounds"))


def modelled_problems() -> tuple[str, ...]:
    """Return the problems that have a Pyomo model."""
    from placeopt.registry import specs

    return tuple(kind for kind, spec in specs().items() if spec.has("model"))


def problem_class(problem: str) -> Any:
    """Return the class of a problem, which has ``generate(seed, **sizes)``."""
    from placeopt import registry

    return registry.problem_class(problem)


def build_encoder(instance: Any) -> Any:
    """Return the encoder of an instance."""
    from placeopt.core import interfaces

    return interfaces.build_encoder(instance)


def build_model(instance: Any) -> Any:
    """Return the Pyomo model of an instance, with an Objective ``minimise[name]`` for each goal."""
    from placeopt import models

    return getattr(models, instance.problem.replace("-", "_")).build(instance)


def make_environment(instance: Any) -> Any:
    """Return the Gymnasium environment of an instance."""
    import gymnasium

    from placeopt.environments import ENVIRONMENTS

    return gymnasium.make(
        ENVIRONMENTS[instance.problem], problem=instance, disable_env_checker=True
    )


def bundled_policies() -> list[str]:
    """Return the names of the bundled policies; a name begins with its problem."""
    from placeopt.rl import policy_file

    return sorted(policy_file.bundled())


# -- instances -------------------------------------------------------------------------------------

SHIPPED = {
    "temporal": "toy",
    "edge-cloud": "corner-5",
    "rolling-update": "repack-10x5",
    "rescheduling": "chain-12",
    "multi-cluster": "stream-4x100",
}
#: Sizes of the generated instances: ``small`` for every method, ``tiny`` for exact ones and models.
SIZES: dict[str, dict[str, dict[str, Any]]] = {
    "small": {
        "temporal": {"requests": 5, "horizon": 16, "places": 2, "max_replicas": 2},
        "edge-cloud": {"applications": 4, "near": 4, "far": 2, "cloud": 1},
        "rolling-update": {"applications": 3, "microservices": 2},
        "rescheduling": {"application": "chain", "replicas": 2},
        "multi-cluster": {"requests": 12, "clusters": 3},
    },
    "tiny": {
        "temporal": {"requests": 2, "horizon": 12, "places": 1, "max_replicas": 1},
        "edge-cloud": {"applications": 2, "near": 2, "far": 1, "cloud": 1},
        "rolling-update": {"applications": 2, "microservices": 2},
        "rescheduling": {"application": "chain", "replicas": 1},
        "multi-cluster": {"requests": 4, "clusters": 2},
    },
}
#: Methods that run on ``tiny`` as well.
EXACT = ("auto", "bin-plans", "bound", "decomposition", "epsilon-constraint")
#: ``<problem>/<instance>/<method>`` that is left out -> why.
SKIPPED: dict[str, str] = {
    f"{problem}/{name}/epsilon-constraint": "exact: takes minutes, or refuses; tiny is recorded"
    for problem, shipped in SHIPPED.items()
    for name in (shipped, "small")
}


def instance_of(problem: str, name: str) -> Any:
    """Return a shipped instance by its name, or a generated one by a key of `SIZES`."""
    if name in SIZES:
        return problem_class(problem).generate(SEED, **SIZES[name][problem])
    return placeopt.load(ROOT / "instances" / problem / f"{name}.json")


# -- hashing ---------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """Return numbers, nested or not, with 12 significant digits; -0.0 becomes 0.0."""
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.11e}") + 0.0
    return value


def digest(value: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of rounded values."""
    text = json.dumps(rounded(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# -- entries ---------------------------------------------------------------------------------------


def front_facts(problem: str, name: str, method: str, **options: Any) -> dict[str, Any]:
    """Return the fingerprint of the front that a method returns."""
    instance = instance_of(problem, name)
    front = placeopt.solve(instance, method, evaluations=EVALUATIONS, seed=SEED, **options)
    judged = [verdict.values for verdict in placeopt.evaluate(instance, front)]
    facts: dict[str, Any] = {
        "values": digest(sorted(point.values for point in front.points)),
        "judged": digest(sorted(judged)),
        "bounds": digest(sorted(front.bounds)),
        "statuses": digest([[point.status, point.gap] for point in front.points]),
        "plans": digest([point.plan for point in front.points]),
        "points": len(front.points),
        "bound_points": len(front.bounds),
    }
    if front.points:
        facts["first"] = rounded(front.points[0].values)
    elif front.rejected is not None:
        facts["rejected"] = rounded(front.rejected.values)
    return facts


def policy_facts(problem: str, name: str, policy: str) -> dict[str, Any]:
    """Return the fingerprint of a bundled policy's front, with two drawn episodes a preference."""
    return front_facts(problem, name, "policy", policy=policy, samples=2)


def certified_facts(problem: str, name: str) -> dict[str, Any]:
    """Return the fingerprint of the front of ``auto`` with a proven lower-bound set."""
    return front_facts(problem, name, "auto", certify=True)


def encoder_facts(problem: str, name: str) -> dict[str, Any]:
    """Return the fingerprint of an encoder's evaluation, operators and decoding."""
    instance = instance_of(problem, name)
    encoder = build_encoder(instance)
    rng = np.random.default_rng(SEED)
    X = rng.integers(encoder.lower, encoder.upper + 1, size=(VECTORS, encoder.num_genes))
    F, G = encoder.evaluate(X)
    sample = encoder.sample(np.random.default_rng(SEED), VECTORS)
    half = VECTORS // 2
    verdicts = [instance.evaluate(encoder.decode(genes)) for genes in X[:DECODED]]
    return {
        "F": digest(F),
        "G": digest(G),
        "sample": digest(sample),
        "vary": digest(encoder.vary(np.random.default_rng(SEED), sample[:half], sample[half:])),
        "mutate": digest(encoder.mutate(np.random.default_rng(SEED), sample)),
        "judged": digest([verdict.values for verdict in verdicts]),
        "violations": digest([[v.kind for v in verdict.violations] for verdict in verdicts]),
        "first": rounded(F[0]),
    }


def environment_facts(problem: str, name: str) -> dict[str, Any]:
    """Return the fingerprint of an episode of random legal actions, cut at `EPISODE_STEPS`."""
    environment = make_environment(instance_of(problem, name))
    observation, _ = environment.reset(seed=SEED)
    rng = np.random.default_rng(SEED)
    observations, rewards, masks, ended = [observation], [], [], False
    while not ended and len(rewards) < EPISODE_STEPS:
        mask = environment.unwrapped.action_masks()
        masks.append(np.flatnonzero(mask))
        observation, reward, over, cut, _ = environment.step(int(rng.choice(masks[-1])))
        observations.append(observation)
        rewards.append(float(reward))
        ended = over or cut
    return {
        "observations": digest(observations),
        "rewards": digest(rewards),
        "masks": digest(masks),
        "steps": len(rewards),
        "first": rounded(sum(rewards)),
    }


def model_facts(problem: str, name: str) -> dict[str, Any]:
    """Return the size of a Pyomo model and, by HiGHS, the least value of every objective."""
    import pyomo.environ as pyo

    least, model = {}, build_model(instance_of(problem, name))
    facts = {
        kind.__name__.lower() + "s": sum(1 for _ in model.component_data_objects(kind, active=True))
        for kind in (pyo.Var, pyo.Constraint)
    }
    model.within_epsilon.deactivate()
    for other in model.component_data_objects(pyo.Objective):
        other.deactivate()
    for key in list(model.OBJECTIVES):
        model.minimise[key].activate()
        pyo.SolverFactory("appsi_highs").solve(model)
        least[key] = float(f"{pyo.value(model.minimise[key]):.6g}") + 0.0
        model.minimise[key].deactivate()
    return facts | {"first": least}


def generator_facts(problem: str, seed: int) -> dict[str, Any]:
    """Return the hash of a generated document of the default sizes."""
    document = problem_class(problem).generate(seed).to_document()
    return {"document": digest(document), "first": document["name"]}


class Task(NamedTuple):
    """How to compute one entry: `function` of `arguments`."""

    key: str
    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]


def tasks() -> list[Task]:
    """Return all entries but the skipped ones."""
    found = [*_method_tasks(), *_part_tasks()]
    return [task for task in found if task.key not in SKIPPED]


def _method_tasks() -> Iterable[Task]:
    policies = bundled_policies()
    for method, problems in method_problems().items():
        for problem in problems:
            for name in (SHIPPED[problem], "small", *(("tiny",) if method in EXACT else ())):
                key = f"{problem}/{name}/{method}"
                if method != "policy":
                    yield Task(key, front_facts, (problem, name, method))
                    continue
                for policy in policies:
                    if policy.startswith(problem):
                        yield Task(f"{key}:{policy}", policy_facts, (problem, name, policy))


def _part_tasks() -> Iterable[Task]:
    for problem, shipped in SHIPPED.items():
        for name in (shipped, "small"):
            yield Task(f"{problem}/{name}/encoder", encoder_facts, (problem, name))
            yield Task(f"{problem}/{name}/environment", environment_facts, (problem, name))
        for seed in (0, 1):
            yield Task(f"{problem}/seed-{seed}/generator", generator_facts, (problem, seed))
        if problem in modelled_problems():
            yield Task(f"{problem}/tiny/model", model_facts, (problem, "tiny"))
        if problem in certified_problems():
            yield Task(f"{problem}/tiny/certified", certified_facts, (problem, "tiny"))


def computed(task: Task) -> tuple[str, dict[str, Any]]:
    """Compute one entry; an error that the package explains is an entry too, by its class."""
    begun = time.perf_counter()
    try:
        facts = task.function(*task.arguments)
    except placeopt.PlaceoptError as error:
        print(f"        {task.key}: {error}", file=sys.stderr)
        facts = {"error": type(error).__name__}
    print(f"{time.perf_counter() - begun:7.2f} s  {task.key}", file=sys.stderr, flush=True)
    return task.key, facts


# -- commands --------------------------------------------------------------------------------------


def write(entries: dict[str, dict[str, Any]]) -> None:
    """Write the entries, one a line, sorted by key."""
    lines = (f"{json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for every entry that changed, appeared or disappeared."""
    lines = []
    for key in sorted(old | new):
        if key not in new or key not in old:
            lines.append(f"{key}: {'is gone' if key not in new else 'is not recorded'}")
        elif old[key] != new[key]:
            names = sorted(old[key] | new[key])
            changed = [name for name in names if old[key].get(name) != new[key].get(name)]
            lines.append(f"{key}: other {', '.join(changed)}")
            lines += [
                f"  {when}: {_shown(facts[key])}" for when, facts in (("old", old), ("new", new))
            ]
    return lines


def _shown(facts: dict[str, Any]) -> str:
    readable = (
        "error",
        "points",
        "bound_points",
        "steps",
        "vars",
        "constraints",
        "rejected",
        "first",
    )
    return ", ".join(f"{name} {facts[name]}" for name in readable if name in facts)


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("record", "check"))
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="part of an entry's key")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    given = parser.parse_args(arguments)
    chosen = [task for task in tasks() if given.only in task.key]
    new = dict(joblib.Parallel(n_jobs=given.jobs)(joblib.delayed(computed)(t) for t in chosen))
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    if given.command == "record":
        kept = {key: facts for key, facts in recorded.items() if given.only not in key}
        write((kept if given.only else {}) | new)
        print(f"{len(new)} entries recorded in {FILE}")
        return 0
    old = {key: facts for key, facts in recorded.items() if given.only in key}
    lines = differences(old, new)
    print("\n".join(lines) or f"{len(new)} entries are as recorded")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
