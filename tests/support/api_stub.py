"""A small API server over objects in memory, for the real kubectl: what exported scripts need.

It has discovery, namespaces, get, list with selectors, watch, create, replace with a check of the
version, merge patches, the scale of a Deployment and delete with a grace. Beside it runs a thread
that does what controllers, scheduler and kubelets would:

* ReplicaSets adopt pods with their labels and no owner, end those that are too many (not ready
  first, then by deletion cost) and make what is missing;
* a Deployment scales its ReplicaSet; one that would roll out, as the templates differ and it is not
  paused, is noted;
* StatefulSets make again what was deleted, in order and each after those before it are ready, but
  for parallel ones; and restart pods of another template unless told not to;
* the scheduler asks cordons, taints, selectors, node affinity, CPU, memory and pods of a node;
* a pod on a node is ready at once, unless it is among ``sick``.

Not there: admission, schemas (a field of any name is taken), quotas, webhooks, authentication.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from placeopt.kubernetes.values import millicores, whole_bytes

COST = "controller.kubernetes.io/pod-deletion-cost"
HASH = "pod-template-hash"
Object = dict[str, Any]
Key = tuple[str, str, str]

#: Plural -> group and version, kind, whether it is in a namespace, short names.
RESOURCES: dict[str, tuple[str, str, bool, list[str]]] = {
    "nodes": ("v1", "Node", False, ["no"]),
    "namespaces": ("v1", "Namespace", False, ["ns"]),
    "persistentvolumes": ("v1", "PersistentVolume", False, ["pv"]),
    "pods": ("v1", "Pod", True, ["po"]),
    "services": ("v1", "Service", True, ["svc"]),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", True, ["pvc"]),
    "limitranges": ("v1", "LimitRange", True, ["limits"]),
    "deployments": ("apps/v1", "Deployment", True, ["deploy"]),
    "replicasets": ("apps/v1", "ReplicaSet", True, ["rs"]),
    "statefulsets": ("apps/v1", "StatefulSet", True, ["sts"]),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget", True, ["pdb"]),
}
_PLURAL = {kind: plural for plural, (_, kind, _, _) in RESOURCES.items()}
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_PATH = re.compile(
    r"/(?:api/v1|apis/[a-z]+/v1)(?:/namespaces/(?P<space>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)


class RefusedError(Exception):
    """An answer other than 200: its code, a reason of Kubernetes, a message."""

    def __init__(self, code: int, reason: str, message: str):
        super().__init__(message)
        self.code, self.reason = code, reason


class Store:
    """Objects by (plural, namespace, name), and what happened to them, in order.

    ``tables`` are changed under ``changed`` only. ``on_write`` is called after each write of a
    client with the number of writes so far. ``sick`` are names of pods that never get ready;
    ``grace`` is how many seconds a pod takes to end.
    """

    def __init__(self) -> None:
        self.tables: dict[Key, Object] = {}
        self.events: list[tuple[str, str, Object]] = []
        self.changed = threading.Condition(threading.RLock())
        self.version = self.writes = 0
        self.requests: list[str] = []
        self.created: list[Object] = []
        self.on_write: Callable[[int], None] = lambda count: None
        self.sick: set[str] = set()
        self.grace = 0.0

    def all(self, plural: str) -> list[tuple[Key, Object]]:
        """Return the objects of a kind, with their keys."""
        return [(k, o) for k, o in self.tables.items() if k[0] == plural]

    def add(self, item: Mapping[str, Any]) -> Object:
        """Put an object in as a client would, and return it as it is then."""
        made: Object = copy.deepcopy(dict(item))
        plural = _PLURAL[made["kind"]]
        about = made.setdefault("metadata", {})
        if RESOURCES[plural][2]:
            about.setdefault("namespace", "default")
        made["apiVersion"] = RESOURCES[plural][0]
        key = (plural, about.get("namespace", ""), about["name"])
        with self.changed:
            if key in self.tables:
                raise RefusedError(409, "AlreadyExists", f'{plural} "{key[2]}" already exists')
            about["uid"] = about.get("uid") or f"uid-{self.version + 1}"
            about["creationTimestamp"] = "2026-01-01T00:00:00Z"
            if plural == "pods":
                made.setdefault("status", {"phase": "Pending"})
            self.put(key, made, "ADDED")
        return made

    def put(self, key: Key, item: Object, kind: str = "MODIFIED") -> None:
        """Write an object, with a new version; it is copied, so that watchers see it as it was."""
        with self.changed:
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            self.tables[key] = item
            self.events.append((kind, key[0], copy.deepcopy(item)))
            self.changed.notify_all()

    def one(self, key: Key) -> Object:
        """Return an object of a client's request."""
        if key not in self.tables:
            raise RefusedError(404, "NotFound", f'{key[0]} "{key[2]}" not found')
        return self.tables[key]

    def drop(self, key: Key) -> None:
        """Take an object away."""
        with self.changed:
            item = self.tables.pop(key)
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            self.events.append(("DELETED", key[0], copy.deepcopy(item)))
            self.changed.notify_all()

    def end(self, key: Key) -> None:
        """Begin to delete: pods on a node have their grace, all else goes at once."""
        item = self.tables[key]
        if key[0] != "pods" or not item["spec"].get("nodeName") or self.grace <= 0:
            self.drop(key)
        elif "deletionTimestamp" not in item["metadata"]:
            item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z"
            item["metadata"]["annotations"] = item["metadata"].get("annotations") or {}
            item["_ends"] = time.monotonic() + self.grace
            self.put(key, item)

    def request(self, method: str, key: Key, body: Any, by_name: bool) -> Object:
        """Create, replace, patch or delete as a client does, and return the object."""
        with self.changed:
            done = self._request(method, key, body, by_name)
            self.writes += 1
            self.on_write(self.writes)
        return done

    def _request(self, method: str, key: Key, body: Any, by_name: bool) -> Object:
        if method == "POST":
            space = {"namespace": key[1]} if key[1] else {}
            self.created.append(copy.deepcopy(body))
            return self.add(body | {"metadata": body["metadata"] | space})
        old = self.one(key)
        if method == "DELETE":
            self.end(key)
            return old
        if method == "PUT":
            new = copy.deepcopy(body)
            version = new["metadata"].get("resourceVersion")
            if version not in (None, old["metadata"]["resourceVersion"]):
                raise RefusedError(409, "Conflict", f'"{key[2]}" has been modified')
        else:
            new = merged(copy.deepcopy(old), body, by_name)
        self.put(key, new)
        return new


