"""What kept platform engineers from using it: 18 defects, and what is right now.

`test_N_...` is about defect N, with its minimal file. Defects 6, 8, 13 and 15 are of the exported
script, which `test_export.py` tests.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from held_clusters import node, pod
from little_clusters import expression, homes, needs, stays
from little_clusters import texts as notes
from typer.testing import CliRunner

from placeopt import api
from placeopt.cli import app
from placeopt.core.errors import DocumentError, InfeasibleInstanceError
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.names import DUMP, KINDS, RESOURCES
from placeopt.kubernetes.options import ImportOptions


@pytest.fixture
def audit(kubernetes_data: Path) -> Path:
    return kubernetes_data / "kubernetes_audit"


def read(
    *paths: Path, to: str = "rolling-update", nodes: Path | None = None, **more: Any
) -> Imported:
    options = ImportOptions(rules=MovingRules(), **more.pop("options", {}))
    return import_files(list(paths), to, options, nodes=nodes, **more)


def ends(done: Imported) -> dict[str, str]:
    """Return where the pods run after the cheapest of the legal plans of fewest stops."""
    front = api.solve(done.problem, "repack", seed=1)
    point = min(front.points, key=lambda p: (p.values[2], p.values))
    assert done.problem.evaluate(point.plan).feasible
    place = homes(done)
    for step in point.plan["steps"]:
        place[step["microservice"]] = step["to"]
    assert None not in place.values()
    return place  # type: ignore[return-value]


def test_1_temporal_names_the_rules_that_it_drops(audit: Path) -> None:
    done = read(audit / "tt.yaml", to="temporal", prices=[audit / "pp.csv"])
    said = notes(done, "not-expressed")
    for word in ("affinity to other pods", "nvidia.com/gpu", "node selectors"):
        assert word in said


def test_2_manifests_are_placed_by_their_rules(audit: Path) -> None:
    assert len(set(homes(read(audit / "antimanifest.json")).values())) == 3
    spread = list(ends(read(audit / "spreadmanifest.json")).values())
    assert sorted(spread.count(n) for n in set(spread)) == [2, 2]  # a node less costs a stop


def test_3_nodes_have_a_largest_number_of_pods(audit: Path) -> None:
    after = list(ends(read(audit / "podcount.json")).values())
    assert len(after) == 40 and max(after.count(n) for n in after) <= 29


def test_4_volumes_are_reached_from_their_zone(audit: Path) -> None:
    done = read(audit / "pvzone.json")
    assert ends(done)["web-abc12-1"] == "n1" and "volume zones" in notes(done, "kept")


def test_5_soft_rules_are_kept_or_counted(audit: Path) -> None:
    done = read(audit / "softspread.json")
    assert "preferred topology spread" in notes(done, "kept")
    front = api.solve(done.problem, "repack", seed=1)
    told = [done.problem.describe(p.plan) for p in front.points]
    assert {t["soft rules broken, replica by replica"][:4] for t in told} == {"0 ->"}
    assert "PreferNoSchedule" in notes(read(audit / "prefernoschedule.json"), "not-expressed")


def test_5_workloads_without_a_spread_are_named(audit: Path) -> None:
    said = notes(read(audit / "podcount.json"), "assumption")
    assert "all their replicas may end on one node" in said
    assert "all their replicas" not in notes(read(audit / "softspread.json"), "assumption")


def test_6_readiness_is_read(audit: Path) -> None:
    done = read(audit / "unready.json")
    assert len(stays(done)) == 2 and "not ready" in notes(done, "pinned")


def test_8_candidate_nodes_carry_daemon_sets(audit: Path) -> None:
    table = audit / "cand2.csv"
    done = read(audit / "dscand.json", nodes=table, options={"missing_prices": "default=1"})
    assert "DaemonSets on nodes of a table" in notes(done, "capacity")
    assert {n["name"]: n["cpu_millicores"] for n in done.document["nodes"]}["new-1"] == 2600


def test_9_resources_and_systems_bind(audit: Path) -> None:
    done = read(audit / "ephemeral.json")
    assert len(set(ends(done).values())) == 2
    done = read(audit / "windows.json")
    windows = {
        n["metadata"]["name"]
        for n in json.loads((audit / "windows.json").read_text())["items"]
        if n["kind"] == "Node" and n["metadata"]["labels"]["kubernetes.io/os"] == "windows"
    }
    linux = {name for name, n in homes(done).items() if n not in windows}
    assert linux and not {ends(done)[name] for name in linux} & windows


def test_10_requests_default_to_limits(audit: Path) -> None:
    for file, size in (("initlimits.yaml", (2000, 2048)), ("limitsonly.yaml", None)):
        done = read(audit / file, audit / "nodes2.json")
        for a in done.document["applications"]:
            for m in a["microservices"]:
                assert size is None or (m["cpu_millicores"], m["memory_mib"]) == size
                assert m["cpu_millicores"] > 0
    done = read(audit / "limitrange.json")
    assert "LimitRange" in notes(done, "assumption")


def test_12_all_that_no_node_can_run_is_named(audit: Path, tmp_path: Path) -> None:
    """One message names them all; `leave_out` goes on without them, and names them too."""
    objects = json.loads((audit / "whatif.json").read_text())
    made = next(o for o in objects["items"] if o["kind"] == "Deployment")
    for name in ("huge-a", "huge-b"):
        more = json.loads(json.dumps(made).replace('"new"', f'"{name}"'))
        asked = more["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        asked["cpu"] = "900"
        objects["items"].append(more)
    file = tmp_path / "huge.json"
    file.write_text(json.dumps(objects))
    with pytest.raises(InfeasibleInstanceError) as caught:
        read(file)
    assert all(name in str(caught.value) for name in ("huge-a-1", "huge-b-1"))
    done = read(file, options={"leave_out": True})
    assert "huge-a-1" in notes(done, "left-out") and "huge-b-1" in notes(done, "left-out")
    assert "new-1" in homes(done) and "huge-a-1" not in homes(done)


def test_16_pods_on_lost_nodes_are_named(audit: Path) -> None:
    with pytest.raises(DocumentError, match="nothing to place: 1 pod is on nodes"):
        read(audit / "lostnode.json")


def test_17_empty_lists_and_workloads_of_others(audit: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": []}))
    assert "PodList" not in notes(read(audit / "single.json", empty), "ignored")
    custom = tmp_path / "rollout.json"
    made = {"metadata": {"name": "r"}, "spec": {"replicas": 2, "template": {"spec": {}}}}
    custom.write_text(json.dumps({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", **made}))
    assert "Rollout may make pods" in notes(read(audit / "single.json", custom), "left-out")


def test_17_objects_may_come_as_a_stream(tmp_path: Path) -> None:
    """One JSON document behind the other, as kubectl prints them; faults name their line."""
    first, web, stream = node("n1"), pod("w-1", "n1"), tmp_path / "stream.json"
    stream.write_text(f"{json.dumps(first, indent=1)}\n{json.dumps(web)}\n\n")
    assert homes(read(stream))
    web["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "lots"
    stream.write_text(f"{json.dumps(first)}\n\n{json.dumps(web)}{json.dumps(first)}")
    with pytest.raises(DocumentError, match=r"line 3, spec.containers.* 'lots' is no quantity"):
        read(stream)
    stream.write_text("{}\n" * 100_001)
    with pytest.raises(DocumentError, match="more than 100,000 JSON documents; give one list"):
        read(stream)
    stream.write_text(f"{json.dumps(first)}\n{json.dumps(web)[:-1]}")
    with pytest.raises(DocumentError, match="line 2: not JSON: Extra data"):
        read(stream)


def test_18_the_docs_say_what_to_read() -> None:
    """Every command of the docs that reads a cluster asks for all kinds that are read."""
    root = Path(__file__).resolve().parents[2]
    pages = [*(root / "docs").rglob("*.md"), root / "README.md", *(root / "examples").rglob("*.py")]
    pages += (root / "placeopt").rglob("*.py")
    asked = {
        str(page.relative_to(root)): found
        for page in pages
        if (found := re.findall(r"kubectl get ([a-z]+,[a-z,]+)", page.read_text(encoding="utf-8")))
    }
    assert {"README.md", "docs/kubernetes.md", "docs/export.md"} <= asked.keys()
    assert {name for found in asked.values() for name in found} == {RESOURCES}, asked
    for command in (["consolidate"], ["import", "kubernetes"]):
        told = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "2000"}).stdout
        assert f"{DUMP} | placeopt" in re.sub(r"\s+", " ", told), command
    custom = {"Cluster", "VerticalPodAutoscaler"}
    custom |= {"PropagationPolicy", "ClusterPropagationPolicy"}
    plurals = {k.lower() + ("es" if k.endswith("s") else "s") for k in set(KINDS) - custom}
    assert set(RESOURCES.split(",")) == plurals
    page = (root / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    assert "CSV: `workload, cpu, memory` and, if wanted, `namespace, container`" in page


def test_copies_of_an_earlier_plan_may_move_again(audit: Path, tmp_path: Path) -> None:
    """A script binds its copies to their nodes; what they are made from is not bound."""
    objects = json.loads((audit / "softspread.json").read_text())
    copy = next(o for o in objects["items"] if o["kind"] == "Pod")
    at = copy["spec"]["nodeName"]
    copy["spec"] |= needs(expression("metadata.name", "In", at), fields=True)
    file = tmp_path / "moved.json"
    for bound in (False, True):
        if bound:
            copy["metadata"]["annotations"] = {"placeopt-bound": at}
        file.write_text(json.dumps(objects))
        assert ("node_sets" in read(file).document) is not bound
