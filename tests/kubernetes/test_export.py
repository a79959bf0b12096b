"""Exported plans: replayed by the referee, run against a stand-in cluster, safe with any name."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from effort import THOROUGH
from shop import items_of, shop_of

import placeopt
from placeopt import cli
from placeopt.core.errors import DocumentError, UnsupportedError, UsageError
from placeopt.core.files.documents import parse_json
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.export import export, script, steps
from placeopt.kubernetes.origin import Origin
from placeopt.registry import from_document
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rolling_update.problem import RollingUpdate

FAKE = Path(__file__).with_name("fake_kubectl.py")
NEEDS_TOOLS = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("bash")), reason="jq or bash is not installed"
)

#: pod -> (workload, node, milli-CPU now, milli-CPU then)
PODS = {
    "cart-7d-a": ("cart", "n1", 400, 300),
    "cart-7d-b": ("cart", "n2", 400, 300),
    "web-5c-a": ("web", "n2", 500, 500),
    "api-9f-a": ("api", "n1", 300, 300),
    "db-0": ("db", "n3", 300, 300),
}


def shop() -> RollingUpdate:
    return shop_of(PODS)


def origin_of(problem: Any, items: dict[str, Any]) -> Origin:
    name = problem.instance_name
    return Origin.model_validate(
        {
            "instance": {"problem": name.problem, "name": name.name, "sha256": name.sha256},
            "items": items,
        }
    )


def shop_origin(problem: RollingUpdate, **changes: Any) -> Origin:
    return origin_of(problem, items_of(PODS, **changes))


#: Frees n2: a stop and a start, a hop, a restart in place, a pod of a StatefulSet.
MOVES = (
    ("cart-7d-a", "n1"),
    ("db-0", "n1"),
    ("cart-7d-b", "n3"),
    ("api-9f-a", "n3"),
    ("web-5c-a", None),
    ("db-0", "n3"),
    ("web-5c-a", "n1"),
)
PLAN = {"steps": [{"application": "shop", "microservice": pod, "to": node} for pod, node in MOVES]}


def cluster() -> dict[str, Any]:
    """The same shop as Kubernetes has it."""
    state: dict[str, Any] = {
        "pods": {},
        "replicasets": {},
        "deployments": {},
        "statefulsets": {},
        "log": [],
        "made": [],
        "least": {},
    }
    state["nodes"] = {name: {"cpu": 1000, "cordoned": False} for name in ("n1", "n2", "n3")}
    for pod, (workload, node, cpu, _) in PODS.items():
        spec: dict[str, Any] = {
            "containers": [
                {"name": "server", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}}
            ]
        }
        labels = {"app": workload} | (
            {} if workload == "db" else {"pod-template-hash": pod.split("-")[1]}
        )
        template = {"metadata": {"labels": labels}, "spec": spec}
        owner = (
            {"kind": "StatefulSet", "name": workload}
            if workload == "db"
            else {"kind": "ReplicaSet", "name": pod.rsplit("-", 1)[0]}
        )
        metadata = {
            "name": pod,
            "uid": f"uid-of-{pod}",
            "labels": labels,
            "annotations": {},
            "ownerReferences": [owner | {"controller": True}],
        }
        state["pods"][pod] = {
            "metadata": metadata,
            "spec": spec | {"nodeName": node},
            "ready": True,
        }
        replicas = sum(w == workload for w, *_ in PODS.values())
        if workload == "db":
            state["statefulsets"]["db"] = {
                "metadata": {"name": "db"},
                "spec": {
                    "replicas": 1,
                    "template": template,
                    "updateStrategy": {"type": "RollingUpdate"},
                },
            }
            continue
        state["deployments"][workload] = {
            "metadata": {"name": workload},
            "spec": {"replicas": replicas, "template": template},
        }
        set_name = owner["name"]
        about = {
            "name": set_name,
            "namespace": "shop",
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": "2"},
            "ownerReferences": [{"kind": "Deployment", "name": workload, "controller": True}],
        }
        state["replicasets"][set_name] = {
            "metadata": about,
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    return state


class Machine:
    """A folder with a fake kubectl first on the path, and a script."""

    def __init__(self, folder: Path, script: str):
        self.folder, self.state_file = folder, folder / "cluster.json"
        tool = folder / "bin" / "kubectl"
        tool.parent.mkdir()
        tool.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -S -E "{FAKE}" "$@"\n', encoding="utf-8"
        )
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        (folder / "steps.sh").write_text(script + "\n", encoding="utf-8")
        self.state = cluster()

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.state_file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.state_file.write_text(json.dumps(value), encoding="utf-8")

    def start(self, *arguments: str, stdin: int, **more: str) -> subprocess.Popen[str]:
        paths = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": paths, "FAKE_CLUSTER": str(self.state_file)}
        environment |= {"CONTEXT": "shop-context", "WAIT": "60s", "PATIENCE": "0s", "POLL": "0.1"}
        environment |= more
        return subprocess.Popen(
            ["bash", "steps.sh", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=environment,
            text=True,
        )

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, stdin=subprocess.DEVNULL, **more)
        out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def workloads_on_nodes(state: dict[str, Any]) -> Counter[tuple[str, str]]:
    assert all(pod["ready"] for pod in state["pods"].values())
    return Counter(
        (pod["metadata"]["labels"].get("app", "db"), pod["spec"]["nodeName"])
        for pod in state["pods"].values()
    )


#: Commands that are lost, by their number; a command that is given again counts again. Every
#: number has been tried alone, too.
BREAKS = [
    int(k)
    for k in os.environ.get(
        "PLACEOPT_BREAKS", "5 17 33 48 64 77" if THOROUGH else "5 33 64"
    ).split()
]

#: What a Deployment asks of nodes.
WISH = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}

EXPECTED = Counter([("cart", "n1"), ("cart", "n3"), ("api", "n3"), ("db", "n3"), ("web", "n1")])


def test_the_plan_is_legal() -> None:
    """What the tests below rest on."""
    assert shop().evaluate(PLAN).violations == ()
    assert shop().evaluate(PLAN).values == (2.0, 6.0, 1.0)


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Machine, subprocess.CompletedProcess[str]]:
    """The script, run once from first to last step, over a Deployment with a wish about nodes."""
    problem = shop()
    machine = Machine(tmp_path_factory.mktemp("shop"), export(problem, PLAN, shop_origin(problem)))
    state = cluster()
    template = state["replicasets"]["cart-7d"]["spec"]["template"]
    for thing in (template, state["pods"]["cart-7d-a"], state["pods"]["cart-7d-b"]):
        thing["spec"]["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [WISH]}
            }
        }
    machine.state = state
    return machine, machine.run()


@NEEDS_TOOLS
def test_the_script_does_what_the_plan_says(
    ran: tuple[Machine, subprocess.CompletedProcess[str]],
) -> None:
    """Pods end where the plan puts them, at their new sizes; surge first.

    The emptied node is cordoned; templates agree.
    """
    machine, done = ran
    assert done.returncode == 0, done.stderr
    state = machine.state
    assert workloads_on_nodes(state) == EXPECTED
    assert [name for name, node in state["nodes"].items() if node["cordoned"]] == ["n2"]
    assert state["least"] == {"cart-7d": 2, "api-9f": 1, "web-5c": 0}, (
        "only the stop of web interrupts"
    )
    sizes = {
        p["metadata"]["labels"].get("app", "db"): p["spec"]["containers"][0]["resources"][
            "requests"
        ]
        for p in state["pods"].values()
    }
    assert sizes["cart"] == {"cpu": "300m", "memory": "64Mi"} and sizes["web"]["cpu"] == "500m"
    for kind, name in (("deployments", "cart"), ("replicasets", "cart-7d")):
        assert (
            state[kind][name]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][
                "cpu"
            ]
            == "300m"
        )
    assert (
        state["deployments"]["cart"]["spec"]["paused"] is False
        and state["deployments"]["web"]["spec"]["replicas"] == 1
    )
    assert "empty and cordoned: n2" in done.stdout and "all 7 steps are made" in done.stdout


@NEEDS_TOOLS
def test_a_script_that_is_done_does_nothing(
    ran: tuple[Machine, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Run again it finds every step made; a dry run only tells."""
    machine, _ = ran
    before = machine.state
    again = machine.run()
    assert again.returncode == 0 and again.stdout.count("already made") == 7
    assert (
        machine.state["pods"] == before["pods"]
        and machine.state["deployments"] == before["deployments"]
    )
    fresh = Machine(tmp_path, (machine.folder / "steps.sh").read_text(encoding="utf-8"))
    dry = fresh.run(DRY_RUN="1")
    assert dry.returncode == 0 and fresh.state["log"] == [] and "step 7 of 7" in dry.stdout


