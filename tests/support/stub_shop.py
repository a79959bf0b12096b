"""A shop of three nodes on the API stub, a plan with every kind of step, and its script run by a
kubectl, the real one or a little one, which may be killed after any write.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api_stub import ApiStub, Object, Store, is_ready
from little_kubectl import CommandStub
from shop import Pods, items_of, shop_of

from placeopt.kubernetes.origin import Origin
from placeopt.rolling_update.problem import RollingUpdate

CONTEXT = "stub-context"
#: pod -> (workload, node, milli-CPU now, milli-CPU then)
PODS: Pods = {
    "cart-7d-a": ("cart", "n1", 400, 300),
    "cart-7d-b": ("cart", "n2", 400, 300),
    "web-5c-a": ("web", "n2", 500, 500),
    "db-0": ("db", "n3", 300, 300),
}
#: A move, a stop and a start, a restart in place, a pod of a StatefulSet: frees n2.
MOVES = (
    ("cart-7d-b", "n3"),
    ("web-5c-a", None),
    ("cart-7d-a", "n1"),
    ("db-0", "n1"),
    ("web-5c-a", "n3"),
)
PLAN = {"steps": [{"application": "shop", "microservice": p, "to": n} for p, n in MOVES]}
#: A pod waits. The first move makes room for it on n1, where the second one goes; its node is n2.
WAITING_PODS: Pods = {
    "cart-7d-a": ("cart", "n1", 300, 300),
    "cart-7d-b": ("cart", "n2", 300, 300),
    "web-5c-a": ("web", "n1", 100, 100),
    "db-0": ("db", "n3", 300, 300),
    "late-9f-a": ("late", None, 800, 800),
}
WAITING_MOVES = (("cart-7d-a", "n3"), ("cart-7d-b", "n1"), ("late-9f-a", "n2"))
WAITING_PLAN = {
    "steps": [{"application": "shop", "microservice": p, "to": n} for p, n in WAITING_MOVES]
}
WAITING_END = Counter([("cart", "n3"), ("cart", "n1"), ("web", "n1"), ("db", "n3"), ("late", "n2")])
EXPECTED = Counter([("cart", "n3"), ("cart", "n1"), ("db", "n1"), ("web", "n3")])


def problem(pods: Pods = PODS) -> RollingUpdate:
    """Return the shop as an instance."""
    return shop_of(pods)


def origin(instance: RollingUpdate, pods: Pods = PODS) -> Origin:
    """Return what the names of the instance are in the stub."""
    name = instance.instance_name
    about = {"problem": name.problem, "name": name.name, "sha256": name.sha256}
    return Origin.model_validate(
        {"instance": about, "items": items_of(pods), "cluster": "uid-of-the-stub"}
    )


def node(name: str, cpu: str = "1") -> Object:
    """Return a node that is ready."""
    status = {
        "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {"kubernetes.io/hostname": name}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def objects(pods: Pods = PODS) -> list[Object]:
    """Return the shop as Kubernetes has it."""
    system = {"name": "kube-system", "uid": "uid-of-the-stub"}
    found = [{"kind": "Namespace", "metadata": system}, *map(node, ("n1", "n2", "n3"))]
    made: dict[str, Object] = {}
    for pod, (workload, where, *_) in pods.items():
        if workload not in made:
            made[workload] = _workload(pods, pod)
            if workload != "db":
                found.append(_deployment(made[workload], pod.split("-")[1]))
            found.append(made[workload])
        owner = made[workload]
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "controller": True}
        template = owner["spec"]["template"]
        about = {"name": pod, "namespace": "shop", "labels": template["metadata"]["labels"]}
        about["ownerReferences"] = [{"apiVersion": "apps/v1", "uid": "1", **reference}]
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        spec = template["spec"] | {"nodeName": where}
        if where is None:
            status, spec = {"phase": "Pending"}, template["spec"]
        found.append({"kind": "Pod", "metadata": about, "spec": spec, "status": status})
    return found


def _workload(pods: Pods, pod: str) -> Object:
    """Return the StatefulSet or the ReplicaSet of a pod."""
    workload, _, cpu, _ = pods[pod]
    labels = {"app": workload}
    if workload != "db":
        labels["pod-template-hash"] = pod.split("-")[1]
    asked = {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}
    containers = [{"name": "server", "image": "shop/server:1", "resources": asked}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: Object = {
        "replicas": sum(w == workload for w, *_ in pods.values()),
        "selector": {"matchLabels": labels},
        "template": template,
    }
    if workload == "db":
        spec["updateStrategy"] = {"type": "RollingUpdate"}
        return {"kind": "StatefulSet", "metadata": _about("db", labels), "spec": spec}
    about = _about(pod.rsplit("-", 1)[0], labels)
    about["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload, "uid": "1"}
    about["ownerReferences"] = [reference | {"controller": True}]
    return {"kind": "ReplicaSet", "metadata": about, "spec": spec}


def _about(name: str, labels: dict[str, str]) -> Object:
    return {"name": name, "namespace": "shop", "labels": labels}


def _deployment(replica_set: Object, hash_: str) -> Object:
    text = json.dumps(replica_set["spec"]).replace(f', "pod-template-hash": "{hash_}"', "")
    name = replica_set["metadata"]["ownerReferences"][0]["name"]
    return {"kind": "Deployment", "metadata": _about(name, {"app": name}), "spec": json.loads(text)}


def workloads_on_nodes(store: Store) -> Counter[tuple[str, str]]:
    """Count the pods that run, all of them ready, by workload and node."""
    pods = [p for _, p in store.all("pods") if "deletionTimestamp" not in p["metadata"]]
    assert all(is_ready(p) for p in pods)
    return Counter((p["metadata"]["labels"]["app"], p["spec"]["nodeName"]) for p in pods)


class ScriptRunner:
    """A folder with a script, and the kubectl that reaches a stub.

    Parameters
    ----------
    stub : ApiStub
    folder : Path
    kubectl : str
        The program.
    """

    def __init__(self, stub: ApiStub, folder: Path, kubectl: str | None = None):
        self.stub, self.folder = stub, folder
        (folder / "bin").mkdir(exist_ok=True)
        if kubectl is not None:
            (folder / "bin" / "kubectl").symlink_to(kubectl)
        if isinstance(stub, CommandStub):
            stub.install(folder / "bin")
        else:
            stub.kubeconfig(folder / "kubeconfig", CONTEXT)
        self.environment = os.environ | {
            "PATH": os.pathsep.join((str(folder / "bin"), os.environ["PATH"])),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "HOME": str(folder),  # where kubectl keeps what discovery said
            "CONTEXT": CONTEXT,
            "WAIT": "60s",
            "PATIENCE": "0s",
            "POLL": "0.1",
        }

    def write(self, script: str) -> None:
        """Put the script into the folder."""
        (self.folder / "steps.sh").write_text(script + "\n", encoding="utf-8")

    def kubectl(self, *arguments: str) -> str:
        """Return what kubectl prints."""
        return subprocess.run(
            ["kubectl", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    def start(self, *arguments: str, stdin: int, **more: str) -> subprocess.Popen[str]:
        """Begin to run the script."""
        return subprocess.Popen(
            ["bash", "steps.sh", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment | more,
            text=True,
            start_new_session=True,
        )

    def run(
        self, *arguments: str, kill_at: int | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the script; `kill_at` ends it and all that it started after that many more writes."""
        process = self.start(*arguments, stdin=subprocess.DEVNULL, **more)
        killed = threading.Event()
        if kill_at is not None:
            last = self.stub.store.writes + kill_at

            def kill(count: int) -> None:
                if count == last and not killed.is_set():
                    killed.set()
                    os.killpg(process.pid, signal.SIGKILL)

            self.stub.store.on_write = kill
        out, err = process.communicate(timeout=300)
        self.stub.store.on_write = lambda count: None
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def done(self, *arguments: str, **more: Any) -> str:
        """Return what a run says that ends well."""
        done = self.run(*arguments, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str, **more: Any) -> str:
        """Return why a run stops."""
        done = self.run(*arguments, **more)
        assert done.returncode == 1, done.stdout
        return done.stderr


def missing() -> str:
    """Return which programs a script needs and this machine has not, in words; or nothing."""
    absent = [name for name in ("kubectl", "jq", "bash") if not shutil.which(name)]
    return f"not installed: {', '.join(absent)}" if absent else ""


@contextmanager
def edited(stub: ApiStub, plural: str, name: str, space: str = "shop") -> Iterator[Object]:
    """Yield an object of the stub to be changed."""
    with stub.store.changed:
        item = stub.store.tables[plural, space, name]
        yield item
        stub.store.put((plural, space, name), item)


def say_ready(stub: ApiStub, pod: str, ready: bool) -> None:
    """Let a pod that runs become ready, or cease to be."""
    with edited(stub, "pods", pod) as item:
        item["status"] = {"phase": "Running"}
        item["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]


def state(stub: ApiStub, plural: str, name: str, space: str = "shop") -> Any:
    """Return an object of the stub as it is."""
    with stub.store.changed:
        return json.loads(json.dumps(stub.store.tables[plural, space, name]))
