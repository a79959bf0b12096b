"""The masked peer.

The CNSM 2024 paper's algorithms and parameters on jMetalPy, written from its description.

As the paper has it: an integer per request (start) and one per replica (data centre, size,
pricing), next-fit decoding whose bins never release capacity, on-demand and spot machines charged
for their whole span, reserved ones for the makespan; integer SBX (0.6, 15) and integer polynomial
mutation (0.6, 30), populations of 150; evaluated one vector at a time in Python. Masked: genes name
only types in which the replica fits, starts stay within [0, T - d], so that every vector is
feasible.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jmetal.algorithm.multiobjective.nsgaii import NSGAII
from jmetal.algorithm.multiobjective.nsgaiii import NSGAIII, UniformReferenceDirectionFactory
from jmetal.core.problem import IntegerProblem
from jmetal.operator.crossover import IntegerSBXCrossover
from jmetal.operator.mutation import IntegerPolynomialMutation
from jmetal.util.archive import CrowdingDistanceArchive
from jmetal.util.comparator import DominanceWithConstraintsComparator
from jmetal.util.solution import get_non_dominated_solutions
from jmetal.util.termination_criterion import StoppingByEvaluations

from placeopt.core.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.temporal.document import PRICINGS
from placeopt.temporal.instance import Temporal


@dataclass
class Bin:
    """A machine of the next-fit decoder."""

    kind: int
    cpu: float
    memory: float
    begin: int
    end: int
    replicas: list[tuple[int, int]]


class PeerProblem(IntegerProblem):
    """The paper's problem class in plain Python; `masked` limits genes to what can be feasible."""

    def __init__(
        self, problem: Temporal, objectives: tuple[int, ...] = (0, 1, 2), *, masked: bool = True
    ):
        super().__init__()
        self.instance, self.chosen = problem, objectives
        self.kinds = [
            (k, p) for k, o in enumerate(problem.offers) for p in PRICINGS if o.price(p) is not None
        ]
        self.legal = [
            [y for y, (k, _) in enumerate(self.kinds) if not masked or problem.arrays.usable[i, k]]
            for i in range(len(problem.requests))
        ]
        self.latency = problem.arrays.latencies.tolist()
        self.owner = [
            (i, r) for i, request in enumerate(problem.requests) for r in range(request.replicas)
        ]
        starts = [
            problem.horizon_slots - r.duration_slots if masked else 150 for r in problem.requests
        ]
        self.upper_bound = starts + [len(self.legal[i]) - 1 for i, _ in self.owner]
        self.lower_bound = [0] * len(self.upper_bound)
        self.obj_directions = [self.MINIMIZE] * len(objectives)
        self.calls = 0

    def number_of_variables(self) -> int:
        return len(self.upper_bound)

    def number_of_objectives(self) -> int:
        return len(self.chosen)

    def number_of_constraints(self) -> int:
        return 0

    def name(self) -> str:
        return "masked peer"

    def decode(self, genes: list[int]) -> list[Bin]:
        """Pack the replicas in their order; each kind has one open bin."""
        requests, offers = self.instance.requests, self.instance.offers
        opened: dict[int, Bin] = {}
        bins = []
        for (i, r), gene in zip(self.owner, genes[len(requests) :], strict=True):
            kind = self.legal[i][gene]
            request, offer = requests[i], offers[self.kinds[kind][0]]
            begin = genes[i]
            end = begin + request.duration_slots
            current = opened.get(kind)
            if (
                current is None
                or current.cpu < request.cpu_cores
                or current.memory < request.memory_gib
            ):
                current = opened[kind] = Bin(
                    kind, offer.cpu_cores, offer.memory_gib, begin, end, []
                )
                bins.append(current)
            current.cpu -= request.cpu_cores
            current.memory -= request.memory_gib
            current.begin, current.end = min(current.begin, begin), max(current.end, end)
            current.replicas.append((i, r))
        return bins

    def evaluate(self, solution: Any) -> Any:
        """Return the solution with its objectives as the published decoder charges them."""
        self.calls += 1
        requests, offers = self.instance.requests, self.instance.offers
        genes = solution.variables
        bins = self.decode(genes)
        makespan = max(genes[i] + r.duration_slots for i, r in enumerate(requests)) - min(
            genes[: len(requests)]
        )
        cost = interruption = 0.0
        worst = [0.0] * len(requests)
        for b in bins:
            k, pricing = self.kinds[b.kind]
            offer = offers[k]
            cost += offer.price(pricing) * (makespan if pricing == "reserved" else b.end - b.begin)
            for i, _ in b.replicas:
                worst[i] = max(worst[i], self.latency[i][k])
                if pricing == "spot":
                    interruption += offer.spot_interruption / requests[i].replicas
        values = (sum(worst) / len(requests), cost, interruption / len(requests))
        solution.objectives = [values[c] for c in self.chosen]
        return solution

    def plan(self, genes: list[int]) -> dict[str, Any]:
        """Return the plan of a vector, in the instance's names."""
        requests, offers = self.instance.requests, self.instance.offers
        machines = []
        for b in self.decode(genes):
            offer, pricing = offers[self.kinds[b.kind][0]], self.kinds[b.kind][1]
            replicas = [[requests[i].name, r] for i, r in b.replicas]
            machines.append(
                {
                    "location": offer.location,
                    "size": offer.size,
                    "pricing": pricing,
                    "replicas": replicas,
                }
            )
        return {"starts": {r.name: genes[i] for i, r in enumerate(requests)}, "instances": machines}


