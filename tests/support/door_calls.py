"""Calls of every public function and adapter with arguments that they are not made for.

``calls()`` maps a door to good arguments. `attack` puts other things in their places: wrong types,
shapes and numbers. As a script it prints what went wrong as lines of JSON, so that a crash of the
process is seen from outside: ``python door_calls.py [--random N] [--seed S] [DOOR ...]``.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyomo.environ as pyo

import placeopt
from placeopt import kubernetes
from placeopt.core.errors import PlaceoptError
from placeopt.core.files.shipped import clusters
from placeopt.core.interfaces import build_encoder, build_sequence
from placeopt.environments import make_env, make_vec_env
from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation

#: What Python and its libraries say of an argument of another type.
OF_ANOTHER_TYPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
#: CPU seconds that one call may take.
LONGEST = 20.0
#: An instance of each problem.
INSTANCES = ("toy", "corner-5", "chain-12", "repack-10x5", "stream-4x100")


def junk() -> list[Any]:
    """Return what takes the place of an argument."""
    own = [None, True, 0, 1, 3, -1, 10**30, 0.5, 1e300, np.nan, np.inf, -np.inf, 1 + 2j]
    own += ["", "toy", "text", "1", b"x", [], [1, 2], ["a", 1], [np.nan], [[1], [1, 2]], (), {}]
    own += [{"a": 1}, {1: "a"}, set(), object(), len, int, range(3), np.zeros(0), np.zeros((2, 2))]
    own += [np.full((1, 3), np.nan), np.array(["a"]), np.zeros((0, 4)), np.int64(-(2**63))]
    own += [Path("none.json"), np.array(None), [None], [{}], {"cost": np.nan}, "\ud800", "x" * 5000]
    return own


@dataclass(frozen=True)
class Door:
    """A public function, with good arguments by name or by position."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    refused: bool = False  # even with these

    def changed(self, changes: Mapping[int | str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with others in some places."""
        args = [changes.get(k, value) for k, value in enumerate(self.args)]
        kwargs = {name: changes.get(name, value) for name, value in (self.kwargs or {}).items()}
        return tuple(args), kwargs

    @property
    def places(self) -> list[int | str]:
        """All places of arguments."""
        return [*range(len(self.args)), *(self.kwargs or {})]


def _model() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.value = pyo.Objective(expr=3 * model.x[0] + 2 * model.x[1] + model.x[2], sense=-1)
    model.weight = pyo.Objective(expr=2 * model.x[0] + model.x[1] + 2 * model.x[2])
    return model


def calls(folder: Path) -> dict[str, Door]:
    """Return every door by its name."""
    problem = placeopt.load("toy")
    front = placeopt.solve(problem, "moead", evaluations=200)
    file, study = folder / "front.json", {"instances": ["toy"], "methods": ["greedy"]}
    front.write(file)
    model_file = folder / "model.lp"
    model_file.write_text("minimize\nobj: x + 2 y\nsubject to\ncost: 3 x + y >= -infinity\nend\n")
    goals = {"objectives": ["cost_usd"], "evaluations": 20, "seconds": 0.1, "seed": 1, "jobs": 1}
    goals |= {"start": front, "certify": False, "reference": [9.0], "every": 1.0}
    goals |= {"on_front": None, "on_progress": None, "budget": None, "scheduler": None}
    enumerated = {"objectives": None, "seconds": 0.1, "jobs": 1, "solver": "highs", "start": None}
    enumerated |= {"steps": None, "gap": None, "max_points": 2, "options": {}, "on_point": None}
    asked = {"objectives": None, "seconds": 5.0, "solver": "highs", "options": {}, "budget": None}
    own = {"budget": None, "lexicographic": None, "reference": None, "topsis": None}
    found = {
        "load": Door(placeopt.load, ("toy",)),
        "solve": Door(placeopt.solve, (problem, "moead"), goals),
        "solve, run_dir": Door(
            placeopt.solve, ("toy", "greedy"), {"run_dir": folder / "kept", "evaluations": 5}
        ),
        "solve, parameters": Door(
            placeopt.solve,
            ("toy", "nsga2"),
            {"population": 10, "evaluations": 20, "seconds": 0.1, "seeded": True},
        ),
        "evaluate": Door(placeopt.evaluate, (problem, front)),
        "evaluate, plan": Door(placeopt.evaluate, (problem, front[0].plan)),
        "merge": Door(placeopt.merge, ([front, front],)),
        "enumerate": Door(placeopt.enumerate, (_model(),), enumerated),
        "ask.lexicographic": Door(
            placeopt.ask.lexicographic,
            (_model(), ["value", {"weight": 1}]),
            {**asked, "tolerance": 0.1},
        ),
        "ask.reference_point": Door(
            placeopt.ask.reference_point, (_model(), [4, 1]), {**asked, "weights": [1, 2]}
        ),
        "ask.supported": Door(placeopt.ask.supported, (_model(),), {**asked, "tolerance": 0.1}),
        "ask.plans": Door(
            placeopt.ask.plans, (_model(), {"value": 5, "weight": 3}), {**asked, "most": 2}
        ),
        "read_model": Door(placeopt.read_model, (model_file,), {"goals": ["cost"]}),
        "sweep": Door(placeopt.sweep, (study,), {"run_dir": None, "jobs": 1}),
        "sweep, plan": Door(
            lambda **plan: placeopt.sweep(plan),
            (),
            {**study, "seeds": [1], "evaluations": [20], "seconds": [0.1], "points": 10},
        ),
        "front_of": Door(placeopt.front_of, (np.zeros((1, 7)), None), refused=True),
        "register": Door(placeopt.register, (problem.spec,), refused=True),
        "methods": Door(placeopt.methods),
        "instances": Door(placeopt.instances),
        "Budget": Door(placeopt.Budget, (), {"evaluations": 5, "seconds": 1.0}),
        "Front": Door(placeopt.Front, (front.instance, front.objectives), {"points": front.points}),
        "Front.read": Door(placeopt.Front.read, (file,)),
        "Front.from_document": Door(placeopt.Front.from_document, (front.to_document(),)),
        "front.write": Door(front.write, (folder / "again.json",)),
        "front.where": Door(front.where, (lambda point: True,), {"cost_usd": 3}),
        "front.pick": Door(front.pick, (), own | {"pseudo_weights": None}),
        "front.pick, topsis": Door(lambda wanted: front.pick(topsis=wanted), ({"cost_usd": 1},)),
        "front.hypervolume": Door(front.hypervolume, ([30, 4, 1],)),
        "front.reference": Door(front.reference, (), {"factor": 1.1}),
        "front.gap": Door(front.gap, ([30, 4, 1],)),
        "front.igd_plus": Door(front.igd_plus, (front,)),
        "front.epsilon": Door(front.epsilon, (front,)),
        "front.subset": Door(front.subset, (3,)),
        "front.to_pandas": Door(front.to_pandas, (), {"plans": True, "problem": problem}),
        "front.plot": Door(front.plot, (folder / "front.svg",), {"problem": problem}),
        "point.load": Door(placeopt.enumerate(_model())[0].load, (_model(),)),
        "make_env": Door(make_env, ("edge-cloud",), {"weights": None, "append": None, "seed": 0}),
        "make_env, sizes": Door(make_env, ("edge-cloud",), {"applications": 3, "near": 2}),
        "make_vec_env": Door(
            make_vec_env, ("multi-cluster",), {"num_envs": 2, "weights": None, "clusters": 3}
        ),
        "EncodedProblem": Door(EncodedProblem, (build_encoder(problem),), {"evaluate": None}),
    }
    dump = clusters()["shop"]
    options = {"prices": [dump.with_name("prices.csv")], "nodes": None, "candidates": None}
    options |= {"latency": None, "overlays": (), "faults": None}
    imported = ([dump], "rolling-update", kubernetes.ImportOptions())
    chain = placeopt.load("chain-12")
    exported = (chain, placeopt.solve(chain, "greedy")[0].plan)
    found |= {
        "import_files": Door(kubernetes.import_files, imported, options),
        "kubernetes.steps": Door(kubernetes.steps, exported, {"origin": None, "partly": False}),
        "kubernetes.export": Door(
            kubernetes.export.export, exported, {"form": "json", "namespace": "x"}
        ),
    }
    for name in INSTANCES:
        found |= {f"{door}, {name}": call for door, call in _of_instance(name).items()}
    with contextlib.suppress(ModuleNotFoundError):
        found |= _of_jmetal(problem)
    return found


def _of_instance(name: str) -> dict[str, Door]:
    """Return the doors of one instance."""
    problem = placeopt.load(name)
    kind, plan = type(problem), placeopt.solve(problem, "auto", evaluations=20, seconds=1.0)[0].plan
    encoder, sequence = build_encoder(problem), build_sequence(problem)
    encoded, rng = EncodedProblem(encoder), np.random.default_rng(1)
    X = encoder.sample(rng, 2)
    env, many = make_env(problem), make_vec_env(problem, 2)
    env.reset(seed=1)
    many.reset(seed=1)
    legal = int(sequence.mask(sequence.reset()).argmax())
    doors = {
        "generate": Door(kind.generate, (), {"seed": 1, **kind.sizes()}),
        "from_document": Door(kind.from_document, (problem.to_document(),)),
        "problem.evaluate": Door(problem.evaluate, (plan,)),
        "problem.read_plan": Door(problem.read_plan, (plan,)),
        "problem.describe": Door(problem.describe, (plan,)),
        "problem.select": Door(problem.select, ([problem.objectives[0].name],)),
        "encoder.evaluate": Door(encoder.evaluate, (X,)),
        "encoder.decode": Door(encoder.decode, (X[0],)),
        "encoder.encode": Door(encoder.encode, (plan,)),
        "encoder.vary": Door(partial(encoder.vary, rng), (X, X)),
        "encoder.mutate": Door(partial(encoder.mutate, rng), (X,)),
        "encoder.sample": Door(partial(encoder.sample, rng), (3,)),
        "encoder.parts": Door(encoder.parts, (X,)),
        "front_of": Door(placeopt.front_of, (X, encoded)),
        "pymoo.evaluate": Door(encoded.evaluate, (X,)),
        "pymoo.Variation": Door(partial(_vary, encoded), (X,)),
        "sequence.step": Door(lambda action: sequence.step(sequence.reset(), action), (legal,)),
        "env.step": Door(lambda action: (env.reset(), env.step(action)), (legal,)),
        "env.reset": Door(lambda seed: env.reset(seed=seed), (1,)),
        "many.step": Door(lambda actions: (many.reset(), many.step(actions)), ([legal] * 2,)),
        "many.reset": Door(lambda seed: many.reset(seed=seed), (1,)),
        "build_encoder": Door(build_encoder, (problem,), {"objectives": None, "encoding": "own"}),
        "build_sequence": Door(build_sequence, (problem,), {"objectives": None}),
    }
    if problem.spec.has("model"):
        face = problem.spec.load("model")
        doors["model.build"] = Door(face.build, (problem,))
    return doors


def _vary(encoded: EncodedProblem, given: Any) -> Any:
    """Make children of pymoo's population of two."""
    rng = np.random.default_rng(1)
    population = Sample()(encoded, 2, random_state=rng)
    for individual in population:
        individual.X = (
            given[0] if isinstance(given, np.ndarray) and given.ndim and given.size else given
        )
    return Variation().children(encoded, population, 2, rng)


def _of_jmetal(problem: Any) -> dict[str, Door]:
    """Return the doors of jMetalPy."""
    from placeopt.evolve import jmetal_adapter as adapter

    doors = {}
    for kind in (adapter.EncodedIntegerProblem, adapter.EncodedFloatProblem):
        encoded = kind(build_encoder(problem))

        def evaluate(variables: Any, encoded: Any = encoded) -> Any:
            solution = SimpleNamespace(variables=variables)
            return adapter.BatchEvaluator().evaluate([solution], encoded)

        good = encoded.create_solution().variables
        doors[kind.__name__] = Door(kind, (build_encoder(problem),), {"seed": 1})
        doors[f"{kind.__name__}.evaluate"] = Door(evaluate, (good,))
        doors[f"front_of, {kind.__name__}"] = Door(placeopt.front_of, ([good], encoded))
    return doors


# -- attacks ---------------------------------------------------------------------------------------


def _is_own(changes: Mapping[int | str, Any]) -> bool:
    """Whether a function was given where one is called: what it raises is the caller's."""
    return any(str(place).startswith("on_") and callable(value) for place, value in changes.items())


def verdict(door: Door, changes: Mapping[int | str, Any]) -> str:
    """Return how a call ends: ``answered``, ``refused``, or what is wrong with it."""
    args, kwargs = door.changed(changes)
    began = time.process_time()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            door.function(*args, **kwargs)
    except PlaceoptError as error:
        said, end = str(error), "refused"
        if not said or "\n" in said.strip():
            end = f"no single line: {said!r:.200}"
    except Exception as error:
        if _is_own(changes) or (changes and isinstance(error, OF_ANOTHER_TYPE)):
            return "refused"
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        end = f"{type(error).__name__}: {error!s:.150} ({place})"
    else:
        end = "answered"
    seconds = time.process_time() - began
    return end if seconds < LONGEST else f"{seconds:.0f} s, then {end:.100}"


def attacks(door: Door, count: int, rng: np.random.Generator) -> Iterator[dict[int | str, Any]]:
    """Yield changes of arguments: each place by itself, then so many random ones of several."""
    yield {}
    if not count:
        for place in door.places:
            for value in junk():
                yield {place: value}
    for _ in range(count if door.places else 0):
        places = rng.permutation(len(door.places))[: rng.integers(1, 4)]
        pool = junk()
        yield {door.places[k]: pool[rng.integers(len(pool))] for k in places}


def main() -> None:
    """Print for every door how its calls ended; what is wrong, at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*")
    parser.add_argument("--random", type=int, default=0, help="random calls instead of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--names", action="store_true", help="print the names of all doors")
    given = parser.parse_args()
    faulthandler.enable()
    out = os.fdopen(os.dup(1), "w", buffering=1)  # whatever a call does to the first one
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        doors = calls(Path(folder))
        if given.names:
            print(json.dumps(list(doors)), file=out)
            return
        for number, name in enumerate(given.doors or doors):
            rng = np.random.default_rng([given.seed, number])
            os.makedirs(os.path.join(folder, str(number)))
            os.chdir(os.path.join(folder, str(number)))
            print(json.dumps(["begun", name]), file=out)
            counts = {"answered": 0, "refused": 0}
            for changes in attacks(doors[name], given.random, rng):
                end = verdict(doors[name], changes)
                if end in counts and (changes or end == "answered" or doors[name].refused):
                    counts[end] += 1
                else:
                    print(json.dumps(["wrong", name, f"{changes!r:.200}", end]), file=out)
            print(json.dumps(["ended", name, counts]), file=out)


if __name__ == "__main__":
    sys.exit(main())