# -- controllers, scheduler, kubelets --------------------------------------------------------------


def is_ready(pod: Object) -> bool:
    """Return whether a pod says that it is ready."""
    said = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in said)


def owner(item: Object) -> Object:
    """Return the reference to the controller of an object; empty where there is none."""
    references = item["metadata"].get("ownerReferences") or []
    return next((r for r in references if r.get("controller")), {})


def _has(labels: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= (labels or {}).items()


class Cluster(threading.Thread):
    """What changes objects without being asked, one round after each change.

    ``least`` has the smallest number of ready pods that each ReplicaSet ever had, ``rollouts`` the
    Deployments that rolled out.
    """

    def __init__(self, store: Store):
        super().__init__(daemon=True)
        self.store, self.stopped = store, False
        self.least: dict[str, int] = {}
        self.rollouts: list[str] = []
        self.made = 0

    def run(self) -> None:
        """Go on until ``stopped``."""
        seen = -1
        while not self.stopped:
            with self.store.changed:
                if seen == self.store.version:
                    self.store.changed.wait(0.02)
                seen = self.store.version
                self.round()

    def round(self) -> None:
        """Let every controller look once."""
        store = self.store
        for key, pod in store.all("pods"):
            if "_ends" in pod and time.monotonic() >= pod["_ends"]:
                store.drop(key)
        for key, item in store.all("deployments"):
            self.deployment(key, item)
        for key, item in store.all("replicasets"):
            self.replica_set(key, item)
        for key, item in store.all("statefulsets"):
            self.stateful_set(key, item)
        for key, pod in store.all("pods"):
            if not pod["spec"].get("nodeName"):
                self.schedule(key, pod)
            elif pod["status"].get("phase") == "Pending" and key[2] not in store.sick:
                ready = [{"type": t, "status": "True"} for t in ("PodScheduled", "Ready")]
                pod["status"] = {"phase": "Running", "conditions": ready}
                store.put(key, pod)

    def deployment(self, key: Key, item: Object) -> None:
        """Give the newest ReplicaSet the wanted number; note what another template rolls out."""
        mine = [
            (k, rs) for k, rs in self.store.all("replicasets") if owner(rs).get("name") == key[2]
        ]
        k, newest = max(mine, key=lambda e: int(e[1]["metadata"]["annotations"][_REVISION]))
        changed = _bare(newest["spec"]["template"]) != _bare(item["spec"]["template"])
        if changed and not item["spec"].get("paused") and key[2] not in self.rollouts:
            self.rollouts.append(key[2])
        if newest["spec"]["replicas"] != item["spec"]["replicas"]:
            newest["spec"]["replicas"] = item["spec"]["replicas"]
            self.store.put(k, newest)

    def replica_set(self, key: Key, item: Object) -> None:
        """Adopt, end what is too much, make what is missing."""
        wanted, pods = item["spec"]["selector"]["matchLabels"], []
        reference = _reference(item)
        for k, pod in self.store.all("pods"):
            about = pod["metadata"]
            if k[1] != key[1] or about.get("deletionTimestamp"):
                continue
            if not owner(pod) and _has(about.get("labels"), wanted):
                about["ownerReferences"] = [reference]
                self.store.put(k, pod)
            if owner(pod).get("name") == key[2]:
                pods.append((k, pod))
        pods.sort(key=lambda e: _worth(e[1]))
        for k, _ in pods[: max(0, len(pods) - item["spec"]["replicas"])]:
            self.store.end(k)
        for _ in range(item["spec"]["replicas"] - len(pods)):
            self.made += 1
            self.make(item, f"{key[2]}-made{self.made}")
        alive = [p for k, p in pods if k in self.store.tables]
        ready = sum(is_ready(p) and "deletionTimestamp" not in p["metadata"] for p in alive)
        self.least[key[2]] = min(self.least.get(key[2], ready), ready)

    def stateful_set(self, key: Key, item: Object) -> None:
        """Make what is missing; restart what has another template, unless it updates on delete."""
        strategy = item["spec"].get("updateStrategy", {}).get("type", "RollingUpdate")
        ordered = item["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        start = item["spec"].get("ordinals", {}).get("start", 0)
        names = [f"{key[2]}-{start + k}" for k in range(item["spec"]["replicas"])]
        ready = 0
        for name in names:
            pod = self.store.tables.get(("pods", key[1], name))
            if pod is None:
                if not ordered or ready == names.index(name):
                    self.make(item, name)
            elif strategy == "RollingUpdate" and _asks(pod["spec"]) != _asks(
                item["spec"]["template"]["spec"]
            ):
                self.store.end(("pods", key[1], name))
            else:
                ready += is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        if item.get("status", {}).get("readyReplicas") != ready:
            item["status"] = {"replicas": len(names), "readyReplicas": ready}
            self.store.put(key, item)

    def make(self, item: Object, name: str) -> None:
        """Make a pod of a template."""
        template = item["spec"]["template"]
        about = {
            "name": name,
            "namespace": item["metadata"]["namespace"],
            "labels": template.get("metadata", {}).get("labels", {}),
            "ownerReferences": [_reference(item)],
        }
        self.store.add({"kind": "Pod", "metadata": about, "spec": template["spec"]})

    def schedule(self, key: Key, pod: Object) -> None:
        """Bind a pod to the first node that takes it, or say why none does."""
        reasons: list[str] = []
        for (_, _, name), node in sorted(self.store.all("nodes")):
            reason = self.refusal(pod, name, node)
            if reason is None:
                pod["spec"]["nodeName"] = name
                self.store.put(key, pod)
                return
            reasons.append(f"1 {reason}")
        said = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(reasons)} nodes are available: {', '.join(reasons)}.",
        }
        if pod["status"].get("conditions") != [said]:
            pod["status"] = {"phase": "Pending", "conditions": [said]}
            self.store.put(key, pod)

    def refusal(self, pod: Object, name: str, node: Object) -> str | None:
        """Return why a node does not take a pod; None where it does."""
        if node.get("spec", {}).get("unschedulable"):
            return "node(s) were unschedulable"
        if not is_ready(node):
            return "node(s) were not ready"
        if any(not _tolerated(t, pod) for t in node.get("spec", {}).get("taints", [])):
            return "node(s) had untolerated taint"
        if not _selected(pod["spec"], name, node["metadata"].get("labels", {})):
            return "node(s) didn't match Pod's node affinity/selector"
        there = [p for _, p in self.store.all("pods") if p["spec"].get("nodeName") == name]
        room = node["status"]["allocatable"]
        for resource, read in (("cpu", millicores), ("memory", whole_bytes)):
            used = sum(_requested(p, resource, read) for p in [*there, pod])
            if used > read(room[resource]):
                return f"Insufficient {resource}"
        return "Too many pods" if len(there) >= int(room.get("pods", 110)) else None


