"""The server of an explorer: who is let in, what it says, what it writes, how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import placeopt
from placeopt.cli import main
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.explore.runs import Runs
from placeopt.explore.server import Explorer, in_background
from placeopt.explore.source import FrontSource
from placeopt.registry import problem_class


@contextmanager
def served(what: Path | str, *, solve: bool = False, **options: Any) -> Iterator[Explorer]:
    source = FrontSource(what, **options)
    with Explorer(source, Runs(source) if solve else None) as explorer:
        thread = in_background(explorer)
        try:
            yield explorer
        finally:
            if explorer.runs is not None:
                explorer.runs.stop()
            explorer.shutdown()
            thread.join()


def ask(
    explorer: Explorer,
    name: str = "",
    *,
    token: str | None = None,
    host: str | None = None,
    post: Any = None,
    kind: str = "application/json",
    **query: Any,
) -> tuple[int, str, dict[str, str]]:
    """Return status, text and headers of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", explorer.server_port, timeout=30)
    path = f"/{explorer.token if token is None else token}/{name}"
    path += f"?{urlencode(query)}" if query else ""
    method, body = ("GET", None) if post is None else ("POST", json.dumps(post))
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{explorer.server_port}")
    if body is not None:
        connection.putheader("Content-Type", kind)
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body.encode() if body is not None else None)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    return answer.status, text, dict(answer.getheaders())


def state(explorer: Explorer, **query: Any) -> dict[str, Any]:
    status, text, _ = ask(explorer, "state", **query)
    assert status == 200, text
    return json.loads(text)


@pytest.fixture(scope="module")
def front() -> Front:
    return placeopt.solve("toy", "moead", evaluations=400)


@pytest.fixture
def file(front: Front, tmp_path: Path) -> Path:
    front.write(tmp_path / "front.json")
    return tmp_path / "front.json"


