"""Compile before anybody waits: each method answers a small instance once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placeopt import api, registry
from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError
from placeopt.core.runs.compiling import CLOCK, Clock
from placeopt.core.runs.workers import Call, Workers

#: Enough for every operator of a search to be used.
EVALUATIONS = 300
#: CPU seconds after which exact methods end; their kernels have been called by then.
SECONDS = 4.0
#: Time limit of a proof.
PROOF_SECONDS = 1.0


@dataclass(frozen=True)
class Warmed:
    """What was compiled for one kind of problem.

    Attributes
    ----------
    kind : str
    methods : tuple of str
    seconds : float
    """

    kind: str
    methods: tuple[str, ...]
    seconds: float


def warm_up(
    kinds: Sequence[str] = (),
    jobs: int = 1,
    on_result: Callable[[int, Warmed], None] = lambda k, warmed: None,
) -> list[Warmed]:
    """Compile the kernels of some kinds of problems, of all by default, for all their methods.

    `on_result` is called with each kind's number and result as soon as it is there.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    wanted = [registry.spec_of(kind).kind for kind in kinds] or list(registry.specs())
    calls = [Call(_warm, (kind,)) for kind in wanted]
    return Workers(jobs).run(calls, Budget(evaluations=10**9), on_result)


def _warm(_budget: Budget, kind: str) -> Warmed:
    began = time.perf_counter()
    done = tuple(name for name in registry.methods() if answered(kind, name))
    prove(kind)
    return Warmed(kind, done, time.perf_counter() - began)


def answered(kind: str, name: str) -> bool:
    """Let a method answer the first small instance of a kind that it can; return whether it did."""
    for problem in registry.small_instances(kind) if kind in registry.method(name).of else ():
        try:
            api.solve(problem, name, budget=Budget(EVALUATIONS, SECONDS, clock=_cpu_clock()))
        except PlaceoptError:  # not for this instance, or an extra is missing
            continue
        return True
    return False


def _cpu_clock() -> Clock:
    """Return a clock of the CPU seconds that are work: on a busy machine runs get as far."""
    return Clock(lambda: CLOCK.cpu_seconds)


def prove(kind: str) -> None:
    """Answer instances under a time limit, with a proof where the problem has one.

    Proofs, single objectives and limits in seconds have kernels of their own. Some of these serve
    the smallest instances alone, others only larger ones.
    """
    certify = kind in registry.certified()
    small, usual = next(registry.small_instances(kind)), registry.problem_class(kind).generate(0)
    for problem in (small, usual):
        every = [objective.name for objective in problem.objectives]
        for wanted in (every, every[:1]):
            limit = Budget(seconds=PROOF_SECONDS, clock=_cpu_clock())
            api.solve(problem, "auto", objectives=wanted, budget=limit, certify=certify)
