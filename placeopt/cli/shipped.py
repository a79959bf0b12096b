"""The command ``instances``: what comes with placeopt."""

from __future__ import annotations

from typing import Any

import typer

from placeopt.cli.commands import SOLVE, add
from placeopt.cli.screen import AsJson, emit_json, emit_table


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    add(app, instances, "placeopt instances", group=SOLVE)


def instances(as_json: AsJson = False) -> None:
    """List the instances that come with placeopt.

    Every command takes such a name instead of a file.
    """
    from placeopt.core.files.documents import read_json
    from placeopt.core.files.shipped import best_known
    from placeopt.core.files.shipped import instances as shipped

    results: list[dict[str, Any]] = []
    for name, file in shipped().items():
        known = best_known(name)
        points = None if known is None else len(read_json(known)["points"])
        kind = read_json(file)["problem"]
        results.append({"name": name, "problem": kind, "best_known": points, "file": str(file)})
    if as_json:
        emit_json(results)
        return
    rows = [
        (one["name"], one["problem"], f"{one['best_known']} points" if one["best_known"] else "-")
        for one in results
    ]
    emit_table(("instance", "problem", "best known front"), rows, left=3)
