"""Exported plans: replayed by the referee, run on a stub of the API server, safe with any name."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pty
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from api_stub import Object
from effort import THOROUGH
from little_clusters import HARD, ended
from little_kubectl import CommandStub
from shop import items_of, shop_of
from stub_shop import (
    CONTEXT,
    ScriptRunner,
    edited,
    objects,
    say_ready,
    state,
    workloads_on_nodes,
)

import placeopt
from placeopt.core.errors import DocumentError, UnsupportedError, UsageError
from placeopt.core.files.documents import parse_json
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.export import export, script, steps
from placeopt.kubernetes.origin import Origin
from placeopt.registry import from_document
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rolling_update.problem import RollingUpdate

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
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
SHOP = shop_of(PODS)
#: The shop without new sizes.
ROOMY = shop_of({pod: (app, on, now, now) for pod, (app, on, now, _) in PODS.items()})


def plan_of(*moves: tuple[str, str | None], application: str = "shop") -> dict[str, Any]:
    named = ({"application": application, "microservice": pod, "to": on} for pod, on in moves)
    return {"steps": list(named)}


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
PLAN = plan_of(*MOVES)
ONE_MOVE = plan_of(("cart-7d-a", "n3"))
STOP_AND_START = plan_of(("web-5c-a", None), ("web-5c-a", "n3"))
EXPECTED = Counter([("cart", "n1"), ("cart", "n3"), ("api", "n3"), ("db", "n3"), ("web", "n1")])


def origin_of(problem: Any, items: dict[str, Any]) -> Origin:
    name = problem.instance_name
    about = {"problem": name.problem, "name": name.name, "sha256": name.sha256}
    return Origin.model_validate({"instance": about, "items": items})


def shop_origin(problem: RollingUpdate = SHOP, **changes: Any) -> Origin:
    return origin_of(problem, items_of(PODS, **changes))


class Machine(ScriptRunner):
    """A folder with a script, and a little kubectl over the shop."""

    def __init__(self, folder: Path, script: str, items: list[Object] | None = None):
        self.stub = CommandStub(objects(PODS) if items is None else items, CONTEXT)
        super().__init__(self.stub, folder)
        self.write(script)

    @property
    def places(self) -> Counter[tuple[str, str]]:
        """How many pods of which workload run on which node; all are ready."""
        return workloads_on_nodes(self.stub.store)

    def names(self, plural: str = "pods") -> set[str]:
        """Return the names of all objects of a kind."""
        return {key[2] for key, _ in self.stub.store.all(plural)}

    def cordoned(self) -> set[str]:
        """Return the nodes on which nothing may begin."""
        nodes = self.stub.store.all("nodes")
        return {key[2] for key, node in nodes if node.get("spec", {}).get("unschedulable")}

    def replicas(self, deployment: str) -> int:
        return int(state(self.stub, "deployments", deployment)["spec"]["replicas"])


class Machines(Protocol):
    """Make a machine in the folder of the test, or in a part of it."""

    def __call__(self, script: str, items: list[Object] | None = None, at: str = "") -> Machine: ...


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Yield what makes machines that end with the test."""
    with ExitStack() as running:

        def made(script: str, items: list[Object] | None = None, at: str = "") -> Machine:
            (tmp_path / at).mkdir(exist_ok=True)
            machine = Machine(tmp_path / at, script, items)
            running.enter_context(machine.stub)
            return machine

        yield made


#: Commands that are lost, by their number; a command that is given again counts again. Every
#: number has been tried alone, too.
DEFAULT_BREAKS = "5 17 33 48 64 77" if THOROUGH else "33"
BREAKS = [int(k) for k in os.environ.get("PLACEOPT_BREAKS", DEFAULT_BREAKS).split()]

#: What a Deployment asks of nodes.
WISH = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}