_REVISION = "deployment.kubernetes.io/revision"


def _reference(item: Object) -> Object:
    kind, about = item["kind"], item["metadata"]
    return {
        "apiVersion": RESOURCES[_PLURAL[kind]][0],
        "kind": kind,
        "name": about["name"],
        "uid": about["uid"],
        "controller": True,
    }


def _worth(pod: Object) -> tuple[bool, bool, int]:
    cost = (pod["metadata"].get("annotations") or {}).get(COST, "0")
    return (bool(pod["spec"].get("nodeName")), is_ready(pod), int(cost))


def _bare(template: Object) -> Object:
    bare = copy.deepcopy(template)
    bare.get("metadata", {}).get("labels", {}).pop(HASH, None)
    return bare


def _asks(spec: Object) -> Object:
    return {k: v for k, v in spec.items() if k != "nodeName"}


def _requested(pod: Object, resource: str, read: Callable[[str], int]) -> int:
    asked = (c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"])
    return sum(read(a.get(resource, "0")) for a in asked)


def _tolerated(taint: Object, pod: Object) -> bool:
    return taint["effect"] == "PreferNoSchedule" or any(
        t.get("key") in (None, taint["key"])
        and (t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", ""))
        and t.get("effect") in (None, "", taint["effect"])
        for t in pod["spec"].get("tolerations", [])
    )


def _selected(spec: Object, name: str, labels: Mapping[str, str]) -> bool:
    if not _has(labels, spec.get("nodeSelector") or {}):
        return False
    wish = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = wish.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(
        all(_meets(e, labels) for e in term.get("matchExpressions", []))
        and all(name in e["values"] for e in term.get("matchFields", []))
        for term in required["nodeSelectorTerms"]
    )


def _meets(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    return {
        "In": lambda: value in expression["values"],
        "NotIn": lambda: value not in expression["values"],
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
    }[expression["operator"]]()


# -- HTTP ------------------------------------------------------------------------------------------


def merged(old: Any, patch: Any, by_name: bool) -> Any:
    """Return an object after a merge patch; `by_name` merges lists of named parts, as a strategic
    one does.
    """
    if by_name and isinstance(patch, list) and isinstance(old, list):
        parts = {p["name"]: p for p in old if isinstance(p, dict) and "name" in p}
        if len(parts) == len(old) and all(isinstance(p, dict) and "name" in p for p in patch):
            for part in patch:
                parts[part["name"]] = merged(parts.get(part["name"], {}), part, by_name)
            return list(parts.values())
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value, by_name)
    return found


def discovery(path: str) -> Object | None:
    """Return what kubectl asks before all else: versions, groups, resources."""
    groups = sorted({g for g, *_ in RESOURCES.values() if "/" in g})
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = [{"groupVersion": g, "version": "v1"} for g in groups]
        listed = [
            {"name": v["groupVersion"].split("/")[0], "versions": [v], "preferredVersion": v}
            for v in versions
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    group = "v1" if path == "/api/v1" else path.removeprefix("/apis/")
    found = [_resource(p) for p, (g, *_) in RESOURCES.items() if g == group]
    if group == "apps/v1":
        scale: Object = {
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "singularName": "",
        }
        scale |= {"name": "deployments/scale", "namespaced": True, "verbs": ["get", "patch"]}
        found.append(scale)
    if not found:
        return None
    kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group}
    return {**kind, "resources": found}


def _resource(plural: str) -> Object:
    _, kind, namespaced, short = RESOURCES[plural]
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": _VERBS,
        "shortNames": short,
    }


def openapi(path: str) -> Object | None:
    """Return the part of OpenAPI 3 that says: the server looks at fields, kubectl need not."""
    if path == "/openapi/v3":
        groups = {g if "/" in g else "v1" for g, *_ in RESOURCES.values()}
        names = [("apis/" if "/" in g else "api/") + g for g in sorted(groups)]
        return {"paths": {n: {"serverRelativeURL": f"/openapi/v3/{n}"} for n in names}}
    root = path.removeprefix("/openapi/v3")
    group = root.removeprefix("/api/").removeprefix("/apis/") if "apis" in root else "v1"
    paths = {}
    for plural, (of, kind, namespaced, _) in RESOURCES.items():
        if of == group:
            name, _, version = of.rpartition("/")
            about = {"group": name, "version": version, "kind": kind}
            parameter = {"name": "fieldValidation", "in": "query"}
            patch = {"parameters": [parameter], "x-kubernetes-group-version-kind": about}
            space = "/namespaces/{namespace}" if namespaced else ""
            paths[f"{root}{space}/{plural}/{{name}}"] = {"patch": patch}
    about = {"title": "stub", "version": "1"}
    return {"openapi": "3.0.0", "info": about, "paths": paths} if paths else None


class Handler(BaseHTTPRequestHandler):
    """One request of kubectl."""

    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def answer(self) -> None:
        """Answer any request; what is refused becomes a Status."""
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        asked = {k: v[0] for k, v in parse_qs(url.query).items()}
        if url.path == "/openapi/v2":  # what kubectl before 1.24 looks at fields with: none known
            self.send(200, b"", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
            return
        try:
            if asked.get("watch") in ("1", "true"):
                self.watch(url.path, asked)
                return
            code, found = 200, self.found(url.path, asked, body)
        except RefusedError as refused:
            code = refused.code
            found = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
            found |= {"reason": refused.reason, "message": str(refused)}
        self.send(code, json.dumps(found).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def send(self, code: int, text: bytes, kind: str = "application/json") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def found(self, path: str, asked: Mapping[str, str], body: Any) -> Object:
        """Return the answer to a request."""
        store = self.store
        if path.startswith("/openapi/v3") and (said := openapi(path)):
            return said
        if self.command == "GET" and (said := discovery(path)):
            return said
        match = _PATH.fullmatch(path)
        if match is None or match["plural"] not in RESOURCES:
            raise RefusedError(404, "NotFound", f"the server could not find {path}")
        key = (match["plural"], match["space"] or "", match["name"] or "")
        with store.changed:
            store.requests.append(f"{self.command} {self.path}")
            if self.command == "GET":
                return shown(store.one(key)) if key[2] else self.listed(key, asked)
            by_name = "strategic" in self.headers.get("Content-Type", "")
            done = shown(store.request(self.command, key, body, by_name))
            if match["sub"] == "scale":
                done = scale_of(done)
        return done

    def listed(self, key: Key, asked: Mapping[str, str]) -> Object:
        group, kind, *_ = RESOURCES[key[0]]
        items = [shown(item) for item in self.chosen(key, asked)]
        about = {"resourceVersion": str(self.store.version)}
        return {"kind": f"{kind}List", "apiVersion": group, "metadata": about, "items": items}

    def chosen(self, key: Key, asked: Mapping[str, str]) -> Iterator[Object]:
        """Yield the objects of a list that its selectors choose."""
        for (_, space, _), item in self.store.all(key[0]):
            if key[1] in ("", space) and asked_for(item, asked):
                yield item

    def watch(self, path: str, asked: Mapping[str, str]) -> None:
        """Send what happens from a version on, until the client goes or some seconds are over."""
        match = _PATH.fullmatch(path)
        assert match is not None
        self.store.requests.append(f"WATCH {path}")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        since, sent = int(asked.get("resourceVersion") or 0), 0
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with self.store.changed:
                if sent == len(self.store.events):
                    self.store.changed.wait(0.5)
                fresh, sent = self.store.events[sent:], len(self.store.events)
            for kind, plural, item in fresh:
                here = (
                    plural == match["plural"] and int(item["metadata"]["resourceVersion"]) > since
                )
                if here and asked_for(item, asked):
                    line = json.dumps({"type": kind, "object": shown(item)}) + "\n"
                    self.wfile.write(line.encode())
                    self.wfile.flush()


def shown(item: Object) -> Object:
    """Return an object as clients see it."""
    return {k: v for k, v in item.items() if not k.startswith("_")}


def scale_of(item: Object) -> Object:
    """Return the scale of a Deployment."""
    about, spec = item["metadata"], {"replicas": item["spec"]["replicas"]}
    kind = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    return {
        **kind,
        "metadata": {"name": about["name"], "namespace": about["namespace"]},
        "spec": spec,
    }


def asked_for(item: Object, asked: Mapping[str, str]) -> bool:
    labels = item["metadata"].get("labels") or {}
    for pair in filter(None, asked.get("labelSelector", "").split(",")):
        name, _, value = pair.partition("=")
        if labels.get(name) != value:
            return False
    for pair in filter(None, asked.get("fieldSelector", "").split(",")):
        name, _, value = pair.partition("=")
        if name == "metadata.name" and item["metadata"]["name"] != value:
            return False
        if name == "spec.nodeName" and item["spec"].get("nodeName") != value:
            return False
    return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over clients that were killed in the middle of a request."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def rights(requests: list[str]) -> set[tuple[str, str]]:
    """Return what requests ask for as RBAC names it: (verb, resource)."""
    found = set()
    for request in requests:
        method, path = request.split()
        match = _PATH.fullmatch(urlsplit(path).path)
        assert match is not None
        sub = f"/{match['sub']}" if match["sub"] else ""
        read = "get" if match["name"] else "list"
        verb = {"GET": read, "POST": "create", "PUT": "update"}.get(method, method.lower())
        found.add((verb, match["plural"] + sub))
    return found


class ApiStub:
    """An API server on a free port of this machine, with what runs beside it.

    Parameters
    ----------
    items : list of dict
        Objects of the cluster: namespaced ones with their namespace.
    """

    def __init__(self, items: list[Object], server: type[TCPServer] = _Server):
        self.store = Store()
        for item in items:
            self.store.add(item)
        handler = type("StubHandler", (Handler,), {"store": self.store})
        self.server = server(("127.0.0.1", 0), handler)
        self.cluster = Cluster(self.store)

    def __enter__(self) -> ApiStub:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.cluster.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stopped = True
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path: Path, context: str) -> None:
        """Write a file that lets kubectl reach this server in a context."""
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "stub", "cluster": {"server": url}}],
            "users": [{"name": "stub", "user": {}}],
            "contexts": [{"name": context, "context": {"cluster": "stub", "user": "stub"}}],
            "current-context": context,
        }
        path.write_text(json.dumps(document), encoding="utf-8")
