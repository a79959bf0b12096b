"""The command line: results on stdout, everything else on stderr, exit codes 0, 2 and 3."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import placeopt

from placeopt import cli
from placeopt.cli import solving
from placeopt.core.files.documents import read_json, write_json
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.registry import from_document, methods, specs

ROOT = Path(__file__).resolve().parents[1]
INSTANCES = ROOT / "instances" / "temporal"
TOY = INSTANCES / "toy.json"
COMMANDS = (
    "solve",
    "check",
    "evaluate",
    "merge",
    "compare",
    "pick",
    "plot",
    "report",
    "generate",
    "import",
    "export",
    "methods",
    "schema",
)


def run(
    *arguments: object, code: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed command and check its exit code."""
    done = placeopt(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


class Here:
    """What a command printed in this process: as `run`, where no process of its own is needed."""

    def __init__(self, capfd: pytest.CaptureFixture[str]):
        self.capfd = capfd

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            cli.main([str(a) for a in arguments])
        out, err = self.capfd.readouterr()
        assert (end.value.code or 0) == code, err
        return out, err

    def error(self, *arguments: object, code: int = 2) -> str:
        """Return the one line of an error, which comes with nothing on stdout."""
        out, err = self(*arguments, code=code)
        assert out == "" and err.startswith("error: ") and err.count("\n") == 1, err
        return err.removeprefix("error: ").rstrip("\n")


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str]) -> Here:
    return Here(capfd)


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with the toy instance and two fronts of it."""
    folder = tmp_path_factory.mktemp("fronts")
    shutil.copy(TOY, folder)
    for method in ("nsga2", "greedy"):
        run("solve", TOY, "--method", method, "--evaluations", 600, "-o", folder / f"{method}.json")
    return {
        "toy": folder / "toy.json",
        "nsga2": folder / "nsga2.json",
        "greedy": folder / "greedy.json",
    }


# -- help ------------------------------------------------------------------------------------------


def test_help_names_every_command(here: Here) -> None:
    """And every command has an example."""
    out, _ = here("--help")
    for command in COMMANDS:
        assert f"│ {command} " in out
        assert re.search(r"Examples?: *\n *\n placeopt", here(command, "--help")[0]), command


def test_bare_and_version_and_module(here: Here) -> None:
    """`placeopt` shows the help; `python -m placeopt` is the same."""
    assert "Usage: placeopt" in here(code=2)[0] + here("--help")[0]
    assert run("--version").stdout == here("--version")[0] == "placeopt 0.1.0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("slove",),
        ("solve", TOY, "--seeds", 3),
        ("solve", TOY, "--seed", "x"),
        ("solve", TOY, "--time-limit", "5s"),
        ("solve", TOY, "--evaluations", "1e3"),
        ("solve", TOY, "--no-such-option"),
        ("plot",),
        ("import", "kubernets"),
        ("import", "kubernetes"),
        ("train", "toy"),
        ("check", TOY, TOY),
    ],
)
def test_bad_usage_is_2(here: Here, arguments: tuple[object, ...]) -> None:
    """With one line, which says where the help is."""
    out, err = here(*arguments, code=2)
    assert out == "" and len(err.splitlines()) == 1
    assert err.startswith("error: ") and "see `placeopt" in err


def test_solve_without_an_instance_says_what_to_give(here: Here) -> None:
    """Exit code 2, with one message of its own."""
    out, err = here("solve", code=2)
    assert out == "" and err.startswith("error: give an instance: ") and err.count("\n") == 1


# -- solve -----------------------------------------------------------------------------------------


def test_solve_writes_the_front_and_tells_on_stderr(tmp_path: Path) -> None:
    """The file is the front; stdout stays empty; the table is on stderr."""
    done = run(
        "solve",
        TOY,
        "--method",
        "nsga3",
        "--evaluations",
        500,
        "--seed",
        4,
        "-o",
        "f.json",
        "--plot",
        "f.html",
        cwd=tmp_path,
    )
    front = Front.read(tmp_path / "f.json")
    assert done.stdout == "" and "\x1b" not in done.stderr
    assert front.points and all(
        from_document(read_json(TOY)).evaluate(p.plan).values == p.values for p in front.points
    )
    assert (front.runs[0].method, front.runs[0].seed, front.runs[0].evaluations) == (
        "nsga3",
        4,
        500,
    )
    for part in (
        "wrote f.json",
        "wrote f.html",
        "toy by nsga3, seed 4",
        "knee",
        "latency_ms",
        "cost_usd",
        "interruption",
        "hypervolume",
    ):
        assert part in done.stderr
    assert f"\n{len(front)} plans, none proven optimal.\n" in done.stderr
    assert (tmp_path / "f.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_solve_without_output_prints_the_front(here: Here) -> None:
    """On stdout, and nothing else there; objectives in the order asked for."""
    out, _ = here("solve", TOY, "--method", "greedy", "--objectives", "cost_usd,latency_ms")
    document = json.loads(out)
    assert [o["name"] for o in document["objectives"]] == ["cost_usd", "latency_ms"]
    assert all(len(p["values"]) == 2 for p in document["points"])


def test_points_limits_what_is_written(here: Here, tmp_path: Path) -> None:
    """The table still speaks of all of them."""
    out, err = here("solve", TOY, "--method", "nsga2", "--evaluations", 600, "--points", 4)
    whole, _ = here("solve", TOY, "--method", "nsga2", "--evaluations", 600, "--points", "all")
    total = len(json.loads(whole)["points"])
    assert len(json.loads(out)["points"]) == 4 < total
    assert f"{total} plans, none proven optimal. 4 of them are written." in err


def test_a_certified_front_keeps_points_that_its_gap_needs() -> None:
    """More of them where the usual number misses much more than the whole front."""
    goals = tuple(Objective(name, "") for name in "abc")
    drawn = np.random.default_rng(1).dirichlet(np.ones(3), 1200).tolist()
    points = tuple(Point(tuple(values), {}) for values in drawn)
    whole = Front(InstanceName("toy", "toy", ""), goals, points, bounds=((0.0, 0.0, 0.0),))
    usual = whole.subset(solving.POINTS)
    kept = solving.worth_its_bounds(whole, usual)
    assert len(usual) < len(kept) <= len(whole)
    losses = [front.gap() - whole.gap() for front in (usual, kept)]
    assert losses[1] <= solving.CERTIFIED_LOSS < losses[0] or len(kept) == len(whole)
    assert solving.worth_its_bounds(whole, kept) is kept


def test_the_same_seed_gives_the_same_points(here: Here) -> None:
    """Twice."""
    outs = [
        json.loads(here("solve", TOY, "--method", "moead", "--evaluations", 400, "--seed", 9)[0])[
            "points"
        ]
        for _ in range(2)
    ]
    assert outs[0] == outs[1]


def test_start_is_never_lost(here: Here, fronts: dict[str, Path]) -> None:
    """A front to start from is part of the answer."""
    out, _ = here(
        "solve", TOY, "--method", "nsga2", "--evaluations", 100, "--start", fronts["nsga2"]
    )
    begun = Front.read(fronts["nsga2"])
    values = [tuple(p["values"]) for p in json.loads(out)["points"]]
    assert all(
        any(all(a <= b for a, b in zip(v, p.values, strict=True)) for v in values)
        for p in begun.points
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "nsga33"), "unknown method 'nsga33'; did you mean 'nsga3'? legal: "),
        (
            ("--objectives", "latency_ms,costs"),
            "unknown temporal objective 'costs'; did you mean 'cost_usd'?",
        ),
        (("--objectives", "cost_usd,cost_usd"), "name each objective once"),
        (("--evaluations", 0), "evaluations is 0; give a whole number of at least 1"),
        (("--time-limit", -1), "the time limit is -1.0 s; give a positive number of seconds"),
        (("--time-limit", "nan"), "the time limit is nan s; give a positive number of seconds"),
        (("--seed", -1), "seed is -1; give a whole number from 0 to 2**63"),
        (("--jobs", 0), "jobs is 0; give a whole number of at least 1"),
        (("--points", 0), "--points is '0'; give a whole number of at least 1, or all"),
        (("--points", "some"), "--points is 'some'; give a whole number of at least 1, or all"),
        (("--param", "solver"), "--param 'solver': write it as key=value"),
        (("--param", "a=1", "--param", "a=2"), "--param 'a' is given twice; keep one of the two"),
        (
            ("--param", "seed=2"),
            "--param 'seed' is an option of its own; see `placeopt solve --help`",
        ),
        (
            ("--param", "solwer=scip", "--method", "nsga2"),
            "method 'nsga2' has no parameter 'solwer'; legal: ",
        ),
        (("--plot", "f.gif"), "cannot draw 'f.gif'; end the name in .html, .png, .pdf, .svg"),
        (
            ("-o", "none/f.json"),
            "none/f.json: cannot write: no such folder; create it first: mkdir -p 'none'",
        ),
        (("-o", "/tmp"), "/tmp: is a folder; give the path of a file"),
        (
            ("--start", "none.json"),
            "none.json: No such file or directory; give the path of a readable JSON file",
        ),
    ],
)
def test_bad_arguments_of_solve_are_one_line(
    here: Here, arguments: tuple[object, ...], said: str
) -> None:
    """Told before the work begins, with what is legal."""
    assert said in here.error("solve", TOY, *arguments)


def test_moves_can_be_limited_and_must_pay(here: Here, tmp_path: Path) -> None:
    """Limits on moves reach auto's method; other problems refuse them."""
    instance = ROOT / "instances/rolling-update/repack-10x5.json"
    out, _ = here(
        "solve",
        instance,
        "--param",
        "max_moves=12",
        "--param",
        "min_saving_per_move=0.5",
        "--time-limit",
        30,
    )
    points = json.loads(out)["points"]
    assert points and all(p["values"][1] <= 12 for p in points)
    assert "no parameter 'max_moves'" in here("solve", TOY, "--param", "max_moves=1", code=2)[1]


