"""What steps need that the cluster does not have yet: nodes to buy, and how a script finds them.

A node that was bought has a name of its own. The script takes the first new node that is ready and
has the labels and taints that the plan counts on, and keeps its name for later runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placeopt.kubernetes.export.preflight import READY, TAINTS
from placeopt.kubernetes.node_pools import POOL

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
#: jq: nodes of the cluster -> for each node to buy a line "bought NAME NODE", or what is missing;
#: nothing for one that was found before. A node of the very name comes before all others.
ARRIVED = f"""
{TAINTS}
def fits($wanted): (.metadata.labels // {{}}) as $has
  | ({READY}) and (.spec.unschedulable | not) and taints == $wanted.taints
  and all($wanted.labels | to_entries[]; $has[.key] == .value);
[.items[]] as $live
| reduce $wanted[0].nodes[] as $one ({{taken: [$bought[]], lines: []}};
  .taken as $taken
  | if $bought[$one.name] then .
    else
      ([$live[] | select(.metadata.name == $one.name and ({READY}))]
       + [$live[] | select(fits($one)) | select(.metadata.name as $name
          | ($wanted[0].before + $taken | index($name)) | not)])[0].metadata.name as $found
      | if $found
        then .taken += [$found] | .lines += ["bought \\($one.name) \\($found)"]
        else .lines += ["\\($one.name): \\($one.said)"] end
    end)
| .lines[]
"""


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
