"""A stand-in for kubectl over a cluster that is a JSON file: only what exported scripts use.

ReplicaSets adopt pods that have their labels and no owner, end the pods that are too many (not
ready first, then by deletion cost) and make what is missing; StatefulSets make again what was
deleted; a pod is ready where it fits. A log keeps every command, and the least number of ready pods
that each ReplicaSet ever had.
"""

from __future__ import annotations

import json
import os
import re
import sys

TYPE_CHECKING = False  # typing itself would cost every command some milliseconds
if TYPE_CHECKING:
    from typing import Any

STATE = os.environ["FAKE_CLUSTER"]
COST = "controller.kubernetes.io/pod-deletion-cost"


class Cluster:
    def __init__(self) -> None:
        with open(STATE, encoding="utf-8") as stream:
            self.state: dict[str, Any] = json.load(stream)
        self.pods: dict[str, Any] = self.state["pods"]

    def save(self) -> None:
        with open(STATE + ".part", "w", encoding="utf-8") as stream:
            stream.write(json.dumps(self.state))
        os.replace(STATE + ".part", STATE)

    def settle(self) -> None:
        """Let the controllers and the scheduler do what they would."""
        self.control()
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                pod["left"] -= 1
                if pod["left"] < 0:
                    del self.pods[name]

    def control(self) -> None:
        for name, rs in self.state["replicasets"].items():
            rs["spec"]["replicas"] = self.state["deployments"][
                rs["metadata"]["ownerReferences"][0]["name"]
            ]["spec"]["replicas"]
            wanted = rs["spec"]["selector"]["matchLabels"]
            for pod in self.pods.values():
                if wanted.items() <= pod["metadata"]["labels"].items() and not pod["metadata"].get(
                    "ownerReferences"
                ):
                    pod["metadata"]["ownerReferences"] = [
                        {"kind": "ReplicaSet", "name": name, "controller": True}
                    ]
            mine = [
                p
                for p in self.pods.values()
                if (p["metadata"].get("ownerReferences") or [{}])[0].get("name") == name
                and "deletionTimestamp" not in p["metadata"]
            ]
            self.schedule()
            mine.sort(key=lambda p: (p["ready"], int(p["metadata"]["annotations"].get(COST, "0"))))
            for pod in mine[: max(0, len(mine) - rs["spec"]["replicas"])]:
                pod["metadata"]["deletionTimestamp"] = "now"
                pod["left"] = self.state.get("lingers", 0)
            for k in range(rs["spec"]["replicas"] - len(mine)):
                self.make(
                    f"{name}-auto{len(self.state['log'])}-{k}",
                    rs["spec"]["template"],
                    {"kind": "ReplicaSet", "name": name},
                    wanted,
                    slow=True,
                )
            ready = sum(
                p["ready"] and "deletionTimestamp" not in p["metadata"]
                for p in self.pods.values()
                if (p["metadata"].get("ownerReferences") or [{}])[0].get("name") == name
            )
            self.state["least"][name] = min(self.state["least"].get(name, ready), ready)
        for name, stateful in self.state["statefulsets"].items():
            for k in range(stateful["spec"]["replicas"]):
                if f"{name}-{k}" not in self.pods:
                    self.make(
                        f"{name}-{k}",
                        stateful["spec"]["template"],
                        {"kind": "StatefulSet", "name": name},
                        {},
                    )
        self.schedule()

    def make(
        self,
        name: str,
        template: Any,
        owner: dict[str, Any],
        labels: dict[str, str],
        slow: bool = False,
    ) -> None:
        self.state["uids"] = self.state.get("uids", 0) + 1
        metadata = {
            "name": name,
            "uid": f"uid-{self.state['uids']}",
            "labels": dict(labels),
            "annotations": {},
            "ownerReferences": [owner | {"controller": True}],
        }
        self.pods[name] = {
            "metadata": metadata,
            "spec": json.loads(json.dumps(template["spec"])),
            "ready": False,
            "slow": slow,
        }

    def schedule(self) -> None:
        for pod in self.pods.values():
            if pod["ready"] or pod.get("slow") or "nodeName" in pod["spec"]:
                continue
            terms = (
                pod["spec"]
                .get("affinity", {})
                .get("nodeAffinity", {})
                .get("requiredDuringSchedulingIgnoredDuringExecution", {})
            )
            for node in [
                f["values"][0]
                for t in terms.get("nodeSelectorTerms", [])
                for f in t.get("matchFields", [])
            ]:
                room = self.state["nodes"][node]
                used = sum(
                    self.cpu(p) for p in self.pods.values() if p["spec"].get("nodeName") == node
                )
                if not room["cordoned"] and used + self.cpu(pod) <= room["cpu"]:
                    pod["spec"]["nodeName"], pod["ready"] = node, True
                    break

    @staticmethod
    def cpu(pod: Any) -> int:
        return sum(
            int(c["resources"]["requests"]["cpu"].removesuffix("m"))
            for c in pod["spec"]["containers"]
        )


def path_of(thing: Any, text: str) -> str:
    """The jsonpath expressions that the scripts use."""
    if "ownerReferences" in text:
        return next(
            (
                o["name"]
                for o in thing["metadata"].get("ownerReferences", [])
                if o.get("controller")
            ),
            "",
        )
    for key in re.findall(r"[^.{}]+", text):
        thing = thing.get(key, {}) if isinstance(thing, dict) else {}
    return "" if thing == {} else str(thing)


def fail(text: str) -> None:
    print(f"fake kubectl: {text}", file=sys.stderr)
    sys.exit(1)