@NEEDS_TOOLS
def test_copies_are_pods_that_kubernetes_accepts(
    ran: tuple[Machine, subprocess.CompletedProcess[str]],
) -> None:
    """Every pod that the script makes is valid by the schemas of Kubernetes.

    What the template asks of nodes is kept.
    """
    validate = pytest.importorskip("kubernetes_validate")
    made = ran[0].state["made"]
    assert len(made) == 4
    for pod in made:
        validate.validate(pod, "1.30", strict=True)
        assert "pod-template-hash" not in pod["metadata"]["labels"]
    terms = made[0]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert terms == [
        WISH | {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]


@NEEDS_TOOLS
def test_an_interrupted_script_is_taken_up_again(tmp_path: Path) -> None:
    """One command after another is lost; running the script again ends as if none had been."""
    problem = shop()
    machine = Machine(tmp_path, export(problem, PLAN, shop_origin(problem)))
    machine.state = cluster() | {"break_at": BREAKS}
    for _ in range(len(BREAKS) + 1):
        done = machine.run()
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert len(machine.state["log"]) > max(BREAKS)
    assert (
        workloads_on_nodes(machine.state) == EXPECTED
        and machine.state["deployments"]["web"]["spec"]["replicas"] == 1
    )


@NEEDS_TOOLS
def test_a_cluster_that_has_changed_stops_the_script(tmp_path: Path) -> None:
    """A pod that moved meanwhile is not touched.

    Nor is the old pod when the new one finds no room.
    """
    problem = shop()
    machine = Machine(tmp_path, export(problem, PLAN, shop_origin(problem)))
    state = cluster()
    state["pods"]["cart-7d-a"]["spec"]["nodeName"] = "n3"
    machine.state = state
    done = machine.run()
    assert done.returncode == 1 and "shop/cart-7d-a runs on n3, not on n1" in done.stderr
    state = cluster()
    state["nodes"]["n1"]["cpu"] = 900
    machine.state = state
    done = machine.run()
    assert done.returncode == 1 and "is not ready: unschedulable: 0/3 nodes: Ins" in done.stderr
    assert set(PODS) <= set(machine.state["pods"])


@NEEDS_TOOLS
def test_the_script_asks_for_the_cluster(tmp_path: Path) -> None:
    """Without a terminal the context is named; `check` looks and does nothing."""
    problem = shop()
    origin = shop_origin(problem)
    machine = Machine(tmp_path, export(problem, PLAN, origin))
    done = machine.run(CONTEXT="")
    assert done.returncode == 1 and "CONTEXT=shop-context bash" in done.stderr
    before = machine.state["pods"]
    done = machine.run("check")
    assert done.returncode == 0 and "the cluster is what was read" in done.stdout
    assert machine.state["pods"] == before and "step 1" not in done.stdout
    assert "legal: check, undo" in machine.run("chekc").stderr
    other = origin.model_copy(update={"cluster": "another-uid"})
    (tmp_path / "steps.sh").write_text(export(problem, PLAN, other) + "\n", encoding="utf-8")
    assert "is another cluster" in machine.run().stderr


@NEEDS_TOOLS
def test_the_check_names_all_that_has_changed(tmp_path: Path) -> None:
    """A node that is not there yet, one that is another machine, a pod that was replaced."""
    problem = shop()
    known = shop_origin(problem).model_dump()
    known["nodes"] = {"n1": {"uid": "was", "labels": {}, "taints": []}}
    known["nodes"]["n3"] = {"labels": {"disk": "ssd"}, "taints": []}
    known["items"]["shop/api-9f-a"]["uid"] = "was"
    machine = Machine(tmp_path, export(problem, PLAN, Origin.model_validate(known)))
    state = cluster()
    del state["nodes"]["n3"]
    del state["pods"]["cart-7d-b"]
    state["pods"]["web-5c-a"]["ready"] = False
    machine.state = state
    said = machine.run("check").stderr
    for text in (
        "node n3 is not in the cluster: buy or make it first",
        "node n1 is another machine of the same name",
        "pod shop/cart-7d-b is gone",
        "pod shop/web-5c-a is not ready",
        "pod shop/api-9f-a is another one of the same name",
    ):
        assert text in said
    assert machine.run().returncode == 1 and machine.state["made"] == []
    state = cluster()
    state["nodes"]["n1"]["cordoned"] = True
    state["replicasets"]["cart-7d"]["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    machine.state = state
    known["nodes"]["n1"]["uid"] = None
    script = export(problem, PLAN, Origin.model_validate(known))
    (tmp_path / "steps.sh").write_text(script + "\n", encoding="utf-8")
    said = machine.run("check").stderr
    for text in (
        "node n1 is cordoned",
        "node n3 has other labels or taints",
        "the template of ReplicaSet cart-7d asks for other nodes than its pods",
    ):
        assert text in said


@NEEDS_TOOLS
def test_on_a_terminal_the_context_is_confirmed(tmp_path: Path) -> None:
    """By typing its name; the head of the script says what it leaves to others."""
    script = export(shop(), PLAN, shop_origin(shop()))
    assert "# Not done here: draining DaemonSets off nodes that end empty, removing" in script
    machine = Machine(tmp_path, script)
    for typed, code, said in (
        ("no", 1, "not confirmed; nothing was done"),
        ("shop-context", 0, "checked: the cluster is what was read"),
    ):
        ours, theirs = pty.openpty()
        process = machine.start("check", stdin=theirs, CONTEXT="")
        os.write(ours, f"{typed}\n".encode())
        out, err = process.communicate(timeout=120)
        os.close(ours)
        os.close(theirs)
        assert process.returncode == code and said in out + err


def one_move() -> dict[str, Any]:
    return {"steps": [{"application": "shop", "microservice": "cart-7d-a", "to": "n3"}]}


def roomy() -> tuple[RollingUpdate, dict[str, Any]]:
    """The shop without new sizes."""
    document = shop().to_document()
    for service in document["applications"][0]["microservices"]:
        service["new_cpu_millicores"] = service["cpu_millicores"]
    problem = from_document(document)
    assert isinstance(problem, RollingUpdate)
    return problem, cluster()


@NEEDS_TOOLS
def test_a_sibling_that_is_not_ready_stops_the_step_in_time(tmp_path: Path) -> None:
    """Its ReplicaSet would end it instead: the copy waits, and when it is ready all goes on."""
    problem, state = roomy()
    machine = Machine(tmp_path, export(problem, one_move(), shop_origin(problem)))
    state["pods"]["cart-7d-b"]["ready"] = False
    machine.state = state
    done = machine.run()
    assert done.returncode == 1 and "not ready in shop: cart-7d-b" in done.stderr
    assert set(PODS) <= set(machine.state["pods"]) and len(machine.state["made"]) == 1
    state = machine.state
    state["pods"]["cart-7d-b"]["ready"] = True
    machine.state = state
    assert machine.run().returncode == 0
    assert workloads_on_nodes(machine.state)["cart", "n3"] == 1


@NEEDS_TOOLS
def test_a_replica_set_that_ended_another_pod_is_told(tmp_path: Path) -> None:
    """A pod failed between the look and the adoption: the mark is taken off, and said."""
    problem, state = roomy()
    script = export(problem, one_move(), shop_origin(problem))
    machine = Machine(tmp_path, script.replace('    guard "$ns" "$rs" "$hash" "$old"\n', ""))
    state["pods"]["cart-7d-b"]["ready"] = False
    machine.state = state
    done = machine.run()
    assert done.returncode == 1 and "ended another pod instead of cart-7d-a" in done.stderr
    kept = machine.state["pods"]["cart-7d-a"]["metadata"]["annotations"]
    assert "controller.kubernetes.io/pod-deletion-cost" not in kept


@NEEDS_TOOLS
@pytest.mark.parametrize("broken", (12, 14, 17))
def test_pods_that_end_slowly_do_not_stop_a_script_that_is_taken_up(
    broken: int, tmp_path: Path
) -> None:
    """The old pod is still terminating when the script is run again."""
    problem, state = roomy()
    machine = Machine(tmp_path, export(problem, one_move(), shop_origin(problem)))
    machine.state = state | {"lingers": 6, "break_at": [broken]}
    assert machine.run().returncode == 1
    again = machine.run()
    assert again.returncode == 0, again.stderr
    assert workloads_on_nodes(machine.state)["cart", "n3"] == 1
    assert sum(workloads_on_nodes(machine.state).values()) == len(PODS)


@NEEDS_TOOLS
def test_undo_leaves_nothing_behind(tmp_path: Path) -> None:
    """Nodes are uncordoned, copies that nothing owns end, marks go; what was moved stays."""
    problem = shop()
    machine = Machine(tmp_path, export(problem, PLAN, shop_origin(problem)))
    state = cluster()
    sick = json.loads(json.dumps(state["pods"]["api-9f-a"])) | {"ready": False, "slow": True}
    sick["metadata"]["name"] = "api-9f-b"
    del sick["spec"]["nodeName"]
    state["pods"]["api-9f-b"] = sick
    state["deployments"]["api"]["spec"]["replicas"] = 2
    machine.state = state
    assert "not ready in shop: api-9f-b" in machine.run().stderr
    assert machine.state["nodes"]["n2"]["cordoned"]
    done = machine.run("undo")
    assert done.returncode == 0 and "StatefulSet shop/db updates OnDelete now" in done.stdout
    state = machine.state
    assert not any(node["cordoned"] for node in state["nodes"].values())
    assert all(p["metadata"].get("ownerReferences") for p in state["pods"].values())
    assert "affinity" not in state["statefulsets"]["db"]["spec"]["template"]["spec"]
    assert workloads_on_nodes(
        state | {"pods": {k: p for k, p in state["pods"].items() if p["ready"]}}
    )["cart", "n3"]


@NEEDS_TOOLS
def test_undo_scales_back_what_was_stopped(tmp_path: Path) -> None:
    """Between a stop and its start; the rest of the plan is refused then."""
    problem, state = roomy()
    steps = [{"application": "shop", "microservice": "web-5c-a", "to": n} for n in (None, "n3")]
    script = export(problem, {"steps": steps}, shop_origin(problem))
    machine = Machine(tmp_path, script.replace("\nstep 2 ", "\nfail broken\nstep 2 "))
    machine.state = state
    assert machine.run().returncode == 1
    assert machine.state["deployments"]["web"]["spec"]["replicas"] == 0
    done = machine.run("undo")
    assert done.returncode == 0, done.stderr
    assert "scaled back: shop/web" in done.stdout
    assert machine.state["deployments"]["web"]["spec"]["replicas"] == 1
    assert "plan again" in machine.run().stderr
    marks = {k for p in machine.state["pods"].values() for k in p["metadata"]["annotations"]}
    assert not marks - {"placeopt-bound"}


@NEEDS_TOOLS
def test_a_start_is_not_made_twice(tmp_path: Path) -> None:
    """Killed after all of it, before its number was kept: the Deployment is not scaled again."""
    problem, state = roomy()
    steps = [{"application": "shop", "microservice": "web-5c-a", "to": n} for n in (None, "n3")]
    machine = Machine(tmp_path, export(problem, {"steps": steps}, shop_origin(problem)))
    machine.state = state
    assert machine.run(DONE="made").returncode == 0
    made = (tmp_path / "made").read_text(encoding="utf-8")
    (tmp_path / "made").write_text(made.replace("\n2\n", "\n"), encoding="utf-8")
    again = machine.run(DONE="made")
    assert again.returncode == 0 and "step 1 of 2: already made" in again.stdout, again.stderr
    assert machine.state["deployments"]["web"]["spec"]["replicas"] == 1
    assert workloads_on_nodes(machine.state)["web", "n3"] == 1


@NEEDS_TOOLS
def test_a_pod_that_waits_is_asked_for_again_at_its_step(tmp_path: Path) -> None:
    """Afterwards the Deployment wants as many replicas as before."""
    document = roomy()[0].to_document()
    waiting = {"name": "web-5c-b", "node": None, "cpu_millicores": 500, "memory_mib": 64}
    document["applications"][0]["microservices"].append(waiting)
    problem = from_document(document)
    known = shop_origin(shop()).model_dump()
    known["items"]["shop/web-5c-b"] = known["items"]["shop/web-5c-a"] | {
        "pod": "web-5c-b",
        "node": None,
    }
    plan = {"steps": [{"application": "shop", "microservice": "web-5c-b", "to": "n3"}]}
    machine = Machine(tmp_path, export(problem, plan, origin_of(problem, known["items"])))
    state = cluster()
    pod = json.loads(json.dumps(state["pods"]["web-5c-a"])) | {"ready": False, "slow": True}
    pod["metadata"]["name"] = "web-5c-b"
    del pod["spec"]["nodeName"]
    state["pods"]["web-5c-b"] = pod
    state["deployments"]["web"]["spec"]["replicas"] = 2
    machine.state = state
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert workloads_on_nodes(machine.state)["web", "n3"] == 1
    assert len(machine.state["pods"]) == len(PODS) + 1
    assert machine.state["deployments"]["web"]["spec"]["replicas"] == 2


@NEEDS_TOOLS
def test_stateful_sets_are_bound_to_no_node_afterwards(
    ran: tuple[Machine, subprocess.CompletedProcess[str]],
) -> None:
    """They update on delete, so that no pod moves; how to change that is said."""
    machine, done = ran
    made = machine.state["statefulsets"]["db"]
    assert "affinity" not in made["spec"]["template"]["spec"]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert "placeopt-before" not in made["metadata"]["annotations"]
    assert "patch statefulset db" in done.stdout


def kubectl_list(state: dict[str, Any]) -> dict[str, Any]:
    """What `kubectl get nodes,pods,replicasets,deployments,statefulsets -A -o json` prints."""
    items: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": f"{node['cpu']}m", "memory": "4Gi"}},
        }
        for name, node in state["nodes"].items()
    ]
    tables = (
        ("deployments", "Deployment"),
        ("replicasets", "ReplicaSet"),
        ("statefulsets", "StatefulSet"),
    )
    for table, kind in tables:
        for thing in state[table].values():
            items.append(
                {
                    "apiVersion": "apps/v1",
                    "kind": kind,
                    **thing,
                    "metadata": thing["metadata"] | {"namespace": "shop"},
                }
            )
    for pod in state["pods"].values():
        about = pod["metadata"] | {"namespace": "shop"}
        about["ownerReferences"] = [
            {"apiVersion": "apps/v1", "uid": "1", **owner} for owner in about["ownerReferences"]
        ]
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": about,
                "spec": pod["spec"],
                "status": {"phase": "Running"},
            }
        )
    return {"apiVersion": "v1", "kind": "List", "items": items}


