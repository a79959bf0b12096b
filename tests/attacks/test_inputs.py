"""Numbers at the edge of what is legal, fronts of other instances, plans that do not fit, FIFOs."""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import attack_inputs
import numpy as np
import pytest

from placeopt import api, cli, registry
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json, write_json
from placeopt.core.files.paths import read_bytes
from placeopt.plot import find_instance
from placeopt.registry import specs

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "instances" / "temporal" / "toy.json"
CHAIN = ROOT / "instances" / "rescheduling" / "chain-12.json"
QUICK = ("--method", "nsga2", "--evaluations", "60")


def error(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must be refused by one line; return the line."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(a) for a in arguments])
    out, err = capfd.readouterr()
    told = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert (end.value.code, out, len(told)) == (2, "", 1), err
    return told[0]


# -- numbers ---------------------------------------------------------------------------------------


def chain(user_ms: float, cores: float = 0.5) -> dict[str, Any]:
    """Return the rescheduling instance with one latency and one size changed."""
    document = json.loads(CHAIN.read_text())
    document["nodes"][0]["user_latency_ms"] = user_ms
    document["services"][0]["cpu_cores"] = cores
    return document


@pytest.mark.parametrize(
    ("user_ms", "cores"), [(0.1 + 0.2, 0.5), (1000 + 1 / 3, 0.5), (5e-324, 0.5), (1.0, 0.1 + 0.2)]
)
def test_rescheduling_takes_any_decimals(user_ms: float, cores: float) -> None:
    """More than nine are rounded, and then latencies have no step."""
    document = chain(user_ms, cores)
    document["nodes"][1]["cpu_cores"] = 128.0
    problem = registry.from_document(document)
    assert (problem.objectives[0].step is None) == (cores == 0.5) or user_ms == 1.0
    assert problem.evaluate({"moves": []}).feasible
    assert len(api.solve(problem, "greedy", evaluations=100)) > 0


def test_sums_of_the_largest_amounts_do_not_wrap_around() -> None:
    """Nineteen replicas of 1e9 cores do not fit a machine of 1e9, with nine decimals either."""
    document = copy.deepcopy(attack_inputs.instance("temporal"))
    document["requests"] = document["requests"][:1]
    request = document["requests"][0] | {"replicas": 19, "duration_slots": 1}
    document["requests"][0] = request | {"cpu_cores": 1e9, "memory_gib": 0.1 + 0.2}
    document["offers"][0] |= {"cpu_cores": 1e9, "memory_gib": 1e9, "on_demand_usd_per_hour": 1.0}
    document["offers"][1]["cpu_cores"] = 0.1 + 0.2
    document["latency_ms"] = {request["origin"]: {document["offers"][0]["location"]: 1e9 - 1e-7}}
    problem = registry.from_document(document)
    offer = {key: document["offers"][0][key] for key in ("location", "size")}
    replicas = [[request["name"], k] for k in range(19)]
    machine = offer | {"pricing": "on-demand", "replicas": replicas}
    verdict = problem.evaluate({"starts": {request["name"]: 0}, "instances": [machine]})
    assert [v.kind for v in verdict.violations] == ["cpu-capacity"]
    apart = [machine | {"replicas": [replica]} for replica in replicas]
    verdict = problem.evaluate({"starts": {request["name"]: 0}, "instances": apart})
    assert verdict.feasible and verdict.values[0] == pytest.approx(1e9)


@pytest.mark.parametrize("kind", specs())
def test_extremes_end(kind: str, tmp_path: Path) -> None:
    """Every command on numbers at the edge of what is legal is refused by a line, or answers."""
    plain = attack_inputs.write(tmp_path, "x.json", attack_inputs.instance(kind))
    for command in (["check", plain], ["solve", plain, *QUICK]):
        with pytest.raises(SystemExit):
            cli.main(command)  # compiles the kernels, which counts for no limit below
    for k in range(2):
        document = attack_inputs.stretched(
            attack_inputs.instance(kind), np.random.default_rng([2, k])
        )
        path = attack_inputs.write(tmp_path, "x.json", document)
        for command in (["check", path], ["solve", path, *QUICK]):
            found = attack_inputs.outcome(command)
            assert not found.failed, (k, found)


def test_a_bad_neighbour_hides_no_instance(tmp_path: Path) -> None:
    """An instance of the same name whose numbers were hard to read, and what is no instance."""
    document = read_json(TOY) | {"horizon_slots": 7}  # else it is found among what is shipped
    problem = registry.from_document(document)
    front = api.solve(problem, "greedy", evaluations=50)
    front.write(tmp_path / "f.json")
    write_json(tmp_path / "a.json", chain(0.1 + 0.2) | {"name": "toy"})
    write_json(tmp_path / "b.json", {"problem": ["temporal"], "name": "toy"})
    write_json(tmp_path / "c.json", [1])
    (tmp_path / "d.json").write_text("[" * 100_000)
    assert find_instance(front, tmp_path / "f.json") is None
    problem.write(tmp_path / "z.json")
    found = find_instance(front, tmp_path / "f.json")
    assert found is not None and found.instance_name == front.instance


# -- fronts and plans ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small instance and a front of every problem, and another version of each."""
    made = tmp_path_factory.mktemp("fronts")
    for kind in specs():
        document = attack_inputs.instance(kind)
        write_json(made / f"{kind}.json", document)
        write_json(made / f"{kind}.other.json", document | {"name": "another"})
        write_json(made / f"{kind}.front.json", attack_inputs.front(kind))
    return made


@pytest.mark.parametrize("kind", specs())
def test_fronts_of_other_instances_are_refused_by_their_hash(
    folder: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before a plan is read: of another problem, and of another version of the same."""
    others = (
        folder / f"{kind}.other.json",
        folder / f"{next(k for k in specs() if k != kind)}.json",
    )
    front = folder / f"{kind}.front.json"
    for other in others:
        out = ("-o", folder / "out.html")
        for command in (
            ("evaluate", other, front),
            ("solve", other, *QUICK, "--start", front),
            ("report", front, "--instance", other, *out),
            ("plot", front, "--instance", other, *out),
            ("export", "kubernetes", front, "--instance", other),
        ):
            said = error(capfd, *command)
            assert said.startswith(f"error: {front}: instance: this front answers the {kind}"), said
    assert not (folder / "out.html").exists()


def test_solve_refuses_them_too() -> None:
    """The library, which knows no file."""
    other = api.load(ROOT / "instances" / "temporal" / "aws-10.json")
    begin = api.solve(TOY, "greedy", evaluations=50)
    with pytest.raises(DocumentError, match="this front answers the temporal instance 'toy'"):
        api.solve(other, "nsga2", evaluations=50, start=begin)


@pytest.mark.parametrize("kind", specs())
def test_plans_that_do_not_fit_are_refused(
    folder: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the name of the point, whatever is wrong with its plan."""
    good, bad = folder / f"{kind}.json", folder / "bad.json"
    document = copy.deepcopy(attack_inputs.front(kind))
    for plan in ({}, {"nonsense": 1}, dict.fromkeys(document["points"][0]["plan"], 7)):
        document["points"][-1]["plan"] = plan
        write_json(bad, document)
        place = f"points[{len(document['points']) - 1}].plan"
        for command in (
            ("solve", good, *QUICK, "--start", bad),
            ("report", bad, "--instance", good, "-o", folder / "out.html"),
            ("plot", bad, "--instance", good, "-o", folder / "out.html"),
        ):
            assert f"error: {bad}: {place}: " in error(capfd, *command)


# -- FIFOs -----------------------------------------------------------------------------------------

fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")


@fifos
def test_a_fifo_is_read(tmp_path: Path) -> None:
    """Even when its writer takes its time."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def slowly() -> None:
        with open(fifo, "wb", buffering=0) as stream:
            stream.write(b"one ")
            time.sleep(0.3)
            stream.write(b"two")

    writer = threading.Thread(target=slowly, daemon=True)
    writer.start()
    assert read_bytes(fifo) == b"one two"
    writer.join(10)


def test_a_file_without_end_is_refused() -> None:
    """Before it fills the memory."""
    with pytest.raises(DocumentError, match="more than 1,000 bytes"):
        read_bytes("/dev/zero", 1000)


def test_process_substitution() -> None:
    """``placeopt check <(cat toy.json)`` reads what the shell gives: a pipe under /dev/fd."""
    if not Path("/dev/fd").exists():
        pytest.skip("needs /dev/fd")
    read, write = os.pipe()
    os.write(write, TOY.read_bytes())
    os.close(write)
    assert json.loads(read_bytes(f"/dev/fd/{read}"))["name"] == "toy"
    os.close(read)
