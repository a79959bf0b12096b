"""What lifting one thing saves, by force: the dump is edited, imported and solved anew."""

from __future__ import annotations

import copy
import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import edits
import numpy as np
import pytest
from effort import tries
from held_clusters import APART, node, pod
from little_clusters import (
    HOST_KEY,
    KIND_KEY,
    container,
    deployment,
    expression,
    node_pool,
    spread,
    written,
)
from little_clusters import node as big

sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))
from rolling_updates import Deployment

import placeopt
from placeopt import registry
from placeopt.kubernetes.admission import MissingRequests
from placeopt.kubernetes.consolidate.answer import why_nodes_stay
from placeopt.kubernetes.consolidate.lifts import Lift, lifted
from placeopt.kubernetes.consolidate.situation import Situation, planned, solved
from placeopt.kubernetes.consolidate.wishes import lifts_of
from placeopt.kubernetes.given import read_new_requests
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.rolling_update import end_state, every_state
from placeopt.rolling_update.views import HOURS_OF_A_MONTH

OPTIONS = ImportOptions(rules=MovingRules(MissingRequests.parse(["default=0,0"])), leave_out=True)
CLUSTERS = tries(12, 50)
#: Clusters whose every state is met.
MOST_PODS = 5


def imported(folder: Path, objects: list[Any], options: ImportOptions = OPTIONS) -> Imported:
    """Import objects from a file."""
    file = written(folder / "cluster.json", objects)
    return import_files([file], "rolling-update", options)


#: Part of a cause -> how somebody would edit the pods of its owner.
BY_HAND: dict[str, Any] = {
    "safe-to-evict": edits.without_annotations(edits.SAFE_TO_EVICT),
    "annotated do-not-disrupt": edits.without_annotations(edits.DO_NOT_DISRUPT),
    "volume on disk": edits.safe_to_evict,
    "hostPath volume": edits.safe_to_evict,
    "port of their node": edits.without_ports,
    "one node at a time": edits.without_volumes({"gcePersistentDisk"}),
    "with resource claims": edits.without_fields("resourceClaims"),
    "pods of a Job": edits.ended,
}


def edited(objects: list[Any], lift: Lift) -> list[Any]:
    """Return the objects as somebody would edit them for a lift: without the code under test."""
    made = copy.deepcopy(objects)
    name = lift.subject.partition("/")[2]
    if lift.cause == "taint":
        for thing in made:
            if thing["kind"] == "Node":
                taints = thing["spec"].get("taints", [])
                thing["spec"]["taints"] = [t for t in taints if t["key"] != lift.subject]
        return made
    for thing in made:
        meta = thing["metadata"]
        if thing["kind"] != "Pod" or (meta.get("namespace"), meta["name"]) not in lift.pods:
            continue
        if lift.cause.startswith("anti-affinity by "):
            edits.without_affinity("podAntiAffinity", HOST_KEY)(thing)
        elif lift.cause == "node selector":
            edits.without_affinity("nodeAffinity")(thing)
        elif lift.cause.startswith("spread over "):
            edits.without_spread("zone")(thing)
        elif "StatefulSet" in lift.cause or "without a controller" in lift.cause:
            edits.of_deployment(name)(thing)
        else:
            next(edit for part, edit in BY_HAND.items() if part in lift.cause)(thing)
    return made


EVICT = {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}
KEEP = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
DISK = {"volumes": [{"name": "v", "emptyDir": {}}]}
#: What may hold a pod, or say where it may be.
HOLDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    EVICT,
    KEEP,
    {"owner": "StatefulSet"},
    {"owner": None},
    DISK,
    {"affinity": APART},
    {"nodeSelector": {"pool": "a"}},
    spread("web", "zone"),
    {"hostNetwork": True},
)


