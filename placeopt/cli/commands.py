"""Commands in groups, each with examples; their help shows no type beside flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

#: The groups of commands, in the order of the help.
SOLVE, LOOK, CLUSTERS, LEARN, EXPERIMENTS = (
    "Solve",
    "Look at plans",
    "Clusters",
    "Learn",
    "Experiments",
)


def new_app(**options: Any) -> typer.Typer:
    """Return an empty set of commands; `options` are those of `typer.Typer`."""
    return typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode="rich", **options)


def add(
    app: typer.Typer,
    function: Callable[..., None],
    *examples: str,
    group: str | None = None,
    name: str | None = None,
) -> None:
    """Add a command; `examples` are whole command lines."""
    app.command(name, cls=_Command, rich_help_panel=group, epilog=epilog(*examples))(function)


def epilog(*examples: str) -> str:
    """Return examples as the last lines of a help text."""
    return "\n\n".join((f"Example{'s' * (len(examples) > 1)}:", *examples))


class _NoFlagTypes:
    """Flags have no type in the help: they are given or not."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command."""
        results: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in results:
            if vars(parameter).get("is_flag"):
                parameter.metavar = ""
        return results


class _Command(_NoFlagTypes, TyperCommand):
    """A command."""


class _Group(_NoFlagTypes, TyperGroup):
    """A command that has commands."""
