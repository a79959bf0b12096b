"""Plans and exported scripts on a real control plane; writes control_plane.md.

    python benchmarks/kubernetes/control_plane.py FOLDER [--kubectl PATH ...] [--kills 30]

FOLDER (or the environment variable PLACEOPT_CONTROL_PLANE) has the programs etcd, kube-apiserver,
kube-scheduler and kube-controller-manager, of Kubernetes 1.22 or later. All listen on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests" / "support")]
import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from made_clusters import kinds_of_rules, made_cluster, prices  # noqa: E402
from real_cluster import (  # noqa: E402
    GRACE_SECONDS,
    PROGRAMS,
    READY_SECONDS,
    ControlPlane,
    Json,
    owner,
    ready,
)
from shop import Pods, items_of  # noqa: E402
from stub_shop import (  # noqa: E402
    PLAN,
    PODS,
    WAITING_PLAN,
    WAITING_PODS,
    ScriptRunner,
    objects,
    problem,
)

from placeopt import cli  # noqa: E402
from placeopt.core.fronts.front import Front  # noqa: E402
from placeopt.kubernetes.export import export  # noqa: E402
from placeopt.kubernetes.origin import Origin  # noqa: E402

#: What the documentation tells to dump.
KINDS = (
    "nodes,pods,replicasets,deployments,services,poddisruptionbudgets,pvc,pv,namespaces,limitranges"
)
#: Changes after which a run is killed, and at most so many seconds after that.
WRITES, AFTER_SECONDS = (1, 6), 0.5
#: Verbs of kubectl that change something.
CHANGING = "create|annotate|label|scale|delete|cordon|uncordon|patch|replace|set"
#: Nodes of the generated clusters, and seconds that a plan of one may take.
SIZES, LIMIT_SECONDS = (10, 11, 12, 13, 15, 17, 20, 24, 28, 32, 36, 40), 10
#: Of a front, the cheapest plan of at most so many steps is run.
MOST_STEPS = 40
SPACES = ("shop", "data")
#: The scheduler tries a pod again after 10 s at most when something changed that may help it.
QUIET_SECONDS = 12


def cpu_seconds(who: int) -> float:
    """Return the CPU seconds of this process, or of those that it started."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def wait_for(done: Callable[[], bool], what: str, seconds: float = 900) -> None:
    """Wait until something is so.

    Raises
    ------
    SystemExit
        When it is not so in time.
    """
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not so after {seconds:.0f} s")
        time.sleep(0.2)


# -- what is in the cluster ------------------------------------------------------------------------


def create(plane: ControlPlane, item: Json) -> None:
    """Make an object."""
    kind, about = item["kind"], item["metadata"]
    group = "/apis/apps/v1" if item["apiVersion"] == "apps/v1" else "/api/v1"
    space = f"/namespaces/{about['namespace']}" if "namespace" in about else ""
    plane.client.ask("POST", f"{group}{space}/{kind.lower()}s", item)


def patch(plane: ControlPlane, path: str, change: Json) -> None:
    """Change an object by a merge patch."""
    plane.client.ask("PATCH", path, change, "application/merge-patch+json")


def clear(plane: ControlPlane) -> None:
    """Take all workloads, pods, volumes and nodes away."""
    background = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    for space in SPACES:
        for plural in ("deployments", "statefulsets", "daemonsets"):
            where = f"/apis/apps/v1/namespaces/{space}/{plural}"
            plane.client.ask("DELETE", where, background)
    left = ["/api/v1/pods", "/apis/apps/v1/replicasets"]
    wait_for(lambda: not any(plane.client.items(where) for where in left), "no pods")
    for space in SPACES:
        plane.client.ask("DELETE", f"/api/v1/namespaces/{space}/persistentvolumeclaims", background)
    plane.client.ask("DELETE", "/api/v1/persistentvolumes", background)
    plane.client.ask("DELETE", "/api/v1/nodes", background)
    left = ["/api/v1/persistentvolumes", "/api/v1/nodes"]
    wait_for(lambda: not any(plane.client.items(where) for where in left), "no nodes")


def real_node(item: Json) -> Json:
    """Return a node as a kubelet would register it."""
    status = item["status"] | {"capacity": item["status"]["allocatable"]}
    known = {"apiVersion": "v1", "kind": "Node", "metadata": item["metadata"], "status": status}
    return known | {"spec": item.get("spec", {})}


