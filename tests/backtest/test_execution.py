"""Plans on a cluster that goes on living: budgets that refuse, nodes and pods lost on the way."""

from __future__ import annotations

from typing import Any

import pytest
from effort import tries
from little_traces import SMALL, conserved, node, played, pod, trace

from placeopt.backtest.arrays import arrays_of
from placeopt.backtest.engine import Twin
from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import Policy
from placeopt.backtest.trace import ClusterTrace

WEEK = 7 * 86400
PEERS = ["karpenter", "cluster-autoscaler", "high-node-utilization", "placeopt:interval=6h"]


class Once(Policy):
    """Does at a time what it was told, and notes what it sees later."""

    recorded = True

    def __init__(self, at: float, *actions: Action):
        self.interval, self._actions = at, actions
        self.seen: list[Any] = []

    def decide(self, view: Any, now: float) -> list[Action]:
        self.seen.append(view)
        return list(self._actions) if now == self.interval else []


def guarded(budgets: dict[str, int], guarded_pods: int = 1) -> ClusterTrace:
    """Fourteen pods on eight nodes that two would hold, and some with a budget beside them."""
    pods = [pod(f"db-{k}", 3000, 0, workload="db") for k in range(guarded_pods)]
    pods += [pod(f"web-{k}", 300, 1, workload="web") for k in range(14)]
    machine = {**SMALL, "usd_per_hour": 0.192, "most": 20}
    nodes = [node(f"n{k}") for k in range(8)]
    return trace(nodes, pods, machines=[machine], seconds=WEEK, budgets=budgets)


@pytest.mark.parametrize("policy", PEERS)
@pytest.mark.parametrize(
    "budgets",
    [{"web": 3, "db": 0}, {"db": 1}, {"db": 0}, {"web": 1}, {"other": 0}][: tries(2, 5)],
)
def test_a_budget_that_refuses_blocks_nothing_else(policy: str, budgets: dict[str, int]) -> None:
    """Nodes that no budget guards are freed: less than half of eight nodes is left."""
    ledger = played(guarded(budgets), policy).ledger
    assert ledger.usd < 0.192 * 8 * WEEK / 3600 / 2
    assert ledger.events < 30_000


@pytest.mark.parametrize("policy", PEERS[:3])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_pod_of_a_budget_of_zero_is_evicted(policy: str, count: int) -> None:
    twin = played(guarded({"db": 0}, count), policy)
    packs_from_the_start = policy == "high-node-utilization"
    assert twin.ledger.stopped > 0 or packs_from_the_start
    assert twin.ledger.of_workload[twin.arrays.workloads.index("db")] == 0


@pytest.mark.parametrize("policy", PEERS[:3])
def test_budgets_of_zero_everywhere_leave_all_in_peace(policy: str) -> None:
    """No eviction is tried: events are looks, and nothing is dropped."""
    ledger = played(guarded({"db": 0, "web": 0}), policy).ledger
    assert (ledger.moved, ledger.dropped) == (0, 0)


@pytest.mark.parametrize(("budget", "down"), [(0, 0), (1, 1), (2, 2), (3, 3)])
def test_no_more_pods_are_down_than_the_budget_says(budget: int, down: int) -> None:
    document = trace(
        [node("a"), node("b")],
        [pod(f"p{k}", 900, 0, workload="w") for k in range(4)],
        budgets={"w": budget},
    )
    most = 0

    def check(twin: Twin) -> None:
        nonlocal most
        conserved(twin)
        most = max(most, len(twin.down))

    policy = Once(100, Action("drain", 0), Action("drain", 1))
    twin = Twin(arrays_of(document), policy, check=check)
    twin.run()
    assert most == down and (twin.ledger.stopped > 0) == (budget > 0)
    assert set(twin.room.state) == {2} or budget  # a node that nobody may empty takes pods again


def test_a_view_says_what_budgets_leave() -> None:
    document = trace(
        [node("a"), node("b", from_s=1000)],
        [pod(f"p{k}", 1900, 0, workload="w") for k in range(2)] + [pod("q", 100, 0)],
        budgets={"w": 1},
        losses=[{"node": "a", "at_s": 150}],
    )
    policy = Once(100)
    played(document, policy)
    before, after = policy.seen[0], policy.seen[1]
    assert before.spare[before.workload[0]] == 1 and before.movable(0)
    assert after.spare[after.workload[0]] == 0 and not after.evictable(0)
    assert after.evictable(2)  # nobody has a budget for it


