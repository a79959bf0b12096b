"""A real control plane on loopback, with a stub in place of the kubelets.

`ControlPlane` starts etcd, kube-apiserver, kube-scheduler and kube-controller-manager from a folder
of programs, with a new and empty etcd in a temporary folder. Nothing runs a container: `Kubelets`
says of pods that are bound to a node that they run and are ready, lets those go that are deleted,
and keeps the nodes alive.
"""

from __future__ import annotations

import datetime
import heapq
import http.client
import itertools
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

Json = dict[str, Any]
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
#: Seconds until a pod on a node is ready, and until one that is deleted is gone.
READY_SECONDS, GRACE_SECONDS = 0.2, 0.5
#: Seconds between renewals of a node's lease, and until a node without any counts as lost.
LEASE_SECONDS, LOST_SECONDS = 20, 600
ADMIN, MOVER = "token-of-admin", "token-of-mover"
_PATCH = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"


def free_port() -> int:
    """Return a port of the loopback interface that nothing uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ApiError(Exception):
    """An answer of the API server that is no success."""

    def __init__(self, code: int, text: str):
        super().__init__(f"{code}: {text[:500]}")
        self.code = code


class Client:
    """Asks the API server; each thread has a connection of its own."""

    def __init__(self, port: int, certificate: Path, token: str = ADMIN):
        self.port, self.token = port, token
        self.trusted = ssl.create_default_context(cafile=str(certificate))
        self.local = threading.local()

    def connect(self) -> http.client.HTTPSConnection:
        """Return a new connection."""
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.trusted, timeout=120
        )

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "") -> Json:
        """Return what the server answers, as JSON; try once more where the connection broke."""
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": kind or "application/json"}
        data = None if body is None else json.dumps(body)
        for last in (False, True):
            try:
                if not hasattr(self.local, "open"):
                    self.local.open = self.connect()
                self.local.open.request(method, path, data, head)
                answer = self.local.open.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                del self.local.open
                if last:
                    raise
        if answer.status >= 300:
            raise ApiError(answer.status, text.decode("utf-8", "replace"))
        found: Json = json.loads(text)
        return found

    def items(self, path: str) -> list[Json]:
        """Return the objects of a list."""
        found: list[Json] = self.ask("GET", path)["items"]
        return found

    def watch(self, path: str, version: str) -> Iterator[Json]:
        """Yield what happens to the objects of a list after a version, until the server ends it."""
        line = self.connect()
        head = {"Authorization": f"Bearer {self.token}"}
        line.request("GET", f"{path}?watch=1&resourceVersion={version}", headers=head)
        answer = line.getresponse()
        while text := answer.readline():
            yield json.loads(text)


def ready(pod: Json) -> bool:
    """Return whether a pod is ready and not about to end."""
    said = pod["status"].get("conditions", [])
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in said
    )


def owner(pod: Json) -> tuple[str, str]:
    """Return (namespace, name) of what controls a pod; the name is empty where nothing does."""
    owners = pod["metadata"].get("ownerReferences", [])
    names = [o["name"] for o in owners if o.get("controller")]
    return pod["metadata"]["namespace"], names[0] if names else ""


class Kubelets:
    """Stands in for the kubelets of all nodes.

    Attributes
    ----------
    pods : dict
        Pods by (namespace, name), as the last event told them.
    least : dict
        Fewest ready pods by owner since `count` was called.
    """

    def __init__(self, client: Client):
        self.client = client
        self.pods: dict[tuple[str, str], Json] = {}
        self.least: dict[tuple[str, str], int] = {}
        self.changed = time.monotonic()
        self.lock = threading.Condition()
        self.ahead: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count(1)
        self.begun: set[tuple[str, str]] = set()
        self.stopped = False
        for work in (self._follow, self._work, self._renew):
            threading.Thread(target=work, daemon=True).start()

    def count(self) -> None:
        """Begin to count the fewest ready pods anew."""
        with self.lock:
            self.least = {}
            for mine in {owner(p) for p in self.pods.values()}:
                self._count(mine)

    def _count(self, mine: tuple[str, str]) -> None:
        found = sum(ready(p) for p in self.pods.values() if owner(p) == mine)
        self.least[mine] = min(self.least.get(mine, found), found)

    def _follow(self) -> None:
        while not self.stopped:
            try:
                listed = self.client.ask("GET", "/api/v1/pods")
                self._replace(listed["items"])
                version = listed["metadata"]["resourceVersion"]
                for event in self.client.watch("/api/v1/pods", version):
                    if event["type"] == "ERROR":
                        break
                    self._see(event["type"], event["object"])
            except (OSError, ApiError, http.client.HTTPException, ValueError):
                time.sleep(0.2)

    def _replace(self, pods: list[Json]) -> None:
        """Take a whole list at once, so that no count is made of a part of it."""
        with self.lock:
            before = {owner(p) for p in self.pods.values()}
            self.pods = {(p["metadata"]["namespace"], p["metadata"]["name"]): p for p in pods}
            for mine in before | {owner(p) for p in pods}:
                self._count(mine)
        for pod in pods:
            self._see("ADDED", pod)

    def _see(self, what: str, pod: Json) -> None:
        about = pod["metadata"]
        key = about["namespace"], about["name"]
        with self.lock:
            self.changed = time.monotonic()
            before = self.pods.pop(key, None)
            if what != "DELETED":
                self.pods[key] = pod
            for mine in {owner(p) for p in (before, pod) if p is not None}:
                self._count(mine)
            if what == "DELETED" or not pod["spec"].get("nodeName"):
                return
            ending = "deletionTimestamp" in about
            if (about["uid"], str(ending)) in self.begun:
                return
            self.begun.add((about["uid"], str(ending)))
            after = GRACE_SECONDS if ending else READY_SECONDS
            act = self._end if ending else self._start
            due = time.monotonic() + after
            heapq.heappush(self.ahead, (due, next(self.numbers), lambda: act(pod)))
            self.lock.notify()

    def _work(self) -> None:
        while not self.stopped:
            with self.lock:
                wait = self.ahead[0][0] - time.monotonic() if self.ahead else 1.0
                if wait > 0:
                    self.lock.wait(min(wait, 1.0))
                    continue
                act = heapq.heappop(self.ahead)[2]
            try:
                act()
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    def _start(self, pod: Json) -> None:
        """Say that a pod runs and is ready."""
        number = next(self.numbers)
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now()}
            for kind in ("Initialized", "ContainersReady", "Ready")
        ]
        containers = [
            {
                "name": c["name"],
                "image": c["image"],
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now()}},
            }
            for c in pod["spec"]["containers"]
        ]
        status = {"phase": "Running", "startTime": now(), "hostIP": "127.0.0.1"}
        status |= {"podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}
        status |= {"conditions": conditions, "containerStatuses": containers}
        uid = {"uid": pod["metadata"]["uid"]}
        self.client.ask(
            "PATCH", f"{_path(pod)}/status", {"metadata": uid, "status": status}, _PATCH
        )

    def _end(self, pod: Json) -> None:
        """Take a pod away that is being deleted: its containers have ended."""
        asked = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self.client.ask("DELETE", _path(pod), {"apiVersion": "v1", "kind": "DeleteOptions"} | asked)

    def _renew(self) -> None:
        while not self.stopped:
            try:
                for node in self.client.items("/api/v1/nodes"):
                    self._renew_one(node["metadata"]["name"])
            except (OSError, ApiError, http.client.HTTPException):
                pass
            time.sleep(LEASE_SECONDS)

    def _renew_one(self, node: str) -> None:
        lease: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        lease["metadata"] = {"name": node}
        moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease["spec"] = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": moment}
        where = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"
        self.client.ask("PATCH", f"{where}?fieldManager=kubelet&force=true", lease, _APPLY)


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


class ControlPlane:
    """The four programs, running, and the stub kubelets.

    Parameters
    ----------
    programs : Path
        Folder of `PROGRAMS`.
    folder : Path
        An empty folder for keys, logs and the data of etcd.
    """

    def __init__(self, programs: Path, folder: Path):
        self.programs, self.folder = programs, folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.port = free_port()
        self.certificate = folder / "certificates" / "apiserver.crt"

    def __enter__(self) -> ControlPlane:
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_all(self) -> None:
        folder = self.folder
        key = str(folder / "sa.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        users = f'{ADMIN},admin,1,"system:masters"\n{MOVER},mover,2,"movers"\n'
        (folder / "tokens.csv").write_text(users, encoding="utf-8")
        store = f"http://127.0.0.1:{free_port()}"
        self._start("etcd", _etcd_flags(store, folder))
        self._start("kube-apiserver", _server_flags(store, self.port, self.certificate.parent, key))
        self._wait_until_ready()
        self.client = Client(self.port, self.certificate)
        admin = folder / "admin.json"
        self.kubeconfig(admin, "admin", ADMIN)
        shared = {"kubeconfig": admin, "bind-address": "127.0.0.1", "leader-elect": "false"}
        shared |= {"authentication-kubeconfig": admin, "authorization-kubeconfig": admin}
        self._start("kube-scheduler", shared | {"secure-port": free_port()})
        manager = {"service-account-private-key-file": key, "secure-port": free_port()}
        manager |= {"node-monitor-grace-period": f"{LOST_SECONDS}s"}
        manager |= {"kube-api-qps": 300, "kube-api-burst": 300}
        self._start("kube-controller-manager", shared | manager)
        self.kubelets = Kubelets(self.client)

    def _start(self, program: str, flags: Mapping[str, Any]) -> None:
        line = [str(self.programs / program), *(f"--{k}={v}" for k, v in flags.items())]
        with (self.folder / f"{program}.log").open("wb") as log:
            self.running.append(subprocess.Popen(line, stdout=log, stderr=log, cwd=self.folder))

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if any(p.poll() is not None for p in self.running):
                break
            try:
                Client(self.port, self.certificate).connect().request("GET", "/")
                found = Client(self.port, self.certificate)
                found.ask("GET", "/api/v1/namespaces/kube-system")
                return
            except (OSError, ApiError, http.client.HTTPException):
                time.sleep(0.5)
        logs = (self.folder / "kube-apiserver.log").read_text(errors="replace")
        raise SystemExit(f"kube-apiserver does not get ready:\n{logs[-3000:]}")

    def stop(self) -> None:
        """End all that was started, the API server's clients first."""
        if hasattr(self, "kubelets"):
            self.kubelets.stopped = True
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kubeconfig(self, path: Path, context: str, token: str = MOVER) -> None:
        """Write a file that lets kubectl reach this server in a context."""
        cluster = {"server": f"https://127.0.0.1:{self.port}"}
        cluster["certificate-authority"] = str(self.certificate)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": context, "context": {"cluster": "real", "user": "user"}}],
            "current-context": context,
        }
        path.write_text(json.dumps(document), encoding="utf-8")

    def versions(self) -> str:
        """Return what the programs say they are."""
        found = []
        for program in PROGRAMS:
            line = [self.programs / program, "--version"]
            said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
            number, _, commit = said.splitlines()[0].split()[-1].removeprefix("v").partition("+")
            found.append(f"{program} {number}" + (f" of commit {commit[:12]}" if commit else ""))
        return ", ".join(found)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the programs so far."""
        used = 0
        for process in self.running:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            used += int(fields[11]) + int(fields[12])
        return used / 100


def _etcd_flags(store: str, folder: Path) -> Json:
    peer = f"http://127.0.0.1:{free_port()}"
    return {
        "data-dir": folder / "etcd",
        "listen-client-urls": store,
        "advertise-client-urls": store,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "log-level": "error",
    }


def _server_flags(store: str, port: int, certificates: Path, key: str) -> Json:
    return {
        "etcd-servers": store,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "secure-port": port,
        "cert-dir": certificates,
        "token-auth-file": certificates.parent / "tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.96.0.0/24",
    }