def get(cluster: Cluster, kind: str, rest: list[str]) -> None:
    if "-l" in rest or rest[0] == "-o":
        lists(cluster, kind, rest)
        return
    table = {
        "node": "nodes",
        "pod": "pods",
        "replicaset": "replicasets",
        "replicasets": "replicasets",
        "deployment": "deployments",
        "statefulset": "statefulsets",
    }
    things = cluster.state[table[kind]]
    form = rest[rest.index("-o") + 1]
    if rest[0] not in things:
        if "--ignore-not-found" in rest:
            return
        fail(f"{kind} {rest[0]} not found")
    thing = shown(cluster, kind, rest[0], things[rest[0]])
    print(
        f"{kind}/{rest[0]}"
        if form == "name"
        else json.dumps(thing)
        if form == "json"
        else path_of(thing, form.removeprefix("jsonpath="))
    )


def shown(cluster: Cluster, kind: str, name: str, thing: Any) -> Any:
    """Return an object as an API server would."""
    if kind.startswith("pod"):
        status = {"conditions": [{"type": "Ready", "status": str(thing["ready"])}]}
        full = not thing["ready"] and not thing.get("slow") and "nodeName" not in thing["spec"]
        if full:
            reason = {"type": "PodScheduled", "reason": "Unschedulable", "status": "False"}
            status["conditions"].append(reason | {"message": "0/3 nodes: Insufficient cpu"})
        return thing | {"kind": "Pod", "status": status}
    if kind.startswith("node"):
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        spec = {"unschedulable": True} if thing["cordoned"] else {}
        return {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": ready}
    if kind.startswith("stateful"):
        mine = [p for p in cluster.pods.values() if p["metadata"]["name"].startswith(f"{name}-")]
        return thing | {"status": {"readyReplicas": sum(p["ready"] for p in mine)}}
    return thing | {"kind": "ReplicaSet" if kind.startswith("replica") else "Deployment"}


def lists(cluster: Cluster, kinds: str, rest: list[str]) -> None:
    """Print the list of all objects of some kinds, or of those with a label."""
    key, _, value = rest[rest.index("-l") + 1].partition("=") if "-l" in rest else ("", "", "")
    items = [
        shown(cluster, kind, name, thing)
        for kind in kinds.split(",")
        for name, thing in cluster.state[kind].items()
        if not key or thing["metadata"]["labels"].get(key) == value
    ]
    print(json.dumps({"kind": "List", "items": items}))


def change(cluster: Cluster, what: str, rest: list[str]) -> None:
    rest = [a for a in rest if a != "--overwrite"]
    if rest[0] == "pods":
        key, _, value = rest[2].partition("=")
        chosen = [p for p in cluster.pods.values() if p["metadata"]["labels"].get(key) == value]
    else:
        chosen = [cluster.pods[rest[1]]]
    for pod in chosen:
        for pair in rest[3 if rest[0] == "pods" else 2 :]:
            key, _, value = pair.partition("=")
            table = pod["metadata"]["annotations" if what == "annotate" else "labels"]
            if pair.endswith("-"):
                table.pop(pair[:-1], None)
            else:
                table[key] = value


def main(arguments: list[str]) -> None:
    given = (
        json.load(sys.stdin) if arguments[-1] == "-" else None
    )  # what writes into the pipe is done then
    if arguments[0].startswith("--context="):
        assert arguments[0] == "--context=shop-context"
        arguments = arguments[1:]
    if arguments == ["config", "current-context"]:
        print("shop-context")
        return
    cluster = Cluster()
    cluster.state["log"].append(arguments)
    if len(cluster.state["log"]) in cluster.state.get("break_at", []):
        cluster.save()
        fail("the connection was lost")
    if arguments[0] == "-n":
        assert arguments[1] == "shop"
        arguments = arguments[2:]
    verb, *rest = arguments
    if verb == "get":
        get(cluster, rest[0], rest[1:])
    elif verb == "create":
        pod = given
        assert pod["metadata"]["name"] not in cluster.pods
        cluster.state["made"].append(pod)
        cluster.pods[pod["metadata"]["name"]] = pod | {"ready": False}
    elif verb == "replace":
        given.pop("status")
        cluster.state["statefulsets"][given["metadata"]["name"]] = given
    elif verb in ("annotate", "label"):
        change(cluster, verb, rest)
    elif verb == "scale":
        cluster.state["deployments"][rest[1]]["spec"]["replicas"] = int(
            rest[2].removeprefix("--replicas=")
        )
    elif verb == "delete":
        if rest[0] == "node":
            del cluster.state["nodes"][rest[1]]
        else:
            del cluster.pods[rest[1]]
    elif verb == "cordon":
        cluster.state["nodes"][rest[0]]["cordoned"] = True
    elif verb == "uncordon":
        cluster.state["nodes"][rest[0]]["cordoned"] = False
    elif verb == "patch":
        patched = cluster.state[rest[0] + "s"][rest[1]]["spec"]
        given = json.loads(rest[-1])["spec"]
        template = given.pop("template", {"spec": {}})
        patched |= given
        for where, listed in template["spec"].items():
            for one in listed:
                spec = patched["template"]["spec"][where]
                known = next(c for c in spec if c["name"] == one["name"])
                known["resources"]["requests"] |= one["resources"]["requests"]
    else:
        fail(f"unknown command {verb}")
    cluster.settle()
    cluster.save()


if __name__ == "__main__":
    main(sys.argv[1:])