def test_only_this_machine_and_only_who_knows_the_token(file: Path) -> None:
    """It listens on the loopback address; wrong hosts, tokens, paths and methods are refused."""
    with served(file) as explorer:
        assert explorer.server_address[0] == "127.0.0.1" and len(explorer.token) >= 32
        port = explorer.server_port
        assert ask(explorer)[0] == 200 and ask(explorer, host=f"localhost:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
            status, text, _ = ask(explorer, "state", host=host)
            assert status == 403 and "values" not in text, host
        for token in ("", "x", explorer.token[:-1], explorer.token + "x", "%C3%BC"):
            assert ask(explorer, "state", token=token)[0] == 403, token
        assert ask(explorer, token="favicon.ico")[0] == 403  # with a slash behind it
        for name in ("nothing", "..", "../../etc/passwd", "%2e%2e/etc/passwd", "state/more"):
            assert ask(explorer, name)[0] == 404, name
        for name in ("solve", "stop", "state", ""):  # it only reads
            assert ask(explorer, name, post={})[0] == 404, name


def test_answers_say_what_a_browser_may_do(file: Path) -> None:
    """No frames, no guessing of types, no caches, no referrer; the page runs one script."""
    with served(file) as explorer:
        _, text, headers = ask(explorer)
        assert headers["X-Frame-Options"] == "DENY" and headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        assert "connect-src 'self'" in text and "script-src 'sha256-" in text
        assert len(text) < 200_000


def test_the_state_and_a_plan_are_those_of_the_front(file: Path, front: Front) -> None:
    """Values, facts, drawing; what has not changed is not sent again; numbers are checked."""
    problem = placeopt.load("toy")
    with served(file) as explorer:
        told = state(explorer)
        assert told["front"]["values"] == [list(p.values) for p in front]
        assert told["name"] == "toy" and "data centres" in told["instance"]
        assert set(state(explorer, since=told["version"])) == {"version", "run"}
        query = {"version": told["version"], "n": 3}
        plan = json.loads(ask(explorer, "plan", **query)[1])
        assert plan["plan"] == front[3].plan and "<svg" in plan["html"]
        assert dict(plan["facts"]) == problem.describe(front[3].plan)
        for number in ("99", "-1", "x", "1.5", ""):
            assert ask(explorer, "plan", **query | {"n": number})[0] == 400, number
        assert ask(explorer, "plan", **query | {"version": "old"})[1] == '{"stale":true}'


def test_it_grows_with_the_file(file: Path, front: Front) -> None:
    """A front that is written again, and one that is gone or damaged for a while."""
    with served(file) as explorer:
        first = state(explorer)
        front[:4].write(file)
        grown = state(explorer, since=first["version"])
        assert len(grown["front"]["values"]) == 4 and grown["version"] != first["version"]
        file.write_text('{"format": "placeopt/front@1", "poi')
        assert state(explorer)["front"] is None
        front.write(file)
        assert len(state(explorer)["front"]["values"]) == len(front)


def test_an_instance_shows_the_fronts_beside_it(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those in the present folder; none yet: what to do."""
    monkeypatch.chdir(tmp_path)
    problem = problem_class("temporal").generate(3, requests=3, horizon=8)
    problem.write(tmp_path / "mine.json")
    with served("mine.json") as explorer:
        told = state(explorer)
        assert told["front"] is None and "explore mine.json --solve" in told["empty"]
        front.write(tmp_path / "of-another.json")
        assert state(explorer)["front"] is None
        mine = placeopt.solve(problem, "greedy")
        mine.write(tmp_path / "of-mine.json")
        assert len(state(explorer)["front"]["values"]) == len(mine)
    with served("toy") as explorer:  # the best front known of it comes with placeopt
        assert len(state(explorer)["front"]["values"]) >= len(front)


def test_a_folder_grows_while_a_run_works(tmp_path: Path) -> None:
    """`solve --run-dir` in another process is seen before it ends, and its instance is known."""
    folder = tmp_path / "runs"
    code = (
        "import placeopt; from placeopt.registry import problem_class; "
        "problem = problem_class('temporal').generate(5, requests=12); "
        f"placeopt.solve(problem, 'nsga2', seconds=60, run_dir={str(folder)!r})"
    )
    folder.mkdir()
    with served(folder) as explorer:
        told = state(explorer)
        assert told["front"] is None and "as soon as a run has written one" in told["empty"]
        process = subprocess.Popen([sys.executable, "-c", code])
        try:
            end = time.monotonic() + 60
            while (told := state(explorer))["front"] is None:
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()
        assert "1 running" in told["said"] and ">running<" in told["runs"]
        assert "data centres" in told["instance"]
        plan = json.loads(ask(explorer, "plan", version=told["version"], n=0)[1])
        assert "<svg" in plan["html"]


def test_a_folder_of_a_sweep_merges_the_fronts_of_an_instance(tmp_path: Path) -> None:
    """One instance at a time; every run has a row."""
    plan = {
        "instances": ["toy", {"problem": "temporal", "seed": 1, "requests": 3}],
        "methods": ["greedy", "nsga2"],
        "seeds": [1, 2],
        "evaluations": [60],
    }
    result = placeopt.sweep(plan, run_dir=tmp_path / "runs", folder=tmp_path)
    with served(tmp_path) as explorer:
        told = state(explorer)
        assert len(told["groups"]) == 2
        for group, name in told["groups"]:
            part = state(explorer, group=group)
            cells = [f for f in result.fronts if name.startswith(f"{f.instance.name}: ")]
            assert len(cells) == 4 and part["runs"].count("<tr>") == 1 + 4
            best = placeopt.merge(cells)
            assert part["front"]["values"] == [list(p.values) for p in best]
            assert part["front"]["methods"] and "data centres" in part["instance"]


def test_a_training_is_drawn(tmp_path: Path) -> None:
    """The facts of its rounds over steps, as `train --checkpoint` and `--run-dir` keep them."""
    rounds = [
        {"steps": 1000 * k, "share": k / 4, "seconds": 1.0, "facts": {"reward": -9.0 / k, "n": 3}}
        for k in (1, 2)
    ]
    document = {"format": "placeopt/rounds@1", "problem": "multi-cluster", "seed": 4}
    (tmp_path / "run.rounds.json").write_text(json.dumps(document | {"rounds": rounds}))
    (tmp_path / "damaged.rounds.json").write_text(json.dumps(document | {"rounds": [3]}))
    with served(tmp_path) as explorer:
        told = state(explorer)["runs"]
        assert "multi-cluster, seed 4: 2,000 steps, 50% of the training" in told
        assert ">reward<" in told and ">n<" not in told, "what never varies is not drawn"
        assert told.count("<svg") == 1


def test_solving_from_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only with `solve`; what is sent is checked; the front grows, is written, and nothing else."""
    monkeypatch.chdir(tmp_path)
    with served("chain-12", solve=True) as explorer:
        for wrong, why in (
            ({"method": "nsga"}, "unknown method 'nsga'"),
            ({"seconds": 0}, "more than 0"),
            ({"seconds": "5"}, "give a number"),
            ({"seed": -1}, "at least 0"),
            ({"seed": True}, "at least 0"),
        ):
            status, text, _ = ask(explorer, "solve", post=wrong)
            assert status == 400 and why in text
        assert ask(explorer, "solve", post={}, kind="text/plain")[0] == 400
        assert ask(explorer, "solve", post=[])[0] == 400
        assert ask(explorer, "solve", post={}, host="evil.example")[0] == 403
        assert list(tmp_path.iterdir()) == []
        status, text, _ = ask(explorer, "solve", post={"method": "greedy", "seconds": 20})
        assert status == 200, text
        end = time.monotonic() + 60
        while (told := state(explorer))["run"]["running"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        (written,) = tmp_path.iterdir()
        assert (
            written.name == "chain-12.greedy-1.front.json" and written.name in told["run"]["said"]
        )
        found = Front.read(written)
        assert state(explorer)["front"]["values"] == [list(p.values) for p in found]
        assert state(explorer)["runs"].count("<tr>") == 2


def test_a_run_of_the_page_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it found by then is kept; a second one at the same time is refused."""
    monkeypatch.chdir(tmp_path)
    with served("aws-10", solve=True) as explorer:
        assert ask(explorer, "solve", post={"method": "nsga2", "seconds": 300})[0] == 200
        assert "stop it first" in ask(explorer, "solve", post={})[1]
        time.sleep(1.0)
        status, text, _ = ask(explorer, "stop", post={})
        assert status == 200 and not json.loads(text)["run"]["running"]
        assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_explored_says_so(tmp_path: Path) -> None:
    """Neither front nor instance nor folder; a port that is taken."""
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(DocumentError, match="give a front, an instance, or a folder of runs"):
        FrontSource(tmp_path / "x.json")
    with pytest.raises(DocumentError, match=r"nothing\.json"):
        FrontSource(tmp_path / "nothing.json")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="give another --port"):
            Explorer(FrontSource("toy"), port=taken.getsockname()[1])
    with pytest.raises(SystemExit) as end:
        main(["explore", str(tmp_path / "x.json")])
    assert end.value.code == 2


def test_ctrl_c_ends_it(file: Path) -> None:
    """The address is all that stdout has; the exit code is 0."""
    command = [sys.executable, "-m", "placeopt", "explore", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline()
    assert address.startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and out == "" and "Traceback" not in err
