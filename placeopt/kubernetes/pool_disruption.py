"""What Karpenter does by itself with the nodes of a NodePool, and a plan does not keep: named."""

from __future__ import annotations

from collections.abc import Iterator

from placeopt.kubernetes.reading import View

#: Where a NodePool says what becomes of its nodes.
_DISRUPTION = ("consolidationPolicy", "consolidateAfter", "expireAfter")
MAX_SAID = 250


def disruption_notes(view: View, name: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each note about the disruption of a NodePool, and what it is about."""
    disruption, template = view["spec"]["disruption"], view["spec"]["template"]["spec"]
    said = [f"{key} {shown(disruption[key])}" for key in _DISRUPTION if disruption[key]]
    said += [f"expireAfter {shown(template['expireAfter'])}"] if template["expireAfter"] else []
    said += [f"budget {_budget(one)}" for one in disruption["budgets"].items()]
    if said:
        text = "disruption of NodePools is Karpenter's own: a plan frees nodes whatever it says"
        yield text, f"{name}: {', '.join(said)}"[:MAX_SAID]
    if _keeps(disruption):
        text = "Karpenter frees no node of these NodePools by itself: delete what a plan empties"
        yield text, name


def _budget(view: View) -> str:
    """Return a disruption budget in words: how many nodes, when, and for which reasons."""
    result = f"nodes {shown(view['nodes'])}"
    if view["schedule"]:
        result += f" at {shown(view['schedule'])} for {shown(view['duration'])}"
    reasons = [shown(reason) for reason in view["reasons"].items()]
    return result + (f" if {' or '.join(reasons)}" if reasons else "")


def _keeps(disruption: View) -> bool:
    """Return whether Karpenter never frees a node that is empty."""
    never = disruption["consolidateAfter"].value == "Never"
    return never or any(
        str(one["nodes"].value) in ("0", "0%") and not one["schedule"] and not one["reasons"]
        for one in disruption["budgets"].items()
    )


def shown(view: View) -> str:
    """Return a value as it stands, cut where it is long."""
    return str(view.value)[:60]
