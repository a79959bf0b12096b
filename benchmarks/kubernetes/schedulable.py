"""Does kube-scheduler run what placeopt plans? 200 clusters with all rules; writes schedulable.md.

    python benchmarks/kubernetes/schedulable.py [--clusters 200]

The clusters and the checker are those of the tests (tests/support): the checker is written from
the documentation of kube-scheduler and shares nothing with the package.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark, shown, table
from made_clusters import kinds_of_rules, prices
from scheduler_filters import Replay, is_ending
from wild_clusters import candidates, wild_cluster, with_bought

import placeopt
from placeopt.core.files.documents import validate
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import StepsDocument, document
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.verify import verify

#: Nodes of the clusters, smallest first, and changed plans of each cluster.
SIZES = [round(6 * 10 ** (k / 199)) for k in range(200)]
MUTATIONS = 10
#: Columns of which the page has one number for clusters of about one size.
_SUMMED = 20
#: Time limit of a plan; what is closed by then counts.
LIMIT_SECONDS = 15
COLUMNS = (
    "nodes | clusters | without a plan | pods | pods with rules | rules | plans | moves | states "
    "checked | refused | USD/h before | after | changed plans | of them refused | `verify` says "
    "otherwise | CPU s"
)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(seed: int, nodes: int, folder: Path) -> tuple[list[float], list[str]]:
    """Return the numbers of a cluster, and what was refused."""
    objects = wild_cluster(seed, nodes)
    path = folder / f"{seed}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "prices.csv").write_text(prices())
    (folder / "buy.csv").write_text(candidates(["a", "b"]))
    begin = cpu_seconds()
    made = import_files(
        [path],
        "rolling-update",
        ImportOptions(
            name=f"c{seed}", rules=MovingRules(), leave_out=True, missing_prices="default=1"
        ),
        prices=[folder / "prices.csv"],
        candidates=folder / "buy.csv" if seed % 3 == 0 else None,
    )
    limit = placeopt.Budget(seconds=LIMIT_SECONDS)
    front = placeopt.solve(made.problem, "repack", budget=limit, seed=seed, restarts=1)
    seconds = cpu_seconds() - begin
    plans = []
    for point in front.points:
        assert export(made.problem, point.plan, made.origin)
        plans.append(document(made.problem, point.plan, made.origin))
    cluster = load([path])
    refused, states = [], 0
    for steps in plans:
        there = with_bought(objects, steps)
        for ending in (True, False) if any(map(is_ending, objects)) else (True,):
            replay = Replay(there, steps, ending=ending)
            states += replay.states
            refused += [f"cluster {seed}: {text}" for text in replay.refused]
        told = verify(validate(StepsDocument, steps), cluster)
        refused += [f"cluster {seed}, verify: {r.text}" for r in told]
    changed = (
        mutated(objects, plans, cluster, list(made.origin.nodes), seed) if plans else (0, 0, 0)
    )
    values = [p.values[0] for p in front.points] or [made.problem.initial_cost]
    pods = [o for o in objects if o["kind"] == "Pod"]
    row = [1, not plans, len(pods), kinds_of_rules(objects), len(made.document.get("rules", ()))]
    row += [len(plans), sum(len(steps["steps"]) for steps in plans), states, len(refused)]
    return [*row, made.problem.initial_cost, min(values), *changed, seconds], refused


def mutated(
    objects: list[Any], plans: list[Any], cluster: Any, nodes: list[str], seed: int
) -> tuple[int, int, int]:
    """Return (changed plans, those the checker refuses, those where `verify` says otherwise).

    A changed plan has one step, of the longest plan, that goes to another node; the steps before it
    are as they were, and those after it are left out. Pods that are ending are there.
    """
    chance, steps = random.Random(seed), max(plans, key=lambda p: len(p["steps"]))
    moves = [k for k, s in enumerate(steps["steps"]) if s["to"] is not None and "pod" in s]
    there = with_bought(objects, steps)
    known = [n for n in nodes if not n.startswith("buy-")]
    count = refused = differs = 0
    for _ in range(MUTATIONS if moves else 0):
        k = chance.choice(moves)
        changed = json.loads(json.dumps(steps)) | {"steps": steps["steps"][: k + 1]}
        changed["steps"] = json.loads(json.dumps(changed["steps"]))
        changed["steps"][k] |= {"to": chance.choice(known), "empties_node": False}
        said = any(f"step {k + 1}," in text for text in Replay(there, changed).refused)
        other = any(r.step == k + 1 for r in verify(validate(StepsDocument, changed), cluster))
        count += 1
        refused += said
        differs += said != other
    return count, refused, differs


def sums(rows: list[tuple[int, list[float]]]) -> list[float]:
    """Return the sums of the numbers of clusters."""
    return [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]


def row(part: list[tuple[int, list[float]]]) -> list[str]:
    """Return a row of the page: the sums of clusters of about one size."""
    cells = [f"{x:.2f}" if k in (9, 10) else f"{x:,.0f}" for k, x in enumerate(sums(part))]
    return [f"{part[0][0]} to {part[-1][0]}", *cells]


ABOUT = """\
The clusters are made by `tests/support/wild_clusters.py`: required and preferred spread with all
policies, anti-affinity and affinity with one and several terms per node and zone, in one namespace
and between two, node selectors, taints, GPUs, ephemeral storage, pods per node, volumes of one
zone, of a driver with a limit, and not made yet, init containers, host ports by protocol and
address, DaemonSets that others count or keep away from, static pods, runtime classes, scheduling
gates, rollouts, resizes in place, quotas, budgets, nodes that are cordoned or not ready, pods that
are ending or have ended, pods that wait, workloads without pods; every third with machines to buy.
`tests/support/scheduler_filters.py` filled them, and checks the plans: every copy where it starts,
beside all that runs then, once with the pods that are ending there and once with them gone; whether
its quota lets it be made; at the end every moved pod again and the room of every node; that what
must stay was not touched, and that no replica is lost. It is written from kube-scheduler's
documentation and shares nothing with the package.
Plans are those of `repack` with one descent and a limit of {limit} s. Of {without:,.0f} clusters no
plan was found that starts all that waits."""


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", clusters=len(SIZES))
    rows, refused = list[tuple[int, list[float]]](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        measure(0, SIZES[0], Path(name))  # compiles what is not compiled yet
        for seed, nodes in enumerate(SIZES[:: len(SIZES) // run.clusters][: run.clusters]):
            numbers, wrong = measure(seed, nodes, Path(name))
            rows.append((nodes, numbers))
            refused += wrong
            shown([seed, nodes, *(f"{x:g}" for x in numbers), *wrong[:3]])
    names = [name.strip() for name in COLUMNS.split("|")[1:]]
    total = dict(zip(names, sums(rows), strict=True))
    blocks = (
        f"Plans that kube-scheduler accepts: {len(rows)} clusters with all kinds of rules",
        f"**{len(refused)} refusals** in {total['states checked']:,.0f} states of "
        f"{total['plans']:,.0f} exported plans with {total['moves']:,.0f} steps: all points of all "
        "fronts.",
        ABOUT.format(limit=LIMIT_SECONDS, without=total["without a plan"]),
        f"That it can refuse: {total['changed plans']:,.0f} plans were changed in one step, which "
        f"goes to a random node. The checker refuses {total['of them refused']:,.0f} of them; "
        "`placeopt verify`, which asks the rules by which instances are made, says otherwise in "
        f"{total['`verify` says otherwise']:,.0f}.",
        table(COLUMNS, [row(rows[k : k + _SUMMED]) for k in range(0, len(rows), _SUMMED)]),
        ["Refused:", "", *(f"* {text}" for text in refused[:40])] if refused else "",
    )
    if run.clusters == len(SIZES):
        run.write(*blocks)
    else:
        print(run.text(*blocks))


if __name__ == "__main__":
    main()