def placed(plane: ControlPlane) -> Counter[tuple[str, str, str]]:
    """Count the pods that are ready by namespace, workload and node."""
    return Counter(
        (p["metadata"]["namespace"], app_of(p), p["spec"]["nodeName"])
        for p in plane.client.items("/api/v1/pods")
        if ready(p)
    )


def settled(plane: ControlPlane) -> bool:
    """Return whether every workload has its pods, and each runs or finds no node."""
    for plural, wanted in (("replicasets", "replicas"), ("statefulsets", "replicas")):
        for item in plane.client.items(f"/apis/apps/v1/{plural}"):
            if item["status"].get("replicas", 0) != item["spec"][wanted]:
                return False
    for item in plane.client.items("/apis/apps/v1/deployments"):
        if item["status"].get("replicas", 0) != item["spec"]["replicas"]:
            return False
    for item in plane.client.items("/apis/apps/v1/daemonsets"):
        said = item["status"]
        if not said["desiredNumberScheduled"] == said["numberReady"] == nodes_of(plane):
            return False
    pods = plane.client.items("/api/v1/pods")
    return all(ready(p) or refused(p) for p in pods)


def prepared(plane: ControlPlane) -> bool:
    """Return whether the controllers freed new nodes of their taints and bound all claims."""
    nodes = plane.client.items("/api/v1/nodes")
    taints = [t["key"] for node in nodes for t in node["spec"].get("taints", [])]
    claims = plane.client.items("/api/v1/persistentvolumeclaims")
    bound = all(c["status"].get("phase") == "Bound" for c in claims)
    return bound and "node.kubernetes.io/not-ready" not in taints


def quiet(plane: ControlPlane) -> bool:
    """Return whether all is settled, and nothing changes while the scheduler tries again."""
    return time.monotonic() - plane.kubelets.changed > QUIET_SECONDS and settled(plane)


def nodes_of(plane: ControlPlane) -> int:
    """Return the number of nodes."""
    return len(plane.client.items("/api/v1/nodes"))


def refused(pod: Json) -> bool:
    """Return whether the scheduler says that no node takes a pod."""
    said = pod["status"].get("conditions", [])
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in said)


# -- scripts ---------------------------------------------------------------------------------------


