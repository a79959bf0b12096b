"""A cluster as `kubectl get nodes,pods,services,... -A -o json` prints it: thousands of pods.

python benchmarks/kubernetes/make_cluster.py --nodes 1000 --pods 15000 --seed 1 -o cluster.json

With --rules half of the workloads ask the scheduler for more than room, in turn (`RULES`). What
runs keeps the rules, as if kube-scheduler had put it there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

#: machine type -> (milli-CPU, MiB) that its kubelet leaves to pods, USD per hour.
TYPES = {
    "m5.2xlarge": (7910, 30500, 0.384),
    "m5.4xlarge": (15890, 61200, 0.768),
    "c5.4xlarge": (15890, 28400, 0.68),
}
CPUS, MEMORIES = (
    ("50m", "100m", "100m", "250m", "500m", "1"),
    ("64Mi", "128Mi", "256Mi", "256Mi", "512Mi", "1Gi", "129e6"),
)
#: What every other workload asks for, in turn, where there are rules.
RULES = (
    "apart by node",
    "spread over zones, by 1",
    "spread over nodes, by 2",
    "a machine type",
    "a volume of a zone",
    "spread over zones and apart by node",
    "beside another workload's pods, by zone",
    "spread over zones, if possible",
)
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_STAMP = "2026-01-05T10:00:00Z"


def cluster(
    nodes: int = 1000, pods: int = 15_000, seed: int = 1, *, rules: bool = False
) -> dict[str, Any]:
    """Return the list; two thirds of the pods are of Deployments, three a node of DaemonSets."""
    rng = np.random.default_rng(seed)
    machines = [_node(rng, k) for k in range(nodes)]
    room = [[cpu * 1.0, mib * 1.0] for cpu, mib in (TYPES[_type(m)][:2] for m in machines)]
    found: list[dict[str, Any]] = []
    for k, machine in enumerate(machines):
        for daemon, (cpu, memory) in {
            "aws-node": ("50m", "64Mi"),
            "kube-proxy": ("100m", "64Mi"),
            "node-exporter": ("102m", "180Mi"),
        }.items():
            spec = _spec(daemon, cpu, memory, machine["metadata"]["name"])
            found.append(
                _pod(
                    "kube-system", f"{daemon}-{k:05d}", {"app": daemon}, ("DaemonSet", daemon), spec
                )
            )
        room[k] = [room[k][0] - 252, room[k][1] - 308]
    services: list[dict[str, Any]] = []
    homes: dict[str, list[int]] | None = {} if rules else None
    while len(found) < pods:
        _workload(rng, machines, room, found, services, pods - len(found), homes)
    return {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": machines + found + services + _volumes(homes or {}),
    }


def _type(node: dict[str, Any]) -> str:
    return node["metadata"]["labels"]["node.kubernetes.io/instance-type"]


def _node(rng: np.random.Generator, k: int) -> dict[str, Any]:
    kind = list(TYPES)[int(rng.integers(len(TYPES)))]
    cpu, mib, _ = TYPES[kind]
    name, zone = f"ip-10-0-{k // 250}-{k % 250}.ec2.internal", f"us-east-1{'abc'[k % 3]}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": zone,
        "pool": "batch" if k % 10 == 0 else "general",
    }
    taints = [{"key": "pool", "value": "batch", "effect": "NoSchedule"}] if k % 10 == 0 else []
    conditions = [
        {
            "type": t,
            "status": "True" if t == "Ready" else "False",
            "lastHeartbeatTime": _STAMP,
            "reason": "Kubelet",
            "message": "is fine",
        }
        for t in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example/team/app-{i}@sha256:{'0' * 64}"], "sizeBytes": 10**8 + i}
        for i in range(20)
    ]
    spec = {"providerID": f"aws:///{zone}/i-{k:017d}", **({"taints": taints} if taints else {})}
    status = {
        "capacity": {"cpu": str(-(-cpu // 1000)), "memory": f"{mib + 1500}Mi", "pods": "110"},
        "allocatable": {"cpu": f"{cpu}m", "memory": f"{mib * 1024}Ki", "pods": "110"},
        "conditions": conditions,
        "images": images,
    }
    about = {
        "name": name,
        "labels": labels,
        "uid": f"00000000-0000-0000-0001-{k:012d}",
        "creationTimestamp": _STAMP,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "spec": spec, "status": status}


def _workload(
    rng: np.random.Generator,
    machines: list[dict[str, Any]],
    room: list[list[float]],
    pods: list[dict[str, Any]],
    services: list[dict[str, Any]],
    most: int,
    homes: dict[str, list[int]] | None,
) -> None:
    """Add a Deployment or StatefulSet, its pods on random nodes with room, and its Service.

    `homes` are the nodes of the workloads so far, None where there are no rules.
    """
    number = len(services)
    space, name = f"team-{number % 40:02d}", f"svc-{number:04d}"
    cpu, memory = CPUS[int(rng.integers(len(CPUS)))], MEMORIES[int(rng.integers(len(MEMORIES)))]
    need = (
        1000.0 if cpu == "1" else float(cpu[:-1]),
        {"1Gi": 1024.0, "129e6": 124.0}.get(memory) or float(memory[:-2]),
    )
    stateful, batch = number % 12 == 0, number % 15 == 7
    digest = f"{int(rng.integers(16**9)):09x}"
    calls = [f"svc-{c:04d}" for c in range(max(0, number - 40), number) if c % 40 == number % 40]
    labels = {"app": name} | ({} if stateful else {"pod-template-hash": digest})
    owner = ("StatefulSet", name) if stateful else ("ReplicaSet", f"{name}-{digest}")
    services.append(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": space},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}], "type": "ClusterIP"},
        }
    )
    rule = "" if homes is None or number % 2 == 0 else RULES[number // 2 % len(RULES)]
    mine = [] if homes is None else homes.setdefault(name, [])
    beside = (homes or {}).get(f"svc-{number - 1:04d}", [])
    for replica in range(min(most, int(rng.integers(1, 20)))):
        for k in rng.integers(0, len(machines), 200).tolist():
            fits = room[k][0] >= need[0] and room[k][1] >= need[1]
            if (k % 10 == 0) == batch and fits and _keeps(rule, machines, k, mine, beside):
                break
        else:
            return
        mine.append(k)
        room[k] = [room[k][0] - need[0], room[k][1] - need[1]]
        spec = _spec(name, cpu, memory, machines[k]["metadata"]["name"], calls)
        spec |= _asked(rule, number, _type(machines[k]))
        if batch:
            spec |= {
                "nodeSelector": {**spec.get("nodeSelector", {}), "pool": "batch"},
                "tolerations": [*spec["tolerations"], {"key": "pool", "operator": "Exists"}],
            }
        own = f"{name}-{replica}" if stateful else f"{name}-{digest}-{replica:05d}"
        pods.append(_pod(space, own, labels, owner, spec))


def _keeps(
    rule: str, machines: list[dict[str, Any]], k: int, mine: list[int], beside: list[int]
) -> bool:
    """Return whether one more replica on machine k keeps a rule; zone and volume go by k % 3."""
    zones = np.bincount([n % 3 for n in mine] + [k % 3], minlength=3)
    kept = {
        "spread over nodes, by 2": mine.count(k) < 2,
        "a machine type": not mine or _type(machines[mine[0]]) == _type(machines[k]),
        "a volume of a zone": not mine or mine[0] % 3 == k % 3,
        "beside another workload's pods, by zone": k % 3 in {n % 3 for n in beside},
    }.get(rule, True)
    if "over zones" in rule and "possible" not in rule:
        kept = kept and int(np.ptp(zones)) <= 1
    return kept and not ("apart by node" in rule and k in mine)


def _asked(rule: str, number: int, machine_type: str) -> dict[str, Any]:
    """Return the fields of a pod by which it asks for a rule."""
    own, other = ({"matchLabels": {"app": f"svc-{n:04d}"}} for n in (number, number - 1))
    space = f"team-{(number - 1) % 40:02d}"
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"svc-{number:04d}"}}
    by_nodes = {"maxSkew": 2, "topologyKey": _HOST}
    if_possible = {"whenUnsatisfiable": "ScheduleAnyway"}
    apart = {"podAntiAffinity": {hard: [{"labelSelector": own, "topologyKey": _HOST}]}}
    near = {"labelSelector": other, "topologyKey": _ZONE, "namespaces": [space]}
    fields: dict[str, dict[str, Any]] = {
        RULES[0]: {"affinity": apart},
        RULES[1]: {"topologySpreadConstraints": [{**spread, "labelSelector": own}]},
        RULES[2]: {"topologySpreadConstraints": [{**spread, **by_nodes, "labelSelector": own}]},
        RULES[3]: {"nodeSelector": {"node.kubernetes.io/instance-type": machine_type}},
        RULES[4]: {"volumes": [claim]},
        RULES[6]: {"affinity": {"podAffinity": {hard: [near]}}},
        RULES[7]: {"topologySpreadConstraints": [{**spread, **if_possible, "labelSelector": own}]},
    }
    return {**fields[RULES[0]], **fields[RULES[1]]} if rule == RULES[5] else fields.get(rule, {})


def _volumes(homes: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Return the claims and volumes of the workloads with a volume of a zone."""
    found: list[dict[str, Any]] = []
    for number, (name, mine) in enumerate(homes.items()):
        if number % 2 and RULES[number // 2 % len(RULES)] == RULES[4] and mine:
            zone = {"key": _ZONE, "operator": "In", "values": [f"us-east-1{'abc'[mine[0] % 3]}"]}
            terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
            shared = {"accessModes": ["ReadWriteMany"]}
            space = f"team-{number % 40:02d}"
            claim = {"name": name, "namespace": space}
            found += [
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": claim,
                    "spec": {**shared, "volumeName": f"pv-{name}"},
                },
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": f"pv-{name}"},
                    "spec": {**shared, "claimRef": claim, "nodeAffinity": terms},
                },
            ]
    return found


