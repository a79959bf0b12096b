"""kube-scheduler's filters over plain JSON objects: would it run the copies of a plan?

Written from the documentation of kube-scheduler (its default filter plugins), of admission and of
the API fields; it shares nothing with the package. `replay` makes the steps of a steps document one
by one, as the exported script does: a copy is made of the template of its ReplicaSet, where the
objects have it. Asked are every copy that starts, beside all that runs then, its own old copy
included, and every moved pod again in the final state; whether its quota lets it be made; besides,
that nothing that must stay moves, that no replica is lost, and that no node holds more than it can
allocate where it did not before. Pods that are being deleted may be there at every step or at none:
both are tried.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
Key = tuple[str, str]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
_SUFFIXES = {"": 1, "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9}
_SUFFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(text: Any) -> int:
    """Return a quantity in thousandths: of cores, bytes, pieces."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][0-9]+)?)([A-Za-z]*)", str(text))
    assert found, text
    return math.ceil(Fraction(found[1]) * _SUFFIXES[found[2]] * 1000)


def asked(container: Json, status: Json | None = None) -> Counter[str]:
    """Return what a container holds: what it asks for, or what it was given, if that is more."""
    total = Counter(
        {k: amount(v) for k, v in container.get("resources", {}).get("requests", {}).items()}
    )
    for told in (status or {}).get("containerStatuses", []):
        if told["name"] == container["name"]:
            given = (told.get("allocatedResources"), told.get("resources", {}).get("requests"))
            for listed in given:
                for key, text in (listed or {}).items():
                    total[key] = max(total[key], amount(text))
    return total


def requests(spec: Json, status: Json | None = None) -> Counter[str]:
    """Return what the scheduler counts for a pod: containers together, or one init container."""
    total = Counter({"pods": 1000})
    for container in spec["containers"]:
        total.update(asked(container, status))
    for container in spec.get("initContainers", []):
        for key, need in asked(container).items():
            total[key] = max(total[key], need)
    for key, text in spec.get("overhead", {}).items():
        total[key] += amount(text)
    return total


def holds(term: Json, labels: Json) -> bool:
    """Return whether a requirement (key, operator, values) holds."""
    value, operator = labels.get(term["key"]), term["operator"]
    if operator == "In":
        return value in term["values"]
    if operator == "NotIn":
        return value not in term["values"]
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    one, other = int(value), int(term["values"][0])
    return one > other if operator == "Gt" else one < other


def matches(selector: Json | None, labels: Json) -> bool:
    """Return whether a label selector holds; an absent one holds for nothing."""
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items()) and all(
        holds(e, labels) for e in selector.get("matchExpressions", [])
    )


def tolerates(spec: Json, taint: Json) -> bool:
    """Return whether a pod tolerates a taint."""
    for t in spec.get("tolerations", []):
        same_effect = t.get("effect") in (None, "", taint["effect"])
        if t.get("operator", "Equal") == "Exists":
            same = t.get("key") in (None, "", taint["key"])
        else:
            same = t.get("key") == taint["key"] and t.get("value", "") == taint.get("value", "")
        if same and same_effect:
            return True
    return False


def ports(spec: Json) -> set[tuple[str, int, str]]:
    """Return the ports of its node that a pod takes: protocol, number, address."""
    found = set()
    for p in (p for c in spec["containers"] for p in c.get("ports", [])):
        number = p.get("hostPort") or (spec.get("hostNetwork") and p["containerPort"])
        if number:
            found.add((p.get("protocol", "TCP"), number, p.get("hostIP") or "0.0.0.0"))
    return found


def collide(mine: set[tuple[str, int, str]], theirs: set[tuple[str, int, str]]) -> bool:
    """Return whether two pods take the same port of one node."""
    return any(
        a[:2] == b[:2] and (a[2] == b[2] or "0.0.0.0" in (a[2], b[2])) for a in mine for b in theirs
    )


def key_of(thing: Json) -> Key:
    """Return (namespace, name)."""
    return thing["metadata"].get("namespace", "default"), thing["metadata"]["name"]


def is_ending(thing: Json) -> bool:
    """Return whether a pod is being deleted."""
    is_pod = thing.get("kind", "Pod") == "Pod"
    return is_pod and bool(thing["metadata"].get("deletionTimestamp"))


