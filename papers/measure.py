"""Measures: scripts that write one JSON result each, and resume.

A measure is a file in ``measures/`` with three names::

    FULL = {"seeds": 10}                  # settings of `make papers`
    QUICK = {"seeds": 1}                  # of `make papers QUICK=1`: at most a minute

    def measure(cells, seeds):            # the settings come as keywords
        rows = [cells(f"seed {s}", lambda s=s: run(s)) for s in range(seeds)]
        return {"rows": rows}             # whatever JSON can hold; entries read it

and, if it has a picture or a page of its own,

    def draw(result, folder):             # saves PNG files into papers/results
    def page(result):                     # returns the lines of results/<name>.md

`cells(key, work)` returns what `work()` returned the last time that this very script was asked for
that key: a long measure goes on where it was stopped, a larger setting takes up a smaller one. A
loop over many instances ends where `cells.out_of_time`. Take times inside `work`. Results are
written to ``results/<name>.json`` with the hash of the script and of the files under
``benchmarks/`` and ``papers/`` that it imports; `edited` and `old` compare. Functions of one
measure that others need belong into a file beside ``measures/``.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stamps
from machine import facts

HERE = Path(__file__).resolve().parent
MEASURES, RESULTS = HERE / "measures", HERE / "results"
#: What a stopped measure found, and everything of a quick run; never committed.
SCRATCH = stamps.ROOT / "out" / "papers"
#: Larger cells than these characters, such as whole fronts, stay in `SCRATCH`.
_MAX_CELLS = 200_000


class Cells:
    """Parts of a measure that are kept as soon as they are there."""

    def __init__(self, file: Path, code: str, known: dict[str, Any], minutes: float = math.inf):
        self._file, self._code, self.known = file, code, known
        self._until = time.process_time() + 60 * minutes

    @property
    def out_of_time(self) -> bool:
        """Whether the CPU minutes that this run may take are over: a measure may end with less."""
        return time.process_time() > self._until

    def __call__(self, key: str, work: Callable[[], Any]) -> Any:
        """Return what `work` returns, of this run or of one before with the same script."""
        if key not in self.known:
            self.known[key] = json.loads(json.dumps(work(), default=float))
            self._file.parent.mkdir(parents=True, exist_ok=True)
            kept = {"code": self._code, "cells": self.known}
            _write(self._file, json.dumps(kept))
        return self.known[key]


def names() -> list[str]:
    """Return the names of all measures, sorted."""
    return sorted(file.stem for file in MEASURES.glob("*.py") if file.stem != "__init__")


def code_of(name: str) -> str:
    """Return the hash of the script of a measure, its settings left out: they come with the run."""
    return stamps.code_hash(MEASURES / f"{name}.py", {})


def run(name: str, *, quick: bool, minutes: float = math.inf) -> dict[str, Any]:
    """Measure, write the result, and return it as it is in the file.

    After so many CPU minutes, measures of many instances end with those that they have.

    A quick run writes to ``out/papers``; it measures anew, so that its times are of this machine.
    """
    module = importlib.import_module(f"papers.measures.{name}")
    settings, folder = (module.QUICK, SCRATCH / "quick") if quick else (module.FULL, RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    code = code_of(name)
    file = SCRATCH / ("quick" if quick else "cells") / f"{name}.cells.json"
    known: dict[str, Any] = {}
    for before in () if quick else (RESULTS / f"{name}.json", file):
        if before.exists():
            kept = json.loads(before.read_text(encoding="utf-8"))
            known |= kept["cells"] if kept["code"] == code else {}
    cells = Cells(file, code, known, minutes)
    said = facts("placeopt", "numpy", "numba")
    result = json.loads(json.dumps(module.measure(cells, **settings), default=float))
    document = {
        "measure": name,
        "code": code,
        "settings": settings,
        "made": said,
        "result": result,
        "cells": cells.known if len(json.dumps(cells.known)) <= _MAX_CELLS else {},
    }
    document["hash"] = content_hash(document)
    text = json.dumps(document, indent=1, sort_keys=False)
    _write(folder / f"{name}.json", _compact(text) + "\n")
    if hasattr(module, "draw"):
        module.draw(result, folder)
    if hasattr(module, "page"):
        lines = "\n".join([*module.page(result), "", f"Measured {said}"])
        stamps.write(folder / f"{name}.md", lines, MEASURES / f"{name}.py", settings)
    return document


def _write(file: Path, text: str) -> None:
    """Write a file aside and rename it: a run that is killed leaves no half of a file."""
    aside = file.with_name(f".{file.name}.part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(file)


def _compact(text: str) -> str:
    """Return JSON with lists of numbers on one line."""
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)


def documents(*, quick: bool) -> dict[str, dict[str, Any]]:
    """Return the results that there are, by measure; of a quick run its own come first."""
    folders = [RESULTS, SCRATCH / "quick"] if quick else [RESULTS]
    files = [folder / f"{name}.json" for folder in folders for name in names()]
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()
    }


def content_hash(document: dict[str, Any]) -> str:
    """Return the hash of all that a result file says, but of its hash."""
    said = {key: value for key, value in document.items() if key != "hash"}
    return stamps.short_hash(json.dumps(said, sort_keys=True))


def edited(document: dict[str, Any]) -> str:
    """Return why a result is not what its script wrote, in words; empty if it is."""
    name = document["measure"]
    if document["hash"] != content_hash(document):
        return f"it was edited after measures/{name}.py wrote it"
    if name not in names():
        return f"its script measures/{name}.py is gone: delete it too"
    return ""


def old(document: dict[str, Any]) -> bool:
    """Return whether the script of a result has changed since."""
    return document["code"] != code_of(document["measure"])
