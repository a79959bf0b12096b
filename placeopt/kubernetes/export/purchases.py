"""What a plan buys: for those who make node groups, and how a script finds what they made.

A node that was bought has a name of its own. The script takes the first new node that is ready and
has the labels and taints that the plan counts on, and keeps its name for later runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Plan
from placeopt.kubernetes.labels import POOL

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.export.steps import PlanStep
    from placeopt.kubernetes.origin import Origin
    from placeopt.rolling_update.instance import UpdateNode

_MAX_NAMED = 12
#: Labels that Karpenter gives. The NodePool is another one than that of the plan where it was
#: exported, unless pods ask for it by name.
_LEASE = "karpenter.sh/capacity-type"
_HOSTNAME = "kubernetes.io/hostname"


def to_buy(
    problem: Problem, made: Sequence[PlanStep], origin: Origin | None = None
) -> list[UpdateNode]:
    """Return the nodes on which copies start and that are not in the cluster, by first use."""
    from placeopt.rolling_update.instance import RollingUpdate

    if not isinstance(problem, RollingUpdate):
        return []
    absent = set() if origin is None else {k for k, node in origin.nodes.items() if node.absent}
    nodes = {node.name: node for node in problem.nodes}
    used = dict.fromkeys(step.target for step in made if step.target is not None)
    return [nodes[name] for name in used if nodes[name].candidate or name in absent]


def sentences(problem: Problem, nodes: Sequence[UpdateNode]) -> list[str]:
    """Return what to buy before the first step, in a sentence; nothing where nothing is."""
    from placeopt.rolling_update.fleet_change import by_machine
    from placeopt.rolling_update.instance import RollingUpdate

    if not nodes or not isinstance(problem, RollingUpdate):
        return []
    names = tuple(node.name for node in nodes)
    groups = [f"{n} x {kind} in {at}" for kind, at, _, n in by_machine(problem, names)]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return [f"buy first: {', '.join(groups)} ({', '.join(names[:_MAX_NAMED])}{more})"]


def arrivals(nodes: Sequence[UpdateNode], origin: Origin) -> dict[str, Any]:
    """Return how a script knows nodes that were bought.

    Returns
    -------
    dict
        ``nodes``: the name that the plan has for each, its labels and taints, and what it is in
        words, those with most labels first; ``before``: the nodes that were there.
    """
    results = [_wanted(node, origin) for node in nodes]
    before = sorted(k for k, n in origin.nodes.items() if not n.virtual and not n.absent)
    return {"nodes": sorted(results, key=lambda w: -len(w["labels"])), "before": before}


def _wanted(node: UpdateNode, origin: Origin) -> dict[str, Any]:
    known = origin.nodes.get(node.name)
    labels: Mapping[str, str] = {} if known is None else known.labels
    unsaid = {_HOSTNAME, POOL} if POOL in labels else {_HOSTNAME, _LEASE}
    if known is not None and known.pool_asked:
        unsaid = {_HOSTNAME}
    shown = {k: v for k, v in sorted(labels.items()) if k not in unsaid}
    pairs = ", ".join(f"{k}={v}" for k, v in shown.items())
    taints = [] if known is None or known.taints is None else list(known.taints)
    said = f"no new node is ready that has the labels {pairs}" if pairs else "not there"
    said += f" and the taints {', '.join(taints)}" if taints else ""
    # a node of which nothing is known is found by its name only
    return {
        "name": node.name,
        "labels": shown or {_HOSTNAME: node.name},
        "taints": taints,
        "said": said,
    }


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
