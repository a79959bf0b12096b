"""Notebooks show progress by themselves; nothing else does."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

import placeopt
from placeopt.core.runs import progress as notebook


class Cell:
    """What stands below a cell: the last of each display."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def display(self, thing: Any, *, display_id: bool) -> Cell:
        assert display_id and not self.shown, "one display a run"
        self.shown.append(thing)
        return self

    def update(self, thing: Any) -> None:
        self.shown.append(thing)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A kernel of Jupyter, as far as placeopt looks at it."""
    found = Cell()
    shell = type("ZMQInteractiveShell", (), {})()
    package, inside = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: shell  # type: ignore[attr-defined]
    inside.display = found.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    monkeypatch.setattr(notebook, "_WAIT", 0.0)
    monkeypatch.setattr(notebook, "_PAUSE", 0.0)
    return found


def test_a_run_shows_a_bar_and_takes_it_away(cell: Cell) -> None:
    placeopt.solve("toy", "moead", evaluations=3000)
    text = [thing._repr_html_() for thing in cell.shown]
    assert len(text) > 1 and text[-1] == "" == repr(cell.shown[-1])
    assert '<progress value="0.' in text[0] and " of 3,000 evaluations" in text[0]
    assert "latency_ms " in repr(cell.shown[0])


def test_who_watches_sees_no_bar(cell: Cell) -> None:
    heard: list[Any] = []
    placeopt.solve("toy", "moead", evaluations=3000, on_progress=heard.append)
    assert heard and not cell.shown


def test_a_short_run_shows_none(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_WAIT", 60.0)
    placeopt.solve("toy", "moead", evaluations=300)
    assert not cell.shown


def test_a_sweep_shows_its_runs(cell: Cell) -> None:
    placeopt.sweep(
        {"instances": ["toy"], "methods": ["greedy"], "seeds": [1, 2], "evaluations": [20]}
    )
    assert [repr(thing) for thing in cell.shown] == [
        "0 of 2 runs",
        "1 of 2 runs",
        "2 of 2 runs",
        "",
    ]


def test_a_terminal_and_a_script_show_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do they import IPython."""
    with notebook.notebook_bar() as tell:
        assert tell is None
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: type("TerminalInteractiveShell", (), {})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    with notebook.notebook_bar() as tell:
        assert tell is None