def test_the_plan_is_legal() -> None:
    """What the tests below rest on."""
    assert SHOP.evaluate(PLAN).violations == ()
    assert SHOP.evaluate(PLAN).values == (2.0, 6.0, 1.0)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, str]]:
    """The script, run once from first to last step, over a Deployment with a wish about nodes."""
    items = objects(PODS)
    for item in items:
        if item["kind"] == "Node":
            item["metadata"]["labels"]["disk"] = "ssd"
        elif "cart" in item["metadata"]["name"]:
            spec = item["spec"].get("template", item)["spec"]
            spec["affinity"] = {"nodeAffinity": {HARD: {"nodeSelectorTerms": [WISH]}}}
    machine = Machine(tmp_path_factory.mktemp("shop"), export(SHOP, PLAN, shop_origin()), items)
    with machine.stub:
        yield machine, machine.done()


@NEEDS_TOOLS
def test_the_script_does_what_the_plan_says(ran: tuple[Machine, str]) -> None:
    """Pods end where the plan puts them, at their new sizes; surge first.

    The emptied node is cordoned; templates agree.
    """
    machine, told = ran
    assert machine.places == EXPECTED
    assert machine.cordoned() == {"n2"}
    least = machine.stub.cluster.least
    assert least == {"cart-7d": 2, "api-9f": 1, "web-5c": 0}, "only the stop interrupts"
    assert machine.stub.cluster.rollouts == []

    def asks(spec: Any) -> Any:
        return spec["containers"][0]["resources"]["requests"]

    pods = [pod for _, pod in machine.stub.store.all("pods")]
    sizes = {p["metadata"]["labels"]["app"]: asks(p["spec"]) for p in pods}
    assert sizes["cart"] == {"cpu": "300m", "memory": "64Mi"} and sizes["web"]["cpu"] == "500m"
    for kind, name in (("deployments", "cart"), ("replicasets", "cart-7d")):
        assert asks(state(machine.stub, kind, name)["spec"]["template"]["spec"])["cpu"] == "300m"
    assert state(machine.stub, "deployments", "cart")["spec"]["paused"] is False
    assert machine.replicas("web") == 1
    assert "empty and cordoned: n2" in told and "all 7 steps are made" in told


@NEEDS_TOOLS
def test_a_script_that_is_done_does_nothing(ran: tuple[Machine, str], machines: Machines) -> None:
    """Run again it finds every step made; a dry run only tells."""
    machine, _ = ran
    before = machine.stub.store.version
    assert machine.done().count("already made") == 7
    assert machine.stub.store.version == before
    fresh = machines((machine.folder / "steps.sh").read_text(encoding="utf-8"))
    assert "step 7 of 7" in fresh.done(DRY_RUN="1") and fresh.stub.log == []


@NEEDS_TOOLS
def test_copies_are_pods_that_kubernetes_accepts(ran: tuple[Machine, str]) -> None:
    """By its schemas; what the template asks of nodes is kept."""
    validate = pytest.importorskip("kubernetes_validate")
    made = ran[0].stub.store.created
    assert len(made) == 4
    for pod in made:
        validate.validate(pod, "1.30", strict=True)
        assert "pod-template-hash" not in pod["metadata"]["labels"]
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = made[0]["spec"]["affinity"]["nodeAffinity"][HARD]["nodeSelectorTerms"]
    assert terms == [WISH | {"matchFields": [field]}]


@NEEDS_TOOLS
def test_stateful_sets_are_bound_to_no_node_afterwards(ran: tuple[Machine, str]) -> None:
    """They update on delete, so that no pod moves; how to change that is said."""
    machine, told = ran
    made = state(machine.stub, "statefulsets", "db")
    assert "affinity" not in made["spec"]["template"]["spec"]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert "placeopt-before" not in made["metadata"]["annotations"]
    assert "patch statefulset db" in told


@NEEDS_TOOLS
def test_an_interrupted_script_is_taken_up_again(machines: Machines) -> None:
    """One command after another is lost; running the script again ends as if none had been."""
    machine = machines(export(SHOP, PLAN, shop_origin()))
    machine.stub.break_at = BREAKS
    for _ in range(len(BREAKS) + 1):
        done = machine.run()
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert len(machine.stub.log) > max(BREAKS)
    assert machine.places == EXPECTED and machine.replicas("web") == 1


