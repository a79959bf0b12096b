"""Before the first step: is the cluster still what was read?

What the steps rest on stands in the script as JSON; programs for jq compare it with the cluster.
Only what later steps need is looked at, so that a script can be taken up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placeopt.core.files.documents import Document
    from placeopt.kubernetes.export.steps import PlanStep
    from placeopt.kubernetes.origin import Origin, OriginItem

#: jq: whether a node or a pod is ready; the taints of a node that keep pods away, as imported.
READY = 'any(.status.conditions[]?; .type == "Ready" and .status == "True")'
TAINTS = """
def taints: [.spec.taints[]? | select(.effect == "NoSchedule" or .effect == "NoExecute")
  | select(.key != "node.kubernetes.io/unschedulable")
  | "\\(.key)=\\(.value // ""):\\(.effect)"] | sort;
"""
#: jq: nodes of the cluster -> a line for each node on which a copy is still to start and may not.
NODES = f"""
{TAINTS}
(.items | map({{key: .metadata.name, value: .}}) | from_entries) as $live
| $known[0].nodes[] | select(.last > $made) | . as $was | $live[$bought[.name] // .name] as $now
| if $now == null then "node \\(.name) is not in the cluster: buy or make it first"
  elif $was.uid and $was.uid != $now.metadata.uid
  then "node \\(.name) is another machine of the same name"
  elif $now | {READY} | not then "node \\(.name) is not ready"
  elif $now.spec.unschedulable then "node \\(.name) is cordoned"
  elif $was.taints
    and ($was.taints != ($now | taints) or $was.labels != ($now.metadata.labels // {{}}))
  then "node \\(.name) has other labels or taints"
  else empty end
"""
#: jq: pods and ReplicaSets of a namespace -> a line for each pod that is not as it was read. The
#: pod of the step that an earlier run began may be on its way, or back if a StatefulSet has it; of
#: pods that wait nothing is asked once the first run has begun.
PODS = f"""
def empty_: . == {{}} or . == [] or . == null;
def plain: walk(
  if type == "object" then del(.matchFields) | with_entries(select(.value | empty_ | not))
  elif type == "array" then map(select(empty_ | not)) else . end);
def asked: {{nodeSelector, affinity, topologySpreadConstraints}} | plain;
(.items | map({{key: "\\(.kind) \\(.metadata.name)", value: .}}) | from_entries) as $live
| $known[0].pods[] | select(.namespace == $space and .first > $made) | . as $was
| $live["Pod \\(.name)"] as $now
| (first($now.metadata.ownerReferences[]? | select(.controller)) // {{}}) as $owner
| $live["\\($owner.kind) \\($owner.name)"] as $set
| if .node == null and $begun then empty
  elif .first == $made + 1
    and ($now == null or $now.metadata.deletionTimestamp or $owner.kind == "StatefulSet") then empty
  elif $now == null then "pod \\(.namespace)/\\(.name) is gone"
  elif $now.metadata.deletionTimestamp then "pod \\(.namespace)/\\(.name) is being deleted"
  elif .uid and .uid != $now.metadata.uid
  then "pod \\(.namespace)/\\(.name) is another one of the same name"
  elif .node == null and $now.spec.nodeName
  then "pod \\(.namespace)/\\(.name) does not wait any more: it is on \\($now.spec.nodeName)"
  elif .node != $now.spec.nodeName
  then "pod \\(.namespace)/\\(.name) runs on \\($now.spec.nodeName), not on \\(.node)"
  elif .node and ($now | {READY} | not) then "pod \\(.namespace)/\\(.name) is not ready"
  elif $set and ($now.spec | asked) != ($set.spec.template.spec | asked)
  then "the template of \\($owner.kind) \\($owner.name) asks for other nodes than its pods"
  else empty end
"""

#: jq: pods of a namespace -> one on $node that waited for another, of the StatefulSet of $pod;
#: nothing where $pod is on $node itself.
TWIN = """
def owner: first(.metadata.ownerReferences[]? | select(.controller) | .kind + " " + .name) // null;
($taken | split(" ")) as $taken
| (.items | map({key: .metadata.name, value: .}) | from_entries) as $live
| $live[$pod] as $mine | select($mine and $mine.spec.nodeName != $node)
| first($known[0].pods[]
  | select(.namespace == $space and .node == null and .to != $node)
  | select(.name != $pod and (.name | IN($taken[]) | not))
  | $live[.name] // empty
  | select(.spec.nodeName == $node and owner == ($mine | owner))
  | select(.metadata.deletionTimestamp | not) | .metadata.name)
"""


def known(made: Sequence[PlanStep], origin: Origin) -> Document:
    """Return what the steps rest on.

    Returns
    -------
    dict
        ``nodes``: those where copies start, with the ``last`` step that starts one; ``pods``: those
        that steps end, with the ``first`` step that does, and for those that wait the node ``to``
        which they are to have.
    """
    last = {s.target: s.number for s in made if s.target is not None and s.at is not None}
    nodes = []
    for name, number in last.items():
        origins = origin.nodes.get(name)
        node: Document = {"name": name, "last": number}
        if origins is not None and not origins.absent:
            taints = None if origins.taints is None else list(origins.taints)
            node |= {"uid": origins.uid, "labels": origins.labels, "taints": taints}
        nodes.append(node)
    items = {(i.namespace, i.pod): i for i in origin.items.values() if i.pod}
    results: dict[tuple[str, str], Document] = {}
    for step in made:
        if step.at is not None and (step.at.namespace, step.at.pod) in items:
            key = (step.at.namespace, str(step.at.pod))
            results.setdefault(key, _pod(step, items[key]))
    return {"nodes": nodes, "pods": list(results.values())}


def _pod(step: PlanStep, item: OriginItem) -> Document:
    return {
        "namespace": item.namespace,
        "name": item.pod,
        "node": item.node,
        "uid": item.uid,
        "first": step.number,
        "to": None if item.node else step.target,
    }