@NEEDS_TOOLS
def test_from_kubectl_to_kubectl(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Import what a cluster says, solve, export, run: the cluster ends as the plan says."""
    state = cluster()
    for node in state["nodes"].values():
        node["cpu"] = 1300
    (tmp_path / "list.json").write_text(json.dumps(kubectl_list(state)), encoding="utf-8")

    def placeopt_(*arguments: object) -> None:
        with pytest.raises(SystemExit) as end:
            cli.main([str(a) for a in arguments])
        assert not end.value.code, capfd.readouterr().err

    shop_file, front_file, script = (
        tmp_path / name for name in ("shop.json", "front.json", "steps.sh")
    )
    placeopt_(
        "import",
        "kubernetes",
        tmp_path / "list.json",
        "--to",
        "rolling-update",
        "--missing-prices",
        "default=1",
        "-o",
        shop_file,
    )
    placeopt_("solve", shop_file, "--method", "repack", "-o", front_file)
    placeopt_(
        "export", "kubernetes", front_file, "--instance", shop_file, "--point", 0, "-o", script
    )
    machine = Machine(tmp_path, script.read_text(encoding="utf-8"))
    machine.state = state
    done = machine.run()
    assert done.returncode == 0, done.stderr
    front = placeopt.Front.read(front_file)
    ended = machine.state
    assert front.points[0].values[0] == 2.0
    assert len({node for _, node in workloads_on_nodes(ended)}) == 2
    assert sum(workloads_on_nodes(ended).values()) == len(PODS) and all(
        v >= 1 for v in ended["least"].values()
    )
    assert sum(node["cordoned"] for node in ended["nodes"].values()) == 1


# -- the document ----------------------------------------------------------------------------------


def test_steps_say_what_they_interrupt() -> None:
    """Stops, hops and StatefulSets stand out, per step and above all steps."""
    problem = shop()
    made = steps.steps(problem, PLAN, shop_origin(problem))
    assert [s.action for s in made] == ["restart", "hop", "move", "move", "stop", "move", "start"]
    assert [s.number for s in made if s.empties] == [5]
    assert [s.number for s in made if s.cordon] == [3]
    told = steps.warnings(made)
    assert (
        len(told) == 3
        and "1 of 7 steps stop" in told[0]
        and "StatefulSets" in told[1]
        and "hops" in told[2]
    )
    assert (
        "disruption" in str(made[4].warning)
        and "cannot run twice" in str(made[1].warning)
        and made[3].warning is None
    )
    assert made[6].at is not None and made[6].at.pod is None


@pytest.mark.parametrize("kind", ["rolling-update", "rescheduling"])
def test_exported_steps_are_the_plan(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every point of a front, exported without an origin and replayed, has its values again.

    `evaluate` says so too.
    """
    folder = Path(__file__).resolve().parents[2] / "instances" / kind
    instance = min(folder.glob("*.json"))
    problem = placeopt.load(instance)
    front = placeopt.solve(problem, "repack" if kind == "rolling-update" else "greedy", seed=1)
    for point in front.points:
        text = export(problem, point.plan, form="json")
        plan, sha = script.replay(parse_json(text))
        verdict = problem.evaluate(plan)
        assert (
            sha == problem.instance_name.sha256
            and verdict.feasible
            and verdict.values == point.values
        )
        assert plan == problem.read_plan(point.plan)  # type: ignore[attr-defined]
    jsonschema = pytest.importorskip("jsonschema")
    with pytest.raises(SystemExit):
        cli.main(["schema", "steps"])
    jsonschema.validate(parse_json(text), parse_json(capfd.readouterr().out))
    (tmp_path / "steps.json").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        cli.main(["evaluate", str(instance), str(tmp_path / "steps.json")])
    assert not end.value.code
    assert list(parse_json(capfd.readouterr().out)["values"].values()) == list(
        front.points[-1].values
    )


def test_replicas_of_a_service_are_followed() -> None:
    """A rescheduling plan names services and nodes: the first replica there goes.

    Also after it has moved.
    """
    nodes = [
        {"name": n, "kind": "k", "cpu_cores": 4, "memory_gib": 4, "user_latency_ms": 1}
        for n in ("n1", "n2", "n3")
    ]
    service = {
        "name": "front",
        "cpu_cores": 1,
        "memory_gib": 1,
        "execution_ms": {"k": 1},
        "replicas": ["n1", "n1"],
    }
    latency = {a: {b: 1 for b in ("n1", "n2", "n3") if b > a} for a in ("n1", "n2")}
    document = {
        "problem": "rescheduling",
        "name": "x",
        "nodes": nodes,
        "latency_ms": latency,
        "services": [service],
        "gateway": "front",
    }
    problem = from_document(document)
    assert isinstance(problem, Rescheduling)
    replicas = [{"pod": f"front-1-{k}", "node": "n1"} for k in "ab"]
    origin = origin_of(
        problem,
        {
            "front": {
                "namespace": "shop",
                "kind": "Deployment",
                "name": "front",
                "replicas": replicas,
            }
        },
    )
    plan = {
        "moves": [
            {"service": "front", "from": a, "to": b}
            for a, b in (("n1", "n2"), ("n2", "n3"), ("n1", "n3"))
        ]
    }
    made = steps.steps(problem, plan, origin)
    pods = [(s.at.pod, s.at.new_pod) for s in made if s.at is not None]
    assert (
        pods[0][0] == "front-1-a"
        and pods[1][0] == pods[0][1]
        and pods[2][0] == "front-1-b"
        and len({new for _, new in pods}) == 3
    )
    assert [(s.cordon, s.empties) for s in made] == [
        (False, False),
        (True, True),
        (True, True),
    ] or made[0].cordon
    bare = origin_of(
        problem, {"front": {"namespace": "shop", "kind": "Deployment", "name": "front"}}
    )
    with pytest.raises(UnsupportedError, match="no running pod"):
        steps.steps(problem, plan, bare)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "DaemonSet"}, "cannot be moved pod by pod"),
        ({"pod": None}, "is not in the cluster yet"),
        ({"pod": "x; rm -rf ~"}, "not a name that Kubernetes allows"),
        ({"namespace": "--kubeconfig=/tmp/x"}, "not a name that Kubernetes allows"),
        ({"name": "a\nb"}, "not a name that Kubernetes allows"),
        ({"containers": []}, "containers are not on file"),
    ],
)
def test_what_commands_cannot_do_is_refused(changes: dict[str, Any], message: str) -> None:
    """By name, before anything is written."""
    problem = shop()
    with pytest.raises((UnsupportedError, DocumentError), match=message) as refused:
        export(problem, PLAN, shop_origin(problem, **changes))
    if isinstance(refused.value, UnsupportedError):  # as JSON it is a plan all the same
        told = parse_json(export(problem, PLAN, shop_origin(problem, **changes), form="json"))
        assert "have no commands" in told["warnings"][0] and len(told["steps"]) == len(MOVES)