def _quota_usage(spec: Json) -> Counter[str]:
    total = requests(spec)
    named = {f"requests.{key}": need for key, need in total.items()}
    return Counter({**total, **named, "count/pods": 1000})


class Scheduler:
    """Nodes, volumes and the pods that run; `waiting` have no node yet.

    Without `ending` the pods that are being deleted are gone.
    """

    def __init__(self, objects: Iterable[Json], *, ending: bool = True):
        listed = [o for o in objects if ending or not is_ending(o)]
        kinds: dict[str, list[Json]] = {}
        for thing in listed:
            kinds.setdefault(thing["kind"], []).append(thing)
        self.nodes = {n["metadata"]["name"]: n for n in kinds.get("Node", [])}
        self.volumes = {v["metadata"]["name"]: v for v in kinds.get("PersistentVolume", [])}
        self.claims = {key_of(c): c for c in kinds.get("PersistentVolumeClaim", [])}
        self.classes = {c["metadata"]["name"]: c for c in kinds.get("StorageClass", [])}
        self.limits = {
            c["metadata"]["name"]: {
                d["name"]: d["allocatable"]["count"]
                for d in c["spec"]["drivers"]
                if d.get("allocatable", {}).get("count") is not None
            }
            for c in kinds.get("CSINode", [])
        }
        self.runtimes = {c["metadata"]["name"]: c for c in kinds.get("RuntimeClass", [])}
        self.quotas = kinds.get("ResourceQuota", [])
        self.charged = [
            Counter({k: amount(v) for k, v in q["status"]["used"].items()}) for q in self.quotas
        ]
        self.templates = {key_of(d): d for d in kinds.get("Deployment", [])}
        self.sets = {key_of(s): s for s in kinds.get("ReplicaSet", [])}
        self.spaces = {s["metadata"]["name"]: s for s in kinds.get("Namespace", [])}
        self.room = {
            name: Counter({k: amount(v) for k, v in n["status"]["allocatable"].items()})
            for name, n in self.nodes.items()
        }
        self.pods: dict[Key, Json] = {}
        self.on: dict[str, dict[Key, Json]] = {name: {} for name in self.nodes}
        self.used: dict[str, Counter[str]] = {name: Counter() for name in self.nodes}
        self.keeping_away: dict[Key, Json] = {}
        self.waiting = {key_of(p): p for p in kinds.get("Pod", []) if not p["spec"].get("nodeName")}
        for pod in kinds.get("Pod", []):
            ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if pod["spec"].get("nodeName") in self.nodes and not ended:
                self.start(pod, pod["spec"]["nodeName"])

    def labels(self, node: str) -> Json:
        """Return the labels of a node."""
        labels: Json = self.nodes[node]["metadata"]["labels"]
        return labels

    def start(self, pod: Json, node: str) -> None:
        """Let a pod run on a node."""
        placed = pod | {"spec": pod["spec"] | {"nodeName": node}}
        self.pods[key_of(pod)] = self.on[node][key_of(pod)] = placed
        self.used[node].update(requests(pod["spec"], pod.get("status")))
        if self._terms(placed, "podAntiAffinity"):
            self.keeping_away[key_of(pod)] = placed

    def end(self, key: Key) -> Json:
        """Let a pod end; return it."""
        pod = self.pods.pop(key)
        del self.on[pod["spec"]["nodeName"]][key]
        self.used[pod["spec"]["nodeName"]].subtract(requests(pod["spec"], pod.get("status")))
        self.keeping_away.pop(key, None)
        return pod

    def refusals(self, pod: Json, node: str) -> list[str]:
        """Return the filters that keep a pod from a node now."""
        spec = pod["spec"]
        found = list(self._node_itself(spec, node))
        for volume in spec.get("volumes", []):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and not self._reaches((key_of(pod)[0], claim), node):
                found.append("VolumeBinding")
        if any(collide(ports(spec), ports(other["spec"])) for other in self.on[node].values()):
            found.append("NodePorts")
        if self._too_many_volumes(pod, node):
            found.append("NodeVolumeLimits")
        if spec.get("schedulingGates"):
            found.append("SchedulingGates")
        need = requests(spec, pod.get("status"))
        found += [f"NodeResourcesFit {r}" for r in self.lacking(node, need)]
        return found + list(self._affinity(pod, node)) + list(self._spread(pod, node))

    def _node_itself(self, spec: Json, node: str) -> Iterator[str]:
        known = self.nodes[node]["spec"]
        ready = [c for c in self.nodes[node]["status"]["conditions"] if c["type"] == "Ready"]
        if any(c["status"] != "True" for c in ready):
            yield "NodeReady"
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if known.get("unschedulable") and not tolerates(spec, cordon):
            yield "NodeUnschedulable"
        if self._untolerated(spec, node):
            yield "TaintToleration"
        if not self._wants(spec, node):
            yield "NodeAffinity"

    def _untolerated(self, spec: Json, node: str) -> bool:
        return any(
            t["effect"] in ("NoSchedule", "NoExecute") and not tolerates(spec, t)
            for t in self.nodes[node]["spec"].get("taints", [])
        )

    def _wants(self, spec: Json, node: str) -> bool:
        labels = self.labels(node)
        if any(labels.get(k) != v for k, v in spec.get("nodeSelector", {}).items()):
            return False
        required = spec.get("affinity", {}).get("nodeAffinity", {}).get(HARD)
        return required is None or self._any_term(required["nodeSelectorTerms"], node)

    def _any_term(self, terms: list[Json], node: str) -> bool:
        return any(
            all(holds(e, self.labels(node)) for e in t.get("matchExpressions", []))
            and all(holds(e, {"metadata.name": node}) for e in t.get("matchFields", []))
            for t in terms
        )

    def _reaches(self, claim: Key, node: str) -> bool:
        spec = self.claims[claim]["spec"]
        if "volumeName" not in spec:
            return self._could_make(spec, node)
        volume = self.volumes[spec["volumeName"]]
        affinity = volume["spec"].get("nodeAffinity", {}).get("required")
        return affinity is None or self._any_term(affinity["nodeSelectorTerms"], node)

    def _could_make(self, claim: Json, node: str) -> bool:
        """Return whether the volume of a claim could be made where a node reaches it."""
        known = self.classes[claim["storageClassName"]]
        if known.get("volumeBindingMode", "Immediate") == "Immediate":
            return False
        terms = known.get("allowedTopologies", [])
        return not terms or any(
            all(self.labels(node).get(e["key"]) in e["values"] for e in t["matchLabelExpressions"])
            for t in terms
        )

    def _attached(self, pod: Json) -> set[tuple[str, str]]:
        """Return (driver, handle) of the volumes that a node attaches for a pod."""
        found = set()
        for volume in pod["spec"].get("volumes", []):
            name = volume.get("persistentVolumeClaim", {}).get("claimName")
            spec = self.claims[key_of(pod)[0], name]["spec"] if name else {}
            if "volumeName" in spec:
                csi = self.volumes[spec["volumeName"]]["spec"].get("csi")
                found |= {(csi["driver"], csi["volumeHandle"])} if csi else set()
            elif spec:
                maker = self.classes[spec["storageClassName"]]["provisioner"]
                found.add((maker, f"{key_of(pod)[0]}/{name}"))
        return found

    def _too_many_volumes(self, pod: Json, node: str) -> bool:
        here = {a for other in self.on[node].values() for a in self._attached(other)}
        new = self._attached(pod) - here
        return any(
            any(d == driver for d, _ in new) and sum(d == driver for d, _ in here | new) > most
            for driver, most in self.limits.get(node, {}).items()
        )

    def admitted(self, spec: Json) -> Json:
        """Return a spec as admission makes it of one that names a RuntimeClass."""
        runtime = self.runtimes.get(spec.get("runtimeClassName", ""))
        if runtime is None:
            return spec
        chosen = runtime.get("scheduling", {}).get("nodeSelector", {})
        return {
            **spec,
            "overhead": runtime.get("overhead", {}).get("podFixed", {}),
            "nodeSelector": {**spec.get("nodeSelector", {}), **chosen},
        }

    def charge(self, pod: Json, sign: int) -> None:
        """Count a pod against the quotas of its namespace, or no longer."""
        for quota, used in zip(self.quotas, self.charged, strict=True):
            if key_of(quota)[0] == key_of(pod)[0]:
                for key, need in _quota_usage(pod["spec"]).items():
                    used[key] += sign * need

    def forbidden(self, pod: Json) -> list[str]:
        """Return the quotas that do not let a pod be made."""
        return [
            f"ResourceQuota {key}"
            for quota, used in zip(self.quotas, self.charged, strict=True)
            if key_of(quota)[0] == key_of(pod)[0]
            for key, most in quota["spec"]["hard"].items()
            if used[key] + _quota_usage(pod["spec"])[key] > amount(most)
        ]

    def lacking(self, node: str, asked: Counter[str]) -> list[str]:
        """Return the resources of which a node has too little for one more pod."""
        used, room = self.used[node], self.room[node]
        return [r for r, need in asked.items() if need and used[r] + need > room[r]]

    def overfull(self, node: str) -> list[str]:
        """Return the resources of which a node has given out more than it has."""
        return [r for r, used in self.used[node].items() if used > self.room[node][r]]

    @staticmethod
    def _terms(pod: Json, kind: str) -> list[Json]:
        terms: list[Json] = pod["spec"].get("affinity", {}).get(kind, {}).get(HARD, [])
        return terms

    def _about(self, owner: Json, term: Json, other: Json) -> bool:
        """Return whether an affinity term of a pod is about another pod."""
        mine, theirs = key_of(owner)[0], key_of(other)[0]
        spaces, chosen = term.get("namespaces", []), term.get("namespaceSelector")
        if chosen is None:
            if theirs not in (spaces or [mine]):
                return False
        else:
            known = self.spaces.get(theirs, {"metadata": {}})["metadata"].get("labels", {})
            named = {"kubernetes.io/metadata.name": theirs} | known
            if theirs not in spaces and not matches(chosen, named):
                return False
        return matches(term.get("labelSelector"), other["metadata"].get("labels", {}))

    def _near(self, pod: Json, term: Json, node: str) -> bool:
        """Return whether a pod that a term is about runs in the same domain as a node."""
        where = self.labels(node).get(term["topologyKey"])
        return where is not None and any(
            self.labels(p["spec"]["nodeName"]).get(term["topologyKey"]) == where
            and self._about(pod, term, p)
            for p in self.pods.values()
        )

    def _affinity(self, pod: Json, node: str) -> Iterator[str]:
        if any(self._near(pod, t, node) for t in self._terms(pod, "podAntiAffinity")):
            yield "InterPodAffinity: anti-affinity"
        for other in self.keeping_away.values():
            for term in self._terms(other, "podAntiAffinity"):
                key = term["topologyKey"]
                here = self.labels(node).get(key)
                there = self.labels(other["spec"]["nodeName"]).get(key)
                if here is not None and here == there and self._about(other, term, pod):
                    yield "InterPodAffinity: anti-affinity of another pod"
        terms = self._terms(pod, "podAffinity")
        if not terms:
            return
        company = [p for p in self.pods.values() if all(self._about(pod, t, p) for t in terms)]
        keys = [t["topologyKey"] for t in terms]
        if any(self.labels(node).get(key) is None for key in keys):
            yield "InterPodAffinity: affinity"
            return
        near = {
            key: any(
                self.labels(p["spec"]["nodeName"]).get(key) == self.labels(node)[key]
                for p in company
            )
            for key in keys
        }
        placed = any(self.labels(p["spec"]["nodeName"]).get(k) for p in company for k in keys)
        first = all(self._about(pod, t, pod) for t in terms) and not placed
        if not (all(near.values()) or first):
            yield "InterPodAffinity: affinity"

    def _spread(self, pod: Json, node: str) -> Iterator[str]:
        for term in pod["spec"].get("topologySpreadConstraints", []):
            if term["whenUnsatisfiable"] == "DoNotSchedule" and self.skew(pod, term, node) > 0:
                yield "PodTopologySpread"

    def skew(self, pod: Json, term: Json, node: str) -> int:
        """Return by how much a new pod on a node would exceed the largest skew."""
        key, count = term["topologyKey"], Counter[str]()
        if self.labels(node).get(key) is None:
            return 1
        legal = {n for n in self.nodes if self._counts(pod["spec"], term, n)}
        for n in legal:
            count[self.labels(n)[key]] += 0
        for p in self.pods.values():
            same_space = key_of(p)[0] == key_of(pod)[0] and not is_ending(p)
            if same_space and p["spec"]["nodeName"] in legal and self._same(term, pod, p):
                count[self.labels(p["spec"]["nodeName"])[key]] += 1
        few = len(count) < term.get("minDomains", 1)
        fewest = 0 if few else min(count.values(), default=0)
        own = int(self._same(term, pod, pod))
        return count[self.labels(node)[key]] + own - fewest - int(term["maxSkew"])

    def _counts(self, spec: Json, term: Json, node: str) -> bool:
        """Return whether a spread counts a node: it has the label, and the policies let it."""
        if self.labels(node).get(term["topologyKey"]) is None:
            return False
        if term.get("nodeAffinityPolicy", "Honor") == "Honor" and not self._wants(spec, node):
            return False
        return term.get("nodeTaintsPolicy", "Ignore") == "Ignore" or not self._untolerated(
            spec, node
        )

    @staticmethod
    def _same(term: Json, pod: Json, other: Json) -> bool:
        """Return whether a spread constraint of a pod counts another one."""
        mine, theirs = pod["metadata"]["labels"], other["metadata"].get("labels", {})
        return matches(term.get("labelSelector"), theirs) and all(
            mine[k] == theirs.get(k) for k in term.get("matchLabelKeys", []) if k in mine
        )