def cluster(seed: int) -> list[Any]:
    """Return a small cluster in which pods are held for many reasons."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 5))
    objects = [
        node(f"n{k}", labels={"pool": "ab"[k % 2], "zone": f"z{k % 2}"}) for k in range(count)
    ]
    if rng.random() < 0.3:
        objects[0]["spec"]["taints"] = [{"key": "own", "value": "a", "effect": "NoSchedule"}]
    for k in range(count):
        for j in range(int(rng.integers(1, 3))):
            hold = HOLDS[int(rng.integers(len(HOLDS)))]
            cpu = f"{int(rng.integers(5, 20))}00m"
            is_rule = "affinity" in hold or "topologySpreadConstraints" in hold
            name = "web" if is_rule else f"a{k}{j}"
            objects.append(pod(f"{name}-{k}{j}", f"n{k}", cpu, **copy.deepcopy(hold)))
    return objects


def test_lifts_save_what_a_new_solve_of_the_edited_dump_saves(tmp_path: Path) -> None:
    saved = computed = 0
    for seed in range(CLUSTERS):
        objects = cluster(seed)
        base = planned(imported(tmp_path, objects))
        lifts = lifted(base, lifts_of(base))
        nodes = why_nodes_stay(base, lifts)
        assert [why.name for why in nodes if not why.reasons] == []
        assert {why.name for why in nodes} == set(base.staying)
        for one in lifts:
            assert one.saving is not None, one.lift.key
            other = imported(tmp_path, edited(objects, one.lift))
            fresh = max(0.0, base.cost - solved(other).cost)
            assert one.saving == pytest.approx(fresh, abs=1e-6), one.lift.key
            assert one.between is not None
            assert one.between[0] - 1e-6 <= fresh <= one.between[1] + 1e-6
            saved, computed = saved + (fresh > 0), computed + 1
    assert computed > 3 * CLUSTERS
    assert saved > CLUSTERS


def cheapest(one: Situation) -> float:
    """Return what the cheapest plan leaves to be paid, with stops if it may: every state is met."""
    made = Deployment(one.imported.document)
    seen, todo, least = {made.start}, [made.start], np.inf
    while todo:
        state = todo.pop()
        if made.ends_well(state):
            least = min(least, made.values(state, 0, 0)[0])
        for after, (_, stops) in made.successors(state):
            if (one.stops or not stops) and after not in seen:
                seen.add(after)
                todo.append(after)
    month = HOURS_OF_A_MONTH if one.is_priced else 1
    return one.cost - (one.verdict.values[0] - float(least)) * month


@pytest.mark.parametrize("stops", [False, True])
def test_an_interval_holds_the_truth(
    stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against every state of both clusters; where nothing is proven, too."""
    truth, intervals = dict[tuple[int, tuple[str, str]], float](), 0
    for proves in (True, False):
        if not proves:
            monkeypatch.setattr(end_state, "_LARGEST", -1)
            monkeypatch.setattr(end_state, "lower_bound", lambda _: 0)
            monkeypatch.setattr(every_state, "_WORK", 0)
        for seed in range(CLUSTERS):
            base = planned(imported(tmp_path, cluster(seed)), stops=stops)
            if len(base.owners) > MOST_PODS:
                continue
            least = cheapest(base) if proves else 0.0
            for one in lifted(base, lifts_of(base)):
                assert one.between is not None
                assert one.other is not None
                low, high = one.between
                if proves:
                    truth[seed, one.lift.key] = max(0.0, least - cheapest(one.other))
                assert low - 1e-6 <= truth[seed, one.lift.key] <= high + 1e-6
                intervals += not proves and high - low > 1e-6
    assert len(truth) > CLUSTERS
    assert intervals


def test_no_method_finds_a_cheaper_plan_than_consolidate(tmp_path: Path) -> None:
    """On the instance that `consolidate` exports: the cost, then the starts."""
    for seed in range(tries(4, 50)):
        base = planned(imported(tmp_path, cluster(seed)))
        for method in ("auto", "decomposition"):
            exported = registry.from_document(base.problem.to_document())
            front = placeopt.solve(exported, method, evaluations=300, seed=1)
            best = min(point.values[:2] for point in front.points if point.values[2] == 0)
            assert base.verdict.values[:2] <= best


