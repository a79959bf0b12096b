"""What a plan buys: a list of machines for those who make node groups, and the names they get."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.values import Plan
from placeopt.kubernetes.reading import NAME

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin

_HOSTNAME = "kubernetes.io/hostname"


def node_groups(problem: Problem, plan: Plan, origin: Origin | None = None) -> dict[str, Any]:
    """Return what to buy, a group for machines that are alike, and which nodes to free.

    Raises
    ------
    UnsupportedError
        The problem has no machines to buy.
    """
    from placeopt.rolling_update.fleet_change import fleet_change
    from placeopt.rolling_update.instance import RollingUpdate

    if not isinstance(problem, RollingUpdate):
        raise UnsupportedError(f"a {problem.problem} plan buys no machines")
    change, nodes = fleet_change(problem, plan), {n.name: n for n in problem.nodes}
    groups: dict[str, dict[str, Any]] = {}
    for name in change.buy:
        node, known = nodes[name], None if origin is None else origin.nodes.get(name)
        labels = {} if known is None else known.labels
        group = {
            "machine_type": node.machine_type,
            "cluster": node.cluster,
            "price": node.price,
            "labels": {k: v for k, v in sorted(labels.items()) if k != _HOSTNAME},
            "taints": [] if known is None else list(known.taints or ()),
        }
        groups.setdefault(repr(group), {**group, "nodes": []})["nodes"].append(name)
    return {
        "unit": change.unit,
        "before": change.before,
        "after": change.after,
        "buy": [{"count": len(g["nodes"]), **g} for g in groups.values()],
        "free": list(change.free),
    }


def renamed(text: str, problem: Problem, bought: Mapping[str, str]) -> str:
    """Return a script in which nodes that were bought have the names that they got.

    Parameters
    ----------
    text : str
    problem : Problem
    bought : mapping
        Candidate -> node of the cluster.

    Raises
    ------
    UsageError
        A candidate is unknown, a name is none of Kubernetes, or two get the same.
    """
    from placeopt.rolling_update.instance import RollingUpdate

    nodes = problem.nodes if isinstance(problem, RollingUpdate) else ()
    existing = {node.name for node in nodes if node.candidate}
    for candidate, node in bought.items():
        if candidate not in existing:
            raise UsageError(f"--bought {candidate}={node}: no such candidate in the instance")
        if not NAME.fullmatch(node):
            raise UsageError(f"--bought {candidate}={node}: no name of a node")
    if len(set(bought.values())) < len(bought):
        raise UsageError("--bought: two candidates get the same node")
    if not bought:
        return text
    names = "|".join(map(re.escape, sorted(bought, key=len, reverse=True)))
    return re.sub(rf"(?<![-a-z0-9.])({names})(?![-a-z0-9.])", lambda m: bought[m[1]], text)
