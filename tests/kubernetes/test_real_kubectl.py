"""Exported scripts with the real kubectl, on an API server of the tests: run, killed, taken up.

Without kubectl or jq these tests are skipped. `make test` gives the real kubectl one script with
every kind of step; the other scripts meet the little one there, which test_export.py uses, too.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_stub import ApiStub, Object, is_ready, rights
from effort import THOROUGH
from little_clusters import ended
from little_kubectl import CommandStub
from stub_shop import (
    CONTEXT,
    EXPECTED,
    PLAN,
    WAITING_END,
    WAITING_PLAN,
    WAITING_PODS,
    ScriptRunner,
    edited,
    missing,
    node,
    objects,
    origin,
    problem,
    state,
    workloads_on_nodes,
)

from placeopt.core.fronts.front import Front
from placeopt.kubernetes.export import export
from placeopt.kubernetes.origin import Origin
from placeopt.registry import from_document

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

#: Kinds that the documentation tells to dump.
KINDS = (
    "nodes,pods,replicasets,deployments,services,poddisruptionbudgets,pvc,pv,namespaces,limitranges"
)


@pytest.fixture
def stub() -> Iterator[ApiStub]:
    """Yield the shop."""
    with ApiStub(objects()) as made:
        yield made


@pytest.fixture
def waiting() -> Iterator[ApiStub]:
    """Yield the shop with a pod that waits."""
    with ApiStub(objects(WAITING_PODS)) as made:
        yield made


def reached(items: list[Object]) -> ApiStub:
    """Return a stub that the real kubectl reaches where all is tested, else a little one."""
    return ApiStub(items) if THOROUGH else CommandStub(items, CONTEXT)


def plan_of(*moves: tuple[str, str | None]) -> dict[str, Any]:
    return {"steps": [{"application": "shop", "microservice": p, "to": n} for p, n in moves]}


def replicas(stub: ApiStub, deployment: str) -> int:
    return int(state(stub, "deployments", deployment)["spec"]["replicas"])


def dumped(runner: ScriptRunner, folder: Path) -> str:
    """Write what the documentation tells to dump; return its file."""
    file = folder / "cluster.json"
    file.write_text(runner.kubectl("get", KINDS, "-A", "-o", "json"), encoding="utf-8")
    return str(file)


def planned(runner: ScriptRunner, folder: Path, *options: str) -> tuple[str, str]:
    """Import what kubectl dumps, solve it and write the script; return front and script."""
    names = (str(folder / name) for name in ("shop.json", "front.json", "steps.sh"))
    dump, (instance, front, script) = dumped(runner, folder), names
    to = ("--to", "rolling-update", "--missing-prices", "default=1", "-o", instance)
    command("import", "kubernetes", dump, *to, *options)
    command("solve", instance, "--method", "repack", "-o", front)
    command("export", "kubernetes", front, "--instance", instance, "--point", "0", "-o", script)
    return front, script


def test_a_script_that_was_killed_ends_as_the_plan_says(stub: ApiStub, tmp_path: Path) -> None:
    """Every kind of step; killed after an adoption, taken up while the old pod is still ending."""
    shop, runner = problem(), ScriptRunner(stub, tmp_path)
    runner.write(export(shop, PLAN, origin(shop)))
    stub.store.grace = 2.0
    killed = runner.run(kill_at=4)  # cordoned, made, marked, labeled
    wait_until(stub, lambda: "_ends" in stub.store.tables["pods", "shop", "cart-7d-b"])
    stub.store.grace = 0.0
    assert killed.returncode == -9 and "step 1 of 5" in killed.stdout
    told = runner.done()
    assert "already made" not in told and "all 5 steps are made" in told
    assert workloads_on_nodes(stub.store) == EXPECTED
    assert state(stub, "nodes", "n2", "")["spec"] == {"unschedulable": True}
    assert stub.cluster.least == {"cart-7d": 2, "web-5c": 0}, "only the stop of web interrupts"
    assert stub.cluster.rollouts == []
    for plural, name in (("deployments", "cart"), ("replicasets", "cart-7d")):
        [container] = state(stub, plural, name)["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"]["cpu"] == "300m"
    database = state(stub, "statefulsets", "db")
    assert "affinity" not in database["spec"]["template"]["spec"]
    page = Path(__file__).resolve().parents[2] / "docs" / "export.md"
    listed = re.findall(r"resources: \[(.*?)\], verbs: \[(.*?)\]", page.read_text("utf-8"))
    may = {(v, r) for rs, vs in listed for r in rs.split(", ") for v in vs.split(", ")}
    used = rights(stub.store.requests)
    assert used <= may, "the page lists what a script may do"
    assert {right[0] for right in may - used} <= {"get", "list", "watch"}


def test_from_the_dump_to_a_stop_and_back(tmp_path: Path) -> None:
    """What kubectl dumps is imported; a node that is full by then stops the script; undo."""
    with reached(objects()) as stub:
        stopped_and_undone(stub, ScriptRunner(stub, tmp_path), tmp_path)


def stopped_and_undone(stub: ApiStub, runner: ScriptRunner, tmp_path: Path) -> None:
    front, _ = planned(runner, tmp_path)
    [target] = {s["to"] for s in Front.read(front).points[0].plan["steps"]}
    assert runner.run("check").returncode == 0
    with edited(stub, "nodes", target, "") as room:
        room["status"]["allocatable"]["cpu"] = "600m"
    done = runner.run()
    assert done.returncode == 1 and "is not ready: unschedulable: 0/3 nodes" in done.stderr
    assert "1 Insufficient cpu" in done.stderr
    assert len(stub.store.all("pods")) == 5  # all old ones and the copy
    assert runner.done("undo") and workloads_on_nodes(stub.store).total() == 4
    assert not any(n.get("spec") for _, n in stub.store.all("nodes"))


@pytest.mark.thorough
def test_undo_gives_back_a_stop_and_not_a_removal(stub: ApiStub, tmp_path: Path) -> None:
    """One of two copies of cart is stopped, then the other one removed, then all is undone."""
    document = problem().to_document()
    services = document["applications"][0]["microservices"]
    for service in services:
        service |= {f"new_{k}": service[k] for k in ("cpu_millicores", "memory_mib")}
    services[1]["removed"] = True
    shop = from_document(document)
    plan = plan_of(("cart-7d-a", None), ("cart-7d-b", None), ("cart-7d-a", "n1"))
    runner = ScriptRunner(stub, tmp_path)
    script = export(shop, plan, origin(shop))
    runner.write(script.replace("\nstep 3 ", "\nfail broken\nstep 3 "))
    assert "broken" in runner.run().stderr
    assert replicas(stub, "cart") == 0
    assert "scaled back: shop/cart" in runner.done("undo") and replicas(stub, "cart") == 1


@pytest.mark.thorough
@pytest.mark.parametrize(("target", "writes"), [("n1", 3), ("n3", 2)])
def test_a_pod_of_a_stateful_set_came_back_after_a_kill(
    target: str, writes: int, tmp_path: Path
) -> None:
    """Killed when its node was cordoned, the template bound, the pod deleted: none is ended twice.

    On its old node the pod is made anew with another size.
    """
    pods = WAITING_PODS | {"db-0": ("db", "n3", 300, 200)}
    del pods["late-9f-a"]
    shop = problem(pods)
    with ApiStub(objects(pods)) as stub:
        before = stub.store.tables["pods", "shop", "db-0"]["metadata"]["uid"]
        known = origin(shop, pods).model_dump()
        known["items"]["shop/db-0"]["uid"] = before
        runner = ScriptRunner(stub, tmp_path)
        plan = plan_of(("db-0", target))
        runner.write(export(shop, plan, Origin.model_validate(known)))
        killed = runner.run(kill_at=writes)
        wait_until(stub, lambda: db_is_back(stub, before))
        assert killed.returncode == -9 and "step 1 of 1" in killed.stdout
        after = stub.store.tables["pods", "shop", "db-0"]["metadata"]["uid"]
        runner.done()
        found = state(stub, "pods", "db-0")
        assert (found["metadata"]["uid"], found["spec"]["nodeName"]) == (after, target)


def db_is_back(stub: ApiStub, before: str) -> bool:
    """Return whether the pod of the StatefulSet is another one than before, and runs."""
    pod = stub.store.tables.get(("pods", "shop", "db-0"))
    return pod is not None and pod["metadata"]["uid"] != before and "nodeName" in pod["spec"]


@pytest.mark.thorough
def test_a_pod_that_waits_takes_no_room_before_its_step(waiting: ApiStub, tmp_path: Path) -> None:
    """Its Deployment does not ask for it until then, wherever the script was killed."""
    shop, runner = problem(WAITING_PODS), ScriptRunner(waiting, tmp_path)
    runner.write(export(shop, WAITING_PLAN, origin(shop, WAITING_PODS)))
    assert runner.run(kill_at=7).returncode == -9
    runner.done()
    assert workloads_on_nodes(waiting.store) == WAITING_END and replicas(waiting, "late") == 1
    assert waiting.cluster.least == {"cart-7d": 2, "web-5c": 1, "late-9f": 0}


@pytest.mark.thorough
def test_undo_asks_again_for_pods_that_wait(waiting: ApiStub, tmp_path: Path) -> None:
    shop, runner = problem(WAITING_PODS), ScriptRunner(waiting, tmp_path)
    script = export(shop, WAITING_PLAN, origin(shop, WAITING_PODS))
    runner.write(script.replace("\nstep 1 ", "\nfail broken\nstep 1 "))
    assert "broken" in runner.run().stderr and replicas(waiting, "late") == 0
    assert runner.run("undo").returncode == 0 and replicas(waiting, "late") == 1


@pytest.mark.thorough
def test_pods_that_wait_no_more_are_not_held(waiting: ApiStub, tmp_path: Path) -> None:
    """Killed before they were held; the scheduler had room meanwhile: none that runs is ended."""
    shop, runner = problem(WAITING_PODS), ScriptRunner(waiting, tmp_path)
    script = export(shop, WAITING_PLAN, origin(shop, WAITING_PODS))
    runner.write(script.replace("\n      hold ", "\n      fail broken\n      hold "))
    assert "broken" in runner.run().stderr
    runner.write(script)
    with edited(waiting, "nodes", "n2", "") as room:
        room["status"]["allocatable"]["cpu"] = "2"
    late = waiting.store.tables["pods", "shop", "late-9f-a"]
    wait_until(waiting, lambda: late["spec"].get("nodeName") == "n2" and is_ready(late))
    done = runner.run()
    assert done.returncode == 1 and "0 replicas wait for a node, not 1" in done.stderr
    assert workloads_on_nodes(waiting.store).total() == 5


@pytest.mark.thorough
def test_pods_of_a_stateful_set_that_wait_are_started_one_by_one(tmp_path: Path) -> None:
    """None of the set is ready when the first one is made anew."""
    pods = {
        "cart-7d-a": ("cart", "n1", 300, 300),
        "web-5c-a": ("web", "n2", 300, 300),
        "api-6b-a": ("api", "n3", 300, 300),
        "db-0": ("db", None, 800, 800),
        "db-1": ("db", None, 800, 800),
    }
    plan = plan_of(("cart-7d-a", "n3"), ("db-1", "n1"), ("web-5c-a", "n3"), ("db-0", "n2"))
    shop = problem(pods)
    with ApiStub(objects(pods)) as stub:
        runner = ScriptRunner(stub, tmp_path)
        runner.write(export(shop, plan, origin(shop, pods)))
        runner.done()
        found = workloads_on_nodes(stub.store)
        assert (found["db", "n1"], found["db", "n2"], found.total()) == (1, 1, 5)


def test_the_script_waits_for_what_is_to_be_bought(tmp_path: Path) -> None:
    """It names what is missing, and takes the new node that has the labels, whatever its name."""
    kept = (o for o in objects() if "cart" not in str(o) and "db" not in str(o))
    web = [o for o in kept if o["kind"] != "Node"]
    with reached([*web, node("n2")]) as stub:
        runner, table = ScriptRunner(stub, tmp_path), tmp_path / "machines.csv"
        table.write_text(MACHINES, encoding="utf-8")
        _, script = planned(runner, tmp_path, "--candidates", str(table))
        said = "# WARNING: buy first: 1 x x.small in a (buy-x.small-a-1)"
        assert said in Path(script).read_text()
        done = runner.run(NODE_WAIT="0s", NODE_POLL="0.1")
        assert done.returncode == 1 and "after 0s these nodes are not there" in done.stderr
        assert "buy-x.small-a-1: no new node is ready that has the labels" in done.stderr
        threading.Timer(2.0, lambda: stub.store.add(bought("ip-10-0-0-7"))).start()
        told = runner.done(NODE_WAIT="60s", NODE_POLL="0.2")
        assert "waiting for nodes to be bought" in told
        assert workloads_on_nodes(stub.store) == {("web", "ip-10-0-0-7"): 1}
        assert state(stub, "nodes", "n2", "")["spec"] == {"unschedulable": True}


MACHINES = """machine_type,cpu,memory,zone,on_demand_usd_per_hour
x.small,1,2Gi,a,0.5
"""


def spread_shop() -> list[Object]:
    """Return the shop with cart spread over hostnames, and a node that hosts nothing."""
    made = [*objects(), node("n4")]
    term = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname"}
    term |= {"whenUnsatisfiable": "DoNotSchedule"}
    term |= {"labelSelector": {"matchLabels": {"app": "cart"}}}
    for item in made:
        if item["metadata"]["name"].startswith("cart"):
            spec = item["spec"]
            spec = spec["template"]["spec"] if "template" in spec else spec
            spec["topologySpreadConstraints"] = [term]
    return made


def test_nodes_that_a_spread_counts_are_deleted_on_the_way(tmp_path: Path) -> None:
    """An idle node before the first step, the emptied one at once; undo gives nothing back."""
    with reached(spread_shop()) as stub:
        runner, out = ScriptRunner(stub, tmp_path), tmp_path / "out"
        command("consolidate", dumped(runner, tmp_path), "-o", str(out))
        runner.write((out / "steps.sh").read_text(encoding="utf-8"))
        gone = json.loads((out / "answer.json").read_text())["gone"]
        assert "n4" in gone and len(gone) == 2
        assert {f"delete node {n}" for n in gone} <= set(runner.run(DRY_RUN="1").stdout.split("\n"))
        killed = runner.run(kill_at=1)
        assert killed.returncode == -9
        assert {n["metadata"]["name"] for _, n in stub.store.all("nodes")} == {"n1", "n2", "n3"}
        runner.done()
        there = {n["metadata"]["name"] for _, n in stub.store.all("nodes")}
        assert there == {"n1", "n2", "n3", "n4"} - set(gone)
        assert stub.cluster.least["cart-7d"] == 2, "nothing is interrupted"
        assert runner.run().returncode == 0, "a script that is done does nothing"
        assert runner.run("undo").returncode == 0
        assert len(list(stub.store.all("nodes"))) == 2


@pytest.mark.thorough
def test_a_node_that_is_in_use_by_then_is_not_deleted(tmp_path: Path) -> None:
    with ApiStub(spread_shop()) as stub:
        runner, out = ScriptRunner(stub, tmp_path), tmp_path / "out"
        command("consolidate", dumped(runner, tmp_path), "-o", str(out))
        runner.write((out / "steps.sh").read_text(encoding="utf-8"))
        late = state(stub, "pods", "web-5c-a")
        late["metadata"] = {"name": "late", "namespace": "shop", "labels": {}}
        late["spec"]["nodeName"] = "n4"
        stub.store.add({"kind": "Pod", **late})
        done = runner.run()
        assert done.returncode == 1 and "shop/late" in done.stderr and "plan again" in done.stderr
        assert len(list(stub.store.all("nodes"))) == 4


def bought(name: str) -> Object:
    """Return a node of the machines that may be bought."""
    made = node(name)
    made["metadata"]["labels"] |= {
        "node.kubernetes.io/instance-type": "x.small",
        "topology.kubernetes.io/zone": "a",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return made


def command(*arguments: str) -> None:
    """Run a command of placeopt."""
    assert ended(*arguments) == 0


def wait_until(stub: ApiStub, found: Callable[[], bool]) -> None:
    """Wait until the stub is in a state."""
    for _ in range(200):
        with stub.store.changed:
            if found():
                return
        time.sleep(0.02)
    raise AssertionError("the state never came")
