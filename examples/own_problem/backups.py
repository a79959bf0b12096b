"""A problem of your own: which services get a replica in a standby cluster of limited size?

Cost and risk pull apart. After `pip install examples/own_problem` every search, rollout, the
environments, plots and commands serve it: `placeopt generate backups -o b.json`, say.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from placeopt import plugins

SPEC = plugins.ProblemSpec(
    kind="backups",
    instance="backups:Backups",
    plan="backups:BackupPlan",
    generator="backups:generate",
    encoder="backups:BackupEncoder",
)


class BackedService(plugins.Record):
    name: plugins.Name
    cpu_cores: plugins.Positive
    usd_per_hour: plugins.Amount
    risk: plugins.Amount


class BackupPlan(plugins.Record):
    replicas: tuple[plugins.Name, ...]


class Backups(plugins.Problem):
    """Services that may have a replica in a standby cluster of `cpu_cores`."""

    spec: ClassVar[plugins.ProblemSpec] = SPEC
    problem: Literal["backups"] = "backups"
    cpu_cores: plugins.Positive
    services: tuple[BackedService, ...]

    @property
    def objectives(self) -> tuple[plugins.Objective, ...]:
        return (plugins.Objective("cost_usd", "USD/h"), plugins.Objective("risk", "share"))

    def evaluate(self, plan: Any) -> plugins.Evaluation:
        chosen = set(plugins.validate(BackupPlan, plan).replicas)
        inside = [s for s in self.services if s.name in chosen]
        cost = sum(s.usd_per_hour for s in inside)
        risk = sum(s.risk for s in self.services) - sum(s.risk for s in inside)
        over = sum(s.cpu_cores for s in inside) - self.cpu_cores
        lack = plugins.Violation("cpu-capacity", over / self.cpu_cores, f"{over:g} cores too few")
        return plugins.Evaluation((cost, risk), (lack,) if over > 1e-9 else ())


def generate(seed: int = 0, *, services: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(1, 20, size=(services, 3)).astype(float).tolist()
    keys = ("cpu_cores", "usd_per_hour", "risk")
    rows = [{"name": f"s{k}"} | dict(zip(keys, row)) for k, row in enumerate(drawn)]  # noqa: B905
    cores = sum(row["cpu_cores"] for row in rows) / 2
    return {"problem": "backups", "name": f"b{seed}", "cpu_cores": cores, "services": rows}


class BackupEncoder(plugins.Encoder):
    """One gene a service: 1 with a replica, 0 without. So every plan has a vector."""

    every_plan = True

    def __init__(self, problem: Backups, objectives: tuple[plugins.Objective, ...]):
        self.problem, self.objectives = problem, objectives
        self.num_genes, self.num_constraints = len(problem.services), 1
        self.lower, self.upper = np.zeros(self.num_genes, int), np.ones(self.num_genes, int)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [self.problem.evaluate(self.decode(genes)) for genes in X]
        F = np.array([e.values for e in found])[:, self.problem.columns(self.objectives)]
        return F, np.array([[sum(v.amount for v in e.violations)] for e in found])

    def encode(self, plan: Any) -> np.ndarray:
        return np.array([s.name in plan["replicas"] for s in self.problem.services], int)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        return {"replicas": [self.problem.services[k].name for k in np.flatnonzero(genes)]}
