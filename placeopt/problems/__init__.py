"""What is decided: validated, immutable instances, their plans, and the referee that judges every plan.

`KINDS` maps the ``"problem"`` of a document to its class. A problem's file has the same name in every layer.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

from placeopt.documents import read_json, what_is
from placeopt.errors import DocumentError, UnsupportedError, UsageError, did_you_mean
from placeopt.problems.base import Problem

#: ``"problem"`` of a document -> (module of the row, class in placeopt.problems.<module>).
KINDS: dict[str, tuple[str, str]] = {
    "temporal": ("temporal", "Temporal"),
    "edge-cloud": ("edge_cloud", "EdgeCloud"),
    "rolling-update": ("rolling_update", "RollingUpdate"),
    "rescheduling": ("rescheduling", "Rescheduling"),
    "multi-cluster": ("multi_cluster", "MultiCluster"),
}


def kind_class(kind: str) -> type[Problem]:
    """Return the class of the problem called `kind`.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown problem {kind!r}; {did_you_mean(kind, KINDS)}")
    module, name = KINDS[kind]
    return getattr(importlib.import_module(f"placeopt.problems.{module}"), name)


def read(path: str | os.PathLike[str]) -> Problem:
    """Read an instance file; its ``"problem"`` picks the class.

    Raises
    ------
    DocumentError
        Names the file, the JSON path, the value and what is legal.
    """
    document = read_json(path)
    try:
        return from_document(document)
    except DocumentError as error:
        raise error.in_file(str(path)) from None


def from_document(document: Any) -> Problem:
    """Return the problem that a JSON document describes."""
    if not isinstance(document, dict):
        raise DocumentError(
            f"an instance is a JSON object, not {type(document).__name__}",
            remedy='start with {"problem": ...}',
        )
    kind = document.get("problem")
    if kind is None and (what := what_is(document)) is not None:
        raise DocumentError(
            f"this is {what}, not an instance", remedy='an instance starts with {"problem": ...}'
        )
    if kind is None:
        raise DocumentError(
            "this field is missing", path="problem", remedy="legal: " + ", ".join(KINDS)
        )
    if not isinstance(kind, str) or kind not in KINDS:
        raise DocumentError(
            f"unknown problem {str(kind)[:60]!r}",
            path="problem",
            remedy=did_you_mean(str(kind)[:60], KINDS),
        )
    return kind_class(kind).from_document(document)


def row(layer: str, problem: Problem) -> ModuleType:
    """Return the module of `problem` in a layer, such as ``placeopt.encoders``.

    Raises
    ------
    UnsupportedError
        The problem has no such face.
    """
    module = KINDS[problem.problem][0]
    name = f"{layer}.{module}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UnsupportedError(
            f"{problem.problem} has no {layer.rpartition('.')[2]} face, which this method needs"
        ) from None