@NEEDS_TOOLS
def test_a_cluster_that_has_changed_stops_the_script(machines: Machines) -> None:
    """A pod that moved is not touched; nor is the old one when the new one finds no room."""
    moved = PODS | {"cart-7d-a": ("cart", "n3", 400, 300)}
    machine = machines(export(SHOP, PLAN, shop_origin()), objects(moved))
    assert "shop/cart-7d-a runs on n3, not on n1" in machine.refused()
    machine = machines(export(SHOP, PLAN, shop_origin()), at="full")
    with edited(machine.stub, "nodes", "n1", "") as node:
        node["status"]["allocatable"]["cpu"] = "900m"
    said = machine.refused()
    assert "is not ready: unschedulable: 0/3 nodes" in said and "Insufficient cpu" in said
    assert set(PODS) <= machine.names()


@NEEDS_TOOLS
def test_the_script_asks_for_the_cluster(machines: Machines) -> None:
    """Without a terminal the context is named; `check` looks and does nothing."""
    machine = machines(export(SHOP, PLAN, shop_origin()))
    assert f"CONTEXT={CONTEXT} bash" in machine.refused(CONTEXT="")
    told, seen = machine.done("check"), machine.stub.store.writes
    assert "the cluster is what was read" in told and "step 1" not in told and seen == 0
    assert "legal: check, undo" in machine.run("chekc").stderr
    machine.write(export(SHOP, PLAN, shop_origin().model_copy(update={"cluster": "another"})))
    assert "is another cluster" in machine.run().stderr


@NEEDS_TOOLS
def test_the_check_names_all_that_has_changed(machines: Machines) -> None:
    """A node that is not there yet, one that is another machine, a pod that was replaced."""
    known = shop_origin().model_dump()
    known["nodes"] = {"n1": {"uid": "was", "labels": {}, "taints": []}}
    known["nodes"]["n3"] = {"labels": {"disk": "ssd"}, "taints": []}
    known["items"]["shop/api-9f-a"]["uid"] = "was"
    machine = machines(export(SHOP, PLAN, Origin.model_validate(known)))
    machine.stub.store.drop(("nodes", "", "n3"))
    machine.stub.store.drop(("pods", "shop", "cart-7d-b"))
    say_ready(machine.stub, "web-5c-a", False)
    said = machine.run("check").stderr
    for text in (
        "node n3 is not in the cluster: buy or make it first",
        "node n1 is another machine of the same name",
        "pod shop/cart-7d-b is gone",
        "pod shop/web-5c-a is not ready",
        "pod shop/api-9f-a is another one of the same name",
    ):
        assert text in said
    assert machine.refused() and machine.stub.store.created == []
    known["nodes"]["n1"]["uid"] = None
    machine = machines(export(SHOP, PLAN, Origin.model_validate(known)), at="again")
    with edited(machine.stub, "nodes", "n1", "") as node:
        node["spec"] = {"unschedulable": True}
    with edited(machine.stub, "replicasets", "cart-7d") as owner:
        owner["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    said = machine.run("check").stderr
    for text in (
        "node n1 is cordoned",
        "node n3 has other labels or taints",
        "the template of ReplicaSet cart-7d asks for other nodes than its pods",
    ):
        assert text in said


@NEEDS_TOOLS
@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("no", 1, "not confirmed; nothing was done"),
        (CONTEXT, 0, "checked: the cluster is what was read"),
    ],
)
def test_on_a_terminal_the_context_is_confirmed(
    typed: str, code: int, said: str, machines: Machines
) -> None:
    """By typing its name; the head of the script says what it leaves to others."""
    script = export(SHOP, PLAN, shop_origin())
    assert "# Not done here: draining DaemonSets off nodes that end empty, removing" in script
    ours, theirs = pty.openpty()
    process = machines(script).start("check", stdin=theirs, CONTEXT="")
    os.write(ours, f"{typed}\n".encode())
    out, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code and said in out + err


@NEEDS_TOOLS
def test_a_sibling_that_is_not_ready_stops_the_step_in_time(machines: Machines) -> None:
    """Its ReplicaSet would end it instead: the copy waits, and when it is ready all goes on."""
    machine = machines(export(ROOMY, ONE_MOVE, shop_origin(ROOMY)))
    say_ready(machine.stub, "cart-7d-b", False)
    assert "not ready in shop: cart-7d-b" in machine.refused()
    assert set(PODS) <= machine.names() and len(machine.stub.store.created) == 1
    say_ready(machine.stub, "cart-7d-b", True)
    assert machine.done() and machine.places["cart", "n3"] == 1


