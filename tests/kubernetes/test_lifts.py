"""What lifting one thing saves, by force: the dump is edited, imported and solved anew."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from made_clusters import made_cluster
from wild_clusters import wild_cluster

from placeopt.kubernetes.consolidate.lifts import Lift, lifted, lifts_of
from placeopt.kubernetes.consolidate.reasons import why_nodes_stay
from placeopt.kubernetes.consolidate.situation import Situation, planned, solved
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.sizes import MissingRequests
from placeopt.kubernetes.units import MovingRules

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


def situations(folder: Path) -> list[Situation]:
    """Return small clusters with their plans."""
    found, seed = [], 0
    while len(found) < CLUSTERS:
        seed += 1
        draw = wild_cluster if seed % 2 else made_cluster
        try:
            cluster = imported(folder, draw(seed, 3 + seed % 3))
        except Exception as error:  # nothing to place there
            assert "nothing to place" in str(error), seed
            continue
        found.append(planned(cluster))
    return found


def test_lifts_save_what_a_new_solve_of_the_edited_dump_saves(tmp_path: Path) -> None:
    saved = computed = 0
    for base in situations(tmp_path):
        objects = [view.value for _, views in base.imported.source.documents for view in views]
        objects = objects[0]["items"] if "items" in objects[0] else objects
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
    assert computed > 100
    assert saved > 8
