"""Does kube-scheduler run what placeopt plans? 40 clusters with all rules; writes schedulable.md.

    python benchmarks/kubernetes/schedulable.py [--clusters 40]

The clusters and the checker are those of the tests (tests/support): the checker is written from
the documentation of kube-scheduler and shares nothing with the package.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]
import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from made_clusters import kinds_of_rules, made_cluster, prices  # noqa: E402
from scheduler_filters import Replay  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.documents import validate  # noqa: E402
from placeopt.kubernetes.export.steps_document import StepsDocument, document  # noqa: E402
from placeopt.kubernetes.importing import import_files  # noqa: E402
from placeopt.kubernetes.manifests import load  # noqa: E402
from placeopt.kubernetes.options import ImportOptions  # noqa: E402
from placeopt.kubernetes.units import MovingRules  # noqa: E402
from placeopt.kubernetes.verify import verify  # noqa: E402

#: Nodes of the clusters, smallest first, and changed plans of each cluster.
SIZES = [round(10 * 30 ** (k / 39)) for k in range(40)]
MUTATIONS = 25
#: Time limit of a plan; what is closed by then counts.
LIMIT_SECONDS = 15
COLUMNS = (
    "cluster",
    "nodes",
    "pods",
    "pods with rules",
    "rules",
    "plans",
    "moves",
    "states checked",
    "refused",
    "USD/h before",
    "after",
    "changed plans",
    "of them refused",
    "`verify` says otherwise",
    "CPU s",
)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(seed: int, nodes: int, folder: Path) -> tuple[list[Any], list[str]]:
    """Return the row of a cluster, and what was refused."""
    objects = made_cluster(seed, nodes)
    path = folder / f"{seed}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "prices.csv").write_text(prices())
    begin = cpu_seconds()
    made = import_files(
        [path],
        "rolling-update",
        ImportOptions(name=f"c{seed}", rules=MovingRules()),
        prices=[folder / "prices.csv"],
    )
    limit = placeopt.Budget(seconds=LIMIT_SECONDS)
    front = placeopt.solve(made.problem, "repack", budget=limit, seed=seed, restarts=1)
    seconds = cpu_seconds() - begin
    plans = [document(made.problem, point.plan, made.origin) for point in front.points]
    replays = [Replay(objects, steps) for steps in plans]
    refused = [f"cluster {seed}: {text}" for r in replays for text in r.refused]
    cluster = load([path])
    refused += [
        f"cluster {seed}, verify: {r.text}"
        for steps in plans
        for r in verify(validate(StepsDocument, steps), cluster)
    ]
    count, wrong, differs = mutated(objects, plans, cluster, list(made.origin.nodes), seed)
    values = [p.values[0] for p in front.points]
    rules = len(made.document.get("rules", ()))
    pods = [o for o in objects if o["kind"] == "Pod"]
    moves = sum(len(r.steps) for r in replays)
    states = sum(r.states for r in replays)
    row = [seed, nodes, len(pods), kinds_of_rules(objects), rules, len(plans), moves, states]
    row += [len(refused), f"{made.problem.initial_cost:.2f}", f"{min(values):.2f}"]
    return [*row, count, wrong, differs, f"{seconds:.1f}"], refused


def mutated(
    objects: list[Any], plans: list[Any], cluster: Any, nodes: list[str], seed: int
) -> tuple[int, int, int]:
    """Return (changed plans, those the checker refuses, those where `verify` says otherwise).

    A changed plan has one step, of the longest plan, that goes to another node; the steps before it
    are as they were, and those after it are left out.
    """
    chance, steps = random.Random(seed), max(plans, key=lambda p: len(p["steps"]))
    refused = differs = 0
    for _ in range(MUTATIONS):
        k = chance.randrange(len(steps["steps"]))
        changed = json.loads(json.dumps(steps)) | {"steps": steps["steps"][: k + 1]}
        changed["steps"] = json.loads(json.dumps(changed["steps"]))
        changed["steps"][k] |= {"to": chance.choice(nodes), "empties_node": False}
        said = any(f"step {k + 1}," in text for text in Replay(objects, changed).refused)
        other = any(r.step == k + 1 for r in verify(validate(StepsDocument, changed), cluster))
        refused += said
        differs += said != other
    return MUTATIONS, refused, differs


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=len(SIZES))
    asked = parser.parse_args()
    rows, refused = [], list[str]()
    with tempfile.TemporaryDirectory() as name:
        measure(0, SIZES[0], Path(name))  # compiles what is not compiled yet
        for seed, nodes in enumerate(SIZES[:: len(SIZES) // asked.clusters][: asked.clusters]):
            row, wrong = measure(seed, nodes, Path(name))
            rows.append(row)
            refused += wrong
            print(*row, *wrong[:3], flush=True)
    text = page(rows, refused)
    print(text)
    if asked.clusters == len(SIZES):
        stamps.write(HERE / "schedulable.md", text, __file__, vars(asked))


def page(rows: list[list[Any]], refused: list[str]) -> str:
    """Return the page as markdown."""
    total = {name: sum(row[k] for row in rows) for k, name in enumerate(COLUMNS[:9]) if k > 1}
    changed, wrong, differs = (sum(row[k] for row in rows) for k in (11, 12, 13))
    lines = [
        f"# Plans that kube-scheduler accepts: {len(rows)} clusters with all kinds of rules",
        "",
        facts("placeopt", "numpy", "numba"),
        "",
        f"**{len(refused)} refusals** in {total['states checked']:,} states of {total['plans']:,} "
        f"exported plans with {total['moves']:,} steps.",
        "",
        "The clusters are made by `tests/support/made_clusters.py`: required and preferred spread, "
        "anti-affinity and affinity per node and zone, in one namespace and between two, node "
        "selectors, taints, GPUs, ephemeral storage, pods per node, volumes of one zone, init "
        "containers, host ports, DaemonSets, StatefulSets, a cordoned node, a pod that waits. "
        "`tests/support/scheduler_filters.py` filled them, and checks the plans: every copy where "
        "it starts, beside all that runs then; at the end every moved pod again and the room of "
        "every node; that what must stay was not touched, and that no replica is lost. It is "
        "written from kube-scheduler's documentation and shares nothing with the package. Plans "
        f"are those of `repack` with one descent and a limit of {LIMIT_SECONDS} s.",
        "",
        f"That it can refuse: {changed:,} plans were changed in one step, which goes to a random "
        f"node. The checker refuses {wrong:,} of them; `placeopt verify`, which shares nothing "
        f"with the checker, says otherwise in {differs}.",
        "",
        *table(COLUMNS, rows),
    ]
    if refused:
        lines += ["", "Refused:", "", *(f"* {text}" for text in refused[:40])]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
