"""What all benchmarks share: options, kept cells, times, tables, and the page that is written.

A benchmark is a file here that says which instances there are, what is measured of them, and in
which columns. Its page has the same name::

    import cpu_clock  # noqa: F401  (where limits and times are to be CPU seconds)
    from harness import Benchmark, table, timed

    def main() -> None:
        run = Benchmark(__file__, __doc__, "numpy", "numba", seeds=3)
        rows = [run.cell(f"seed {s}", lambda s=s: measured(s)) for s in range(run.seeds)]
        run.write("Title of the page", "What is measured.", table("seed | share | CPU s", rows))

Keywords are options of the command line with their defaults, and the settings of the stamp.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import machine
import stamps

ROOT = stamps.ROOT
#: Helpers of the tests that benchmarks use too, and the packages at the top of the repository.
sys.path[1:1] = [str(ROOT / "tests" / "support"), str(ROOT)]
#: What runs found so far, by script; never committed.
KEPT = ROOT / "out" / "benchmarks"


class Benchmark:
    """One run of a script; its options are attributes.

    Parameters
    ----------
    script : the ``__file__`` of the script.
    about : its docstring, shown by ``--help``.
    libraries : distributions whose versions the page says.
    settings : options and their defaults: numbers, words, flags, lists of these.
    """

    def __init__(self, script: str, about: str | None, *libraries: str, **settings: Any):
        self.script, self._libraries = Path(script).resolve(), libraries
        if sys.argv[1:2] == ["--call"]:
            called = getattr(sys.modules["__main__"], sys.argv[2])
            print(json.dumps(called(*json.loads(sys.argv[3])), default=lambda value: value.item()))
            sys.exit()
        self.facts = f"{machine.facts('placeopt', *libraries)}"
        self.settings = vars(_parser(about, settings).parse_args())
        self.page = self.script.with_suffix(".md")
        self._code = stamps.code_hash(self.script, {})
        self._file = KEPT / f"{self.script.stem}.json"
        kept = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._cells: dict[str, Any] = kept["cells"] if kept.get("code") == self._code else {}

    def __getattr__(self, name: str) -> Any:
        """Return an option."""
        try:
            return self.__dict__["settings"][name]
        except KeyError:
            raise AttributeError(name) from None

    def cell(self, key: str, work: Callable[[], Any]) -> Any:
        """Return what `work` returns, in this run or in an earlier one of the same script."""
        if key not in self._cells:
            self._cells[key] = json.loads(json.dumps(work(), default=lambda value: value.item()))
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps({"code": self._code, "cells": self._cells}))
            print(key, self._cells[key], sep=": ", flush=True)
        return self._cells[key]

    def text(self, title: str, *blocks: str | Iterable[str]) -> str:
        """Return a page: title, command, machine, then blocks with empty lines between."""
        options = {k: v for k, v in self.settings.items() if v is not False and v != ""}
        told = " ".join(f"--{k.replace('_', '-')} {_shown(v)}".rstrip() for k, v in options.items())
        command = f"python {self.script.relative_to(ROOT)} {told}".rstrip()
        head = [f"# {title}", f"`{command}` wrote this page. {self.facts}"]
        parts = [*head, *(b if isinstance(b, str) else "\n".join(b) for b in blocks)]
        return "\n\n".join(part for part in parts if part)

    def write(self, title: str, *blocks: str | Iterable[str]) -> None:
        """Write the page of the script with its stamp."""
        stamps.write(self.page, self.text(title, *blocks), self.script, self.settings)
        print(self.page.read_text(encoding="utf-8"))


def _parser(about: str | None, settings: Mapping[str, Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in settings.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(option, action="store_true", default=default)
        elif isinstance(default, list | tuple):
            kind = type(default[0]) if default else float
            parser.add_argument(option, type=kind, nargs="*", default=list(default))
        else:
            parser.add_argument(option, type=type(default), default=default)
    return parser


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_shown, value))
    return "" if value is True else f"{value:g}" if isinstance(value, float) else str(value)


def apart(script: str, function: str, *arguments: Any, **environment: str) -> Any:
    """Return what a function of a script returns in a process of its own: JSON both ways."""
    command = [sys.executable, script, "--call", function, json.dumps(arguments)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(columns: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a markdown table; `columns` are names with bars between."""
    return machine.table([name.strip() for name in columns.split("|")], rows)


def section(title: str, *blocks: str | Iterable[str]) -> str:
    """Return a part of a page with its title."""
    parts = [f"## {title}", *(b if isinstance(b, str) else "\n".join(b) for b in blocks)]
    return "\n\n".join(part for part in parts if part)


def shown(row: Iterable[object]) -> list[object]:
    """Print a row, so that a long run can be watched; return it."""
    cells = list(row)
    print(*cells, sep=" | ", flush=True)
    return cells


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `work` returns, and its CPU seconds in this process."""
    began = time.process_time()
    return work(), time.process_time() - began


def verdict(holds: bool) -> str:
    """Return whether an aim is met, in a word."""
    return "met" if holds else "missed"


def shares(fronts: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of the hypervolume of all fronts together that each has.

    The reference point is 1.1 times the worst of all fronts.
    """
    from placeopt.core.fronts.front import common_reference, merge

    reference = common_reference(fronts.values())
    whole = merge(fronts.values()).hypervolume(reference)
    return {name: front.hypervolume(reference) / whole for name, front in fronts.items()}