@NEEDS_TOOLS
def test_a_replica_set_that_ended_another_pod_is_told(machines: Machines) -> None:
    """A pod failed between the look and the adoption: the mark is taken off, and said."""
    text = export(ROOMY, ONE_MOVE, shop_origin(ROOMY))
    machine = machines(text.replace('    guard "$ns" "$rs" "$hash" "$old"\n', ""))
    say_ready(machine.stub, "cart-7d-b", False)
    assert "ended another pod instead of cart-7d-a" in machine.refused()
    kept = state(machine.stub, "pods", "cart-7d-a")["metadata"]["annotations"]
    assert "controller.kubernetes.io/pod-deletion-cost" not in kept


@NEEDS_TOOLS
def test_undo_leaves_nothing_behind(machines: Machines) -> None:
    """Nodes are uncordoned, copies that nothing owns end, marks go; what was moved stays."""
    items = objects(PODS)
    waits = copy.deepcopy(next(o for o in items if o["metadata"]["name"] == "api-9f-a"))
    waits["metadata"]["name"], waits["status"] = "api-9f-b", {"phase": "Pending"}
    waits["spec"]["nodeSelector"] = {"disk": "none"}
    del waits["spec"]["nodeName"]
    for item in items:
        if item["metadata"]["name"] in ("api", "api-9f"):
            item["spec"]["replicas"] = 2
    machine = machines(export(SHOP, PLAN, shop_origin()), [*items, waits])
    assert "not ready in shop: api-9f-b" in machine.run().stderr
    assert machine.cordoned() == {"n2"}
    assert "StatefulSet shop/db updates OnDelete now" in machine.done("undo")
    store = machine.stub.store
    assert not machine.cordoned()
    assert all(pod["metadata"].get("ownerReferences") for _, pod in store.all("pods"))
    database = state(machine.stub, "statefulsets", "db")
    assert "affinity" not in database["spec"]["template"]["spec"]
    store.drop(("pods", "shop", "api-9f-b"))
    assert machine.places["cart", "n3"]


@NEEDS_TOOLS
def test_undo_scales_back_what_was_stopped(machines: Machines) -> None:
    """Between a stop and its start; the rest of the plan is refused then."""
    text = export(ROOMY, STOP_AND_START, shop_origin(ROOMY))
    machine = machines(text.replace("\nstep 2 ", "\nfail broken\nstep 2 "))
    assert machine.refused() and machine.replicas("web") == 0
    assert "scaled back: shop/web" in machine.done("undo") and machine.replicas("web") == 1
    assert "plan again" in machine.run().stderr
    pods = machine.stub.store.all("pods")
    marks = {mark for _, pod in pods for mark in pod["metadata"].get("annotations") or {}}
    assert not marks - {"placeopt-bound"}


@NEEDS_TOOLS
def test_a_start_is_not_made_twice(machines: Machines) -> None:
    """Killed after all of it, before its number was kept: the Deployment is not scaled again."""
    machine = machines(export(ROOMY, STOP_AND_START, shop_origin(ROOMY)))
    machine.done(DONE="made")
    done = machine.folder / "made"
    done.write_text(done.read_text(encoding="utf-8").replace("\n2\n", "\n"), encoding="utf-8")
    assert "step 1 of 2: already made" in machine.done(DONE="made")
    assert machine.replicas("web") == 1 and machine.places["web", "n3"] == 1


# -- the document ----------------------------------------------------------------------------------


#: A StatefulSet of which two pods wait, as what they ask for now fits no node.
BEHIND: dict[str, tuple[str, str | None, int, int]] = {
    "db-0": ("db", None, 1100, 600),
    "db-1": ("db", None, 1100, 600),
    "web-5c-a": ("web", "n1", 300, 300),
    "api-9f-a": ("api", "n2", 300, 300),
    "cart-7d-a": ("cart", "n3", 900, 900),
}
#: A plan that starts the later one first, and one that knows of no other.
LATER_FIRST = plan_of(("db-1", "n1"), ("db-0", "n2"))
LATER_ALONE = plan_of(("db-1", "n1"))


