"""A problem of another distribution, found by its entry point, is served as ours are."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forks import PROGRAM, forked

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "own_problem"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Install the example as pip does, into a folder of its own; run Python with it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(EXAMPLE / "backups.py", site)
    facts = site / "placeopt_backups-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: placeopt-backups\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[placeopt.problems]\nbackups = backups:SPEC\n")
    work = tmp_path_factory.mktemp("work")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = {"-c": arguments[1], "-m": PROGRAM}[arguments[0]]
        done = forked(code, *arguments[2:], path=["", site], cwd=work)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    run("-m", "placeopt", "generate", "backups", "--size", "services=8", "-o", "b.json")
    return run


def test_the_example_is_short_and_its_project_file_names_it() -> None:
    assert len((EXAMPLE / "backups.py").read_text().splitlines()) < 100
    project = (EXAMPLE / "pyproject.toml").read_text()
    assert '[project.entry-points."placeopt.problems"]\nbackups = "backups:SPEC"' in project


def test_methods_find_the_whole_front(command: Command) -> None:
    code = (
        "import itertools, placeopt\n"
        "problem = placeopt.load('b.json')\n"
        "names = [s.name for s in problem.services]\n"
        "sets = itertools.chain.from_iterable(\n"
        "    itertools.combinations(names, k) for k in range(len(names) + 1))\n"
        "judged = [problem.evaluate({'replicas': list(chosen)}) for chosen in sets]\n"
        "values = [e.values for e in judged if e.feasible]\n"
        "best = {v for v in values if not any(w != v and w[0] <= v[0] and w[1] <= v[1]\n"
        "                                     for w in values)}\n"
        "for method in ('nsga3', 'moead', 'rollout', 'auto', 'ensemble'):\n"
        "    front = placeopt.solve(problem, method, evaluations=3000)\n"
        "    found = {tuple(p.values) for p in front.points}\n"
        "    print(method, len(found & best), len(found), len(best))\n"
    )
    rows = [line.split() for line in command("-c", code).stdout.splitlines()]
    assert len(rows) == 5
    for method, both, found, best in rows:
        assert int(found) > 1 and (both == best or method == "rollout"), method


def test_commands_serve_it(command: Command) -> None:
    cli = ("-m", "placeopt")
    assert '"backups"' in command(*cli, "schema", "backups").stdout
    assert "replicas" in command(*cli, "schema", "backups", "--plan").stdout
    assert json.loads(command(*cli, "check", "b.json", "--json").stdout)["feasible"] is True
    command(*cli, "solve", "b.json", "--method", "nsga3", "--evaluations", "500", "-o", "f.json")
    command(*cli, "plot", "f.json", "-o", "f.html")
    command(*cli, "report", "f.json", "-o", "r.html")
    command(*cli, "evaluate", "b.json", "f.json")
    assert "replicas" in command(*cli, "pick", "f.json", "--knee").stdout
    assert len(json.loads(command(*cli, "compare", "f.json", "--json").stdout)["fronts"]) == 1
    found = json.loads(command(*cli, "methods", "--json").stdout)
    serving = {m["name"] for m in found if "backups" in m["problems"]}
    ours = {"auto", "ensemble", "moead", "mspso", "nsga2", "nsga3", "policy", "rollout"}
    assert serving == ours | {"jmetal-nsga2", "jmetal-nsga3", "jmetal-smpso"}


def test_an_environment_serves_it(command: Command) -> None:
    code = (
        "import gymnasium, placeopt.environments\n"
        "env = gymnasium.make(placeopt.environments.ENVIRONMENTS['backups'], services=5)\n"
        "seen, info = env.reset(seed=1)\n"
        "ended = False\n"
        "while not ended:\n"
        "    seen, reward, ended, _, info = env.step(int(info['action_mask'].argmax()))\n"
        "print(info['feasible'], info['plan'])\n"
    )
    assert command("-c", code).stdout.split()[0] == "True"


def test_a_search_without_seeds_and_without_time_finds_something(command: Command) -> None:
    """The time limit is over before the first vector is drawn."""
    code = (
        "import placeopt\n"
        "for method in ('nsga2', 'nsga3', 'moead', 'mspso', 'rollout'):\n"
        "    print(len(placeopt.solve('b.json', method, seconds=1e-9)))\n"
    )
    counts = [int(line) for line in command("-c", code).stdout.splitlines()]
    assert len(counts) == 5 and all(counts)


def test_drawing_sequence_and_certificate_come_by_default(command: Command) -> None:
    """It declares none of them: squares of its genes, gene after gene, all of its vectors."""
    command(
        "-m", "placeopt", "solve", "b.json", "--certify", "--evaluations", "3000", "-o", "c.json"
    )
    code = (
        "import placeopt\n"
        "front = placeopt.Front.read('c.json')\n"
        "print(front.complete, {p.status for p in front.points}, front.gap())\n"
        "none = placeopt.solve('b.json', 'nsga2', evaluations=3000, seconds=1e-9, certify=True)\n"
        "print({p.status for p in none.points})\n"
    )
    said = command("-c", code).stdout
    assert said == "True {'optimal'} 0.0\n{'heuristic'}\n"
    command("-m", "placeopt", "plot", "c.json", "--point", "0", "-o", "p.svg")
    command("-c", "text = open('p.svg').read(); assert text.count('<title>decision') == 8")
    command("-m", "placeopt", "report", "c.json", "-o", "r.html")


def test_it_is_warmed_with_its_proof(command: Command) -> None:
    said = command("-m", "placeopt", "warm-up", "backups")
    assert "backups" in said.stdout + said.stderr
