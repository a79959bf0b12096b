"""Exported scripts with the real kubectl, killed and taken up again; writes script.md.

    python benchmarks/kubernetes/script.py [--kubectl PATH ...] [--kills 30]

The API server, its controllers, its scheduler and the shop are those of the tests (tests/support):
no machine that these pages are made on can start a real control plane, and the page says so.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from api_stub import ApiStub
from harness import Benchmark, section, table
from stub_shop import (
    EXPECTED,
    PLAN,
    ScriptRunner,
    objects,
    origin,
    problem,
    state,
    workloads_on_nodes,
)

from placeopt.kubernetes.export import export

#: Seconds that a pod takes to end, and writes after which a run is killed.
GRACE, WRITES = 0.5, (1, 6)
ABOUT = """\
**Not a real control plane.** The API server is the one of the tests (`tests/support/api_stub.py`).
Discovery, lists, watches, patches and versions of objects are those of Kubernetes as far as kubectl
asks for them. Adoption, the order in which ReplicaSets end pods, StatefulSets, and the scheduler's
look at cordons, taints, affinity, CPU, memory and pods are written from the documentation. It has
no admission, quotas, webhooks or kubelets: a pod on a node is ready at once. kubectl, jq, bash and
the script are what users have.

An earlier script was tried, by hand and not by this benchmark, on kube-apiserver,
controller-manager and scheduler 1.26.5 with a stub kubelet, by kubectl 1.20, 1.27 and 1.33: 30
kills, all pods on the planned nodes, ready counts never below the start. It failed in three ways: a
pod that was not ready wedged it, a pod that was still ending at the next run stopped it, and a node
without room for one pod more was planned for. Each is a test now.

The plan has three nodes, four pods and five steps: a move, a stop and a start, a restart at a new
size, a pod of a StatefulSet; the emptied node is cordoned. A pod takes {grace:g} s to end. A run is
killed, with all that it started, {fewest} to {most} writes after it began, and started again until
all is done.

Expected: every plan ends as planned; the Deployment of two replicas never has fewer than 2 ready;
nothing rolls out; no mark is left at a pod.
"""
COLUMNS = (
    "kubectl | runs | kills | ended as planned | fewest ready of 2 | rollouts | marks left | "
    "requests, of them writes | CPU s"
)


def cpu_seconds() -> float:
    """Return the CPU seconds of all that scripts started so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def version(kubectl: str) -> str:
    """Return the version that a kubectl says."""
    said = subprocess.run(
        [kubectl, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True
    )
    found: str = json.loads(said.stdout)["clientVersion"]["gitVersion"]
    return found


def one_plan(kubectl: str, kills: int, rng: random.Random) -> dict[str, Any]:
    """Run the script until it is done, killed `kills` times at most; return what came out."""
    with tempfile.TemporaryDirectory() as folder, ApiStub(objects()) as stub:
        runner, shop = ScriptRunner(stub, Path(folder), kubectl), problem()
        runner.write(export(shop, PLAN, origin(shop)))
        stub.store.grace, runs, killed = GRACE, 0, 0
        while True:
            runs += 1
            kill_at = rng.randint(*WRITES) if killed < kills else None
            done = runner.run(kill_at=kill_at)
            if done.returncode == 0:
                break
            if done.returncode > 0:
                raise SystemExit(f"kubectl {kubectl}: {done.stderr}")
            killed += 1
        marks = {
            mark
            for _, pod in stub.store.all("pods")
            for mark in pod["metadata"].get("annotations") or {}
        }
        return {
            "runs": runs,
            "kills": killed,
            "planned": workloads_on_nodes(stub.store) == EXPECTED
            and state(stub, "nodes", "n2", "")["spec"] == {"unschedulable": True},
            "least": stub.cluster.least["cart-7d"],
            "rollouts": len(stub.cluster.rollouts),
            "marks": len(marks - {"placeopt-bound"}),
            "requests": len(stub.store.requests),
            "writes": stub.store.writes,
        }


def row(kubectl: str, kills: int, seed: int) -> list[Any]:
    """Return the row of a kubectl: plans one after another until there are enough kills."""
    begin, rng, plans = cpu_seconds(), random.Random(seed), []
    while not plans or sum(p["kills"] for p in plans) < kills:
        left = kills - sum(p["kills"] for p in plans)
        plans.append(one_plan(kubectl, left, rng))
    total = {key: sum(p[key] for p in plans) for key in plans[0]}
    return [
        *(version(kubectl), total["runs"], total["kills"]),
        f"{total['planned']} of {len(plans)} plans",
        *(min(p["least"] for p in plans), total["rollouts"], total["marks"]),
        f"{total['requests']}, {total['writes']}",
        f"{cpu_seconds() - begin:.1f}",
    ]


def main() -> None:
    """Run the scripts and write the page."""
    there = [path for path in [shutil.which("kubectl")] if path]
    run = Benchmark(__file__, __doc__, kubectl=there or [""], kills=30)
    programs = [str(Path(p).resolve()) for p in run.kubectl if p]
    if not programs:
        sys.exit("kubectl is not installed; name it with --kubectl")
    whole = [row(program, 0, 1) for program in programs]
    killed = [row(p, run.kills, 2) for p in dict.fromkeys((programs[0], programs[-1]))]
    jq = subprocess.run(["jq", "--version"], capture_output=True, text=True, check=True)
    run.settings["kubectl"] = [r[0] for r in whole]
    run.write(
        "Exported scripts with the real kubectl",
        f"{jq.stdout.strip()}; bash.",
        ABOUT.format(grace=GRACE, fewest=WRITES[0], most=WRITES[1]).rstrip(),
        section("Every kubectl, from the first step to the last", table(COLUMNS, whole)),
        section("Killed on the way", table(COLUMNS, killed)),
        "CPU seconds are those of kubectl, jq and bash.",
    )


if __name__ == "__main__":
    main()