class RealRunner(ScriptRunner):
    """A folder with a script, and a kubectl that counts what changes something.

    It has the rights that docs/export.md lists, and no more.
    """

    def __init__(self, plane: ControlPlane, folder: Path, kubectl: str):
        super().__init__(plane, folder, kubectl)  # type: ignore[arg-type]
        self.calls, self.changes = folder / "calls", folder / "changes"
        shim = folder / "bin" / "kubectl"
        shim.unlink()
        lines = [
            "#!/bin/bash",
            f"echo x >>'{self.calls}'",
            f'for w in "$@"; do case "$w" in {CHANGING}) echo x >>\'{self.changes}\'; break;;',
            "get) break;; esac; done",
            f"exec '{kubectl}' \"$@\"",
        ]
        shim.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shim.chmod(0o755)
        self.environment |= {"PATIENCE": "30s", "WAIT": "300s"}

    def count(self, of: Path) -> int:
        """Return how many lines a file has."""
        return len(of.read_bytes()) // 2 if of.exists() else 0

    def attempt(self, kill_at: int | None = None, after: float = 0.0) -> tuple[int, str]:
        """Run the script; kill it and all that it started after so many more changes.

        Returns
        -------
        tuple
            The exit code, negative when it was killed, and what it said.
        """
        last = self.count(self.changes) + kill_at if kill_at is not None else None
        with (self.folder / "said").open("w+", encoding="utf-8") as said:
            process = subprocess.Popen(
                ["bash", "steps.sh"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
            )
            while process.poll() is None:
                if last is not None and self.count(self.changes) >= last:
                    time.sleep(after)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                time.sleep(0.01)
            said.seek(0)
            return process.returncode, said.read()


def grant(plane: ControlPlane) -> None:
    """Give whoever runs scripts the rights that the documentation lists."""
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    rules = [yaml.safe_load(line[2:]) for line in re.findall(r"^- \{apiGroups.*$", page, re.M)]
    where = "/apis/rbac.authorization.k8s.io/v1"
    about = {"apiVersion": where[6:], "metadata": {"name": "mover"}}
    plane.client.ask(
        "POST", f"{where}/clusterroles", {"kind": "ClusterRole", **about, "rules": rules}
    )
    who = {"kind": "Group", "name": "movers", "apiGroup": "rbac.authorization.k8s.io"}
    what = {"kind": "ClusterRole", "name": "mover", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"kind": "ClusterRoleBinding", **about, "subjects": [who], "roleRef": what}
    plane.client.ask("POST", f"{where}/clusterrolebindings", bound)
    for space in SPACES:
        about = {"name": space, "labels": {"team": space[0]}}
        create(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": about})


# -- the shop --------------------------------------------------------------------------------------


def open_shop(plane: ControlPlane, shop: Pods) -> dict[str, Json]:
    """Start a shop, node by node, then what waits; return name in the plan -> pod."""
    kinds, there = ("Deployment", "StatefulSet"), objects(shop)
    made = {o["metadata"]["name"]: o for o in there if o["kind"] in kinds}
    for item in there:
        if item["kind"] == "Node":
            create(plane, real_node(item | {"spec": {"unschedulable": True}}))
    wanted: Counter[str] = Counter()
    for node in ("n1", "n2", "n3"):
        patch(plane, f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
        for workload in [w for w, where, *_ in shop.values() if where == node]:
            _one_more(plane, made[workload], wanted[workload])
            wanted[workload] += 1
        wait_for(lambda: placed(plane).total() == wanted.total(), f"pods on {node}")
        patch(plane, f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    for node in ("n1", "n2", "n3"):
        patch(plane, f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
    for workload in [w for w, where, *_ in shop.values() if where is None]:
        _one_more(plane, made[workload], 0)
    wait_for(lambda: settled(plane), "the shop runs")
    pods = plane.client.items("/api/v1/pods")
    at = {(p["metadata"]["labels"]["app"], p["spec"].get("nodeName")): p for p in pods}
    return {name: at[workload, node] for name, (workload, node, *_) in shop.items()}


def _one_more(plane: ControlPlane, item: Json, have: int) -> None:
    """Make a workload of one replica, or scale it up by one."""
    plural = f"{item['kind'].lower()}s"
    if have:
        path = f"/apis/apps/v1/namespaces/shop/{plural}/{item['metadata']['name']}"
        patch(plane, path, {"spec": {"replicas": have + 1}})
        return
    spec = item["spec"] | {"replicas": 1}
    if item["kind"] == "StatefulSet":
        spec["serviceName"] = item["metadata"]["name"]
    create(plane, item | {"apiVersion": "apps/v1", "spec": spec})


def shop_origin(plane: ControlPlane, shop: Pods, pods: dict[str, Json]) -> Origin:
    """Return what the names of the plan are in the cluster."""
    items = items_of(shop)
    for name, pod in pods.items():
        items[f"shop/{name}"] |= {"pod": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    name = problem(shop).instance_name
    about = {"problem": name.problem, "name": name.name, "sha256": name.sha256}
    uid = plane.client.ask("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
    return Origin.model_validate({"instance": about, "items": items, "cluster": uid})


def shop_plan(plane: ControlPlane, kubectl: str, kills: int, rng: random.Random) -> dict[str, Any]:
    """Run the script until it is done, killed `kills` times at most; return what came out."""
    clear(plane)
    pods = open_shop(plane, PODS)
    [cart] = {owner(pods[name]) for name in ("cart-7d-a", "cart-7d-b")}
    with tempfile.TemporaryDirectory() as folder:
        runner, runs, killed = RealRunner(plane, Path(folder), kubectl), 0, 0
        runner.write(export(problem(), PLAN, shop_origin(plane, PODS, pods)))
        plane.kubelets.count()
        begin = cpu_seconds(resource.RUSAGE_CHILDREN)
        while True:
            runs += 1
            kill_at = rng.randint(*WRITES) if killed < kills else None
            code, said = runner.attempt(kill_at, rng.uniform(0, AFTER_SECONDS))
            if code == 0:
                break
            if code > 0:
                raise SystemExit(f"kubectl {kubectl}: {said}")
            killed += 1
        wait_for(lambda: settled(plane), "the shop runs")
        node = plane.client.ask("GET", "/api/v1/nodes/n2")
        return {
            "runs": runs,
            "kills": killed,
            "planned": placed(plane) == SHOP_AFTER and node["spec"].get("unschedulable", False),
            "least": plane.kubelets.least[cart],
            "rollouts": rollouts(plane),
            "marks": len(marks(plane)),
            "calls": runner.count(runner.calls),
            "changes": runner.count(runner.changes),
            "cpu": cpu_seconds(resource.RUSAGE_CHILDREN) - begin,
        }


SHOP_AFTER = Counter(
    [("shop", "cart", "n3"), ("shop", "cart", "n1"), ("shop", "db", "n1"), ("shop", "web", "n3")]
)


def waiting_shop(plane: ControlPlane, kubectl: str) -> str:
    """Make room for a pod that waits; return what the script says, and where the pod is."""
    clear(plane)
    pods = open_shop(plane, WAITING_PODS)
    shop, late = problem(WAITING_PODS), pods["late-9f-a"]["metadata"]["name"]
    with tempfile.TemporaryDirectory() as folder:
        runner = RealRunner(plane, Path(folder), kubectl)
        runner.write(export(shop, WAITING_PLAN, shop_origin(plane, WAITING_PODS, pods)))
        code, said = runner.attempt()
    [there] = [p for p in plane.client.items("/api/v1/pods") if app_of(p) == "late"]
    who = "the pod itself" if there["metadata"]["name"] == late else "a copy"
    where = there["spec"].get("nodeName", "no node")
    return f"exit code {code}; on {where}: {who}{'' if code == 0 else f' ({said[-300:]})'}"


def app_of(pod: Json) -> str:
    """Return the name of the workload of a pod."""
    name: str = pod["metadata"]["labels"]["app"]
    return name


def rollouts(plane: ControlPlane) -> int:
    """Return how many ReplicaSets there are beyond one for each Deployment."""
    sets = plane.client.items("/apis/apps/v1/replicasets")
    return len(sets) - len(plane.client.items("/apis/apps/v1/deployments"))


def marks(plane: ControlPlane) -> set[str]:
    """Return what scripts left at pods, beside the node that a copy is bound to."""
    ours = ("placeopt-", "controller.kubernetes.io/pod-deletion-cost")
    found = {
        mark
        for pod in plane.client.items("/api/v1/pods")
        for mark in pod["metadata"].get("annotations", {})
    }
    return {mark for mark in found if mark.startswith(ours)} - {"placeopt-bound"}


SHOP_COLUMNS = (
    "kubectl",
    "runs",
    "kills",
    "ended as planned",
    "fewest ready of 2",
    "rollouts",
    "marks left",
    "calls of kubectl, of them changes",
    "CPU s",
)


def shop_row(plane: ControlPlane, kubectl: str, kills: int, seed: int) -> list[Any]:
    """Return the row of a kubectl: plans one after another until there are enough kills."""
    rng, plans = random.Random(seed), list[dict[str, Any]]()
    while not plans or sum(p["kills"] for p in plans) < kills:
        plans.append(shop_plan(plane, kubectl, kills - sum(p["kills"] for p in plans), rng))
        print(plans[-1], flush=True)
    total = {key: sum(p[key] for p in plans) for key in plans[0]}
    return [
        version(kubectl),
        total["runs"],
        total["kills"],
        f"{total['planned']} of {len(plans)} plans",
        min(p["least"] for p in plans),
        total["rollouts"],
        total["marks"],
        f"{total['calls']}, {total['changes']}",
        f"{total['cpu']:.1f}",
    ]


def version(kubectl: str) -> str:
    """Return the version that a kubectl says."""
    line = [kubectl, "version", "--client", "-o", "json"]
    said = subprocess.run(line, capture_output=True, text=True, check=True)
    found: str = json.loads(said.stdout)["clientVersion"]["gitVersion"]
    return found


# -- generated clusters ----------------------------------------------------------------------------


def workloads(made: list[Json]) -> list[Json]:
    """Return the objects of a generated cluster, its pods as the workloads that have such pods."""
    found = [real_node(o) for o in made if o["kind"] == "Node"]
    for volume in (o for o in made if o["kind"] == "PersistentVolume"):
        found += _volumes(volume)
    pods: dict[tuple[str, str, str], list[Json]] = {}
    for pod in (o for o in made if o["kind"] == "Pod"):
        [reference] = pod["metadata"]["ownerReferences"]
        about = pod["metadata"]
        key = about["namespace"], reference["kind"], about["labels"]["app"]
        pods.setdefault(key, []).append(pod)
    return found + [_workload(key, group) for key, group in pods.items()]


def _volumes(volume: Json) -> list[Json]:
    """Return a volume and its claim for each namespace: a real volume has one claim."""
    found, zone = [], volume["metadata"]["name"].removeprefix("pv-")
    for space in SPACES:
        name, one = f"pv-{zone}-{space}", {"storageClassName": ""}
        spec = volume["spec"] | one | {"nfs": {"server": "nfs", "path": "/"}}
        asked = {"volumeName": name, "accessModes": ["ReadWriteMany"]} | one
        asked |= {"resources": {"requests": {"storage": "1Gi"}}}
        about = {"name": f"data-{zone}", "namespace": space}
        found += [
            {"apiVersion": "v1", "kind": k, "metadata": m, "spec": s}
            for k, m, s in (
                ("PersistentVolume", {"name": name}, spec),
                ("PersistentVolumeClaim", about, asked),
            )
        ]
    return found


def _workload(key: tuple[str, str, str], pods: list[Json]) -> Json:
    space, kind, app = key
    kind = "Deployment" if kind == "ReplicaSet" else kind
    labels = {k: v for k, v in pods[0]["metadata"]["labels"].items() if k != "pod-template-hash"}
    inside = {k: v for k, v in pods[0]["spec"].items() if k != "nodeName"}
    for container in inside.get("initContainers", []):
        container["name"] = "init"  # names of a pod's containers are its own
    for container in inside["containers"]:  # of GPUs and their like no more may be had than asked
        asked = container["resources"]["requests"]
        container["resources"]["limits"] = {r: x for r, x in asked.items() if "/" in r}
    spec: Json = {"selector": {"matchLabels": {"app": app}}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": inside}
    if kind != "DaemonSet":
        spec["replicas"] = len(pods)
    if kind == "StatefulSet":
        spec |= {"serviceName": app, "podManagementPolicy": "Parallel"}
    about = {"name": app, "namespace": space}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": about, "spec": spec}


def command(*arguments: str) -> str:
    """Run a command of placeopt; return why it failed, or nothing."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            cli.main(list(arguments))
            code: Any = 0
        except SystemExit as end:
            code = end.code
    return f"placeopt {arguments[0]}: {said.getvalue()}" if code else ""


def newer_fields(items: list[Json]) -> int:
    """Return how often pods say `minDomains` or `nodeTaintsPolicy`."""
    specs = [item.get("spec", {}) for item in items]
    spreads = [one for spec in specs for one in spec.get("topologySpreadConstraints", [])]
    return sum(key in spread for spread in spreads for key in ("minDomains", "nodeTaintsPolicy"))


class Fleet:
    """A generated cluster in the real control plane, and the plan that is made of its dump."""

    def __init__(self, plane: ControlPlane, seed: int, nodes: int, folder: Path):
        self.plane, self.seed, self.nodes, self.folder = plane, seed, nodes, folder
        self.made = made_cluster(seed, nodes)

    def start(self) -> None:
        """Make everything, and let the scheduler place the pods."""
        plane = self.plane
        clear(plane)
        ahead, last = workloads(self.made), list[Json]()
        for item in ahead:
            if item["apiVersion"] == "apps/v1":
                last.append(item)
            else:
                create(plane, item)
        wait_for(lambda: prepared(plane), "nodes and volumes")
        for item in last:
            create(plane, item)
        wait_for(lambda: quiet(plane), f"cluster {self.seed} runs")

    def plan(self, runner: RealRunner) -> str:
        """Dump, import, solve, export; return why not, or nothing."""
        names = ("cluster.json", "prices.csv", "shop.json", "front.json", "steps.sh", "steps.json")
        dump, book, instance, front, script, steps = (str(self.folder / n) for n in names)
        Path(book).write_text(prices(), encoding="utf-8")
        admin = self.plane.folder / "admin.json"
        with Path(dump).open("wb") as out:
            line = ["kubectl", f"--kubeconfig={admin}", "get", KINDS, "-A", "-o", "json"]
            subprocess.run(line, env=runner.environment, stdout=out, check=True)
        found = command(
            *("import", "kubernetes", dump, "--to", "rolling-update", "--prices", book),
            *("--unplaceable", "leave-out", "-o", instance),
        ) or command(
            *("solve", instance, "--method", "repack", "--time-limit", str(LIMIT_SECONDS)),
            *("--seed", str(self.seed), "-o", front),
        )
        if found:
            return found
        points = Front.read(front).points
        self.before = json.loads(Path(instance).read_text(encoding="utf-8"))
        costs = [p.values[0] if len(p.plan["steps"]) <= MOST_STEPS else 1e9 for p in points]
        point = ["--instance", instance, "--point", str(costs.index(min(costs)))]
        self.cost, self.rules = min(costs), len(self.before.get("rules", ()))
        found = command("export", "kubernetes", front, *point, "-o", script) or command(
            "export", "kubernetes", front, *point, "--format", "json", "-o", steps
        )
        if not found:
            self.steps = json.loads(Path(steps).read_text(encoding="utf-8"))
        return found

    def expected(self, before: Counter[tuple[str, str, str]]) -> Counter[tuple[str, str, str]]:
        """Return where the plan says that pods are at the end."""
        after = Counter(before)
        for step in self.steps["steps"]:
            mine = step["workload"]["namespace"], step["workload"]["name"]
            if step["from"] is not None:
                after[*mine, step["from"]] -= 1
            if step["to"] is not None:
                after[*mine, step["to"]] += 1
        return +after


FLEET_COLUMNS = (
    "cluster",
    "nodes",
    "pods",
    "of them with rules",
    "waiting",
    "newer fields kept",
    "rules",
    "steps",
    "made",
    "pods where the plan says",
    "`FailedScheduling` of copies",
    "planned disruptions",
    "fell below their ready count otherwise",
    "other pods touched",
    "marks left",
    "nodes in use",
    "CPU s: plan",
    "script",
    "control plane",
)
STEPS = FLEET_COLUMNS.index("steps")


def fleet_row(plane: ControlPlane, kubectl: str, seed: int, nodes: int) -> tuple[list[Any], str]:
    """Return the row of a cluster, and what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = plane.cpu_seconds()
        runner, fleet = RealRunner(plane, folder, kubectl), Fleet(plane, seed, nodes, folder)
        fleet.start()
        pods = plane.client.items("/api/v1/pods")
        head = [seed, nodes, len(pods), kinds_of_rules(fleet.made), sum(map(refused, pods))]
        head.append(f"{newer_fields(pods)} of {newer_fields(fleet.made)}")
        planning = cpu_seconds(resource.RUSAGE_SELF)
        if wrong := fleet.plan(runner):
            return [*head, *["-"] * (len(FLEET_COLUMNS) - len(head))], wrong
        planning = cpu_seconds(resource.RUSAGE_SELF) - planning
        found, wrong = run_plan(plane, runner, fleet, pods)
        cpu = [planning, found.pop(), plane.cpu_seconds() - begin]
        return [*head, fleet.rules, *found, *(f"{s:.1f}" for s in cpu)], wrong


def run_plan(
    plane: ControlPlane, runner: RealRunner, fleet: Fleet, pods: list[Json]
) -> tuple[list[Any], str]:
    """Run the script of a cluster; return what came out, and what went wrong."""
    before, steps = placed(plane), fleet.steps["steps"]
    plane.kubelets.count()
    start, begin = dict(plane.kubelets.least), cpu_seconds(resource.RUSAGE_CHILDREN)
    code, said = runner.attempt()
    used = cpu_seconds(resource.RUSAGE_CHILDREN) - begin
    wait_for(lambda: settled(plane), "the cluster rests")
    after, expected = placed(plane), fleet.expected(before)
    done = (fleet.folder / f"placeopt-{fleet.steps['plan_id']}.done").read_text().split("\n")
    least = plane.kubelets.least
    fewer = most_down(steps)
    apps = {owner(p): (p["metadata"]["namespace"], app_of(p)) for p in pods}
    fell = [k for k in start if k[1] and least.get(k, start[k]) < start[k] - fewer[apps[k]]]
    named = {step["pod"] for step in steps}
    alive = {p["metadata"]["uid"] for p in plane.client.items("/api/v1/pods") if ready(p)}
    touched = [
        p["metadata"]["name"]
        for p in pods
        if ready(p) and p["metadata"]["name"] not in named and p["metadata"]["uid"] not in alive
    ]
    wrong = "" if code == 0 else said[-1500:]
    if difference := (expected - after) + (after - expected):
        wrong += f" expected less found: {expected - after}; found less expected: {difference}"
    for space, name in fell:
        wrong += f" {space}/{name} had {least[space, name]} ready of {start[space, name]}"
    found = [
        len(steps),
        sum(line.isdigit() for line in done),
        f"{(after & expected).total()} of {expected.total()}",
        refusals(plane, fleet.steps["plan_id"]),
        sum(step["disruption"] for step in steps),
        len(fell),
        len(touched),
        len(marks(plane)),
        f"{in_use(before)} -> {in_use(after)}",
    ]
    return [*found, used], wrong


def most_down(steps: list[Json]) -> Counter[tuple[str, str]]:
    """Return by workload how many of its pods a plan has down at a time."""
    now, most = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for step in steps:
        mine = step["workload"]["namespace"], step["workload"]["name"]
        now[mine] += step["disruption"]
        most[mine] = max(most[mine], now[mine])
        now[mine] -= step["to"] is not None and now[mine] > 0
    return most


def in_use(where: Counter[tuple[str, str, str]]) -> int:
    """Return on how many nodes pods run, beside those of the DaemonSet."""
    return len({node for _, workload, node in where if workload != "agent"})


def refusals(plane: ControlPlane, plan: str) -> int:
    """Return how often the scheduler refused a copy of a plan."""
    where = "/api/v1/events?fieldSelector=reason%3DFailedScheduling"
    return sum(
        max(1, event.get("count") or 1)
        for event in plane.client.items(where)
        if f"-po{plan}-" in event["involvedObject"]["name"]
    )


# -- the page --------------------------------------------------------------------------------------

ABOUT = """\
The control plane is real: {versions}, on loopback, with an etcd of its own. {built}

What is not there are machines: the stub of `benchmarks/kubernetes/real_cluster.py` says of a pod
that was bound to a node that it is ready after {ready:g} s, takes a deleted one away after
{grace:g} s, and renews the leases of the nodes. So nothing here tells of images, probes,
networks or disks. Everything else is what users have: kubectl, jq, bash, the script, and an account
with the rights that [docs/export.md](../../docs/export.md) lists.
"""
ABOUT_SHOP = """\
The plan has three nodes, four pods and five steps: a move, a stop and a start, a restart at a new
size, a pod of a StatefulSet; the emptied node is cordoned. A run is killed, with all that it
started, up to {after:g} s after it began its {fewest}st to {most}th change, and started again until
all is done.

Expected: every plan ends as planned; the Deployment of two replicas never has fewer than 2 ready;
nothing rolls out; no mark is left at a pod.
"""
ABOUT_WAITING = """\
A pod of 800 m waits: no node has room. The plan's first move makes room for it on n1, where the
second move goes; its own node is n2. The scheduler does not wait for the third step: so the script
has the Deployment ask for that replica at its step, and not before. Expected: exit code 0, and the
pod on n2. Found: {waiting}.

Clusters with waiting pods are in the next table, too.
"""
ABOUT_FLEETS = """\
`tests/support/made_clusters.py` makes nodes and workloads: required and preferred spread,
anti-affinity and affinity per node and zone, in one namespace and between two, node selectors,
taints, GPUs, ephemeral storage, pods per node, volumes of one zone, init containers, host ports, a
DaemonSet, StatefulSets, a cordoned node. Kubernetes has `minDomains` since
1.24 and `nodeTaintsPolicy` since 1.25. An older API server drops them without a word: "newer fields
kept" counts what is left of them.

The real scheduler places the pods. Then, for each cluster: what kubectl dumps is imported
(`--unplaceable leave-out`), `repack` plans for {limit} s at most, the cheapest plan of at most
{most} steps is exported and its script run once, from the first step to the last.

Expected: all steps made; every pod where the plan says; no `FailedScheduling` event about a copy;
no ReplicaSet or StatefulSet below the ready count that it had, but for pods that the plan stops and
starts again; no other pod touched.
"""


def page(
    about: str, shops: list[list[Any]], waiting: str, fleets: list[tuple[list[Any], str]]
) -> str:
    """Return the page as markdown."""
    rows = [row for row, _ in fleets]
    ran = [row for row in rows if row[STEPS] != "-"]
    right = sum(
        row[STEPS] == row[STEPS + 1] and len(set(row[STEPS + 2].split(" of "))) == 1 for row in ran
    )
    steps = sum(row[STEPS] for row in ran)
    first, last = WRITES
    lines = [
        "# Plans and scripts on a real control plane",
        "",
        about,
        "",
        f"**{right} of {len(rows)}** generated clusters ended as planned, in {steps} steps; the "
        f"scheduler refused copies {sum(row[STEPS + 3] for row in ran)} times.",
        "",
        "## Every kind of step, and killed on the way",
        "",
        ABOUT_SHOP.format(after=AFTER_SECONDS, fewest=first, most=last),
        *table(SHOP_COLUMNS, shops),
        "",
        "CPU seconds are those of kubectl, jq and bash.",
        "",
        "## A pod that waits",
        "",
        ABOUT_WAITING.format(waiting=waiting),
        f"## {len(rows)} generated clusters",
        "",
        ABOUT_FLEETS.format(limit=LIMIT_SECONDS, most=MOST_STEPS),
        *table(FLEET_COLUMNS, rows),
        "",
        "CPU seconds of scripts are those of kubectl, jq and bash.",
    ]
    wrong = [f"* cluster {row[0]}: {' '.join(text.split())}" for row, text in fleets if text]
    return "\n".join([*lines, *(["", "What went wrong:", "", *wrong] if wrong else [])])


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = os.environ.get("PLACEOPT_CONTROL_PLANE")
    parser.add_argument("folder", nargs="?", default=named, type=Path, help="of the programs")
    parser.add_argument("--kubectl", nargs="+", default=[shutil.which("kubectl")])
    parser.add_argument("--kills", type=int, default=30, help="of the last kubectl")
    parser.add_argument("--clusters", type=int, default=len(SIZES))
    parser.add_argument("--minutes", type=float, default=60, help="then begin no other cluster")
    parser.add_argument("--built", default="", help="a sentence: where the programs are from")
    parser.add_argument("--out", type=Path, default=HERE / "control_plane.md")
    asked = parser.parse_args()
    if not asked.folder or any(not (asked.folder / p).exists() for p in PROGRAMS):
        parser.error(f"name a folder with {', '.join(PROGRAMS)}")
    kubectl = [str(Path(p).resolve()) for p in asked.kubectl if p]
    head, end = facts("placeopt"), time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as name, ControlPlane(asked.folder, Path(name)) as plane:
        grant(plane)
        shops = [shop_row(plane, program, 0, 1) for program in kubectl]
        if asked.kills:
            shops.append(shop_row(plane, kubectl[-1], asked.kills, 2))
        waiting = waiting_shop(plane, kubectl[-1])
        print(waiting, flush=True)
        fleets = []
        for seed, nodes in enumerate(SIZES[: asked.clusters]):
            if time.monotonic() > end:
                break
            fleets.append(fleet_row(plane, kubectl[-1], seed, nodes))
            print(*fleets[-1][0], fleets[-1][1], flush=True)
        versions = plane.versions()
    about = ABOUT.format(
        versions=versions, built=asked.built, ready=READY_SECONDS, grace=GRACE_SECONDS
    )
    script = "Written by `benchmarks/kubernetes/control_plane.py`."
    text = page(f"{head} {script}\n\n{about}".rstrip(), shops, waiting, fleets)
    print(text)
    settings = {"kubectl": [row[0] for row in shops], "kills": asked.kills, "built": asked.built}
    stamps.write(asked.out, text, __file__, settings | {"clusters": len(fleets)})


if __name__ == "__main__":
    main()
