"""Dumps of kubectl get, taken at intervals, as a trace."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    HOST_KEY,
    Json,
    apart,
    budget,
    container,
    deployment,
    node,
    spread,
    taint,
    written,
)
from made_clusters import made_cluster
from scheduler_filters import key_of
from typer.testing import CliRunner

from placeopt.backtest.readers import read
from placeopt.backtest.trace import ClusterTrace
from placeopt.cli import app
from placeopt.core.errors import DocumentError

GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def at(minute: int) -> str:
    return f"2026-11-01T10:{minute:02}:00Z"


def born(objects: list[Json], minute: int) -> list[Json]:
    for one in objects:
        one["metadata"] |= {"creationTimestamp": at(minute), "uid": one["metadata"]["name"]}
    return objects


def taken(folder: Path, minute: int, objects: list[Json]) -> Path:
    return written(folder / f"dump-{at(minute)}.json", objects)


def series(folder: Path, *moments: tuple[int, list[Json]]) -> ClusterTrace:
    for minute, objects in moments:
        taken(folder, minute, objects)
    return read(folder)


def cluster() -> tuple[list[Json], list[Json], list[Json]]:
    """Return nodes with an agent on each, a service of two pods, a later one."""
    nodes = born([node("n1"), node("n2")], 0)
    agents = born(deployment("agent", ["n1", "n2"], [container(cpu="100m")], kind="DaemonSet"), 0)
    return nodes + agents, born(deployment("web", ["n1", "n2"]), 0), born(
        deployment("late", ["n1"], [container(cpu="1")]), 13
    )  # fmt: skip


def test_who_came_and_went_when(tmp_path: Path) -> None:
    base, web, late = cluster()
    trace = series(tmp_path, (10, base + web), (20, base + web + late), (30, base + late))
    assert trace.seconds == 1200
    lives = {pod.name: (pod.from_s, pod.to_s) for pod in trace.pods}
    assert lives == {
        "default/web-7d9f-0": (0, 900),  # in the middle between two dumps
        "default/web-7d9f-1": (0, 900),
        "default/late-7d9f-0": (180, None),
    }
    (machine,) = trace.machines  # the agents are taken off its room
    assert (machine.name, machine.cpu_millicores) == ("m5.xlarge/us-east-1a", 3900)
    assert {pod.workload for pod in trace.pods} == {"default/web", "default/late"}
    assert [n.from_s for n in trace.nodes] == [0, 0]


def test_a_node_that_goes_and_one_that_comes_again(tmp_path: Path) -> None:
    base, web, _ = cluster()
    again = copy.deepcopy(base)
    again[1]["metadata"] |= {"uid": "other", "creationTimestamp": at(27)}
    trace = series(tmp_path, (10, base + web), (20, base[:1] + web), (30, again + web))
    spans = {n.name: (n.from_s, n.to_s) for n in trace.nodes}
    assert spans == {"n1": (0, None), "n2": (0, 300), "n2-2": (1020, None)}


def test_jobs_end_when_their_containers_finished(tmp_path: Path) -> None:
    base, _, _ = cluster()
    job = born(deployment("sum", ["n1"], kind="Job")[-1:], 12)
    done = copy.deepcopy(job)
    ended = {"startedAt": at(13), "finishedAt": at(16)}
    done[0]["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "app", "state": {"terminated": ended}}],
    }
    trace = series(tmp_path, (10, base), (15, base + job), (20, base + done))
    (pod,) = trace.pods
    assert (pod.from_s, pod.to_s, pod.work_s) == (120, None, 180)


def test_rules_about_nodes_become_machine_types(tmp_path: Path) -> None:
    ssd = {"disk": "ssd"}
    nodes = [node("a1", labels=ssd), node("a2", labels=ssd), node("b2")]
    nodes += [node("b1", **taint("gpu", value="")), node("c2", zone="us-east-1b")]
    nodes += [node("c1", zone="us-east-1b", labels={"own": "c1"})]
    nodes = sorted(born(nodes, 0), key=lambda one: one["metadata"]["name"])
    picky = born(deployment("picky", ["a1"], nodeSelector=ssd), 0)
    bound = born(deployment("bound", ["c1"], nodeSelector={"own": "c1"}), 0)
    plain = born(deployment("plain", ["b2"]), 0)
    some = [picky, bound, plain]
    trace = series(tmp_path, *((m, nodes + [o for own in some for o in own]) for m in (10, 20)))
    machine = {n.name: n.machine for n in trace.nodes}
    a, b, c = "m5.xlarge/us-east-1a", "m5.xlarge/us-east-1a", "m5.xlarge/us-east-1b"
    assert machine["a1"] == machine["a2"] == a
    assert machine["b1"] == f"{b}#2" and machine["b2"] == f"{b}#3"
    assert machine["c1"] == machine["c2"] == c
    pods = {pod.workload: pod for pod in trace.pods}
    assert pods["default/picky"].machines == (a,) and not pods["default/picky"].fixed
    assert set(pods["default/plain"].machines) == {a, f"{b}#3", c}
    assert pods["default/bound"].machines == (c,) and pods["default/bound"].fixed


def test_budgets_gpus_and_pods_that_nobody_evicts(tmp_path: Path) -> None:
    base, web, _ = cluster()
    for one in base[:2]:
        one["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    kept = {"karpenter.sh/do-not-disrupt": "true"}
    train = born(deployment("train", ["n1"], [container(**GPU)], annotations=kept), 0)
    objects = [*base, *web, *train, budget("web", minAvailable=1)]
    trace = series(tmp_path, (10, objects), (20, objects))
    assert trace.budgets == {"default/web": 1}
    pods = {pod.workload: pod for pod in trace.pods}
    assert (pods["default/train"].gpus, pods["default/train"].fixed) == (1, True)
    assert not pods["default/web"].fixed


def test_rules_about_other_pods_and_rollouts(tmp_path: Path) -> None:
    base, _, _ = cluster()
    port = container(ports=[{"containerPort": 80, "hostPort": 80}])
    web = born(deployment("web", ["n1", "n2"], [port], **spread("web", skew=2)), 0)
    web[0]["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "60%"}}
    near = apart("web", "example.org/rack", "podAffinity")
    shy = born(deployment("shy", ["n1"], **apart("web", HOST_KEY)), 0)
    db = born(deployment("db", ["n1"], kind="StatefulSet", **near), 0)
    trace = series(tmp_path, *((m, [*base, *web, *shy, *db]) for m in (10, 20)))
    rules = {rule.kind: rule for rule in trace.rules}
    assert sorted(rules) == ["apart", "spread"]  # of other keys none is kept
    assert (rules["spread"].per, rules["spread"].max_skew) == ("zone", 2)
    assert rules["apart"].per == "node"
    pods = {pod.workload: pod for pod in trace.pods}
    assert pods["default/web"].ports == ("TCP/80",) and pods["default/web"].revision == "web-7d9f"
    assert set(pods["default/web"].counts) == {rule.name for rule in trace.rules}
    assert pods["default/shy"].keeps == (rules["apart"].name,) and not pods["default/shy"].counts
    assert pods["default/db"].alone and not pods["default/web"].alone
    strategy = trace.rollouts["default/web"]
    assert (strategy.max_surge, strategy.max_unavailable) == (1, 1)
    assert trace.machines[0].pods == 57  # one is the agent's


def test_the_time_is_in_a_name(tmp_path: Path) -> None:
    base, web, _ = cluster()
    for name, minute in (("one", 10), ("two", 20)):
        for one in base[:2]:
            one["status"]["conditions"][0]["lastHeartbeatTime"] = at(minute)
        written(tmp_path / f"{name}.json", base + web)
    with pytest.raises(DocumentError, match=r"one.json: has no time in its name; name it by its"):
        read(tmp_path)
    for name, seconds in (("one", 1793527200), ("two", 1793527900)):  # from 10:00 on
        (tmp_path / f"{name}.json").rename(tmp_path / f"{seconds}.json")
    with pytest.raises(DocumentError, match=r"1793527200.json: line \d+: .*clock goes back; name"):
        read(tmp_path)
    (tmp_path / "1793527200.json").rename(tmp_path / "2026-11-01T11-10-00+0100.json")
    (tmp_path / "1793527900.json").rename(tmp_path / "20261101-1020.json")
    assert read(tmp_path).seconds == 600


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("one", ("one moment only", "take one every ten minutes")),
        ("name", ("late.json", "has no time in its name", "name it by its time")),
        ("text", ("line 1", "not JSON")),
        ("kind", ("line", "creationTimestamp", "no time of Kubernetes")),
        ("price", ("prices.csv: line 2", "machine 'm5' is not in the trace", "m5.xlarge")),
    ],
)
def test_what_is_wrong_gets_one_message(tmp_path: Path, change: str, words: Any) -> None:
    base, web, _ = cluster()
    folder = tmp_path / "dumps"
    folder.mkdir()
    taken(folder, 10, base + web)
    if change != "one":
        path = taken(folder, 20, base + web)
    if change == "name":
        path.rename(folder / "late.json")
    if change == "text":
        path.write_text('{"apiVersion": "v1", "kind": "List", "items": [')
    if change == "kind":
        web[-1]["metadata"]["creationTimestamp"] = "yesterday"
        taken(folder, 10, base + web)
    prices = tmp_path / "prices.csv"
    prices.write_text("machine,usd_per_hour\n" + ("m5,1\n" if change == "price" else ""))
    line = ["import", "trace", str(folder), "--prices", str(prices), "-o", str(tmp_path / "t")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code in (1, 2)
    with pytest.raises(DocumentError) as error:
        read(folder, prices)
    message = str(error.value)
    assert all(word in message for word in words), message


def test_from_dumps_to_a_table(tmp_path: Path) -> None:
    base, web, late = cluster()
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for minute, objects in ((10, base + web), (30, base + web + late), (59, base + late)):
        taken(dumps, minute, objects)
    prices = tmp_path / "prices.csv"
    prices.write_text("machine,usd_per_hour\nm5.xlarge,0.2\n")
    trace, out = tmp_path / "trace.json", tmp_path / "out"
    line = ["import", "trace", str(dumps), "--prices", str(prices), "-o", str(trace)]
    assert CliRunner().invoke(app, line).exit_code == 0
    line = ["backtest", str(trace), "--policy", "none", "--policy", "placeopt:interval=5min"]
    result = CliRunner().invoke(app, [*line, "-o", str(out)])
    assert result.exit_code == 0, result.output
    nothing, ours = json.loads((out / "table.json").read_text())["policies"]
    assert nothing["figures"]["usd"] == pytest.approx(2 * 0.2 * 49 / 60)
    assert ours["figures"]["usd"] < nothing["figures"]["usd"]


def test_consolidate_names_the_command_that_plays_its_plans(tmp_path: Path) -> None:
    base, web, _ = cluster()
    path = written(tmp_path / "cluster.json", base + web)
    line = ["consolidate", str(path), "--missing-prices", "default=0.1", "--format", "markdown"]
    assert "import trace FOLDER -o" in CliRunner().invoke(app, line).stderr
    for minute in (10, 20):
        line[1] = str(taken(tmp_path, minute, base + web))
    told = CliRunner().invoke(app, line).stderr.splitlines()
    (command,) = [text for text in told if "placeopt import trace" in text]
    assert f"import trace {tmp_path} -o trace.json && placeopt backtest trace.json" in command


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_the_scheduler_placed_is_legal_in_the_trace(tmp_path: Path, seed: int) -> None:
    """On clusters with every kind of rule: machine types, ports, pods kept apart, pods per node."""
    objects = made_cluster(seed, 12)
    trace = series(tmp_path, (10, objects), (20, objects))
    pods = (o for o in objects if o["kind"] == "Pod")
    at = {"/".join(key_of(pod)): pod["spec"].get("nodeName") for pod in pods}
    machine = {n.name: n.machine for n in trace.nodes}
    kinds = {m.name: m for m in trace.machines}
    placed = [(pod, at[pod.name]) for pod in trace.pods if at[pod.name]]
    assert len(placed) > 20
    for pod, name in placed:
        assert not pod.machines or machine[name] in pod.machines, pod.name
    for rule in (rule for rule in trace.rules if rule.kind == "apart"):
        for pod, name in placed:
            counted = [m for other, m in placed if other is not pod and rule.name in other.counts]
            zones = [kinds[machine[m]].zone for m in counted]
            near = name in counted if rule.per == "node" else kinds[machine[name]].zone in zones
            assert rule.name not in pod.keeps or not near
    for name in machine:
        here = [pod for pod, m in placed if m == name]
        ports = [port for pod in here for port in pod.ports]
        assert len(ports) == len(set(ports)) and len(here) <= kinds[machine[name]].pods


# -- static pods, nodes made anew, pods that were evicted ------------------------------------------


def static(name: str, node_name: str, minute: int = 0, **owner: Any) -> Json:
    (pod,) = born(deployment(name, [node_name], [container(cpu="250m")])[-1:], minute)
    pod["metadata"] |= {"name": f"{name}-{node_name}", "uid": f"{name}-{node_name}-{minute}"}
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    pod["metadata"]["ownerReferences"] = [{"kind": "Node", "name": node_name, "controller": True}]
    if not owner.get("owned", True):
        del pod["metadata"]["ownerReferences"]
    return pod


NAMES = ("apiserver", "etcd", "scheduler", "controller", "proxy")


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_static_pods_are_taken_off_their_node_one_by_one(
    tmp_path: Path, count: int, owned: bool
) -> None:
    nodes = born([node("n1"), node("n2")], 0)
    nodes[1]["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "m5.large"
    some = [static(name, "n1", owned=owned) for name in NAMES[:count]]
    web = born(deployment("web", ["n1"]), 0)
    trace = series(tmp_path, (10, nodes + web + some), (20, nodes + web + some))
    rooms = {m.name.split("/")[0]: (m.cpu_millicores, m.pods) for m in trace.machines}
    full = rooms["m5.large"]
    assert rooms["m5.xlarge"] == (full[0] - 250 * count, (full[1] or 0) - count)
    assert {pod.workload for pod in trace.pods} == {"default/web"}


def test_static_pods_made_anew_and_pods_of_a_daemonset_count_once(tmp_path: Path) -> None:
    base, web, _ = cluster()
    first, again = static("etcd", "n1", 1), static("etcd", "n1", 15)
    renewed = copy.deepcopy(base)
    for pod in renewed:
        if pod["kind"] == "Pod":
            name = pod["metadata"]["name"]
            pod["metadata"] |= {"name": f"{name}-new", "uid": f"{name}2"}
    trace = series(tmp_path, (10, [*base, *web, first]), (20, [*renewed, *web, again]))
    assert min(m.cpu_millicores for m in trace.machines) == 4000 - 100 - 250


@pytest.mark.parametrize(
    ("made", "ends"),
    [((27,), [900]), ((22,), [720]), ((12,), [120]), ((12, 27), [120, 900]), ((25,), [900])],
)
def test_a_node_ends_before_another_of_its_name_comes(
    tmp_path: Path, made: tuple[int, ...], ends: list[int]
) -> None:
    """The middle between two dumps may be later than the birth of its successor."""
    base, web, _ = cluster()
    moments = []
    for minute in (10, 20, 30):
        again = copy.deepcopy(base)
        born_at = max((m for m in made if m <= minute), default=0)
        again[0]["metadata"] |= {"uid": f"n1-{born_at}", "creationTimestamp": at(born_at)}
        moments.append((minute, again + web))
    trace = series(tmp_path, *moments)
    lives = [(n.from_s, n.to_s) for n in trace.nodes if n.name.startswith("n1")]
    assert [end for _, end in lives] == [*ends, None]
    assert [begin for begin, _ in lives] == [0, *((m - 10) * 60 for m in made)]


def evicted(pod: Json, **status: Any) -> Json:
    gone = copy.deepcopy(pod)
    gone["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on memory", **status}
    return gone


def told(minute: int) -> Json:
    return {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at(minute)}


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        ({}, 300),  # in the middle of two dumps
        ({"conditions": [told(17)]}, 420),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, 300),
        ({"conditions": [told(25)]}, 600),  # its clock is ahead of the dump's
        ({"containerStatuses": [{"state": {"terminated": {"finishedAt": at(18)}}}]}, 480),
        ({"phase": "Succeeded"}, 300),
    ],
)
def test_an_evicted_pod_ends_when_it_was_evicted(tmp_path: Path, status: Json, ends: int) -> None:
    """It is there in dumps until somebody deletes it; it runs no more."""
    base, web, _ = cluster()
    gone = [*web[:-1], evicted(web[-1], **status)]
    trace = series(
        tmp_path, (10, base + web), (20, base + gone), (30, base + gone), (40, base + web[:-1])
    )
    lives = {pod.name: pod.to_s for pod in trace.pods}
    assert lives == {"default/web-7d9f-0": None, "default/web-7d9f-1": ends}


def test_a_pod_first_seen_as_evicted_ended_after_it_came(tmp_path: Path) -> None:
    base, web, late = cluster()
    gone = [*late[:-1], evicted(late[-1])]
    trace = series(tmp_path, (10, base + web), (20, base + web + gone), (30, base + web + gone))
    lives = {pod.name: (pod.from_s, pod.to_s) for pod in trace.pods}
    assert lives["default/late-7d9f-0"] == (180, 390)