# -- the steps of a plan ---------------------------------------------------------------------------


def workload(pod: Json) -> tuple[str, str]:
    """Return the namespace of a pod and what its name says of its workload."""
    owners = pod["metadata"].get("ownerReferences", [])
    return key_of(pod)[0], owners[0]["name"] if owners else pod["metadata"]["name"]


def must_stay(pod: Json) -> str:
    """Return why a pod must not be moved, as far as its owner and annotations say so."""
    owners = [o["kind"] for o in pod["metadata"].get("ownerReferences", [])]
    if owners != ["ReplicaSet"]:
        return f"pods of {owners or 'nothing'} stay"
    notes = pod["metadata"].get("annotations", {})
    if notes.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "false":
        return "not safe to evict"
    return "do not disrupt" if "karpenter.sh/do-not-disrupt" in notes else ""


class Replay:
    """The states of a cluster as the steps of a plan are made.

    Attributes
    ----------
    states : int
        States looked at: one a step, and the last one.
    refused : list of str
        What the scheduler would refuse, and what else is wrong.
    """

    def __init__(self, objects: list[Json], steps: Json, *, ending: bool = True):
        self.state, self.steps = Scheduler(objects, ending=ending), steps["steps"]
        self.steps_document = steps
        self.states, self.refused = 0, list[str]()
        self.rolling = _rolling_out(objects)
        self.stopped: dict[Key, Json] = {}
        self.moved: set[Key] = set()
        self.deleted = Counter[tuple[str, str]]()
        self._run()

    def _run(self) -> None:
        before = Counter(map(workload, self.state.pods.values()))
        for node in self.steps_document.get("idle", ()):
            if self.steps_document.get("deletes_idle"):
                self._delete("before the first step", node)
        crowded = {n for n in self.state.nodes if self.state.overfull(n)}
        for step in self.steps:
            self._make(step)
            self.states += 1
        self.states += 1
        for key in self.moved & set(self.state.pods):  # as if each were the last to start
            pod = self.state.end(key)
            node = pod["spec"]["nodeName"]
            self._say("at the end", key, node, self.state.refusals(pod, node))
            self.state.start(pod, node)
        before.subtract(self.deleted)
        for node in set(self.state.nodes) - crowded:
            self._say("at the end", ("", ""), node, self.state.overfull(node))
        after = Counter(map(workload, self.state.pods.values()))
        for lost in before - after:
            self.refused.append(f"replicas of {lost} are lost")

    def _make(self, step: Json) -> None:
        number, space = step["number"], step["application"].removesuffix(" (stays)")
        here = f"step {number}"
        if step["to"] is not None and step["to"] not in self.state.nodes:
            self.refused.append(f"{here}, {step['to']}: the node is deleted")
            return
        old = self.state.pods.get((space, step.get("pod") or ""))
        if old is not None:
            if old["spec"]["nodeName"] != step["from"]:
                self.refused.append(f"{here}: {step['pod']} is not on {step['from']}")
            if why := must_stay(old) or self._rolls_out(old):
                self.refused.append(f"{here}: {step['pod']}: {why}")
        template = old or self.stopped.pop((space, step["microservice"]), None)
        waits = self.state.waiting.get((space, step["microservice"]))
        template = template or self._waiting(space, step)
        if waits is not None and old is None and step["to"] is not None:
            self.state.charge(waits, -1)  # the script asks for it again at its step
        if step["to"] is not None:
            fresh = self._copy(self._as_made(template), step)
            self._say(here, key_of(fresh), step["to"], self.state.forbidden(fresh))
            self.state.charge(fresh, 1)
            self._say(here, key_of(fresh), step["to"], self.state.refusals(fresh, step["to"]))
        if old is not None:
            self.stopped[space, step["microservice"]] = self.state.end(key_of(old))
            self.state.charge(old, -1)
        if step["to"] is not None:
            kept = fresh | {
                "metadata": fresh["metadata"] | {"labels": template["metadata"]["labels"]}
            }
            self.state.start(kept, step["to"])
            self.moved.add(key_of(kept))
        left = [p for p in self._on(step["from"]) if not is_ending(p)] if step["from"] else []
        if step["empties_node"] and any(must_stay(p) == "" for p in left):
            self.refused.append(f"{here}: {step['from']} is not empty")
        if step.get("deletes_node"):
            self._delete(here, step["from"])

    def _delete(self, here: str, node: str) -> None:
        """Delete a node with what comes with it; nothing else may be left there."""
        for pod in self._on(node):
            owners = {o["kind"] for o in pod["metadata"].get("ownerReferences", [])}
            if not (is_ending(pod) or owners & {"DaemonSet", "Node"}):
                self.refused.append(f"{here}: {node} is deleted under {key_of(pod)}")
            self.deleted[workload(self.state.end(key_of(pod)))] += 1
        del self.state.nodes[node]

    def _rolls_out(self, pod: Json) -> str:
        space, owner = workload(pod)
        return (
            "its Deployment rolls out" if (space, owner.rsplit("-", 1)[0]) in self.rolling else ""
        )

    def _as_made(self, pod: Json) -> Json:
        """Return a pod as its ReplicaSet makes it, where the objects have that; else like it."""
        known = self.state.sets.get(workload(pod))
        spec = pod["spec"] if known is None else known["spec"]["template"]["spec"]
        return {**pod, "spec": self.state.admitted(spec), "status": {}}

    def _on(self, node: str) -> list[Json]:
        return list(self.state.on[node].values())

    def _waiting(self, space: str, step: Json) -> Json:
        """Return the pod that waits for a node, or one of the template of its Deployment."""
        name = step["microservice"]
        if (space, name) in self.state.waiting:
            return self.state.waiting[space, name]
        known = self.state.templates
        made = known[space, name if (space, name) in known else name.rsplit("-", 1)[0]]
        about = {**made["spec"]["template"]["metadata"], "namespace": space, "name": name}
        return {"kind": "Pod", "metadata": about, "spec": made["spec"]["template"]["spec"]}

    @staticmethod
    def _copy(template: Json, step: Json) -> Json:
        """Return the copy that a step makes: not adopted yet, hence without the template's hash."""
        fresh = copy.deepcopy(template)
        fresh["metadata"]["name"] = step.get("new_pod") or step["microservice"]
        fresh["metadata"]["labels"].pop("pod-template-hash", None)
        for container in fresh["spec"]["containers"]:
            new = step.get("requests", {}).get(container["name"], {})
            resources = container.setdefault("resources", {})
            resources["requests"] = {**resources.get("requests", {}), **new}
        return fresh

    def _say(self, when: str, pod: Key, node: str, why: list[str]) -> None:
        self.refused += [f"{when}, {'/'.join(pod)} on {node}: {reason}" for reason in why]


def _rolling_out(objects: list[Json]) -> set[Key]:
    """Return the Deployments, as named by their ReplicaSets, with pods of two of them."""
    sets: dict[Key, set[str]] = {}
    for pod in (o for o in objects if o["kind"] == "Pod" and not is_ending(o)):
        if pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        if [o["kind"] for o in pod["metadata"].get("ownerReferences", [])] == ["ReplicaSet"]:
            space, name = workload(pod)
            sets.setdefault((space, name.rsplit("-", 1)[0]), set()).add(name)
    return {key for key, names in sets.items() if len(names) > 1}


def replay(objects: list[Json], steps: Json) -> list[str]:
    """Make the steps of a steps document; return what the scheduler refuses, and broken ends."""
    worlds = (True, False) if any(map(is_ending, objects)) else (True,)
    return [text for ending in worlds for text in Replay(objects, steps, ending=ending).refused]
