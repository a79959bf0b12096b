"""Exported scripts with the real kubectl, on an API server of the tests: run, killed, taken up.

Without kubectl or jq these tests are skipped; test_export.py runs the same scripts with a stand-in
for kubectl.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from api_stub import ApiStub
from stub_shop import (
    EXPECTED,
    PLAN,
    ScriptRunner,
    missing,
    objects,
    origin,
    problem,
    state,
    workloads_on_nodes,
)

from placeopt import cli
from placeopt.core.front import Front
from placeopt.kubernetes.export import export

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

#: Kinds that the documentation tells to dump.
KINDS = (
    "nodes,pods,replicasets,deployments,services,poddisruptionbudgets,pvc,pv,namespaces,limitranges"
)


@pytest.fixture
def stub() -> Iterator[ApiStub]:
    """Yield the shop."""
    with ApiStub(objects()) as made:
        yield made


def test_a_script_that_was_killed_ends_as_the_plan_says(stub: ApiStub, tmp_path: Path) -> None:
    """Every kind of step; killed after an adoption, taken up while the old pod is still ending."""
    shop, runner = problem(), ScriptRunner(stub, tmp_path)
    runner.write(export(shop, PLAN, origin(shop)))
    stub.store.grace = 2.0
    killed = runner.run(kill_at=4)  # cordoned, made, marked, labeled
    wait_until(stub, lambda: "_ends" in stub.store.tables["pods", "shop", "cart-7d-b"])
    stub.store.grace = 0.0
    assert killed.returncode == -9 and "step 1 of 5" in killed.stdout
    done = runner.run()
    assert done.returncode == 0, done.stderr
    assert "already made" not in done.stdout and "all 5 steps are made" in done.stdout
    assert workloads_on_nodes(stub.store) == EXPECTED
    assert state(stub, "nodes", "n2", "")["spec"] == {"unschedulable": True}
    assert stub.cluster.least == {"cart-7d": 2, "web-5c": 0}, "only the stop of web interrupts"
    assert stub.cluster.rollouts == []
    for plural, name in (("deployments", "cart"), ("replicasets", "cart-7d")):
        [container] = state(stub, plural, name)["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"]["cpu"] == "300m"
    database = state(stub, "statefulsets", "db")
    assert "affinity" not in database["spec"]["template"]["spec"]


def test_from_the_dump_to_a_stop_and_back(
    stub: ApiStub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What kubectl dumps is imported; a node that is full by then stops the script; undo."""
    runner = ScriptRunner(stub, tmp_path)
    names = [str(tmp_path / n) for n in ("cluster.json", "shop.json", "front.json", "steps.sh")]
    dump, instance, front, script = names
    Path(dump).write_text(runner.kubectl("get", KINDS, "-A", "-o", "json"), encoding="utf-8")
    options = ["--to", "rolling-update", "--missing-prices", "default=1", "-o", instance]
    command("import", "kubernetes", dump, *options)
    command("solve", instance, "--method", "repack", "-o", front)
    command("export", "kubernetes", front, "--instance", instance, "--point", "0", "-o", script)
    [target] = {s["to"] for s in Front.read(front).points[0].plan["steps"]}
    assert runner.run("check").returncode == 0
    with stub.store.changed:
        room = stub.store.tables["nodes", "", target]
        room["status"]["allocatable"]["cpu"] = "600m"
        stub.store.put(("nodes", "", target), room)
    done = runner.run()
    assert done.returncode == 1 and "is not ready: unschedulable: 0/3 nodes" in done.stderr
    assert "1 Insufficient cpu" in done.stderr
    assert len(stub.store.all("pods")) == 5  # all old ones and the copy
    undone = runner.run("undo")
    assert undone.returncode == 0, undone.stderr
    assert workloads_on_nodes(stub.store).total() == 4
    assert not any(n.get("spec") for _, n in stub.store.all("nodes"))


def command(*arguments: str) -> None:
    """Run a command of placeopt."""
    with pytest.raises(SystemExit) as end:
        cli.main(list(arguments))
    assert not end.value.code


def wait_until(stub: ApiStub, found: Callable[[], bool]) -> None:
    """Wait until the stub is in a state."""
    for _ in range(200):
        with stub.store.changed:
            if found():
                return
        time.sleep(0.02)
    raise AssertionError("the state never came")