def _operators(evaluations: int) -> dict[str, Any]:
    return {
        "population_size": 150,
        "mutation": IntegerPolynomialMutation(probability=0.6, distribution_index=30),
        "crossover": IntegerSBXCrossover(probability=0.6, distribution_index=15),
        "termination_criterion": StoppingByEvaluations(max_evaluations=evaluations),
        "dominance_comparator": DominanceWithConstraintsComparator(),
    }


def nsga2(problem: PeerProblem, evaluations: int) -> list[Any]:
    """Run the paper's NSGA-II."""
    algorithm = NSGAII(problem=problem, offspring_population_size=80, **_operators(evaluations))
    algorithm.run()
    return get_non_dominated_solutions(algorithm.result())


def nsga3(problem: PeerProblem, evaluations: int) -> list[Any]:
    """Run the paper's NSGA-III, 30 divisions."""
    directions = UniformReferenceDirectionFactory(n_dim=problem.number_of_objectives(), n_points=30)
    algorithm = NSGAIII(problem=problem, reference_directions=directions, **_operators(evaluations))
    algorithm.run()
    return get_non_dominated_solutions(algorithm.result())


def mspso(problem: PeerProblem, evaluations: int) -> list[Any]:
    """Run the paper's multi-swarm PSO: 10 particles a swarm.

    Every evaluation counts, those of the elitist learning too.
    """
    swarms = [
        [_particle(problem) for _ in range(10)] for _ in range(problem.number_of_objectives())
    ]
    archive = CrowdingDistanceArchive(100)
    learning = IntegerPolynomialMutation(probability=0.9, distribution_index=20)
    for swarm in swarms:
        for particle in swarm:
            archive.add(_copy(problem, particle["solution"]))
    while problem.calls < evaluations:
        for m, swarm in enumerate(swarms):
            leader = min(swarm, key=lambda p: p["best"].objectives[m])["best"]
            for particle in swarm:
                _fly(problem, particle, leader, random.choice(archive.solution_list), m)
                archive.add(_copy(problem, particle["best"]))
        for member in list(archive.solution_list):
            archive.add(problem.evaluate(learning.execute(_copy(problem, member))))
    return list(archive.solution_list)


def _particle(problem: PeerProblem) -> dict[str, Any]:
    solution = problem.evaluate(problem.create_solution())
    return {
        "solution": solution,
        "best": _copy(problem, solution),
        "speed": [0] * problem.number_of_variables(),
    }


def _copy(problem: PeerProblem, solution: Any) -> Any:
    other = problem.create_solution()
    other.variables, other.objectives = list(solution.variables), list(solution.objectives)
    return other


def _fly(problem: PeerProblem, particle: dict[str, Any], leader: Any, member: Any, m: int) -> None:
    r1, r2, r3, w, c = (
        random.random(),
        random.random(),
        random.uniform(0, 0.1),
        random.uniform(0.1, 0.3),
        4 / 3,
    )
    x, best, swarm, other = (
        particle["solution"].variables,
        particle["best"].variables,
        leader.variables,
        member.variables,
    )
    speed = particle["speed"]
    moved = []
    for k, (low, high) in enumerate(zip(problem.lower_bound, problem.upper_bound, strict=True)):
        speed[k] = round(
            w * speed[k]
            + c * (r1 * (best[k] - x[k]) + r2 * (swarm[k] - x[k]) + r3 * (other[k] - x[k]))
        )
        value = x[k] + speed[k]
        if not low <= value <= high:
            value, speed[k] = min(max(value, low), high), -speed[k]
        moved.append(value)
    particle["solution"].variables = moved
    problem.evaluate(particle["solution"])
    if particle["solution"].objectives[m] < particle["best"].objectives[m]:
        particle["best"] = _copy(problem, particle["solution"])


ALGORITHMS: dict[str, Callable[[PeerProblem, int], list[Any]]] = {
    "nsga2": nsga2,
    "nsga3": nsga3,
    "mspso": mspso,
}


def run(
    problem: Temporal,
    name: str,
    evaluations: int,
    seed: int,
    objectives: tuple[int, ...] = (0, 1, 2),
) -> tuple[Front, float]:
    """Return the peer's front, judged by the referee, and its CPU seconds."""
    from placeopt.core.budget import Budget

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  jMetalPy draws from the global generators
    peer = PeerProblem(problem, objectives)
    budget = Budget(evaluations=evaluations)
    began = time.process_time()
    solutions = ALGORITHMS[name](peer, evaluations)
    seconds = time.process_time() - began
    budget.spend(peer.calls)
    chosen = tuple(problem.objectives[c] for c in objectives)
    candidates = [Candidate(peer.plan(list(s.variables))) for s in solutions]
    task = Task(problem, chosen, budget, seed)
    return task.front(candidates, method=f"peer {name}", libraries=("jmetalpy",)), seconds