def test_a_drain_that_is_refused_ends_and_its_node_takes_pods_again() -> None:
    """An eviction is tried for two minutes; what was to follow on that node is dropped too."""
    pods = [pod("free", 100, 0), pod("kept", 100, 0, workload="w"), pod("late", 3000, 400)]
    document = trace([node("a")], pods, budgets={"w": 0})
    twin = played(document, Once(100, Action("evict", 1), Action("evict", 0)))
    assert (twin.ledger.dropped, twin.ledger.stopped) == (2, 0)
    assert list(twin.on_node[0]) == [0, 1, 2] and not twin.executor.busy


# -- what is lost while a pod is moved -------------------------------------------------------------


MOVE = Action("move", 0, 1)


def lost(name: str | None, at: float = 104, end: float | None = None, **more: Any) -> ClusterTrace:
    """Return a trace of a pod on the first of three nodes, of which one is lost at a time."""
    nodes = [node("a"), *(node(n, from_s=50) for n in ("b", "c"))]
    losses = [{"node": name, "at_s": at}] if name else []
    return trace(nodes, [pod("p", 1000, 0, end, **more)], losses=losses, seconds=600)


@pytest.mark.parametrize(
    ("name", "at", "on", "figures", "free"),
    [
        ("b", 105, 0, (0, 0, 1), [3000, 4000, 4000]),  # the target: the old copy is left
        ("a", 104, 1, (1, 6, 0), [4000, 3000, 4000]),  # down until its copy is ready
        ("c", 104, 1, (0, 0, 0), [4000, 3000, 4000]),  # another one: the move goes on
    ],
)
def test_losing_a_node_while_a_pod_moves(
    name: str, at: float, on: int, figures: tuple[int, ...], free: list[int]
) -> None:
    twin = played(lost(name, at), Once(100, MOVE))
    assert list(twin.on_node[on]) == [0] and not twin.waiting and not twin.down
    ledger = twin.ledger
    assert (ledger.lost, ledger.down_seconds, ledger.dropped) == figures
    assert twin.room.cpu.tolist() == free


@pytest.mark.parametrize(("name", "ends"), [("b", 310), (None, 410)])
def test_a_job_whose_target_is_lost_goes_on_where_it_was(name: str | None, ends: int) -> None:
    """Ready at 10 s, it is moved at 100 s. A copy that is ready begins anew, at 110 s."""
    ended = []

    def check(twin: Twin) -> None:
        conserved(twin)
        if twin.node_of[0] == -2 and not ended:
            ended.append(twin.now)

    Twin(arrays_of(lost(name, 105, work_s=300)), Once(100, MOVE), check=check).run()
    assert ended == [ends]


@pytest.mark.parametrize(
    "document", [lost(None, work_s=95), lost("b", 105, end=105)], ids=["a job", "deleted"]
)
def test_a_pod_that_ends_while_it_is_moved_is_gone(document: ClusterTrace) -> None:
    """A job that is done; a pod that is deleted while its target is lost."""
    twin = played(document, Once(100, MOVE))
    assert twin.node_of[0] == -2 and twin.room.cpu.tolist() == [4000] * 3
    assert twin.ledger.cpu == 0


def test_a_pod_that_starts_is_ready_where_it_was_when_the_target_of_its_move_is_lost() -> None:
    """Evicted at 100 s, moved at 105 s, its target lost at 112 s: ready at 110 s."""
    losses = [{"node": "b", "at_s": 112}]
    nodes = [node("a"), node("b", from_s=102)]
    document = trace(nodes, [pod("p", 1000, 0)], losses=losses, seconds=600)

    class Twice(Once):
        def decide(self, view: Any, now: float) -> list[Action]:
            self.interval = 5
            what = {100: Action("evict", 0), 105: Action("move", 0, 1)}
            return [what[now]] if now in what else []

    twin = played(document, Twice(100))
    assert list(twin.on_node[0]) == [0] and twin.ledger.down_seconds == 10