@NEEDS_TOOLS
def test_names_of_the_instance_are_not_run(tmp_path: Path) -> None:
    """Applications and instances may have any name: in the script it is a comment or quoted."""
    hostile = "$(touch hurt) `touch hurt`\n\"; touch hurt #'@title@ {ns}"
    document = shop().to_document() | {"name": hostile}
    document["applications"][0]["name"] = hostile
    for service in document["applications"][0]["microservices"]:
        service["new_cpu_millicores"] = service["cpu_millicores"]
    problem = from_document(document)
    items = {
        key.replace("shop/", f"{hostile}/"): item
        for key, item in shop_origin(shop()).model_dump()["items"].items()
    }
    plan = {"steps": [{"application": hostile, "microservice": "cart-7d-a", "to": "n3"}]}
    machine = Machine(tmp_path, export(problem, plan, origin_of(problem, items)))
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("hurt*"))
    assert workloads_on_nodes(machine.state)["cart", "n3"] == 1


def test_what_the_importer_made_up_is_passed_over() -> None:
    """A step that restarts an anchor in place is none for a cluster."""
    problem = shop()
    known = shop_origin(problem).model_dump()
    known["items"]["shop/db-0"] |= {
        "kind": "Virtual",
        "namespace": "",
        "name": "only-1.placeopt",
        "pod": None,
    }
    text = export(problem, PLAN, Origin.model_validate(known))
    assert "db-0" not in text and text.count("\nstep ") == len(MOVES) - 2