def _spec(
    name: str, cpu: str, memory: str, node: str, calls: list[str] | None = None
) -> dict[str, Any]:
    mount = {
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": "kube-api-access-x7k2p",
        "readOnly": True,
    }
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
    }
    container = {
        "name": "app",
        "image": f"registry.example/team/{name}:v1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 8080}],
        "env": [
            {"name": "PORT", "value": "8080"},
            *({"name": f"BACKEND_{i}_ADDR", "value": f"{c}:80"} for i, c in enumerate(calls or ())),
        ],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount],
    }
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt"}},
    ]
    return {
        "containers": [container],
        "nodeName": node,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "effect": "NoExecute",
                "key": f"node.kubernetes.io/{k}",
                "operator": "Exists",
                "tolerationSeconds": 300,
            }
            for k in ("not-ready", "unreachable")
        ],
        "volumes": [
            {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": sources}}
        ],
    }


def _pod(
    space: str, name: str, labels: dict[str, str], owner: tuple[str, str], spec: dict[str, Any]
) -> dict[str, Any]:
    reference = {
        "apiVersion": "apps/v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": owner[0],
        "name": owner[1],
        "uid": "0" * 36,
    }
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": _STAMP, "status": "True", "type": t}
        for t in (
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        )
    ]
    running = {
        "containerID": f"containerd://{'a' * 64}",
        "image": spec["containers"][0]["image"],
        "imageID": f"sha256:{'b' * 64}",
        "lastState": {},
        "name": "app",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": _STAMP}},
    }
    about = {
        "name": name,
        "namespace": space,
        "labels": labels,
        "ownerReferences": [reference],
        "uid": "1" * 36,
        "resourceVersion": "123456",
        "creationTimestamp": _STAMP,
        "generateName": name.rsplit("-", 1)[0] + "-",
        "annotations": {"prometheus.io/scrape": "true"},
    }
    status = {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": [running],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "qosClass": "Burstable",
        "startTime": _STAMP,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": status}


def prices() -> dict[str, Any]:
    """Return the on-demand table of the machine types."""
    return {"usd_per_hour": {"us-east-1": {kind: price for kind, (_, _, price) in TYPES.items()}}}


def main() -> None:
    """Write a cluster and its prices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=15_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    made = cluster(arguments.nodes, arguments.pods, arguments.seed, rules=arguments.rules)
    arguments.output.write_text(json.dumps(made, indent=4), encoding="utf-8")
    arguments.output.with_suffix(".prices.json").write_text(json.dumps(prices()), encoding="utf-8")


if __name__ == "__main__":
    main()