def behind(plan: dict[str, Any], **changed: tuple[str, str | None, int, int]) -> str:
    """Return the script of a plan for the pods that wait and the plan names."""
    named = {step["microservice"] for step in plan["steps"]}
    pods = BEHIND | {name.replace("_", "-"): pod for name, pod in changed.items()}
    pods = {name: pod for name, pod in pods.items() if pod[1] or name in named}
    instance = shop_of(pods)
    assert instance.evaluate(plan).violations == ()
    return export(instance, plan, origin_of(instance, items_of(pods)))


@NEEDS_TOOLS
def test_pods_of_a_stateful_set_start_in_their_order(machines: Machines) -> None:
    """Two that wait and are alike exchange their steps: a pod is made only after those before."""
    text = behind(LATER_FIRST)
    assert "the script stops before" not in text
    machine = machines(text, objects(BEHIND))
    machine.done()
    nodes = [state(machine.stub, "pods", f"db-{k}")["spec"]["nodeName"] for k in (0, 1)]
    assert nodes == ["n1", "n2"] and machine.places["db", "n1"] == machine.places["db", "n2"] == 1


@NEEDS_TOOLS
@pytest.mark.parametrize("known", [True, False])
def test_a_pod_behind_one_that_waits_is_not_deleted(known: bool, machines: Machines) -> None:
    """Its StatefulSet would not make it anew: the script stops before, and says for which."""
    text = behind(LATER_ALONE)
    if known:  # of another size, so that they cannot exchange their steps
        text = behind(LATER_FIRST, db_0=("db", None, 1100, 800), api_9f_a=("api", "n2", 200, 200))
    assert ("does only when db-0 is ready" in text) == known
    machine = machines(text, objects(BEHIND))
    assert "makes its pods in their order, and not ready are: db-0." in machine.refused()
    assert "db-1" in machine.names()


@NEEDS_TOOLS
def test_parallel_stateful_sets_start_in_any_order(machines: Machines) -> None:
    """And one whose numbers begin later has nothing before its first."""
    for k, spec in enumerate(
        ({"podManagementPolicy": "Parallel"}, {"replicas": 1, "ordinals": {"start": 1}})
    ):
        items = objects(BEHIND)
        for item in items:
            if item["kind"] == "StatefulSet":
                item["spec"] |= spec
        if k:
            items = [i for i in items if i["metadata"]["name"] != "db-0"]
        machine = machines(behind(LATER_ALONE), items, at=str(k))
        machine.done()
        assert state(machine.stub, "pods", "db-1")["spec"]["nodeName"] == "n1"


@NEEDS_TOOLS
def test_a_pod_that_does_not_come_back_ends_the_wait(machines: Machines) -> None:
    """As its StatefulSet was scaled down: an error after the wait, not a script that hangs."""
    text = behind(LATER_ALONE)
    items = [i for i in objects(BEHIND) if i["metadata"]["name"] != "db-0"]
    for item in items:
        if item["kind"] == "StatefulSet":
            item["spec"] |= {"replicas": 1, "ordinals": {"start": 1}}
    machine = machines(text, items)
    machine.stub.cluster.make = lambda item, name: None  # type: ignore[method-assign]
    assert "not made anew after 0s" in machine.run(WAIT="0s").stderr


def test_steps_say_what_they_interrupt() -> None:
    """Stops, hops and StatefulSets stand out, per step and above all steps."""
    made = steps.steps(SHOP, PLAN, shop_origin())
    assert [s.action for s in made] == ["restart", "hop", "move", "move", "stop", "move", "start"]
    assert [s.number for s in made if s.empties] == [5]
    assert [s.number for s in made if s.cordon] == [3]
    told = steps.warnings(made)
    words = ("1 of 7 steps stop", "StatefulSets", "hops")
    assert all(word in text for word, text in zip(words, told, strict=True))
    assert "disruption" in str(made[4].warning) and made[3].warning is None
    assert "cannot run twice" in str(made[1].warning)
    assert made[6].at is not None and made[6].at.pod is None


