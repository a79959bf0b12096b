"""What people and programs are shown: each command on a terminal of 80 columns, and piped.

The expected texts are in the folder ``golden``; ``python tests/cli/test_screens.py`` writes them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from placeopt import cli
from placeopt.cli import progress
from placeopt.cli.progress import in_a_line
from placeopt.cli.screen import room
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.words import up_to
from placeopt.core.runs.progress import Told

GOLDEN = Path(__file__).parent / "golden"
#: name -> a command; those before it have run in the same folder.
COMMANDS = {
    "check": "check aws-10",
    "generate": "generate edge-cloud --size applications=2 --seed 3 -o mine.json",
    "solve": "solve toy --method greedy --points 4",
    "solve-to-a-file": "solve toy --method greedy -o greedy.json",
    "solve-other": "solve toy --method moead --evaluations 300 -o moead.json",
    "solve-quietly": "solve toy --method greedy -o quiet.json --quiet",
    "solve-edge-cloud": "solve mine.json --method greedy --points 3",
    "pick": "pick moead.json --budget cost_usd=0.8",
    "compare": "compare greedy.json moead.json",
    "merge": "merge greedy.json moead.json",
    "evaluate": "evaluate toy greedy.json",
}
#: Lists whose words change with what they list: they only have to fit.
LISTS = ("methods --all", "methods moead", "methods lns", "policies", "instances")


class Terminal(io.TextIOWrapper):
    """A stream that a command takes for a terminal, or for a pipe."""

    def __init__(self, is_terminal: bool):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def screen_of(command: str, *, terminal: bool) -> str:
    """Return what a command prints in this folder: stdout, and stderr below a line."""
    out, err = Terminal(terminal), Terminal(False)  # lines that move are tested alone
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.suppress(SystemExit),
    ):
        cli.main(command.split())
    return stable(f"{out.text}== stderr\n{err.text}")


def stable(text: str) -> str:
    """Return what a command printed without what differs from run to run and place to place."""
    text = re.sub(r"\d+\.\d\d s,", "#.## s,", text)
    text = re.sub(r'"(seconds|cpu_seconds)": [\d.e-]+', r'"\1": 0', text)
    text = re.sub(r'"versions": \{[^}]*\}', '"versions": {}', text)
    text = re.sub(r'"seconds": \[[^]]*\]', '"seconds": []', text)
    return re.sub(r"(?m)^compil(ing|ed) .*\n", "", text)


def screens(folder: Path) -> dict[str, str]:
    """Return what all commands print, by the name of the golden file."""
    found = {}
    with contextlib.chdir(folder):
        for name, command in COMMANDS.items():
            if name == "compare":  # seconds differ in width
                for file in ("greedy.json", "moead.json"):
                    front = Front.read(file)
                    runs = tuple(replace(run, seconds=1.5) for run in front.runs)
                    replace(front, runs=runs).write(file)
            found[f"{name}.80.txt"] = screen_of(command, terminal=True)
            found[f"{name}.piped.txt"] = screen_of(command, terminal=False)
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    patch = pytest.MonkeyPatch()
    patch.setenv("COLUMNS", "80")
    found = screens(tmp_path_factory.mktemp("screens"))
    patch.undo()
    return found


@pytest.mark.parametrize("name", [f"{c}.{kind}.txt" for c in COMMANDS for kind in ("80", "piped")])
def test_what_is_shown(name: str, shown: dict[str, str]) -> None:
    assert shown[name] == (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*(f"{command}.80.txt" for command in COMMANDS), *LISTS])
def test_nothing_is_wider_than_the_terminal(
    name: str, shown: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown[name] if name in shown else screen_of(name, terminal=True)
    out = text.split("== stderr\n")[0]
    assert all(room(line) <= 80 for line in out.splitlines())


def test_one_hypervolume_everywhere(tmp_path: Path) -> None:
    """The same number, and the reference point beside it, in `solve`, `compare` and Python."""
    with contextlib.chdir(tmp_path):
        told = screen_of("solve toy --method moead --points 5 -o f.json", terminal=False)
        table = screen_of("compare f.json", terminal=False)
    front = Front.read(tmp_path / "f.json")
    volume = front.hypervolume(plain=True)
    within = up_to(front.objectives, front.reference().tolist())
    assert f"Quality (hypervolume): {volume:.4f} of the box from the best values {within}." in told
    assert f"{volume:.6g}" in table
    assert f"share of the box from the best values of all fronts {within}" in table


# -- while it runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [30, 60, 79, 118])
def test_the_moving_line_drops_goals_first(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done of how much and the time left come first; a line is never broken."""
    from rich.console import Console

    goals = [f"goal_number_{k} 123.4" for k in range(4)]
    told = Told(0.25, "12,500 of 50,000 evaluations", ["214 points", *goals])
    text = in_a_line(told, 20.0)
    assert text.startswith("12,500 of 50,000 evaluations  60 s left  214 points  goal_number_0")
    screen = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(progress, "console", lambda: screen)
    monkeypatch.setattr(progress.sys, "stderr", Terminal(True))
    with progress.shown() as tell:
        assert tell is not None
        tell(told)
        screen.file.truncate(0)  # what was drawn before it was told
        time.sleep(0.4)
    drawn = re.sub(r"\x1b\[[0-9?]*[a-zA-Z]", "", screen.file.getvalue())  # type: ignore[attr-defined]
    lines = [part for part in re.split(r"[\r\n]+", drawn) if "12,500" in part]
    assert lines and all(room(part) <= width for part in lines)
    assert width < 60 or any("12,500 of 50,000 evaluations" in part for part in lines)
    assert not any("goal_number_3" in part for part in lines)


def test_a_piped_run_speaks_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where the work is silent, such as a solver in one long call."""
    monkeypatch.setattr(progress, "PAUSE", 0.1)
    with progress.shown() as tell:
        time.sleep(0.15)
        tell(Told(0.5, "5 of 10 evaluations", ["3 points"]))
        time.sleep(1.2)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "0 s: starting" and 5 < len(lines) < 20
    assert lines[-1] == "1 s: 5 of 10 evaluations, 1 s left, 3 points"


def test_a_quiet_run_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Not even a summary; errors are still told."""
    for words, code, told in (
        ("solve toy --method greedy --quiet", 0, ""),
        ("solve toy --method greedyy -q", 2, "error: unknown method 'greedyy'"),
    ):
        with pytest.raises(SystemExit) as end:
            cli.main(words.split())
        out, err = capfd.readouterr()
        assert (end.value.code or 0) == code
        assert err.startswith(told) and err.count("\n") == bool(told) and bool(out) == (code == 0)


def main() -> None:
    import tempfile

    os.environ["COLUMNS"] = "80"
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = screens(Path(folder))
    for file in GOLDEN.glob("*.txt"):
        file.unlink()
    for name, text in found.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {len(found)} texts\n")


if __name__ == "__main__":
    main()
