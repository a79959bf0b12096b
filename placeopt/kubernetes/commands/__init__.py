"""Commands: ``import kubernetes``, ``export kubernetes``, ``verify`` and
``consolidate``.
"""

from __future__ import annotations

from pathlib import Path

import typer

from placeopt.kubernetes.commands import consolidating, exporting, importing


def register(app: typer.Typer, imports: typer.Typer, exports: typer.Typer) -> None:
    """Add the commands to those of ``placeopt``, ``placeopt import`` and ``placeopt export``."""
    importing.register(imports)
    exporting.register(app, exports)
    consolidating.register(app)


def next_steps(front: str, instance: Path | None, point: str) -> list[tuple[str, str]]:
    """Return what may follow a solve, where the instance was imported: (what, command).

    Parameters
    ----------
    front : str
        The front's file and the options that name its instance, as words of a shell.
    instance : Path, optional
        The instance's file.
    point : str
        The number of the plan.
    """
    from placeopt.kubernetes.origin import beside

    if instance is None or not beside(instance).exists():
        return []
    script = f"placeopt export kubernetes {front} --point {point} -o steps.sh"
    return [("steps as a script for kubectl", script)]
