"""A door of another distribution, found by its entry point, is served as ours is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from forks import forked

from placeopt.core.door import Door
from placeopt.core.errors import UnsupportedError
from placeopt.core.spec import load
from placeopt.doors import doors

ROOT = Path(__file__).resolve().parents[1]
#: A door to a system that keeps plans as lines of text.
STRANGER = """
from pathlib import Path
from placeopt.core.door import Door
from placeopt.core.errors import UnsupportedError
from pydantic import BaseModel

DOOR = Door(
    name="lines",
    commands="lines:register",
    beside="lines:beside",
    approval="lines:approve",
    next_steps="lines:next_steps",
    plans={"lines/plan@1": "lines:replay"},
    schemas={"lines": "lines:Lines"},
)

class Lines(BaseModel):
    words: list[str]

def register(app, imports, exports):
    import typer
    app.command("greet")(lambda: typer.echo("hello from outside"))
    imports.command("lines")(lambda: typer.echo("lines in"))
    exports.command("lines")(lambda: typer.echo("lines out"))

def beside(instance):
    return Path(instance).with_suffix(".lines")

def replay(document, file):
    return document["plan"], document["sha256"]

def next_steps(front, instance, point):
    return [("lines", f"placeopt export lines {front} {point}")]

class Told:
    saving, breaks = 2.0, False
    def tiles(self):
        return [("said from outside", "7", "")]
    def html(self):
        return "<p>approved from outside</p>"
    def markdown(self, title):
        return f"## {title}, from outside"

def approve(front, problem, index, beside):
    if problem.problem != "temporal":
        raise UnsupportedError("lines are of temporal plans only")
    return Told()
"""
Command = Callable[..., subprocess.CompletedProcess[str]]


def installed(site: Path, work: Path, entry: str, code: str = "") -> Command:
    """Name a door by an entry point, as pip does; return what runs commands in a folder."""
    (site / "lines.py").write_text(STRANGER)
    facts = site / "placeopt_lines-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: placeopt-lines\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[placeopt.doors]\n{entry}\n")
    start = f"import sys\n{code}\nfrom placeopt.cli import main\nmain(sys.argv[1:])"

    def run(*arguments: str, ends: int = 0) -> subprocess.CompletedProcess[str]:
        done = forked(start, *arguments, path=["", site], cwd=work)
        assert done.returncode == ends, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def command(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Install the forkedr's door, and solve an instance."""
    run = installed(tmp_path_factory.mktemp("site"), work, "lines = lines:DOOR")
    (work / "toy.json").write_text((ROOT / "instances" / "temporal" / "toy.json").read_text())
    run("solve", "toy.json", "--method", "greedy", "-o", "f.json")
    return run


def test_its_commands_stand_beside_ours(command: Command) -> None:
    assert "hello from outside" in command("greet").stdout
    assert "lines in" in command("import", "lines").stdout
    assert "lines out" in command("export", "lines").stdout
    for group in ("import", "export"):
        told = command(group, "--help").stdout
        assert "kubernetes" in told and "lines" in told


def test_its_documents_are_known(command: Command, work: Path) -> None:
    assert "words" in command("schema", "lines").stdout
    assert "steps" in command("schema", "steps").stdout
    plan = json.loads((work / "f.json").read_text())["points"][0]["plan"]
    document = {"format": "lines/plan@1", "plan": plan, "sha256": "other"}
    (work / "plan.json").write_text(json.dumps(document))
    done = command("evaluate", "toy.json", "plan.json", "--json")
    assert json.loads(done.stdout)["feasible"] is True
    assert "made for another instance" in done.stderr


def test_it_tells_approvers_of_plans_that_it_knows(command: Command, work: Path) -> None:
    """Where its file stands beside the instance, or its word is asked for."""
    report = ("report", "f.json", "--instance", "toy.json")
    told = command(*report, "--format", "markdown").stdout
    assert told.startswith("## Plan for") and "from outside" in told
    command(*report, "-o", "plain.html")
    assert "from outside" not in (work / "plain.html").read_text()
    (work / "toy.lines").write_text("beside")
    command(*report, "-o", "told.html")
    page = (work / "told.html").read_text()
    assert "said from outside" in page and "approved from outside" in page
    command(*report, "-o", "x.html", "--min-saving", "1")
    done = command(*report, "-o", "x.html", "--min-saving", "3", ends=3)
    assert "it saves 2, less than 3" in done.stderr


def test_ours_needs_no_more_than_an_entry_point(tmp_path: Path) -> None:
    """Without its name in our own list it is served all the same, so that it could be apart."""
    (tmp_path / "site").mkdir()
    forget = "import placeopt.doors\nplaceopt.doors.PACKAGES = ()"
    run = installed(tmp_path / "site", tmp_path, "kubernetes = placeopt.kubernetes:DOOR", forget)
    assert "Import what kubectl" in run("import", "--help").stdout
    assert "StatefulSet" in run("schema", "steps").stdout
    (tmp_path / "other").mkdir()
    bare = installed(tmp_path / "other", tmp_path, "lines = lines:DOOR", forget)
    assert "helm template prints" not in bare("import", "--help").stdout
    assert "unknown problem" in bare("schema", "steps", ends=2).stderr


def test_every_door_names_what_exists() -> None:
    for door in doors():
        for member in fields(Door):
            found = getattr(door, member.name)
            if isinstance(found, str) and member.name != "name":
                assert callable(door.load(member.name)), member.name
        for entry in (*door.plans.values(), *door.schemas.values()):
            assert callable(load(entry))


def test_what_a_door_has_not_is_said() -> None:
    with pytest.raises(UnsupportedError, match="wall has no next steps"):
        Door(name="wall").load("next_steps")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("lines = linez:DOOR", "entry point 'lines' of placeopt.doors, linez:DOOR, cannot be load"),
        ("lines = lines:Told", "it has to be a Door"),
    ],
)
def test_one_that_cannot_be_loaded_is_named(tmp_path: Path, entry: str, said: str) -> None:
    done = installed(tmp_path, tmp_path, entry)("import", "--help", ends=2)
    assert said in done.stderr and "Traceback" not in done.stderr
