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
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
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
                del self.pods[name]

    def owned(self, name: str) -> list[Any]:
        """Return the pods of a controller that are not ending."""
        return [
            pod
            for pod in self.pods.values()
            if (pod["metadata"].get("ownerReferences") or [{}])[0].get("name") == name
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def control(self) -> None:
        for name, made in self.state["replicasets"].items():
            about, spec = made["metadata"], made["spec"]
            above = self.state["deployments"][about["ownerReferences"][0]["name"]]
            count = spec["replicas"] = above["spec"]["replicas"]
            wanted, owner = spec["selector"]["matchLabels"], {"kind": "ReplicaSet", "name": name}
            for pod in self.pods.values():
                meta = pod["metadata"]
                if wanted.items() <= meta["labels"].items() and not meta.get("ownerReferences"):
                    meta["ownerReferences"] = [owner | {"controller": True}]
            mine = self.owned(name)
            self.schedule()
            mine.sort(key=lambda p: (p["ready"], int(p["metadata"]["annotations"].get(COST, "0"))))
            for pod in mine[: max(0, len(mine) - count)]:
                pod["metadata"]["deletionTimestamp"] = "now"
            for k in range(count - len(mine)):
                pod_name = f"{name}-auto{len(self.state['log'])}-{k}"
                self.make(pod_name, spec["template"], owner, wanted, slow=True)
            ready = sum(pod["ready"] for pod in self.owned(name))
            self.state["least"][name] = min(self.state["least"].get(name, ready), ready)
        for name, made in self.state["statefulsets"].items():
            owner = {"kind": "StatefulSet", "name": name}
            for k in range(made["spec"]["replicas"]):
                if f"{name}-{k}" not in self.pods:
                    self.make(f"{name}-{k}", made["spec"]["template"], owner, {})
        self.schedule()

    def make(self, name: str, template: Any, owner: Any, labels: Any, slow: bool = False) -> None:
        self.state["uids"] = self.state.get("uids", 0) + 1
        about = {"name": name, "uid": f"uid-{self.state['uids']}", "labels": dict(labels)}
        about |= {"annotations": {}, "ownerReferences": [owner | {"controller": True}]}
        spec = json.loads(json.dumps(template["spec"]))
        self.pods[name] = {"metadata": about, "spec": spec, "ready": False, "slow": slow}

    def schedule(self) -> None:
        for pod in self.pods.values():
            if pod["ready"] or pod.get("slow") or "nodeName" in pod["spec"]:
                continue
            wish = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(HARD, {})
            fields = (
                f for t in wish.get("nodeSelectorTerms", []) for f in t.get("matchFields", [])
            )
            for node in [field["values"][0] for field in fields]:
                room = self.state["nodes"][node]
                there = (p for p in self.pods.values() if p["spec"].get("nodeName") == node)
                if not room["cordoned"] and sum(map(self.cpu, [*there, pod])) <= room["cpu"]:
                    pod["spec"]["nodeName"], pod["ready"] = node, True
                    break

    @staticmethod
    def cpu(pod: Any) -> int:
        asked = (c["resources"]["requests"]["cpu"] for c in pod["spec"]["containers"])
        return sum(int(text.removesuffix("m")) for text in asked)


def path_of(thing: Any, text: str) -> str:
    """The jsonpath expressions that the scripts use."""
    if "ownerReferences" in text:
        owners = thing["metadata"].get("ownerReferences", [])
        return next((o["name"] for o in owners if o.get("controller")), "")
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
    things = cluster.state[kind if kind.endswith("s") else f"{kind}s"]
    form = rest[rest.index("-o") + 1]
    if rest[0] not in things:
        if "--ignore-not-found" in rest:
            return
        fail(f"{kind} {rest[0]} not found")
    thing = shown(cluster, kind, rest[0], things[rest[0]])
    if form == "name":
        print(f"{kind}/{rest[0]}")
    else:
        print(
            json.dumps(thing) if form == "json" else path_of(thing, form.removeprefix("jsonpath="))
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
    # What writes into the pipe is done then.
    given = json.load(sys.stdin) if arguments[-1] == "-" else None
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
        count = int(rest[2].removeprefix("--replicas="))
        cluster.state["deployments"][rest[1]]["spec"]["replicas"] = count
    elif verb == "delete":
        del cluster.state[f"{rest[0]}s"][rest[1]]
    elif verb in ("cordon", "uncordon"):
        cluster.state["nodes"][rest[0]]["cordoned"] = verb == "cordon"
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
