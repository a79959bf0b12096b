"""What a plan buys, as NodePools of Karpenter, and what it frees.

Written after Karpenter's page on NodePools (karpenter.sh/v1): ``spec.replicas`` keeps a number of
nodes whatever pods ask for. Such a pool has the one limit ``nodes``. Taints that only prefer
(PreferNoSchedule) do not stand in an origin, so they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import UsageError
from placeopt.core.files.documents import Document
from placeopt.core.fronts.values import Plan
from placeopt.kubernetes.export.buying import node_groups
from placeopt.kubernetes.export.karmada import to_yaml
from placeopt.kubernetes.node_pools import POOL
from placeopt.kubernetes.reading import NAME

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin

#: Group, kind and name of the node class that new nodes are made by.
NODE_CLASS = "karpenter.k8s.aws/EC2NodeClass/default"
_LEASE = "karpenter.sh/capacity-type"
_TYPE, _ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
#: Labels that say which machines may be launched.
_REQUIRED = (
    _TYPE,
    _ZONE,
    "topology.kubernetes.io/region",
    _LEASE,
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
#: Domains whose labels a NodePool may not set, and those below them that it may.
_RESTRICTED = ("kubernetes.io", "k8s.io", "karpenter.sh")
_FREE = ("node.kubernetes.io", "node-restriction.kubernetes.io", "kops.k8s.io")


def node_pools(
    problem: Problem,
    plan: Plan,
    origin: Origin | None,
    node_class: str = NODE_CLASS,
) -> str:
    """Return YAML: a NodePool for machines to buy that are alike; what to free in comments.

    Parameters
    ----------
    problem : Problem
    plan : mapping
    origin : Origin
        Has the labels and taints of the machines.
    node_class : str
        GROUP/KIND/NAME.

    Raises
    ------
    UsageError
        There is no origin, or the node class has another form.
    UnsupportedError
        The problem has no machines to buy.
    """
    if origin is None:
        raise UsageError(
            "NodePools need the labels of the machines: give --origin, which "
            "`placeopt import kubernetes` writes, or ask for node-groups"
        )
    reference = _reference(node_class)
    change = node_groups(problem, plan, origin)
    head = [f"# Buys {sum(g['count'] for g in change['buy'])} nodes: {_cost(change)}."]
    if change["buy"]:
        head.append("# spec.replicas needs Karpenter 1.8 with the feature gate StaticCapacity.")
    for name in change["free"]:
        pool = origin.nodes[name].labels.get(POOL) if name in origin.nodes else None
        of = f" of NodePool {pool}" if pool else ""
        head.append(f"# Frees {name}{of}: kubectl delete node {name}, when the plan is done.")
    pools: dict[str, Document] = {}
    wanted: dict[str, list[str]] = {}
    for group in change["buy"]:
        kept = _asked_for(group, origin)
        name = kept or _unique(group, pools)
        made, dropped = _pool(name, group, reference)
        pools[name] = _joined(pools[name], made) if name in pools else made
        if dropped:
            head.append(f"# {name}: NodePools may not set the labels {', '.join(dropped)}.")
        if kept:
            wanted.setdefault(kept, []).append(f"{group['count']} x {group['machine_type']}")
    head += [line for name, machines in wanted.items() for line in _about_name(name, machines)]
    return "\n".join(head) + ("\n" + to_yaml(pools.values()) if pools else "")


def _cost(change: Mapping[str, Any]) -> str:
    return f"{change['before']:g} {change['unit']} before, {change['after']:g} after"


def _reference(node_class: str) -> dict[str, str]:
    parts = node_class.split("/")
    if len(parts) != 3 or not all(parts) or not NAME.fullmatch(parts[2]):
        raise UsageError(
            f"--node-class {node_class!r}; legal: GROUP/KIND/NAME such as {NODE_CLASS}"
        )
    return dict(zip(("group", "kind", "name"), parts, strict=True))


def _asked_for(group: Mapping[str, Any], origin: Origin) -> str:
    """Return the NodePool that pods on these machines ask for by name; empty where none does."""
    existing = [origin.nodes[name] for name in group["nodes"] if name in origin.nodes]
    return group["labels"].get(POOL, "") if any(node.pool_asked for node in existing) else ""


def _about_name(name: str, machines: Sequence[str]) -> list[str]:
    """Return what to know of a NodePool that keeps its name, as comments."""
    results = [
        f"# {name}: pods ask for this NodePool by name, so it keeps the name.",
        "#   Where a NodePool of this name without spec.replicas is there, Karpenter refuses this",
        "#   one: let that one make the nodes. Do not delete it: its nodes would go with it.",
    ]
    if len(machines) > 1:
        results.append(f"#   The plan needs {', '.join(machines)}; Karpenter chooses among these.")
    return results


def _joined(one: Document, other: Document) -> Document:
    """Return one NodePool for the machines of two that have the same name."""
    values: dict[str, dict[str, None]] = {}
    for pool in (one, other):
        for term in pool["spec"]["template"]["spec"]["requirements"]:
            values.setdefault(term["key"], {}).update(dict.fromkeys(term["values"]))
    count = one["spec"]["replicas"] + other["spec"]["replicas"]
    template = one["spec"]["template"]
    needed = [{"key": key, "operator": "In", "values": list(v)} for key, v in values.items()]
    spec = {**template["spec"], "requirements": needed}
    return {
        **one,
        "spec": {
            "replicas": count,
            "limits": {"nodes": count},
            "template": {**template, "spec": spec},
        },
    }


def _unique(group: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
    """Return a name of machines that are alike: their type, zone, and whether they are spot."""
    labels = group["labels"]
    words = ["placeopt", labels.get(_TYPE) or group["machine_type"], labels.get(_ZONE, "")]
    words += ["spot"] * (labels.get(_LEASE) == "spot")
    stem = re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, words)).lower())[:50].strip("-")
    return stem if stem not in taken else f"{stem}-{len(taken) + 1}"


def _pool(
    name: str, group: Mapping[str, Any], reference: Mapping[str, str]
) -> tuple[Document, list[str]]:
    """Return a NodePool, and the labels that it may not set."""
    labels = {_TYPE: group["machine_type"], **group["labels"]}
    needed = {k: v for k, v in labels.items() if k in _REQUIRED}
    others = {k: v for k, v in labels.items() if k not in needed and k != POOL}
    dropped = [key for key in others if _is_restricted(key)]
    spec: Document = {
        "nodeClassRef": dict(reference),
        "requirements": [
            {"key": key, "operator": "In", "values": [value]} for key, value in needed.items()
        ],
    }
    if taints := [_taint(text) for text in group["taints"]]:
        spec["taints"] = taints
    template: Document = {"spec": spec}
    if kept := {key: value for key, value in others.items() if key not in dropped}:
        template = {"metadata": {"labels": kept}, "spec": spec}
    count = group["count"]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"replicas": count, "limits": {"nodes": count}, "template": template},
    }, dropped


def _is_restricted(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    within = any(domain == d or domain.endswith(f".{d}") for d in _RESTRICTED)
    return within and not any(domain == d or domain.endswith(f".{d}") for d in _FREE)


def _taint(text: str) -> dict[str, str]:
    """Return a taint of ``key=value:effect``."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}
