"""A problem of one's own, as somebody writes it in a notebook: which lamps are on?

Run as a script it is the notebook: all that it needs stands in ``__main__``.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo

import placeopt
from placeopt.core.fronts.values import Evaluation, Objective
from placeopt.core.interfaces import DecisionSequence, Encoder
from placeopt.core.problem import Amount, Problem
from placeopt.core.spec import ProblemSpec


class Lamps(Problem):
    """Lamps that cost and shine."""

    problem: Literal["lamps"] = "lamps"
    light: tuple[Amount, ...]

    @property
    def costs(self) -> list[float]:
        return [1.0 + k % 3 for k in range(len(self.light))]

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return (Objective("cost", "EUR"), Objective("dark", "lm"))

    def evaluate(self, plan: Any) -> Evaluation:
        cost = sum(self.costs[k] for k in plan["on"])
        return Evaluation((cost, sum(self.light) - sum(self.light[k] for k in plan["on"])), ())


class LampEncoder(Encoder):
    """A gene a lamp."""

    def __init__(self, problem: Lamps, objectives: tuple[Objective, ...]):
        self.problem, self.objectives = problem, objectives
        self.num_genes, self.num_constraints = len(problem.light), 0
        self.lower, self.upper = np.zeros(self.num_genes, int), np.ones(self.num_genes, int)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F = np.array([self.problem.evaluate(self.decode(genes)).values for genes in X])
        return F[:, self.problem.columns(self.objectives)], np.zeros((len(X), 0))

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        return {"on": [int(k) for k in np.flatnonzero(genes)]}


class LampSequence(DecisionSequence):
    """A lamp after the other: off (0) or on (1)."""

    num_actions, num_features, costs_never_fall = 2, 2, True

    def __init__(self, problem: Lamps, objectives: tuple[Objective, ...]):
        self.problem, self.objectives, self.decisions = problem, objectives, len(problem.light)

    def reset(self, rng: np.random.Generator | None = None) -> list[int]:
        return []

    def copy(self, state: list[int]) -> list[int]:
        return list(state)

    def remaining(self, state: list[int]) -> int:
        return self.decisions - len(state)

    def mask(self, state: list[int]) -> np.ndarray:
        return np.full(2, len(state) < self.decisions)

    def step(self, state: list[int], action: int) -> np.ndarray:
        k = len(state)
        state.append(int(action))
        cost = np.array([self.problem.costs[k] * action, self.problem.light[k] * (1 - action)])
        return cost[self.problem.columns(self.objectives)]

    def plan(self, state: list[int]) -> dict[str, Any]:
        return {"on": [int(k) for k in np.flatnonzero(state)]}


def generate(seed: int = 0, *, lamps: int = 12) -> dict[str, Any]:
    """Return the document of an instance."""
    light = np.random.default_rng(seed).integers(1, 30, lamps).astype(float).tolist()
    return {"problem": "lamps", "name": f"l{seed}", "light": light}


def build(problem: Lamps) -> pyo.ConcreteModel:
    """Return the model; goals have no steps, which the coefficients show."""
    model = pyo.ConcreteModel()
    model.on = pyo.Var(range(len(problem.light)), domain=pyo.Binary)
    model.cost = pyo.Expression(expr=sum(problem.costs[k] * model.on[k] for k in model.on))
    shine = sum(problem.light[k] * model.on[k] for k in model.on)
    model.dark = pyo.Expression(expr=sum(problem.light) - shine)
    return model


def extract(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Return the plan of a solution."""
    return {"on": [k for k in model.on if model.on[k].value > 0.5]}


def spec(**changes: Any) -> ProblemSpec:
    """Return what is registered, of objects."""
    members: dict[str, Any] = {
        "instance": Lamps,
        "generator": generate,
        "encoder": LampEncoder,
        "sequence": LampSequence,
        "model": SimpleNamespace(build=build, extract=extract),
    }
    return ProblemSpec(kind="lamps", **(members | changes))


def of_texts(module: str) -> ProblemSpec:
    """Return what is registered, of texts."""
    names = {"instance": "Lamps", "generator": "generate", "encoder": "LampEncoder"}
    texts = {member: f"{module}:{name}" for member, name in names.items()}
    return ProblemSpec(kind="lamps", sequence=f"{module}:LampSequence", model=module, **texts)


if __name__ == "__main__":
    placeopt.register(spec() if sys.argv[1] == "objects" else of_texts("__main__"))
    few = {"methods": "moead,nsga2", "evaluations": 200}
    one, two = (placeopt.solve(Lamps.generate(1), "ensemble", jobs=jobs, **few) for jobs in (1, 2))
    assert one.values.tolist() == two.values.tolist()
    plan = {"instances": [{"problem": "lamps", "lamps": 6}], "methods": ["moead", "nsga2"]}
    result = placeopt.sweep({**plan, "evaluations": [200]}, jobs=2)
    print(result.complete, [row["error"] for row in result.rows])
