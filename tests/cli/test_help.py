"""The help: commands in groups, no type beside flags, examples that work in an empty folder."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from placeopt import cli
from placeopt.cli import app, commands

#: Examples that need files of the user's own, PyTorch, or minutes, or that end with Ctrl-C.
LEFT_OUT = ("placeopt import mubench",)
LEFT_OUT += ("placeopt enumerate", "placeopt explore", "placeopt train", "placeopt warm-up")
LEFT_OUT += ("kubectl ", "placeopt backtest", "placeopt import trace")


def tree(command: Any = None, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its names."""
    command = command or get_command(app)
    yield names, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from tree(inner, *names, name)


TREE = dict(tree())


def run(line: str, code: int = 0) -> str:
    """Run a command here; return its stdout."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        cli.main(shlex.split(line))
    assert (end.value.code or 0) == code, f"{line}: {err.getvalue()}"
    return out.getvalue()


@pytest.mark.parametrize("names", TREE, ids=" ".join)
def test_help_fits_and_flags_have_no_type(names: tuple[str, ...]) -> None:
    text = run(f"{' '.join(names)} --help")
    assert "<bool>" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_commands_stand_in_groups() -> None:
    """In this order; none without a group, and each in one line of 80 columns."""
    lines = run("--help").splitlines()
    groups = (commands.SOLVE, commands.LOOK, commands.CLUSTERS, commands.LEARN)
    places = [
        next(k for k, line in enumerate(lines) if line.startswith(f"╭─ {group} "))
        for group in (*groups, commands.EXPERIMENTS)
    ]
    assert places == sorted(places) and "╭─ Commands " not in "\n".join(lines)
    listed = [line.split()[1] for line in lines[places[0] :] if line.startswith("│ ")]
    assert sorted(listed) == sorted(TREE[()].commands)


def test_every_command_has_an_example_of_its_own() -> None:
    for names, command in TREE.items():
        if names and not hasattr(command, "commands"):
            assert f"placeopt {' '.join(names)} " in f"{command.epilog} ", names


def test_examples_run_in_an_empty_folder(tmp_path: Path) -> None:
    """One after another, as they stand in the help."""
    lines = [
        line
        for _, command in sorted(TREE.items(), key=lambda item: len(item[0]))
        for line in (command.epilog or "").split("\n\n")[1:]
        if not line.startswith(LEFT_OUT)
    ]
    assert len(set(lines)) > 20
    with contextlib.chdir(tmp_path):
        for line in dict.fromkeys(lines):
            words = line.removeprefix("placeopt ").partition(" > ")[0]
            run(words.replace("--time-limit 20", "--time-limit 1"))


def test_a_named_command_loads_no_other_module() -> None:
    """Each module registers the commands that its name stands for; a line asks the one it needs."""
    for module, commands_of in cli.MODULES.items():
        alone = get_command(cli._built(module))
        assert set(getattr(alone, "commands", {})) == set(commands_of), module
        for name in commands_of:
            assert cli._module_of([name, "--help"]) == module
            both = (alone.commands[name], TREE[(name,)])  # type: ignore[attr-defined]
            assert both[0].help == both[1].help
            assert [p.opts for p in both[0].params] == [p.opts for p in both[1].params]
    for words in ([], ["--help"], ["import", "kubernetes"], ["consolidate"], ["sovle"]):
        assert cli._module_of(words) is None