def infeasible(folder: Path) -> Path:
    document = read_json(TOY)
    document["requests"][1]["memory_gib"] = 64
    document["requests"][2]["duration_slots"] = 50
    write_json(folder / "x.json", document)
    return folder / "x.json"


@pytest.mark.parametrize(
    "method",
    sorted(
        n
        for n, m in methods().items()
        if "temporal" in m.problems
        and m.installed
        and n not in ("policy", "sharded")  # needs a policy; refuses limited machines by name
    ),
)
def test_solving_what_is_infeasible_is_3(here: Here, tmp_path: Path, method: str) -> None:
    """By every method: the least-violating plan and the reasons are still written."""
    _, err = here(
        "solve",
        infeasible(tmp_path),
        "--method",
        method,
        "--evaluations",
        200,
        "-o",
        tmp_path / "f.json",
        code=3,
    )
    front = Front.read(tmp_path / "f.json")
    assert not front.points and front.rejected is not None and front.rejected.violations
    assert (
        "request 'search' needs 1.5 vCPU and 64 GiB a replica, which fits no offer"
        in front.reasons[0]
    )
    assert "request 'report' runs for 50 slots, longer than the horizon of 6" in front.reasons[1]
    assert all(reason in err for reason in front.reasons)


# -- while it runs ---------------------------------------------------------------------------------


