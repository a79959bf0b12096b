"""The twin by hand, beside a slow simulator, and by what is conserved at every event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_traces import SMALL, conserved, drawn_policy, node, played, pod, trace
from slow_cluster import play

from placeopt.backtest.arrays import arrays_of
from placeopt.backtest.engine import Twin
from placeopt.backtest.policies import policy_of
from placeopt.backtest.policies.base import Policy
from placeopt.backtest.trace import ClusterTrace
from placeopt.core.errors import PlaceoptError

# -- by hand ---------------------------------------------------------------------------------------


def test_a_node_costs_while_it_is_there() -> None:
    document = trace([node("a", to_s=1800), node("b", from_s=900)], [pod("p", 100, 0, 10)])
    assert played(document).ledger.usd == pytest.approx(0.5 + 0.75)


def test_a_pod_waits_until_another_one_ends() -> None:
    document = trace([node("a")], [pod("p", 3000, 0, 100), pod("q", 3000, 30, 200)])
    ledger = played(document).ledger
    assert ledger.wait_sum == 70 and ledger.placed == 2


def test_a_job_begins_again_where_its_node_is_lost() -> None:
    nodes, losses = [node("a"), node("b", from_s=500)], [{"node": "a", "at_s": 50}]
    document = trace(nodes, [pod("p", 3000, 0, work_s=100)], losses=losses)
    twin = played(document)
    assert twin.ledger.lost == 1
    assert twin.ledger.down_seconds == 500 + 10 - 50
    assert twin.node_of[0] == -2  # ready at 510, done at 610


def test_prices_change() -> None:
    change = {"machine": "small", "at_s": 1800, "usd_per_hour": 3.0}
    document = trace([node("a")], [pod("p", 1, 0)], prices=[change])
    assert played(document).ledger.usd == pytest.approx(0.5 + 1.5)


def test_an_empty_node_goes_after_ten_minutes_and_is_bought_again() -> None:
    document = trace([node("a")], [pod("p", 1000, 0, 60), pod("q", 1000, 3000, 3600)])
    ledger = played(document, "cluster-autoscaler:delay=0").ledger
    # Seen empty at 120 s (not yet at 60 s: END comes before TICK, so it is seen at 60 s), gone
    # 600 s later; ordered 10 s after q came.
    assert ledger.freed == 1 and ledger.bought == 1
    assert ledger.usd == pytest.approx((660 + (3600 - 3010)) / 3600)
    assert ledger.wait_sum == 10 + 60


def test_a_move_starts_the_copy_before_the_old_one_ends() -> None:
    document = trace([node("a"), node("b")], [pod("p", 1000, 0), pod("q", 1000, 0)])
    ledger = played(document, "placeopt:interval=10min").ledger
    assert (ledger.moved, ledger.stopped) in ((1, 0), (0, 0))
    assert ledger.freed == 1


def test_shares_of_one_gpu() -> None:
    gpu = {**SMALL, "gpus": 1}
    pods = [pod(f"p{k}", 1, k, gpus=1, gpu_share=400) for k in range(3)]
    ledger = played(trace([node("a")], pods, machines=[gpu])).ledger
    assert ledger.waits[0] == 2 and ledger.wait_sum == 3600 - 2


def test_a_budget_lets_one_pod_down_at_a_time() -> None:
    pods = [pod(f"p{k}", 500, 0, workload="w") for k in range(4)]
    document = trace([node("a"), node("b")], pods, budgets={"w": 1})
    ledger = played(document, "karpenter").ledger
    assert ledger.freed == 1 and ledger.stopped >= 1
    assert ledger.down_seconds == 10 * ledger.stopped


def test_rules_about_other_pods_by_hand() -> None:
    machines = [{**SMALL, "name": name, "zone": name} for name in ("x", "y")]
    nodes = [node(f"{z}{k}", machine=z) for z in "xy" for k in range(2)]
    pods = [
        pod("db", 1, 0, zones=["x"], counts=["r"]),
        pod("near", 1, 1, keeps=["r"]),
    ]
    for kind, zones in (("together", {0, 1}), ("apart", {2, 3})):
        rules = [{"name": "r", "kind": kind, "per": "zone"}]
        twin = played(trace(nodes, pods, machines=machines, rules=rules))
        assert int(twin.node_of[1]) in zones
    rules = [{"name": "s", "kind": "spread", "per": "zone"}]
    own = [pod(f"w{k}", 1000, k, keeps=["s"], counts=["s"]) for k in range(7)]
    twin = played(trace(nodes, own, machines=machines, rules=rules), "karpenter")
    sides = [sum(int(twin.node_of[k]) // 2 == side for k in range(7)) for side in (0, 1)]
    assert sorted(sides) == [3, 4]


def test_a_pod_that_runs_alone_is_not_copied() -> None:
    document = trace([node("a"), node("b")], [pod(f"p{k}", 500, 0, alone=True) for k in range(4)])
    assert played(document, "placeopt:interval=5min").ledger.moved == 0
    assert played(document, "karpenter").ledger.stopped > 0


def test_a_rollout_keeps_what_its_strategy_says() -> None:
    """Two old pods, two new ones, and no room for three until another node comes."""
    old = [pod(f"old{k}", 1800, 0, 95 + 20 * k, workload="w", revision="1") for k in range(2)]
    new = [pod(f"new{k}", 1800, 80 + 20 * k, workload="w", revision="2") for k in range(2)]
    other = pod("other", 400, 0)
    nodes = [node("a"), node("b", from_s=500)]
    rolling = {"w": {"max_unavailable": 0, "max_surge": 1}}
    free = played(trace(nodes, [*old, other, *new]))
    assert free.ledger.wait_sum == 15 + 15  # each new one takes the place of an old one
    kept = played(trace(nodes, [*old, other, *new], rollouts=rolling))
    # new0 waits for a node until 500, is ready at 510; old0 ends, new1 is made, ready at 520.
    assert kept.ledger.wait_sum == 420
    assert [int(kept.node_of[p]) for p in (0, 1)] == [-2, -2]
    loose = {"w": {"max_unavailable": 1, "max_surge": 0}}
    ledger = played(trace(nodes, [*old, other, *new], rollouts=loose)).ledger
    assert ledger.wait_sum == 15 + 15


def test_a_node_is_replaced_by_a_cheaper_one_for_what_fits_nowhere_else() -> None:
    """When f has ended, q finds room beside r; p needs a node of its own, and a small one does."""
    machines = [
        {**SMALL, "name": "big", "cpu_millicores": 8000, "usd_per_hour": 4.0},
        {**SMALL, "name": "tiny", "cpu_millicores": 3000, "usd_per_hour": 0.5, "most": 1},
        SMALL,
    ]
    pods = [
        pod("p", 3000, 0, machines=["big", "tiny"]),
        pod("f", 1000, 0, 100, machines=["small"]),
        pod("r", 3000, 0, machines=["small"]),
        pod("q", 1000, 1, machines=["big", "small"]),
    ]
    nodes = [node("a", machine="big"), node("b")]
    for weight, moved in ((0, 2), (100, 0)):
        twin = played(
            trace(nodes, pods, machines=machines, seconds=7200),
            f"placeopt:interval=20min,weight={weight},rule=least",
        )
        assert (twin.ledger.moved, twin.ledger.stopped) == (moved, 0)
    assert played(trace(nodes, pods, machines=machines), "placeopt:interval=20min").ledger.bought


@pytest.mark.parametrize("method", ["own", "repack"])
def test_a_plan_moves_a_share_only_where_a_single_gpu_has_it(method: str) -> None:
    """Two GPUs have .4 free each: room for .3, and none for .7."""
    machines = [{**SMALL, "name": "two", "gpus": 2}, {**SMALL, "name": "one", "gpus": 1}]
    own = [pod(f"p{k}", 100, 0, gpus=1, gpu_share=600, machines=["two"]) for k in range(2)]
    filler = pod("f", 3800, 0, 600, machines=["two"])  # while it is there x is on the other node
    nodes = [node("a", machine="two"), node("b", machine="one")]
    for share, moved in ((300, 1), (700, 0)):
        pods = [*own, filler, pod("x", 100, 1, gpus=1, gpu_share=share)]
        text = f"placeopt:interval=20min,rule=least,method={method}"
        ledger = played(trace(nodes, pods, machines), text).ledger
        assert (ledger.moved, ledger.dropped) == (moved, 0)


def test_a_share_of_moves_counts_the_pods_since_the_last_plan() -> None:
    short = [pod(f"s{k}", 10, 10 * k, 10 * k + 5) for k in range(98)]
    pods = sorted([pod("p", 1000, 0), pod("q", 1000, 0), *short], key=lambda one: one["from_s"])
    document = trace([node("a"), node("b")], pods)
    text = "placeopt:interval=1000s,rule=least,moves="
    assert played(document, text + "2%").ledger.moved == 1  # of 97
    assert played(document, text + "1%").ledger.moved == 0


def test_a_policy_cannot_see_what_is_to_come() -> None:
    """A view has the pods that have come, and nothing of the others."""

    class Watching(Policy):
        interval = 60.0

        def decide(self, view: Any, now: float) -> list[Any]:
            assert (view.created <= now).all()
            parts = (view.needs, view.fixed, view.alone, view.workload)
            seen.append({len(view.created), len(view.gpu_set), *map(len, parts)})
            return []

    seen: list[set[int]] = []
    pods = [pod(f"p{k}", 100, 100 * k, 100 * k + 50) for k in range(9)]
    played(trace([node("a")], pods), Watching())
    assert seen[:4] == [{1}, {2}, {2}, {3}] and seen[-1] == {9}


@pytest.mark.parametrize(("big", "bought"), [(3.0, "big"), (4.0, "small")])
def test_room_is_bought_with_a_view_to_the_pods_that_run(big: float, bought: str) -> None:
    """A large node is bought for one pod if it is the cheaper room for pods like it."""
    large = {"name": "big", "cpu_millicores": 16000, "memory_mib": 32768, "usd_per_hour": big}
    machines = [{**SMALL, "most": 9}, {**SMALL, **large, "most": 9}]
    pods = [pod(f"p{k}", 4000, 0) for k in range(3)] + [pod("q", 4000, 60)]
    document = trace([node(n) for n in "abc"], pods, machines=machines)
    for policy, machine in (("placeopt", bought), ("karpenter", "small")):
        twin = played(document, policy)
        assert document.machines[twin.arrays.machine[twin.node_of[3]]].name == machine


@pytest.mark.parametrize("method", ["repack", "decomposition"])
def test_a_method_of_the_registry_makes_the_plans(method: str) -> None:
    """It frees what it can, and replaces a node by a cheaper one; rules hold at every event."""
    small = {**SMALL, "name": "tiny", "cpu_millicores": 1500, "usd_per_hour": 0.3, "most": 2}
    pods = [pod(f"p{k}", 600, 0, ports=["TCP/80"]) for k in range(3)]
    document = trace([node(n) for n in "abc"], pods, machines=[SMALL, small])
    ledger = played(document, f"placeopt:interval=10min,method={method},evaluations=50").ledger
    assert ledger.bought == 2 and ledger.stopped == 0
    assert ledger.usd < played(document).ledger.usd


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("method=policy", "method=policy,policy=FILE"),
        ("method=repack,policy=x", "method=policy,policy=FILE"),
        ("method=policy,policy=rescheduling-testbed", "give a policy trained on rolling-update"),
        ("method=latency-greedy", "does not plan rolling updates"),
    ],
)
def test_a_method_that_cannot_plan_is_named_before_the_run(settings: str, words: str) -> None:
    with pytest.raises(PlaceoptError, match=words):
        policy_of(f"placeopt:{settings}")


def test_a_trained_policy_makes_the_plans(tmp_path: Path) -> None:
    """Its arrays are drawn: it is not good, but its plans are carried out, and rules hold."""
    nodes = [node(n) for n in "abcd"]
    document = trace(nodes, [pod(f"p{k}", 900, 0) for k in range(6)], seconds=7200)
    drawn_policy(tmp_path / "drawn.npz", 1)
    text = f"placeopt:interval=10min,method=policy,policy={tmp_path / 'drawn.npz'}"
    ledger = played(document, text).ledger
    assert ledger.stopped == 0 and ledger.usd <= played(document).ledger.usd + 1e-9


# -- beside the slow simulator


RULES = [
    {"name": "far", "kind": "apart", "per": "zone"},
    {"name": "near", "kind": "together", "per": "zone"},
    {"name": "even", "kind": "spread", "per": "zone"},
    {"name": "wide", "kind": "spread", "max_skew": 2},
]


def ruled(rng: np.random.Generator, workload: int) -> dict[str, Any]:
    """Return what a pod has to do with others: workload 0 keeps apart, 1 near itself, ..."""
    if rng.random() < 0.2:
        return {"ports": ["TCP/80"]}
    if workload == 0:
        return {"keeps": ["far"], "counts": ["near"]}
    if workload == 1:
        return {"keeps": ["near"], "counts": ["far", "near"]}
    name = ("even", "wide")[workload % 2]
    return {"keeps": [name], "counts": [name] if rng.random() < 0.9 else []}


def drawn(seed: int) -> ClusterTrace:
    rng = np.random.default_rng(seed)
    machines = [
        {"name": f"m{k}", "cpu_millicores": int(rng.integers(2, 9)) * 1000, "memory_mib": 4096,
         "usd_per_hour": float(rng.integers(1, 9)), "zone": "xy"[k], "pods": 9}
        for k in range(2)
    ]  # fmt: skip
    nodes = []
    for k in range(int(rng.integers(2, 7))):
        begin = float(rng.choice([0, 0, rng.integers(1, 500)]))
        end = {"to_s": begin + float(rng.integers(1, 900))} if rng.random() < 0.4 else {}
        nodes.append({"name": f"n{k}", "machine": f"m{rng.integers(2)}", "from_s": begin, **end})
    pods = []
    for k, begin in enumerate(sorted(rng.integers(0, 900, int(rng.integers(5, 40))).tolist())):
        workload = int(rng.integers(4))
        more = {"workload": f"w{workload}", "apart": workload == 0}
        if rng.random() < 0.2:
            more["zones"] = ["x"]
        if seed % 2:
            more |= ruled(rng, workload)
        end = begin + int(rng.integers(1, 400)) if rng.random() < 0.8 else None
        pods.append(pod(f"p{k}", int(rng.integers(1, 30)) * 100, begin, end, **more))
    losses = [
        {"node": f"n{rng.integers(len(nodes))}", "at_s": float(t)}
        for t in sorted(rng.integers(1, 900, int(rng.integers(0, 3))).tolist())
    ]
    return trace(nodes, pods, machines=machines, seconds=1000, losses=losses, rules=RULES)


@pytest.mark.parametrize("seed", range(100))
def test_a_slow_simulator_says_the_same(seed: int) -> None:
    document = drawn(seed)
    usd, waits, log = play(document)
    arrays = arrays_of(document)
    twin = Twin(arrays, policy_of("none"), check=conserved)
    twin._rank = np.arange(len(arrays.machine))
    own: list[tuple[float, str, str]] = []
    put = twin.put

    def noted(p: int, n: int, gpu_set: int) -> None:
        own.append((twin.now, document.pods[p].name, arrays.names[n]))
        put(p, n, gpu_set)

    twin.put = noted  # type: ignore[method-assign]
    ledger = twin.run()
    assert ledger.usd == pytest.approx(usd)
    assert own == log
    assert ledger.wait_sum == pytest.approx(sum(waits))
    assert ledger.placed == len({name for _, name, _ in log})
    assert ledger.placed + ledger.unplaced == len(waits)


@pytest.mark.parametrize(
    "policy",
    ["cluster-autoscaler", "karpenter", "high-node-utilization",
     "placeopt:interval=2min", "placeopt:interval=1min,moves=2,keep=1"],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_whatever_a_policy_does(policy: str, seed: int) -> None:
    twin = played(drawn(seed), policy, seed)
    again = Twin(arrays_of(drawn(seed)), policy_of(policy), seed)
    assert again.run().figures() == twin.ledger.figures()


# -- machines in any order -------------------------------------------------------------------------

ZONES = ["apart", "together", "spread"]


def zoned(order: list[int], kind: str, nodes: list[int], most: int) -> ClusterTrace:
    """Return a trace with a machine type a zone, few nodes, and rules per zone."""
    machines = [
        {**SMALL, "name": f"m{k}", "zone": f"z{k}", "usd_per_hour": 1 + k / 8, "most": most}
        for k in order
    ]
    rules = [{"name": f"r{k}", "kind": kind, "per": "zone"} for k in range(9)]
    pods = [
        pod(f"p{k}", 100, 10 * k, keeps=[f"r{k % 3 * 4}"], counts=[f"r{k % 3 * 4}"])
        for k in range(9)
    ]
    placed = [node(f"n{k}", machine=f"m{k}") for k in nodes]
    return trace(placed, pods, machines=machines, rules=rules)


@pytest.mark.parametrize("kind", ZONES)
@pytest.mark.parametrize(
    ("nodes", "most"),
    [([5], 0), ([5, 0], 0), ([3, 4], 1), ([], 1), ([2], 2), ([0, 1, 2, 3, 4, 5], 0)],
)
def test_the_order_of_machine_types_decides_nothing(kind: str, nodes: list[int], most: int) -> None:
    """Zones may be more than nodes; nobody waits for the sake of a number."""
    results = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [5, 0, 1, 2, 3, 4], [3, 5, 4, 2, 0, 1]):
        twin = played(zoned(order, kind, nodes, most), "karpenter" if most else "none")
        where = [twin.arrays.names[n] if n >= 0 else "" for n in twin.node_of]
        results.append((twin.ledger.placed, round(twin.ledger.usd, 9), kind != "spread" and where))
        assert twin.room.zone.max(initial=0) < max(len(twin.room.zone), 1)
    assert len(set(map(str, results))) == 1


# -- who got a node --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "placed", "unplaced"),
    [
        ([pod("p", 9000, 0)], 0, 1),  # fits nowhere, waits to the end
        ([pod("p", 9000, 0, 60)], 0, 1),  # deleted while it waits
        ([pod("p", 3000, 0), pod("q", 3000, 5, 90)], 1, 1),
        ([pod("p", 3000, 0, 50), pod("q", 3000, 5, 90)], 2, 0),  # gets its place in time
        ([pod("p", 100, 0), pod("q", 100, 5, machines=["other"])], 1, 1),
        ([pod("p", 3000, 0, work_s=40), pod("q", 3000, 5)], 2, 0),
    ],
)
def test_placed_are_pods_that_got_a_node(pods, placed: int, unplaced: int) -> None:
    other = {**SMALL, "name": "other"}
    ledger = played(trace([node("a")], pods, machines=[SMALL, other])).ledger
    assert (ledger.placed, ledger.unplaced) == (placed, unplaced)
    assert ledger.figures()["placed"] == placed


def test_a_pod_that_was_lost_is_not_placed_twice() -> None:
    document = trace(
        [node("a"), node("b", from_s=99)], [pod("p", 1, 0)], losses=[{"node": "a", "at_s": 9}]
    )
    ledger = played(document).ledger
    assert (ledger.placed, ledger.unplaced, ledger.lost) == (1, 0, 1)
