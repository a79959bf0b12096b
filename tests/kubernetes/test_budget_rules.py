"""How many pods a PodDisruptionBudget lets be missing: numbers, shares, what is missing now."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from placeopt.kubernetes.admission import NOTHING_ASKED
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.origin import OriginItem
from placeopt.kubernetes.pinned import (
    Interruption,
    KnownBudget,
    broken_budgets,
    budgets_by_pod,
    budgets_of,
    hold_by_budgets,
    origin_budgets,
    share_of,
)
from placeopt.kubernetes.replicas import MovingRules, units

RULES = MovingRules(policy=NOTHING_ASKED, adopts=True)


def cluster(folder: Path, budget: dict[str, Any], ready: str, status: dict[str, Any]) -> Any:
    """Return a node with a pod for each letter: y is ready, n is not."""

    def about(name: str) -> dict[str, Any]:
        owner = {"kind": "ReplicaSet", "name": "web-5", "controller": True}
        return {
            "name": name,
            "namespace": "shop",
            "labels": {"app": "web", "pod-template-hash": "5"},
            "ownerReferences": [owner],
        }

    room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    items: list[dict[str, Any]] = [
        {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": room}}
    ]
    asked = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    for k, letter in enumerate(ready):
        said = [{"type": "Ready", "status": "True" if letter == "y" else "False"}]
        items.append(
            {
                "kind": "Pod",
                "metadata": about(f"web-5-{k}"),
                "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": asked}]},
                "status": {"phase": "Running", "conditions": said},
            }
        )
    spec = {"selector": {"matchLabels": {"app": "web"}}, **budget}
    items.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "shop"},
            "spec": spec,
            "status": status,
        }
    )
    path = folder / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return load([path])


@pytest.mark.parametrize(
    ("budget", "ready", "status", "allowed"),
    [
        ({"minAvailable": 3}, "yyyy", {}, 1),
        ({"minAvailable": 4}, "yyyy", {}, 0),
        ({"minAvailable": 9}, "yyyy", {}, 0),
        ({"minAvailable": "50%"}, "yyyyy", {}, 2),  # three of five stay
        ({"minAvailable": "51%"}, "yyyy", {}, 1),
        ({"minAvailable": "50%"}, "yyyy", {}, 2),
        ({"maxUnavailable": 1}, "yyyy", {}, 1),
        ({"maxUnavailable": 0}, "yyyy", {}, 0),
        ({"maxUnavailable": "30%"}, "yyyy", {}, 2),  # 1.2 pods are rounded up
        ({"maxUnavailable": "25%"}, "yyyy", {}, 1),
        ({"maxUnavailable": 2}, "yyyn", {}, 1),
        ({"maxUnavailable": 1}, "yyyn", {}, 0),
        ({"maxUnavailable": 1}, "yynn", {}, 0),
        ({"maxUnavailable": 3}, "yyyy", {"disruptionsAllowed": 1}, 1),
        ({"maxUnavailable": 1}, "yyyy", {"disruptionsAllowed": 3}, 1),
        ({}, "yyy", {}, 3),
    ],
)
def test_what_may_be_missing(
    tmp_path: Path, budget: dict[str, Any], ready: str, status: dict[str, Any], allowed: int
) -> None:
    read = cluster(tmp_path, budget, ready, status)
    found = budgets_by_pod(read, units(read, RULES))
    assert len(found) == len(ready)
    assert {known.allowed for budgets in found.values() for known in budgets} == {allowed}


def test_what_a_workload_keeps(tmp_path: Path) -> None:
    read = cluster(tmp_path, {"minAvailable": "50%"}, "yyyyy", {})
    assert list(budgets_of(read, units(read, RULES)).values()) == [3]
    read = cluster(tmp_path, {"minAvailable": 0}, "yy", {})
    assert list(budgets_of(read, units(read, RULES)).values()) == [0]


@pytest.mark.parametrize(("least", "holds", "held"), [(4, True, 4), (3, True, 0), (4, False, 0)])
def test_a_budget_without_room_holds_its_pods(
    tmp_path: Path, least: int, holds: bool, held: int
) -> None:
    """Where plans could evict at all."""
    read, why = (
        cluster(tmp_path, {"minAvailable": least}, "yyyy", {}),
        defaultdict[int, list[str]](list),
    )
    hold_by_budgets(read, list(units(read, RULES)), why, holds=holds)
    assert len(why) == held
    told = "pods whose PodDisruptionBudget allows no disruption"
    assert all(texts == [told] for texts in why.values())


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [(2, 2, 2), (-1, 0, 0), ("25%", 2, 1), ("40%", 2, 2), ("100%", 5, 5), ("3", 3, 3), ("x", 0, 0)],
)
def test_shares_are_rounded(value: object, up: int, down: int) -> None:
    assert (share_of(value, 5), share_of(value, 5, up=False)) == (up, down)
    assert share_of(True, 5) == 0
    assert (share_of("5%", 40), share_of("100%", 200)) == (2, 200)


def test_the_origin_names_the_pods_of_a_budget(tmp_path: Path) -> None:
    """Those that the instance has; a budget of none of them is left out."""
    read = cluster(tmp_path, {"minAvailable": 2}, "yyy", {})
    names = [unit.pod for unit in units(read, RULES)]
    items = {
        f"shop/{name}": OriginItem(namespace="shop", kind="Deployment", name="web", pod=name)
        for name in names[:2]
    }
    (budget,) = origin_budgets(read, units(read, RULES), items)
    assert (budget.namespace, budget.name, budget.allowed) == ("shop", "b", 1)
    assert budget.items == tuple(items)
    assert origin_budgets(read, units(read, RULES), {}) == ()


@pytest.mark.parametrize(
    ("steps", "broken"),
    [
        ("-a +a -b +b", []),
        ("-a -b", [2]),
        ("-a -a +a -b", []),  # a pod that is down is not missing twice
        ("+a -b", []),  # what comes up was never missing
        ("+a +b +a", []),
        ("-a -b +a -a", [2, 4]),
        ("-a -b -c", [2, 3]),
        ("-a -b -b", [2]),
    ],
)
def test_one_pod_may_be_missing_at_a_time(steps: str, broken: list[int]) -> None:
    """Steps are downs and ups; a message names the step, the budget and what is missing."""
    budget = KnownBudget("shop/b", 1)
    made = [
        (Interruption(k, who, f"pod {who}", sign == "-", sign == "+"), [budget])
        for k, (sign, who) in enumerate(steps.split(), 1)
    ]
    found = broken_budgets(made)
    assert [int(text.split()[1]) for text in found] == broken
    assert all("shop/b allows 1 of its pods to be missing" in text for text in found)
