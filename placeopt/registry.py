"""Which methods there are: a name, where it lives, what it supports. Strings only: nothing is imported until it is used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from placeopt.errors import MissingExtraError, UnsupportedError, UsageError, did_you_mean
from placeopt.front import Front
from placeopt.problems import KINDS

#: Problems with an encoder: every vector search serves them.
ENCODED = ("temporal", "edge-cloud", "rolling-update", "rescheduling", "multi-cluster")
#: Problems with a Pyomo model whose objectives are linear.
MODELLED = ("temporal", "edge-cloud", "rolling-update", "rescheduling")
#: Problems with a sequential face: rollout and the environments serve them.
SEQUENTIAL = ("temporal", "edge-cloud", "rolling-update", "rescheduling", "multi-cluster")
#: Problems with greedy policies by weights.
GREEDY = ("temporal", "edge-cloud", "rescheduling", "multi-cluster")
#: What `auto` runs where nothing speaks for another.
AUTO = {
    "temporal": "moead",
    "edge-cloud": "lns",
    "rolling-update": "decomposition",
    "rescheduling": "block-search",
    "multi-cluster": "moead",
}
#: Up to so many replicas `auto` answers temporal instances exactly.
FEW_REPLICAS = 10
#: Who proves bounds for a front: ``function(problem, front, budget) -> Front``.
CERTIFIERS = {
    "temporal": "placeopt.exact.temporal:certify",
    "edge-cloud": "placeopt.exact.edge_cloud:certify",
    "rolling-update": "placeopt.exact.rolling_update:certify",
}


@dataclass(frozen=True)
class Method:
    """One way of answering.

    Attributes
    ----------
    entry : str
        ``"module:function"``; ``{row}`` stands for the problem's file name.
    problems : tuple of str
        What it supports.
    summary : str
        One line for ``placeopt methods``.
    extra : str or None
        Optional packages it needs, as in ``placeopt[extra]``.
    needs : tuple of str
        Modules that the extra provides.
    """

    name: str
    entry: str
    problems: tuple[str, ...]
    summary: str
    extra: str | None = None
    needs: tuple[str, ...] = ()

    def load(self, kind: str) -> Callable[..., Front]:
        """Return the function ``run(problem, objectives, budget, seed, start=None, **params)`` for a problem.

        Raises
        ------
        UnsupportedError
            The method does not support the problem, or an extra is missing.
        """
        if kind not in self.problems:
            others = [m.name for m in METHODS.values() if kind in m.problems]
            raise UnsupportedError(
                f"method {self.name!r} does not support {kind}; methods that do: {', '.join(others)}"
            )
        if self.extra and not all(importlib.util.find_spec(module) for module in self.needs):
            raise MissingExtraError(f"method {self.name!r}", self.extra)
        module, _, function = self.entry.format(row=KINDS[kind][0]).partition(":")
        return getattr(importlib.import_module(module), function)


METHODS = {
    m.name: m
    for m in (
        Method("auto", "placeopt.api:run_auto", tuple(KINDS), "picks a method by problem and size"),
        Method(
            "block-search",
            "placeopt.heuristics.{row}:block_search",
            ("rescheduling",),
            "blocks of services across the continuum, then descent",
        ),
        Method(
            "binpack",
            "placeopt.heuristics.{row}:binpack",
            ("multi-cluster",),
            "all replicas where most cpu is in use",
        ),
        Method(
            "bin-plans",
            "placeopt.exact.{row}:bin_plans",
            ("temporal",),
            "exact front by what can share a machine (to 10 requests)",
        ),
        Method(
            "bound",
            "placeopt.exact.{row}:bound",
            ("temporal", "edge-cloud"),
            "proven lower bounds, and plans built at their prices",
        ),
        Method(
            "cloud-first",
            "placeopt.heuristics.{row}:cloud_first",
            ("rescheduling",),
            "every replica anew where it runs fastest",
        ),
        Method(
            "cpu-greedy",
            "placeopt.heuristics.{row}:cpu_greedy",
            ("multi-cluster",),
            "all replicas where least cpu is in use",
        ),
        Method(
            "decomposition",
            "placeopt.exact.{row}:decomposition",
            ("rolling-update",),
            "packing, then order, with proofs; exact where small",
        ),
        Method(
            "ensemble",
            "placeopt.api:run_ensemble",
            ENCODED,
            "several methods, their fronts merged with provenance",
        ),
        Method(
            "epsilon-constraint",
            "placeopt.exact.epsilon_constraint:run",
            MODELLED,
            "exact front of the Pyomo model (small instances)",
        ),
        Method(
            "greedy",
            "placeopt.heuristics.{row}:greedy",
            GREEDY,
            "by weights, or move by move: milliseconds",
        ),
        Method(
            "hindsight",
            "placeopt.exact.{row}:hindsight",
            ("multi-cluster",),
            "what one who knew the trace could earn; proven where small",
        ),
        Method(
            "karmada-greedy",
            "placeopt.heuristics.{row}:karmada_greedy",
            ("multi-cluster",),
            "all replicas where the most would fit: Karmada",
        ),
        Method(
            "kubernetes",
            "placeopt.heuristics.{row}:kubernetes",
            ("rescheduling",),
            "every replica anew on the node least in use",
        ),
        Method(
            "latency-greedy",
            "placeopt.heuristics.{row}:latency_greedy",
            ("rescheduling", "multi-cluster"),
            "where latency is least, or allowed",
        ),
        Method(
            "lns",
            "placeopt.heuristics.{row}:lns",
            ("edge-cloud",),
            "large neighbourhood search under prices, with bounds: compiled",
        ),
        Method(
            "moead",
            "placeopt.evolve.moead:run",
            ENCODED,
            "MOEA/D with Tchebycheff weights, seeds, an archive and recombined parts, compiled",
        ),
        Method(
            "mspso",
            "placeopt.evolve.mspso:run",
            ENCODED,
            "the multi-swarm PSO of the CNSM 2024 paper, array-based",
        ),
        Method(
            "myopic",
            "placeopt.heuristics.{row}:myopic",
            ("multi-cluster",),
            "the highest reward now, request after request, by weights",
        ),
        Method(
            "nsga2",
            "placeopt.evolve.nsga:nsga2",
            ENCODED,
            "NSGA-II on pymoo with compiled operators, seeds and an archive",
        ),
        Method(
            "nsga3",
            "placeopt.evolve.nsga:nsga3",
            ENCODED,
            "NSGA-III on pymoo with compiled operators, seeds and an archive",
        ),
        Method(
            "policy",
            "placeopt.rl.play:run",
            SEQUENTIAL,
            "a trained policy, one decision after another; needs no torch",
        ),
        Method(
            "price-guided",
            "placeopt.heuristics.{row}:price_guided",
            ("edge-cloud",),
            "built under Lagrangian prices, with bounds",
        ),
        Method(
            "recreate",
            "placeopt.heuristics.{row}:recreate",
            ("rolling-update",),
            "stop all, then start all where Kubernetes would",
        ),
        Method(
            "repack",
            "placeopt.heuristics.{row}:repack",
            ("rolling-update",),
            "close nodes, repair by shifts and swaps, order the moves",
        ),
        Method(
            "rollout",
            "placeopt.heuristics.rollout:run",
            SEQUENTIAL,
            "decision after decision, each judged by a base policy's rest",
        ),
        Method(
            "rolling-update",
            "placeopt.heuristics.{row}:rolling_update",
            ("rolling-update",),
            "replace each in turn where Kubernetes would",
        ),
        Method(
            "two-phase",
            "placeopt.heuristics.{row}:two_phase",
            ("rolling-update",),
            "the re-orchestration paper's allocation and ordering",
        ),
    )
}


def method(name: str) -> Method:
    """Return the method called `name`.

    Raises
    ------
    UsageError
        There is none; the message suggests the nearest.
    """
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}; {did_you_mean(name, METHODS)}")
    return METHODS[name]


def auto(problem: Any) -> str:
    """Return the method that `auto` runs on a problem: the exact one where it is over in seconds."""
    temporal = problem.problem == "temporal"
    if (
        temporal
        and sum(r.replicas for r in problem.requests) <= FEW_REPLICAS
        and all(o.max_instances is None for o in problem.offers)
    ):
        return "bin-plans"
    return AUTO.get(problem.problem) or next(
        m.name for m in METHODS.values() if m.name != "auto" and problem.problem in m.problems
    )


def certifier(kind: str) -> Callable[..., Front]:
    """Return the function that adds a lower-bound set to a front of this problem.

    Raises
    ------
    UnsupportedError
        No bound is known for the problem.
    """
    if kind not in CERTIFIERS:
        raise UnsupportedError(
            f"no lower bounds are implemented for {kind}; problems that have them: {', '.join(CERTIFIERS)}"
        )
    module, _, function = CERTIFIERS[kind].partition(":")
    return getattr(importlib.import_module(module), function)