def endless(output: Path, method: str = "nsga3", *more: str) -> subprocess.Popen[str]:
    """Start a run that would take hours, in a group of its own; return it before it searches."""
    command = [
        sys.executable,
        "-m",
        "placeopt",
        "solve",
        INSTANCES / "aws-50.json",
        "--method",
        method,
        "--evaluations",
        "900000000",
        "-o",
        output,
    ]
    process = subprocess.Popen(
        [*map(str, command), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if catches(process.pid, signal.SIGTERM) or process.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(2.5)
    return process


def catches(process: int, number: signal.Signals) -> bool:
    """Return whether a process handles a signal: `solve` does from the moment that it searches."""
    text = Path(f"/proc/{process}/status").read_text()
    caught = next(line for line in text.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_what_was_found(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, or a polite kill: the front so far, marked as not completed, and exit code 0."""
    process = endless(tmp_path / "f.json")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), err
    assert (
        "stopping, and keeping what was found" in err
        and "you stopped the run; the front is what was found by then" in err
    )
    front = Front.read(tmp_path / "f.json")
    assert front.points and not front.runs[0].completed


def test_a_signal_stops_the_run_in_all_its_processes(tmp_path: Path) -> None:
    """As a terminal sends Ctrl-C: to the whole group. Methods still to come are left out."""
    process = endless(tmp_path / "f.json", "ensemble", "--jobs", "2")
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    front = Front.read(tmp_path / "f.json")  # on a busy machine no method has begun: a quick answer
    assert front.points and front.runs[0].method == "ensemble" and not front.runs[0].completed
    assert len(front.runs) >= 2 or {point.method for point in front.points} == {"greedy"}


def test_a_second_signal_aborts(tmp_path: Path) -> None:
    """At once, without a file, whole or in part."""
    process = endless(tmp_path / "f.json")
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130) or (tmp_path / "f.json").exists(), (
        "aborted, unless it was done by then"
    )
    assert {p.name for p in tmp_path.iterdir()} <= {"f.json"}


def test_a_terminal_shows_progress_with_the_best_values(tmp_path: Path) -> None:
    """A bar on stderr, where stderr is a terminal; stdout stays clean."""
    parent, child = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "placeopt",
        "solve",
        INSTANCES / "aws-10.json",
        "--method",
        "nsga2",
        "--evaluations",
        "40000",
        "--points",
        "3",
    ]
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=child,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(child)
    seen = b""
    while True:
        try:
            chunk = os.read(parent, 4096)
        except OSError:  # the terminal closes with the process
            break
        if not chunk:
            break
        seen += chunk
    assert process.stdout is not None
    document = json.loads(process.stdout.read())
    assert process.wait(60) == 0 and len(document["points"]) == 3
    for part in (b"latency_ms ", b"cost_usd ", b" of 40,000 evaluations", b"knee"):
        assert part in seen


# -- the other commands ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", specs())
def test_generated_instances_are_checked(here: Here, tmp_path: Path, kind: str) -> None:
    """`generate` and `check` serve every problem; the same seed gives the same file."""
    one, two = (
        here("generate", kind, "--seed", 5)[0],
        here("generate", kind, "--seed", 5, "-o", tmp_path / "x.json")[1],
    )
    assert one == (tmp_path / "x.json").read_text() and f"wrote {tmp_path / 'x.json'}" in two
    assert here("generate", kind, "--seed", 6)[0] != one
    verdict = json.loads(here("check", "--json", tmp_path / "x.json")[0])
    assert (verdict["problem"], verdict["valid"], verdict["reasons"]) == (kind, True, [])
    assert f"a valid {kind} instance" in here("check", tmp_path / "x.json")[0]


def test_generate_takes_the_sizes_of_its_problem(here: Here) -> None:
    """Others are refused, with the legal ones."""
    out, _ = here(
        "generate", "temporal", "--size", "requests=7", "--size", "corrected=true", "--name", "mine"
    )
    document = json.loads(out)
    assert (len(document["requests"]), document["name"]) == (7, "mine")
    assert "unknown size 'request'; did you mean 'requests'?" in here.error(
        "generate", "temporal", "--size", "request=7"
    )
    assert "size requests is 7.5; give a whole number, such as requests=50" in here.error(
        "generate", "temporal", "--size", "requests=7.5"
    )
    assert "size corrected is 1; give true or false" in here.error(
        "generate", "temporal", "--size", "corrected=1"
    )
    assert "horizon is 0; legal: 1 to 1000000" in here.error(
        "generate", "temporal", "--size", "horizon=0"
    )
    assert "did you mean 'temporal'?" in here.error("generate", "tempral")
    assert "--seed is -2" in here.error("generate", "temporal", "--seed", -2)
    assert "name: '' is not legal" in here.error("generate", "temporal", "--name", "")


def test_generate_draws_what_a_door_can_draw(here: Here, tmp_path: Path) -> None:
    """A trace that backtest reads; sizes are checked as those of problems are."""
    file, sizes = tmp_path / "t.json", ("--size", "days=0.5", "--size", "services=2")
    here("generate", "trace", *sizes, "--seed", 3, "--name", "mine", "-o", file)
    trace = json.loads(file.read_text())
    assert (trace["name"], trace["seconds"]) == ("mine", 43200)
    assert json.loads(here("generate", "trace", *sizes, "--seed", 3, "--name", "mine")[0]) == trace
    table = here("backtest", file, "--policy", "none", "--json", "-o", tmp_path / "out")[0]
    assert json.loads(table)["pods"] == len(trace["pods"])
    for wrong, says in (
        (("trace", "--size", "day=1"), "unknown size 'day'; did you mean 'days'?"),
        (("trace", "--size", "days=0"), "days of trace is 0"),
        (("trace", "--size", "services=1.5"), "size services is 1.5; give a whole number"),
        (("trace", "--name", ""), "name: '' is not legal"),
        (("trac",), "did you mean 'trace'?"),
    ):
        assert says in here.error("generate", *wrong)


def test_check_tells_feasible_from_infeasible(here: Here, tmp_path: Path) -> None:
    """0 with a plan found; 3 with the reasons; not known where a search finds nothing."""
    out, err = here("check", TOY)
    assert (
        "toy: a valid temporal instance, 3 offers, 3 requests" in out
        and "feasible: yes" in out
        and err == ""
    )
    out, _ = here("check", infeasible(tmp_path), code=3)
    assert "feasible: no" in out and "request 'search'" in out and "request 'report'" in out
    assert json.loads(here("check", "--json", tmp_path / "x.json", code=3)[0])["feasible"] is False
    assert (
        "warning: us-east-1 t4g.2xlarge: the spot price"
        in here("check", INSTANCES / "aws-10.json")[0]
    )
    document = read_json(TOY)
    for offer in document["offers"]:
        offer["max_instances"] = 1
    for request in document["requests"]:
        request |= {"replicas": 2, "duration_slots": 5}
    write_json(tmp_path / "tight.json", document)
    verdict = json.loads(here("check", "--json", tmp_path / "tight.json")[0])
    assert verdict["feasible"] is None and "machines of" in " ".join(verdict["clues"])


def test_evaluate_judges_fronts_points_and_plans(
    here: Here, fronts: dict[str, Path], tmp_path: Path
) -> None:
    """All three forms; a front that claims too much is bad input; a broken plan is infeasible."""
    report = json.loads(here("evaluate", fronts["toy"], fronts["nsga2"])[0])
    front = Front.read(fronts["nsga2"])
    assert [tuple(p["values"].values()) for p in report["points"]] == [
        p.values for p in front.points
    ]
    assert all(p["feasible"] and p["confirmed"] for p in report["points"])
    here("pick", fronts["nsga2"], "-o", tmp_path / "point.json")
    write_json(tmp_path / "plan.json", front.pick().plan)
    alike = [
        here("evaluate", fronts["toy"], tmp_path / name)[0] for name in ("point.json", "plan.json")
    ]
    assert (
        alike[0] == alike[1]
        and tuple(json.loads(alike[0])["values"].values()) == front.pick().values
    )

    broken: dict[str, Any] = read_json(tmp_path / "plan.json")
    broken["starts"]["shop"] = 5
    write_json(tmp_path / "broken.json", broken)
    verdict = json.loads(here("evaluate", fronts["toy"], tmp_path / "broken.json", code=3)[0])
    assert not verdict["feasible"] and verdict["violations"][0]["kind"] == "outside-horizon"

    document = read_json(fronts["nsga2"])
    document["points"][1]["values"][1] = 0.01
    write_json(tmp_path / "liar.json", document)
    _, err = here("evaluate", fronts["toy"], tmp_path / "liar.json", code=2)
    assert (
        f"error: {tmp_path / 'liar.json'}: points[" in err
        and "the referee does not confirm these values" in err
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "not a plan; a plan is a JSON object; see `placeopt schema temporal --plan`"),
        ({"starts": {}}, "instances: this field is missing; add it"),
        ({"plan": 3}, "not a plan"),
        ({"starts": {"shop": 0, "nobody": 0}, "instances": []}, "starts: unknown request 'nobody'"),
        ({"format": "placeopt/front@2"}, "format: 'placeopt/front@2' is not legal"),
    ],
)
def test_evaluate_refuses_other_documents(
    here: Here, tmp_path: Path, document: Any, said: str
) -> None:
    """By file and path."""
    write_json(tmp_path / "p.json", document)
    assert here.error("evaluate", TOY, tmp_path / "p.json").startswith(
        f"{tmp_path / 'p.json'}: {said}"
    )


def test_merge_compare_pick(here: Here, fronts: dict[str, Path], tmp_path: Path) -> None:
    """One front with provenance; a table of measures; one point."""
    _, err = here("merge", fronts["nsga2"], fronts["greedy"], "-o", tmp_path / "all.json")
    whole = Front.read(tmp_path / "all.json")
    assert f"\n{len(whole)} points; found by: " in err
    assert (
        here("merge", tmp_path / "all.json", fronts["greedy"])[0]
        == (tmp_path / "all.json").read_text()
    )

    report = json.loads(
        here("compare", "--json", fronts["nsga2"], fronts["greedy"], tmp_path / "all.json")[0]
    )
    assert report["fronts"][2]["hypervolume"] >= max(r["hypervolume"] for r in report["fronts"][:2])
    assert report["fronts"][2]["seconds"] == pytest.approx(
        sum(r["seconds"] for r in report["fronts"][:2])
    )
    worst = [
        max(f.nadir[k] for f in map(Front.read, (fronts["nsga2"], fronts["greedy"])))
        for k in range(3)
    ]
    assert report["reference"] == pytest.approx([1.1 * x if x else 1.0 for x in worst])
    out, _ = here("compare", fronts["nsga2"], "--reference", "100,10,1")
    assert "hypervolume" in out and "latency_ms 100, cost_usd 10, interruption 1" in out

    goals = (Objective("cost", "EUR"), Objective("profit", "EUR", sense="max"))
    points = (Point((1.0, 2.0), {}), Point((4.0, 10.0), {}))
    mixed = Front(InstanceName("model", "m", ""), goals, points)
    mixed.write(tmp_path / "mixed.json")
    mixed[:1].write(tmp_path / "part.json")
    out, _ = here("compare", tmp_path / "mixed.json", tmp_path / "part.json")
    assert (
        "share of the box from the best values of all fronts up to cost 4.4, down to profit 1.2"
        in out
    )
    out, _ = here("compare", "--json", tmp_path / "mixed.json", "--reference", "5,-1")
    assert json.loads(out)["fronts"][0]["hypervolume"] == pytest.approx((4 * 3 + 1 * 8) / (4 * 11))

    point = json.loads(here("pick", tmp_path / "all.json", "--lex", "cost_usd,latency_ms")[0])
    assert (
        point["values"]["cost_usd"] == whole.ideal[1]
        and point["plan"] == whole.points[point["index"]].plan
    )
    point = json.loads(here("pick", tmp_path / "all.json", "--budget", "latency_ms=5")[0])
    assert point["values"]["latency_ms"] <= 5
    for rule in ("--reference", "--pseudo-weights", "--topsis"):
        chosen = ("pick", tmp_path / "all.json", rule, "cost_usd=1", "--budget", "latency_ms=9")
        point = json.loads(here(*chosen)[0])
        option = rule[2:].replace("-", "_")
        expected = whole.pick(**{option: {"cost_usd": 1}}, budget={"latency_ms": 9})
        assert tuple(point["values"].values()) == expected.values
    assert json.loads(here("pick", tmp_path / "all.json", "--knee")[0])["values"] == dict(
        zip(("latency_ms", "cost_usd", "interruption"), whole.pick().values, strict=True)
    )


def test_compare_and_merge_count_points_by_their_values(here: Here, tmp_path: Path) -> None:
    """A point lies on the merged front whoever found its values first; dominated ones do not."""
    goals = (Objective("cost", "EUR"), Objective("delay", "ms"))
    name = InstanceName("model", "m", "")

    def write(method: str, *values: tuple[float, float]) -> Path:
        points = tuple(Point(v, {}, method=method, seed=1) for v in values)
        Front(name, goals, points).write(tmp_path / f"{method}.json")
        return tmp_path / f"{method}.json"

    files = [
        write("bin-plans", (1.0, 9.0), (2.0, 5.0), (3.0, 4.0)),
        write("moead", (1.0, 9.0), (2.0, 5.0)),
        write("nsga3", (2.0, 5.0), (2.5, 4.5), (3.0, 6.0), (4.0, 4.0)),
    ]
    rows = json.loads(here("compare", "--json", *files)[0])["fronts"]
    assert [(r["points"], r["points_on_merged_front"]) for r in rows] == [(3, 3), (2, 2), (3, 2)]
    _, err = here("merge", *files, "-o", tmp_path / "all.json")
    assert err.endswith("\n4 points; found by: bin-plans 3, moead 2, nsga3 2\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("pick", "FRONT", "--budget", "cost=3"),
            "unknown objective 'cost'; did you mean 'cost_usd'?",
        ),
        (
            ("pick", "FRONT", "--budget", "cost_usd=0.0001"),
            "no point has cost_usd <= 0.0001; the least on this front is",
        ),
        (
            ("pick", "FRONT", "--budget", "cost_usd=cheap"),
            "--budget cost_usd is 'cheap'; give a number",
        ),
        (
            ("pick", "FRONT", "--lex", "cost_usd", "--knee"),
            "--knee, --lex, --reference, --pseudo-weights and --topsis are rules; give one of them",
        ),
        (
            ("pick", "FRONT", "--topsis", "cost_usd=-1"),
            "the weight of cost_usd is -1; give a number of at least 0",
        ),
        (
            ("pick", "FRONT", "--reference", "cost_usd=low"),
            "--reference cost_usd is 'low'; give a number",
        ),
        (
            ("compare", "FRONT", "--reference", "1,2"),
            "--reference is '1,2'; give 3 numbers, separated by commas",
        ),
        (("compare", "FRONT", "--reference", "1,2,x"), "--reference is '1,2,x'; give 3 numbers"),
        (
            ("compare", "FRONT", "--best-known", str(INSTANCES / "aws-10.front.json")),
            "of 'aws-10' with the goals",
        ),
        (("merge", "FRONT", TOY), "toy.json: this is a temporal instance, not a front"),
        (
            ("plot", "FRONT", "--point", "999", "-o", "p.png"),
            "--point is '999'; give knee, or a number from 0 to",
        ),
        (("plot", "FRONT", "-o", "p.gif"), "cannot draw 'p.gif'"),
    ],
)
def test_bad_arguments_of_the_others_are_one_line(
    here: Here, fronts: dict[str, Path], arguments: tuple[object, ...], said: str
) -> None:
    """With what is legal."""
    assert said in here.error(*(fronts["nsga2"] if a == "FRONT" else a for a in arguments))


def test_a_file_of_the_wrong_kind_is_named(
    here: Here, fronts: dict[str, Path], tmp_path: Path
) -> None:
    """A front where an instance is wanted, an instance where a front is, a manifest elsewhere."""
    manifest = tmp_path / "shop.yaml"
    manifest.write_text("kind: Deployment\n", encoding="utf-8")
    front, toy = fronts["nsga2"], fronts["toy"]
    for arguments in (
        ("check", front),
        ("solve", front),
        ("evaluate", front, toy),
        ("report", front, "--instance", front),
    ):
        assert here.error(*arguments).startswith(f"{front}: this is a front, not an instance")
    for command in ("pick", "merge", "compare", "plot", "report"):
        assert here.error(command, toy).startswith(
            f"{toy}: this is a temporal instance, not a front"
        )
    for command in ("check", "solve", "pick", "report"):
        assert "`placeopt import kubernetes`" in here.error(command, manifest)
    assert "this is a temporal instance, not a plan" in here.error("evaluate", toy, toy)
    assert "are not Kubernetes objects" in here.error(
        "export", "kubernetes", front, "--instance", toy
    )
    assert "give knee, or a number from 0 to" in here.error("report", front, "--point", 9999)


def test_report_is_written_beside_the_front(here: Here, fronts: dict[str, Path]) -> None:
    """Its name is the result; the instance is found beside the front."""
    out, err = here("report", fronts["greedy"], "--point", 0)
    assert out.strip().endswith("greedy.report.html") and err == ""
    assert "What was asked" in Path(out.strip()).read_text(encoding="utf-8")


def test_plot_draws_fronts_and_plans(here: Here, fronts: dict[str, Path], tmp_path: Path) -> None:
    """Beside the front unless told otherwise; a plan finds its instance there."""
    assert here("plot", fronts["nsga2"])[0] == f"{fronts['nsga2'].with_suffix('.html')}\n"
    assert (
        here("plot", fronts["nsga2"], "--point", 0)[0]
        == f"{fronts['nsga2'].with_suffix('.0.png')}\n"
    )
    here("plot", fronts["nsga2"], "--point", "knee", "-o", tmp_path / "p.pdf", "--instance", TOY)
    alone = read_json(fronts["nsga2"])
    write_json(tmp_path / "alone.json", alone | {"instance": alone["instance"] | {"name": "x"}})
    here("plot", tmp_path / "alone.json", "-o", tmp_path / "f.png")
    assert {p.name for p in tmp_path.iterdir()} == {"alone.json", "p.pdf", "f.png"}
    assert "needs the instance 'x'; name its file with --instance" in here.error(
        "plot", tmp_path / "alone.json", "--point", 0
    )


def test_methods_and_schemas(here: Here) -> None:
    """What there is, for people and for programs."""
    out, err = here("methods")
    listed = {m["name"]: m for m in json.loads(here("methods", "--json")[0])}
    assert {
        "auto",
        "ensemble",
        "greedy",
        "nsga2",
        "nsga3",
        "moead",
        "mspso",
        "epsilon-constraint",
    } <= listed.keys()
    assert "temporal" in listed["nsga3"]["problems"]
    described = {row.split()[0] for row in out.splitlines() if row.strip()}
    for name, method in listed.items():
        compared = method["role"] in ("baseline", "published")
        assert (name in described) is not compared, name
        assert (name in re.findall(r"[\w-]+", err)) is compared, name
    everything, _ = here("methods", "--all")
    assert all(name in everything for name in listed)
    for kind in specs():
        assert json.loads(here("schema", kind)[0])["properties"]["problem"]["const"] == kind
        assert json.loads(here("schema", kind, "--plan")[0])["type"] == "object"
    assert "points" in json.loads(here("schema", "front")[0])["properties"]
    assert "did you mean 'temporal'?" in here.error("schema", "temporel")


def test_a_folder_that_is_not_writable_is_not_to_be_created(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose folder is there is told to give another one."""
    access = os.access
    kept = tmp_path / "kept"
    kept.mkdir()
    refused = {str(kept)}
    monkeypatch.setattr(
        os, "access", lambda path, mode: str(path) not in refused and access(path, mode)
    )
    _, err = here("solve", TOY, "-o", kept / "f.json", code=2)
    assert f"the folder '{kept}' is not writable; give a path in another one" in err
    assert "mkdir" not in err
    _, err = here("solve", TOY, "-o", kept / "new" / "f.json", code=2)
    assert f"no such folder; create it first: mkdir -p '{kept / 'new'}'" in err


def test_errors_can_be_traced(tmp_path: Path) -> None:
    """For those who look for the cause in the source."""
    done = placeopt("check", tmp_path / "none.json", environment={"PLACEOPT_DEBUG": "1"})
    assert done.returncode != 0 and "Traceback" in done.stderr


def test_a_process_that_ends_at_once_loses_nothing(tmp_path: Path) -> None:
    """Neither its output, nor its exit code, nor what runs at exit."""
    script = "import atexit; atexit.register(print, 'at exit'); from placeopt.__main__ import main"
    for arguments, code, said in (("--version", 0, "placeopt "), ("solve nowhere", 2, "")):
        command = f"import sys; sys.argv[1:] = {arguments.split()!r}; {script}; main()"
        out = tmp_path / "out.txt"
        with out.open("w") as stream:
            done = subprocess.run([sys.executable, "-c", command], stdout=stream, cwd=ROOT)
        assert done.returncode == code
        text = out.read_text()
        assert text.startswith(said) and "at exit" in text