@pytest.mark.parametrize("kind", ["rolling-update", "rescheduling"])
def test_exported_steps_are_the_plan(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every point of a front, exported without an origin and replayed, has its values again.

    `evaluate` says so too.
    """
    instance = min((INSTANCES / kind).glob("*.json"))
    problem = placeopt.load(instance)
    front = placeopt.solve(problem, "repack" if kind == "rolling-update" else "greedy", seed=1)
    for point in front.points:
        text = export(problem, point.plan, form="json")
        plan, sha = script.replay(parse_json(text))
        verdict = problem.evaluate(plan)
        assert sha == problem.instance_name.sha256 and verdict.feasible
        assert verdict.values == point.values
        assert plan == problem.read_plan(point.plan)  # type: ignore[attr-defined]
    jsonschema = pytest.importorskip("jsonschema")
    ended("schema", "steps")
    jsonschema.validate(parse_json(text), parse_json(capfd.readouterr().out))
    (tmp_path / "steps.json").write_text(text, encoding="utf-8")
    assert ended("evaluate", str(instance), str(tmp_path / "steps.json")) == 0
    values = parse_json(capfd.readouterr().out)["values"].values()
    assert tuple(values) == tuple(front.points[-1].values)


def test_replicas_of_a_service_are_followed() -> None:
    """A rescheduling plan names services and nodes: the first replica there goes.

    Also after it has moved.
    """
    names = ("n1", "n2", "n3")
    kind = {"kind": "k", "cpu_cores": 4, "memory_gib": 4, "user_latency_ms": 1}
    service = {"name": "front", "cpu_cores": 1, "memory_gib": 1, "replicas": ["n1", "n1"]}
    document = {
        "problem": "rescheduling",
        "name": "x",
        "nodes": [{"name": n, **kind} for n in names],
        "latency_ms": {a: {b: 1 for b in names if b > a} for a in names[:2]},
        "services": [service | {"execution_ms": {"k": 1}}],
        "gateway": "front",
    }
    problem = from_document(document)
    assert isinstance(problem, Rescheduling)
    about = {"namespace": "shop", "kind": "Deployment", "name": "front"}
    replicas = [{"pod": f"front-1-{k}", "node": "n1"} for k in "ab"]
    origin = origin_of(problem, {"front": about | {"replicas": replicas}})
    moves = (("n1", "n2"), ("n2", "n3"), ("n1", "n3"))
    plan = {"moves": [{"service": "front", "from": a, "to": b} for a, b in moves]}
    made = steps.steps(problem, plan, origin)
    pods = [(s.at.pod, s.at.new_pod) for s in made if s.at is not None]
    assert [old for old, _ in pods] == ["front-1-a", pods[0][1], "front-1-b"]
    assert len({new for _, new in pods}) == 3
    cordons = [(False, False), (True, True), (True, True)]
    assert [(s.cordon, s.empties) for s in made] == cordons or made[0].cordon
    with pytest.raises(UnsupportedError, match="no running pod"):
        steps.steps(problem, plan, origin_of(problem, {"front": about}))


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
    with pytest.raises((UnsupportedError, DocumentError), match=message) as refused:
        export(SHOP, PLAN, shop_origin(**changes))
    if isinstance(refused.value, UnsupportedError):  # as JSON it is a plan all the same
        told = parse_json(export(SHOP, PLAN, shop_origin(**changes), form="json"))
        assert "have no commands" in told["warnings"][0] and len(told["steps"]) == len(MOVES)


@NEEDS_TOOLS
def test_names_of_the_instance_are_not_run(tmp_path: Path, machines: Machines) -> None:
    """Applications and instances may have any name: in the script it is a comment or quoted."""
    hostile = "$(touch hurt) `touch hurt`\n\"; touch hurt #'@title@ {ns}"
    document = ROOMY.to_document() | {"name": hostile}
    document["applications"][0]["name"] = hostile
    problem = from_document(document)
    items = {k.replace("shop/", f"{hostile}/"): item for k, item in items_of(PODS).items()}
    plan = plan_of(("cart-7d-a", "n3"), application=hostile)
    machine = machines(export(problem, plan, origin_of(problem, items)))
    assert machine.done() and machine.places["cart", "n3"] == 1
    assert not list(tmp_path.glob("hurt*"))


def test_what_the_importer_made_up_is_passed_over() -> None:
    """A step that restarts an anchor in place is none for a cluster."""
    items = items_of(PODS)
    virtual = {"kind": "Virtual", "namespace": "", "name": "only-1.placeopt", "pod": None}
    items["shop/db-0"] |= virtual
    text = export(SHOP, PLAN, origin_of(SHOP, items))
    assert "db-0" not in text and text.count("\nstep ") == len(MOVES) - 2


def test_wrong_asks_are_refused() -> None:
    """Plans that break the instance, foreign origins, unknown forms, commands without an origin."""
    other: Any = from_document(SHOP.to_document() | {"name": "other"})
    with pytest.raises(DocumentError, match=r"the plan breaks the .*stopped and never started"):
        export(SHOP, plan_of(*MOVES[:-1]), form="json")
    with pytest.raises(DocumentError, match="belongs to 'other'"):
        export(SHOP, PLAN, shop_origin(other))
    with pytest.raises(UnsupportedError, match="cannot become 'karmada'; legal: commands, json"):
        export(SHOP, PLAN, form="karmada")
    with pytest.raises(UsageError, match="give --origin"):
        export(SHOP, PLAN)
    with pytest.raises(UnsupportedError, match="are not Kubernetes objects"):
        export(placeopt.load(INSTANCES / "temporal" / "toy.json"), {})


# -- the command -----------------------------------------------------------------------------------


def test_the_command_writes_a_script_that_can_be_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The origin is found beside the instance; warnings go to stderr; the default is the knee."""
    shop, plan, sh, again = (
        str(tmp_path / n) for n in ("shop.json", "plan.json", "s.sh", "s.json")
    )
    SHOP.write(Path(shop))
    origins.write(tmp_path / "shop.origin.json", shop_origin())
    Path(plan).write_text(json.dumps(PLAN), encoding="utf-8")
    assert ended("export", "kubernetes", plan, "--instance", shop, "-o", sh) == 0
    out, err = capfd.readouterr()
    assert out == "" and "warning: 1 of 7 steps stop" in err
    assert os.access(sh, os.X_OK) and subprocess.run(["bash", "-n", sh]).returncode == 0
    Path(again).write_text(export(SHOP, PLAN, form="json"), encoding="utf-8")
    ended("export", "kubernetes", again, "--instance", shop)  # steps become the same script again
    assert capfd.readouterr().out == Path(sh).read_text(encoding="utf-8")
    for wrong, message in (
        ((shop, "--instance", shop), "not a plan"),
        ((plan, "--instance", plan), "problem: this field is missing"),
        ((plan, "--instance", shop, "--point", "2"), "leave it out"),
        (
            (plan, "--instance", shop, "--origin", shop),
            "this is a rolling-update instance, not an origin",
        ),
    ):
        assert ended("export", "kubernetes", *wrong) == 2
        assert message in capfd.readouterr().err


def test_importing_the_commands_loads_nothing_heavy() -> None:
    """Neither yaml nor numba, until a command needs them."""
    modules = "placeopt.cli, placeopt.kubernetes.export, placeopt.report"
    heavy = "('yaml', 'matplotlib', 'numba')"
    code = f"import sys, {modules}\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]" and importlib.util.find_spec("yaml") is not None


def test_the_command_says_when_steps_have_no_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """JSON without an origin is a plan to read, not one to run: stderr and the file say so."""
    SHOP.write(tmp_path / "shop.json")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    plan, shop = (str(tmp_path / name) for name in ("plan.json", "shop.json"))
    assert ended("export", "kubernetes", plan, "--instance", shop, "--format", "json") == 0
    out, err = capfd.readouterr()
    said = "7 of 7 steps have no commands: the names of the cluster are not known; give --origin"
    assert json.loads(out)["warnings"][0] == said
    assert err.splitlines()[0] == f"warning: {said}"
