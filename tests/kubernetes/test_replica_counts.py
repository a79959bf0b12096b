"""`--replicas`: replicas of running Deployments that plans add and remove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shop import items_of, shop_of

from placeopt import api
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.kubernetes.approval import approve
from placeopt.kubernetes.approval_page import markdown
from placeopt.kubernetes.export import export, steps
from placeopt.kubernetes.export.steps_document import StepsDocument, document, replay
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import Origin
from placeopt.kubernetes.replica_counts import parse
from placeopt.kubernetes.verify import verify_files
from placeopt.registry import from_document

Json = dict[str, Any]


def node(name: str) -> Json:
    """Return a node that is ready."""
    room = {"cpu": "2", "memory": "4Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": room, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, on: str | None, *, ready: bool = True, **spec: Any) -> Json:
    """Return a pod of the Deployment that its name begins with."""
    owner = {"kind": "ReplicaSet", "name": name.rsplit("-", 1)[0], "controller": True}
    app, tail = name.split("-")[:2]
    asked = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    said = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    about = {"name": name, "namespace": "shop", "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about | {"labels": {"app": app, "pod-template-hash": tail}},
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": asked}], **spec},
        "status": said,
    }


#: Three of the cart, two on one node, and a web that wants none of its kind beside it.
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
}
PODS = [
    pod("cart-7d67b-a", "n1"),
    pod("cart-7d67b-b", "n2"),
    pod("cart-7d67b-c", "n2"),
    pod("web-5c67b-a", "n1", affinity=APART),
]


def imported(folder: Path, *texts: str, pods: list[Json] = PODS, **options: Any) -> Imported:
    path = folder / "cluster.json"
    items = [*map(node, ("n1", "n2", "n3")), *pods]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asked = ImportOptions(replicas=parse(texts), missing_prices="default=1", **options)
    return import_files([path], "rolling-update", asked)


def test_from_the_import_to_the_steps(tmp_path: Path) -> None:
    """Those of the fullest node go; new ones keep the rules; the scheduler would run them."""
    done = imported(tmp_path, "shop/cart=1", "shop/web=2", survive=("replicas",))
    services = {m.name: m for a in done.problem.applications for m in a.microservices}
    assert [n for n, m in services.items() if m.removed] == ["cart-7d67b-b", "cart-7d67b-c"]
    assert services["web-added-1"].node is None and services["web-added-1"].cpu_millicores == 500
    front = api.solve(done.problem, "decomposition", seed=1)
    assert front.points
    for point in front.points:
        made = document(done.problem, point.plan, done.origin)
        assert verify_files(StepsDocument(**made), [tmp_path / "cluster.json"]) == []
        assert replay(made)[0] == point.plan
        [new] = [s for s in made["steps"] if s["action"] == "add"]
        assert new["pod"] is None and new["new_pod"].startswith("web-po")
        gone = [s for s in made["steps"] if s["action"] == "remove"]
        assert [s["pod"] for s in gone] == ["cart-7d67b-b", "cart-7d67b-c"]
        assert not any(s["disruption"] for s in made["steps"])
        script = export(done.problem, point.plan, done.origin, form="commands")
        assert " remove shop cart cart-7d67b-b " in script
    text = markdown(approve(front, done.problem, 0, done.origin), "plan")
    assert "1 started that wait now, 2 removed" in text


def test_what_verify_refuses_of_an_added_replica(tmp_path: Path) -> None:
    """Beside its like, which it keeps away from: the steps are made up, not planned."""
    done = imported(tmp_path, "shop/web=2")
    plan = {"steps": [{"application": "shop", "microservice": "web-added-1", "to": "n2"}]}
    made = document(done.problem, plan, done.origin)
    made["steps"][0]["to"] = "n1"
    [refusal] = verify_files(StepsDocument(**made), [tmp_path / "cluster.json"])
    assert "anti-affinity" in refusal.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cart", "legal: NAME=NUMBER"),
        ("cart=-1", "legal: NAME=NUMBER"),
        ("=3", "legal: NAME=NUMBER"),
        ("shop/cart=50001", "from 0 to 50,000"),
        ("cart=1", "no Deployment of that name runs; legal: shop/cart, shop/web"),
        ("shop/slow=1", "not all of its pods are ready"),
    ],
)
def test_what_is_no_number_of_replicas_is_refused(text: str, told: str, tmp_path: Path) -> None:
    slow = [pod("slow-1f67b-a", "n1"), pod("slow-1f67b-b", "n2", ready=False)]
    with pytest.raises(UsageError, match=told):
        imported(tmp_path, text, pods=PODS + slow)


def test_replicas_are_counted_in_rolling_updates_only(tmp_path: Path) -> None:
    imported(tmp_path)
    with pytest.raises(UsageError, match="--replicas is of rolling updates"):
        import_files(
            [tmp_path / "cluster.json"], "edge-cloud", ImportOptions(replicas=parse(["shop/web=2"]))
        )


def test_replicas_of_a_stateful_set_are_not_scaled() -> None:
    """The last ones go and come first: that is left to its controller."""
    pods = {"db-0": ("db", "n3", 300, 300), "web-5c-a": ("web", "n2", 500, 500)}
    text = shop_of(pods).to_document()
    database = text["applications"][0]["microservices"][0]
    database |= {"removed": True, "new_cpu_millicores": None, "new_memory_mib": None}
    problem = from_document(text)
    name = problem.instance_name
    about = {"problem": name.problem, "name": name.name, "sha256": name.sha256}
    known = Origin.model_validate({"instance": about, "items": items_of(pods)})
    plan = {"steps": [{"application": "shop", "microservice": "db-0", "to": None}]}
    assert [s.action for s in steps.steps(problem, plan)] == ["remove"]
    with pytest.raises(UnsupportedError, match="a replica of a StatefulSet"):
        export(problem, plan, known)


def test_a_front_survives_its_file(tmp_path: Path) -> None:
    done = imported(tmp_path, "shop/cart=2")
    front = api.solve(done.problem, "repack", seed=1)
    front.write(tmp_path / "front.json")
    assert Front.read(tmp_path / "front.json").points == front.points
