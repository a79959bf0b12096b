"""The plan of a sweep: a TOML file or a dict, and the cells that it stands for.

>>> plan = read({"instances": [{"problem": "temporal", "seed": 1, "requests": 3}],
...              "methods": ["greedy", {"name": "moead", "neighbours": 10}], "seeds": [1, 2]})
>>> len(cells(plan))
4
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from placeopt import registry
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import validate
from placeopt.core.files.paths import AnyPath, read_bytes
from placeopt.core.files.shipped import find_study, instances
from placeopt.core.goals import read_limits
from placeopt.core.parameters import checked
from placeopt.core.problem import Problem
from placeopt.core.runs.run_directory import task_key

#: Points of each front that are measured unless the plan says otherwise.
POINTS = 500

Seeds = Annotated[list[Annotated[int, Field(strict=True, ge=0)]], Field(min_length=1)]


class _Described(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class GeneratedInstance(_Described):
    """A random instance; other keys are sizes as of ``placeopt generate``."""

    problem: str
    seed: int = Field(0, ge=0)


class SweptMethod(_Described):
    """A method; other keys are its parameters."""

    name: str


class SweepPlan(BaseModel):
    """What a sweep runs: every instance with every method, seed and budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "sweep"
    instances: list[str | GeneratedInstance] = Field(min_length=1)
    methods: list[str | SweptMethod] = Field(min_length=1)
    seeds: Seeds = [1]
    evaluations: list[Annotated[int, Field(strict=True, ge=1)]] = []
    seconds: list[Annotated[float, Field(gt=0, le=1e6)]] = []
    objectives: list[str] | None = None
    #: Largest values allowed of objectives, such as ``latency_ms<=30``.
    limits: list[str] = []
    #: Points of each front that are measured, at most.
    points: Annotated[int, Field(strict=True, ge=1)] = POINTS


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Attributes
    ----------
    instance, method : str
        As the plan calls them.
    task : dict
        What the run's result depends on: the key of a finished run.
    document : dict
        The instance.
    """

    instance: str
    method: str
    task: dict[str, Any]
    document: dict[str, Any]


def read(plan: AnyPath | Mapping[str, Any]) -> SweepPlan:
    """Read a plan.

    Raises
    ------
    DocumentError
        Names the file, the key, the value and what is legal.
    """
    if isinstance(plan, Mapping):
        return validate(SweepPlan, dict(plan))
    file = str(plan)
    try:
        document = tomllib.loads(read_bytes(find_study(plan)).decode("utf-8"))
    except OSError as error:
        remedy = "give the path of a readable TOML file"
        raise DocumentError(error.strerror or str(error), file=file, remedy=remedy) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        remedy = "a plan is a TOML file: see docs/sweeps.md"
        raise DocumentError(f"not TOML: {error}", file=file, remedy=remedy) from None
    return validate(SweepPlan, document, file=file)


def cells(plan: SweepPlan, folder: Path = Path()) -> list[Cell]:
    """Return the runs of a plan; instance files are looked for from `folder`.

    What is no file may be the name of an instance that comes with placeopt. All instances and
    parameters are checked before anything runs.

    Raises
    ------
    PlaceoptError
        An instance, a method or a parameter is not legal, or two instances have one name.
    """
    budgets: list[dict[str, Any]] = [{"evaluations": n, "seconds": None} for n in plan.evaluations]
    budgets += [{"evaluations": None, "seconds": s} for s in plan.seconds]
    budgets = budgets or [{"evaluations": None, "seconds": None}]
    problems = [_problem(instance, folder) for instance in plan.instances]
    if len({p.instance_name.sha256 for p in problems}) < len(problems):
        raise UsageError("an instance stands twice in the plan; name each once")
    labels = _labels([p.name for p in problems])
    methods = [SweptMethod(name=m) if isinstance(m, str) else m for m in plan.methods]
    results = []
    for (label, problem), method in itertools.product(zip(labels, problems, strict=True), methods):
        run = registry.method(method.name).load(problem.problem)
        parameters = checked(run, method.name, method.model_extra or {})
        goals = problem.select(plan.objectives)
        problem = problem.within(read_limits(plan.limits, goals))
        for seed, budget in itertools.product(plan.seeds, budgets):
            task = task_key(problem, goals, method.name, parameters, seed, **budget)
            results.append(Cell(label, _label(method), task, problem.to_document()))
    return results


def _problem(instance: str | GeneratedInstance, folder: Path) -> Problem:
    if isinstance(instance, str):
        file = folder / instance
        return registry.read(file if file.exists() else instances().get(instance, file))
    kind, sizes = registry.problem_class(instance.problem), instance.model_extra or {}
    for name in sizes:
        if name not in kind.sizes():
            legal = ", ".join(kind.sizes())
            raise UsageError(f"{instance.problem} has no size {name!r}; legal: {legal}")
    return kind.generate(instance.seed, **sizes)


def _labels(names: list[str]) -> list[str]:
    """Return the names, with a number behind those that several instances have."""
    return [
        name if names.count(name) == 1 else f"{name} #{names[: k + 1].count(name)}"
        for k, name in enumerate(names)
    ]


def _label(method: SweptMethod) -> str:
    argument = ", ".join(f"{key}={value}" for key, value in (method.model_extra or {}).items())
    return f"{method.name} ({argument})" if argument else method.name
