"""What lifting one thing saves, by force: the dump is edited, imported and solved anew."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from held_clusters import APART, node, pod

from placeopt.kubernetes.consolidate.lifts import Lift, lifted, lifts_of
from placeopt.kubernetes.consolidate.reasons import why_nodes_stay
from placeopt.kubernetes.consolidate.situation import planned, solved
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.replicas import MovingRules
from placeopt.kubernetes.sizes import MissingRequests

OPTIONS = ImportOptions(rules=MovingRules(MissingRequests.parse(["default=0,0"])), leave_out=True)
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
CLUSTERS = 50


def imported(folder: Path, objects: list[Any], options: ImportOptions = OPTIONS) -> Imported:
    """Import objects from a file."""
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return import_files([file], "rolling-update", options)


def edited(objects: list[Any], lift: Lift) -> list[Any]:
    """Return the objects as somebody would edit them for a lift; by the lift's own change if rare.

    Written without the code under test for what is most common.
    """
    made = copy.deepcopy(objects)
    if lift.cause == "taint":
        for thing in made:
            if thing["kind"] == "Node":
                taints = thing["spec"].get("taints", [])
                thing["spec"]["taints"] = [t for t in taints if t["key"] != lift.subject]
        return made
    for thing in made:
        meta = thing["metadata"]
        if thing["kind"] != "Pod" or (meta.get("namespace"), meta["name"]) not in lift.pods:
            continue
        spec, affinity = thing["spec"], thing["spec"].get("affinity", {})
        if lift.cause.startswith("annotated safe-to-evict"):
            meta["annotations"].pop("cluster-autoscaler.kubernetes.io/safe-to-evict")
        elif lift.cause.startswith("anti-affinity by hostname"):
            terms = affinity["podAntiAffinity"].pop(HARD)
            kept = [t for t in terms if t["topologyKey"] != "kubernetes.io/hostname"]
            affinity["podAntiAffinity"][HARD] = kept
        elif lift.cause == "annotated do-not-disrupt":
            del meta["annotations"]
        elif lift.cause == "node selector":
            spec.pop("nodeSelector", None)
            affinity.get("nodeAffinity", {}).pop(HARD, None)
        elif lift.cause.startswith("spread over "):
            spec["topologySpreadConstraints"] = [
                t
                for t in spec["topologySpreadConstraints"]
                if t.get("whenUnsatisfiable") == "ScheduleAnyway"
                or not lift.cause.endswith(f"{t['topologyKey'].rpartition('/')[2]}s")
            ]
        else:
            return [lift.change(thing) for thing in objects]
    return made


SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]
#: What may hold a pod, or say where it may be.
HOLDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    {"owner": "StatefulSet"},
    {"owner": None},
    {"volumes": [{"name": "v", "emptyDir": {}}]},
    {"affinity": APART},
    {"nodeSelector": {"pool": "a"}},
    {"topologySpreadConstraints": SPREAD},
    {"hostNetwork": True},
)


def cluster(seed: int) -> list[Any]:
    """Return a small cluster in which pods are held for many reasons."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 5))
    objects = [
        node(f"n{k}", labels={"pool": "ab"[k % 2], "zone": f"z{k % 2}"}) for k in range(count)
    ]
    if rng.random() < 0.3:
        objects[0]["spec"]["taints"] = [{"key": "own", "value": "a", "effect": "NoSchedule"}]
    for k in range(count):
        for j in range(int(rng.integers(1, 3))):
            hold = HOLDS[int(rng.integers(len(HOLDS)))]
            cpu = f"{int(rng.integers(5, 20))}00m"
            name = (
                "web" if "affinity" in hold or "topologySpreadConstraints" in hold else f"a{k}{j}"
            )
            objects.append(pod(f"{name}-{k}{j}", f"n{k}", cpu, **copy.deepcopy(hold)))
    return objects


def test_lifts_save_what_a_new_solve_of_the_edited_dump_saves(tmp_path: Path) -> None:
    saved = computed = 0
    for seed in range(CLUSTERS):
        objects = cluster(seed)
        base = planned(imported(tmp_path, objects))
        lifts = lifted(base, lifts_of(base))
        nodes = why_nodes_stay(base, lifts)
        assert [why.name for why in nodes if not why.reasons] == []
        assert {why.name for why in nodes} == set(base.staying)
        for one in lifts:
            assert one.saving is not None, one.lift.key
            other = imported(tmp_path, edited(objects, one.lift), one.lift.options or OPTIONS)
            fresh = max(0.0, base.cost - solved(other).cost)
            assert one.saving == pytest.approx(fresh, abs=1e-6), one.lift.key
            saved, computed = saved + (fresh > 0), computed + 1
    assert computed > 150
    assert saved > 60
