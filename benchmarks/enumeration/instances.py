"""The instances of the enumeration benchmark: published sets that lie beside the checkout, and
generated ones.

Published, in the folder that ``PLACEOPT_DATA`` names, each a clone of a public repository:

* ``Modolib.jl`` (github.com/aritrasep/Modolib.jl): assignment, knapsack and integer programs of
  G. Kirlik and S. Sayin, EJOR 232, 2014, and the non-dominated sets of the first two;
* ``mobkp-instances`` (github.com/gaplopes/mobkp-instances): knapsacks with correlated goals and
  their non-dominated sets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Instance:
    """Minimise ``costs @ x`` with ``rows @ x <= limits`` (``==`` where `equal`), x whole numbers.

    Attributes
    ----------
    costs : ndarray, shape (goals, columns)
    rows : scipy.sparse matrix, shape (rows, columns)
    limits : ndarray, shape (rows,)
    equal : bool
    upper : float
        Largest value of every variable.
    front : ndarray or None
        The published non-dominated set, minimised, sorted.
    """

    name: str
    costs: np.ndarray
    rows: sp.csr_matrix
    limits: np.ndarray
    equal: bool
    upper: float
    front: np.ndarray | None = None

    def model(self) -> pyo.ConcreteModel:
        """Return the instance as a Pyomo model with one Objective for each goal."""
        model = pyo.ConcreteModel(name=self.name)
        columns = range(self.costs.shape[1])
        domain = pyo.Binary if self.upper == 1 else pyo.NonNegativeIntegers
        bounds = (0, None if np.isinf(self.upper) else self.upper)
        model.x = pyo.Var(columns, domain=domain, bounds=bounds)
        model.row = pyo.ConstraintList()
        for k in range(self.rows.shape[0]):
            row = self.rows.getrow(k)
            body = pyo.quicksum(
                float(a) * model.x[int(j)] for a, j in zip(row.data, row.indices, strict=True)
            )
            limit = float(self.limits[k])
            model.row.add(body == limit if self.equal else body <= limit)
        goals = range(len(self.costs))
        model.goal = pyo.Objective(
            [f"f{k + 1}" for k in goals],
            rule=lambda m, name: pyo.quicksum(
                float(c) * m.x[j] for j, c in enumerate(self.costs[int(name[1:]) - 1]) if c
            ),
        )
        return model


def data_folder() -> Path | None:
    """Return the folder of the published instances, None where it is not set."""
    folder = os.environ.get("PLACEOPT_DATA")
    return Path(folder) if folder and (Path(folder) / "Modolib.jl").is_dir() else None


# -- published instances ---------------------------------------------------------------------------


def _numbers(path: Path) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", path.read_text())]


def _front(path: Path, goals: int) -> np.ndarray | None:
    if not path.is_file():
        return None
    return np.unique(np.array(_numbers(path)).reshape(-1, goals), axis=0)


def kirlik(folder: Path, kind: str, name: str) -> Instance:
    """Read an instance of Kirlik and Sayin; `kind` is ``AP``, ``KP`` or ``ILP``."""
    place = folder / "Modolib.jl" / "instances" / {"AP": "MOAP", "KP": "MOKP", "ILP": "MOIP"}[kind]
    place /= "Kirlik_Instances"
    full = f"{kind}_{name}"
    values = _numbers(place / "instances" / f"{full}.dat")
    goals, size = int(values[0]), int(values[1])
    front = _front(place / "non dominated points" / f"EffSet_{full}.txt", goals)
    if kind == "AP":
        return assignment(full, np.array(values[2:]).reshape(goals, size * size), front)
    if kind == "KP":
        profits = np.array(values[3 : 3 + goals * size]).reshape(goals, size)
        return knapsack(full, profits, np.array(values[3 + goals * size :]), values[2], front)
    count, end = int(values[2]), 3 + goals * size
    rows = np.array(values[end : end + count * size]).reshape(count, size)
    limits = np.array(values[end + count * size :])
    profits = np.array(values[3:end]).reshape(goals, size)
    return Instance(full, -profits, sp.csr_matrix(rows), limits, False, np.inf, None)


def correlated_knapsack(folder: Path, path: str) -> Instance:
    """Read a knapsack of mobkp-instances: items, goals, capacity, weights and profits, the set."""
    file = folder / "mobkp-instances" / "instances" / path
    values = _numbers(file)
    size, goals, capacity = int(values[0]), int(values[1]), values[2]
    end = 3 + size * (goals + 1)
    table = np.array(values[3:end]).reshape(size, goals + 1)
    front = -np.array(values[end + 1 :]).reshape(-1, goals) if len(values) > end else None
    sorted_front = None if front is None else np.unique(front, axis=0)
    return knapsack(path, table[:, 1:].T, table[:, 0], capacity, sorted_front)


def knapsack(
    name: str, profits: np.ndarray, weights: np.ndarray, capacity: float, front: np.ndarray | None
) -> Instance:
    """Return a knapsack whose profits are all maximised."""
    rows = sp.csr_matrix(weights[None, :])
    return Instance(name, -profits, rows, np.array([capacity]), False, 1.0, front)


def assignment(name: str, costs: np.ndarray, front: np.ndarray | None) -> Instance:
    """Return an assignment of n agents to n tasks; `costs` has shape (goals, n * n)."""
    size = round(costs.shape[1] ** 0.5)
    agents = sp.kron(sp.eye(size), np.ones((1, size)))
    tasks = sp.kron(np.ones((1, size)), sp.eye(size))
    rows = sp.csr_matrix(sp.vstack([agents, tasks]))
    return Instance(name, costs, rows, np.ones(2 * size), True, 1.0, front)


# -- generated instances ---------------------------------------------------------------------------


def generated_knapsack(goals: int, size: int, seed: int) -> Instance:
    """Return a knapsack with profits and weights in 1..100 and half of the weight as capacity."""
    rng = np.random.default_rng(seed)
    profits = rng.integers(1, 101, (goals, size)).astype(float)
    weights = rng.integers(1, 101, size).astype(float)
    name = f"generated-KP_p-{goals}_n-{size}_seed-{seed}"
    return knapsack(name, profits, weights, float(weights.sum() // 2), None)


def generated_facilities(goals: int, places: int, customers: int, seed: int) -> Instance:
    """Return an uncapacitated facility location; opening costs count in every goal."""
    rng = np.random.default_rng(seed)
    opening = rng.integers(50, 151, (goals, places)).astype(float)
    serving = rng.integers(1, 51, (goals, customers * places)).astype(float)
    served = sp.hstack(
        [sp.csr_matrix((customers, places)), sp.kron(sp.eye(customers), np.ones((1, places)))]
    )
    open_ = sp.hstack(
        [-sp.kron(np.ones((customers, 1)), sp.eye(places)), sp.eye(customers * places)]
    )
    rows = sp.csr_matrix(sp.vstack([-served, open_]))
    limits = np.concatenate((-np.ones(customers), np.zeros(customers * places)))
    name = f"generated-UFLP_p-{goals}_{places}x{customers}_seed-{seed}"
    return Instance(name, np.hstack([opening, serving]), rows, limits, False, 1.0, None)


# -- which are measured ----------------------------------------------------------------------------


def complete_instances() -> Iterator[Instance]:
    """Yield the instances that are enumerated completely."""
    folder = data_folder()
    if folder is not None:
        for kind, name in (
            ("AP", "p-3_n-5_ins-1"),
            ("AP", "p-3_n-5_ins-2"),
            ("KP", "p-3_n-10_ins-1"),
            ("KP", "p-3_n-20_ins-2"),
            ("KP", "p-3_n-20_ins-3"),
            ("KP", "p-4_n-10_ins-1"),
            ("KP", "p-4_n-20_ins-1"),
            ("ILP", "p-3_n-10_m-5_ins-1"),
            ("AP", "p-3_n-10_ins-1"),
            ("KP", "p-3_n-30_ins-1"),
        ):
            yield kirlik(folder, kind, name)
        for path in ("random/3D/25_1.in", "random/4D/20_1.in"):
            yield correlated_knapsack(folder, path)
    yield generated_knapsack(3, 20, 1)
    yield generated_facilities(3, 4, 5, 1)


def published_instances() -> Iterator[tuple[str, Iterator[Instance]]]:
    """Yield the published sets of three goals by size, the first ten instances of each."""
    folder = data_folder()
    sizes = [("AP", 5), ("AP", 10), ("KP", 10), ("KP", 20), ("KP", 30), ("KP", 40)]
    for kind, size in sizes if folder is not None else ():
        names = [f"p-3_n-{size}_ins-{number}" for number in range(1, 11)]
        yield f"{kind}, n = {size}", (kirlik(folder, kind, name) for name in names)


def large_instances() -> Iterator[Instance]:
    """Yield instances that are too large for a minute."""
    folder = data_folder()
    if folder is not None:
        yield kirlik(folder, "AP", "p-3_n-20_ins-1")
        yield kirlik(folder, "KP", "p-3_n-70_ins-5")
        yield kirlik(folder, "KP", "p-4_n-30_ins-1")
    else:
        yield generated_knapsack(3, 80, 1)