def test_the_same_run_gives_the_same_answer_on_a_slow_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks stand still in one run, and jump by minutes in the other."""
    answers = []
    for jump in (0.0, 300.0):
        ticks = itertools.count(1e6, jump)
        for clock in ("perf_counter", "monotonic", "process_time", "time"):
            monkeypatch.setattr(time, clock, lambda ticks=ticks: next(ticks))
        every = [planned(imported(tmp_path, cluster(seed))) for seed in range(3)]
        lifts = [[one.between for one in lifted(base, lifts_of(base))] for base in every]
        answers.append([(base.plan, base.at_most) for base in every] + lifts)
    assert answers[0] == answers[1]


TYPES = """location,size,cpu_cores,memory_gib,on_demand_usd_per_hour
us-east-1,m5.large,2,8,0.1
us-east-1,m5.xlarge,4,16,0.2
us-east-1,m5.4xlarge,16,64,0.8
"""
PODS = ("500m", "900m", "1400m")


def pool(*types: str, **spec: Any) -> dict[str, Any]:
    """Return a NodePool of some machine types."""
    return node_pool(expression(KIND_KEY, "In", *types), name="any", **spec)


def shop(seed: int) -> list[Any]:
    """Return two large machines with few pods, one of whose workloads asks for too much."""
    rng = np.random.default_rng([seed, 7])
    objects = [big(f"h{k}", "m5.4xlarge", cpu="16", memory="64Gi") for k in range(2)]
    for k in range(int(rng.integers(4, 7))):
        containers = [container(cpu=str(rng.choice(PODS))), container("side", cpu="100m")]
        objects += deployment(f"app{k}", [f"h{k % 2}"], containers)
    advice = {"containerName": "app", "target": {"cpu": f"{rng.integers(1, 9)}00m"}}
    return [
        *objects,
        {
            "kind": "VerticalPodAutoscaler",
            "apiVersion": "autoscaling.k8s.io/v1",
            "metadata": {"name": "app0", "namespace": "default"},
            "spec": {"targetRef": {"kind": "Deployment", "name": "app0"}},
            "status": {"recommendation": {"containerRecommendations": [advice]}},
        },
    ]


@pytest.mark.parametrize("seed", range(tries(2, 6)))
def test_wishes_save_what_a_new_solve_of_the_edited_files_saves(seed: int, tmp_path: Path) -> None:
    """Recommended requests, no limits of a NodePool, one more machine type."""
    objects, prices = shop(seed), tmp_path / "types.csv"
    prices.write_text(TYPES)
    (tmp_path / "vpa.json").write_text(json.dumps(objects[-1]))
    files, pools = [written(tmp_path / "cluster.json", objects)], tmp_path / "pools.json"

    def read(made: Any, options: ImportOptions = OPTIONS, other: Any = None) -> Imported:
        more = [other | {"metadata": {"name": "other"}}] if other else []
        written(pools, [made, *more])
        return import_files(files, "rolling-update", options, candidates=pools, prices=[prices])

    limits = {"limits": {"cpu": "4"}}
    base = planned(read(pool("m5.xlarge", **limits)))
    advised = replace(OPTIONS, new_requests=read_new_requests(tmp_path / "vpa.json"))
    edits = {
        "default/app0": lambda: read(pool("m5.xlarge", **limits), advised),
        "NodePool any": lambda: read(pool("m5.xlarge")),
        "m5.large": lambda: read(pool("m5.xlarge", **limits), other=pool("m5.large")),
    }
    seen = {one.lift.subject: one for one in lifted(base, lifts_of(base))}
    assert edits.keys() <= seen.keys()
    for subject, edit in edits.items():
        saving = seen[subject].saving
        fresh = max(0.0, base.cost - solved(edit()).cost)
        assert saving == pytest.approx(fresh, abs=1e-6), subject
    assert seen["NodePool any"].saving and seen["m5.large"].saving
    why = why_nodes_stay(base, list(seen.values()))
    assert any("limits of its machines" in r.text for node in why for r in node.reasons)


#: Two things that hold a pod of a cluster with room for it elsewhere.
TWICE: tuple[dict[str, Any], ...] = (
    KEEP | DISK,
    EVICT | {"hostNetwork": True},
    {"owner": "StatefulSet", "resourceClaims": [{"name": "gpu"}]},
    {"owner": None, "volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "x"}}]},
    KEEP | {"owner": "Job"},
)


def beside_a_kept_one(folder: Path, **hold: Any) -> Any:
    """Return the plan of two nodes, on one of which a pod is held, and the lifts of it."""
    objects = [node("n1"), node("n2"), pod("web-1", "n1"), pod("kept-1", "n1", **KEEP)]
    base = planned(imported(folder, [*objects, pod("db-1", "n2", **hold)]))
    return base, lifted(base, lifts_of(base))


@pytest.mark.parametrize("hold", TWICE)
def test_all_reasons_are_named_and_one_alone_frees_nothing(
    hold: dict[str, Any], tmp_path: Path
) -> None:
    """A Job that ends takes all of its reasons along."""
    base, lifts = beside_a_kept_one(tmp_path, **copy.deepcopy(hold))
    own = [one for one in lifts if one.lift.subject.startswith("shop/db")]
    reasons = next(why for why in why_nodes_stay(base, lifts) if why.name == "n2").reasons
    assert len({r.text for r in reasons}) == 2
    assert {one.lift.cause for one in own} == {r.text for r in reasons}
    for one in own:
        assert one.saving == (1 if "Job" in one.lift.cause else 0), one.lift.cause


def test_safe_to_evict_lifts_all_that_it_is_about(tmp_path: Path) -> None:
    both = [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/x"}}]
    _, lifts = beside_a_kept_one(tmp_path, volumes=both)
    own = [one for one in lifts if one.lift.subject == "shop/db"]
    assert [one.saving for one in own] == [1, 1]
    assert {one.lift.words for one in own} == {'annotate shop/db safe-to-evict: "true"'}


def test_a_lift_is_asked_of_plans_that_may_stop_what_the_answer_may(tmp_path: Path) -> None:
    """Every pod needs more than any node has free, so that nothing moves unless something stops."""
    objects = [node("n0", "2"), node("n1", "7"), node("n2", "6"), pod("kept-1", "n0", "2", **KEEP)]
    sizes = {"n1": "42", "n2": "32"}
    objects += [pod(f"w{k}-{on}", on, k) for on, own in sizes.items() for k in own]
    for stops in (False, True):
        base = planned(imported(tmp_path, objects), stops=stops)
        assert base.saving == 0
        (one,) = [one for one in lifted(base, lifts_of(base)) if "do-not-disrupt" in one.lift.cause]
        assert (one.saving, one.between) == (float(stops), (float(stops), float(stops)))