def test_wrong_asks_are_refused() -> None:
    """Plans that break the instance, foreign origins, unknown forms, commands without an origin."""
    problem = shop()
    broken = {"steps": PLAN["steps"][:-1]}
    with pytest.raises(
        DocumentError, match=r"the plan breaks the instance: .*stopped and never started"
    ):
        export(problem, broken, form="json")
    other = from_document(problem.to_document() | {"name": "other"})
    with pytest.raises(DocumentError, match="belongs to 'other'"):
        export(problem, PLAN, shop_origin(other))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="cannot become 'karmada'; legal: commands, json"):
        export(problem, PLAN, form="karmada")
    with pytest.raises(UsageError, match="give --origin"):
        export(problem, PLAN)
    temporal = placeopt.load(
        Path(__file__).resolve().parents[2] / "instances" / "temporal" / "toy.json"
    )
    with pytest.raises(UnsupportedError, match="are not Kubernetes objects"):
        export(temporal, {})


# -- the command -----------------------------------------------------------------------------------


def test_the_command_writes_a_script_that_can_be_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The origin is found beside the instance; warnings go to stderr; the default is the knee."""
    problem = shop()
    problem.write(tmp_path / "shop.json")
    origins.write(tmp_path / "shop.origin.json", shop_origin(problem))
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        cli.main(
            [
                "export",
                "kubernetes",
                str(tmp_path / "plan.json"),
                "--instance",
                str(tmp_path / "shop.json"),
                "-o",
                str(tmp_path / "steps.sh"),
            ]
        )
    assert not end.value.code
    out, err = capfd.readouterr()
    assert out == "" and "warning: 1 of 7 steps stop" in err
    assert os.access(tmp_path / "steps.sh", os.X_OK)
    assert subprocess.run(["bash", "-n", tmp_path / "steps.sh"]).returncode == 0
    (tmp_path / "steps.json").write_text(export(problem, PLAN, form="json"), encoding="utf-8")
    with pytest.raises(SystemExit):  # steps become the same script again
        cli.main(
            [
                "export",
                "kubernetes",
                str(tmp_path / "steps.json"),
                "--instance",
                str(tmp_path / "shop.json"),
            ]
        )
    assert capfd.readouterr().out == (tmp_path / "steps.sh").read_text(encoding="utf-8")
    for wrong, message in (
        (
            [
                "export",
                "kubernetes",
                str(tmp_path / "shop.json"),
                "--instance",
                str(tmp_path / "shop.json"),
            ],
            "not a plan",
        ),
        (
            [
                "export",
                "kubernetes",
                str(tmp_path / "plan.json"),
                "--instance",
                str(tmp_path / "plan.json"),
            ],
            "problem: this field is missing",
        ),
        (
            [
                "export",
                "kubernetes",
                str(tmp_path / "plan.json"),
                "--instance",
                str(tmp_path / "shop.json"),
                "--point",
                "2",
            ],
            "leave it out",
        ),
        (
            [
                "export",
                "kubernetes",
                str(tmp_path / "plan.json"),
                "--instance",
                str(tmp_path / "shop.json"),
                "--origin",
                str(tmp_path / "shop.json"),
            ],
            "this is a rolling-update instance, not an origin",
        ),
    ):
        with pytest.raises(SystemExit) as end:
            cli.main(wrong)
        assert end.value.code == 2 and message in capfd.readouterr().err


def test_importing_the_commands_loads_nothing_heavy() -> None:
    """Neither yaml nor numba, until a command needs them."""
    modules = "placeopt.cli, placeopt.kubernetes.export, placeopt.report"
    heavy = "('yaml', 'matplotlib', 'numba')"
    code = f"import sys, {modules}\nprint([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        == "[]"
    )
    assert importlib.util.find_spec("yaml") is not None


def test_the_command_says_when_steps_have_no_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """JSON without an origin is a plan to read, not one to run: stderr and the file say so."""
    problem = shop()
    problem.write(tmp_path / "shop.json")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    names = [str(tmp_path / name) for name in ("plan.json", "shop.json")]
    with pytest.raises(SystemExit) as end:
        cli.main(["export", "kubernetes", names[0], "--instance", names[1], "--format", "json"])
    assert not end.value.code
    out, err = capfd.readouterr()
    said = "7 of 7 steps have no commands: the names of the cluster are not known; give --origin"
    assert json.loads(out)["warnings"][0] == said
    assert err.splitlines()[0] == f"warning: {said}"
