"""The command line: results on stdout, progress and messages on stderr.

Exit codes: 0 done, 2 bad usage or bad input (one message), 3 infeasible. Commands import what they
need when they run, so that
``placeopt --help`` costs no more than typer itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from placeopt.cli.commands import CLUSTERS, EXPERIMENTS, LEARN, LOOK, SOLVE, epilog, new_app
from placeopt.cli.progress import announced
from placeopt.cli.screen import begin, checked_output
from placeopt.core.errors import PlaceoptError
from placeopt.core.spec import load


def _version(wanted: bool) -> None:
    if wanted:
        from placeopt.version import __version__

        typer.echo(f"placeopt {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Where should each replica run?

    The result is a Pareto front; every plan in it has been re-checked.
    """


#: Our modules and their commands. Who names one of these waits for no other module.
MODULES: dict[str, tuple[str, ...]] = {
    "solving": ("solve",),
    "enumerating": ("enumerate",),
    "instances": ("check", "generate"),
    "catalogue": ("instances", "methods", "warm-up", "schema"),
    "fronts": ("pick", "plot", "compare", "merge", "evaluate"),
    "reports": ("explore", "report"),
    "learning": ("policies", "train", "evaluate-policy"),
    "sweeps": ("sweep",),
}


@cache
def _built(module: str | None = None) -> typer.Typer:
    """Return the commands of one of our modules; by default all with those of doors, in order."""
    app = new_app(
        name="placeopt",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog(
            "placeopt solve toy -o front.json",
            "placeopt report front.json",
            "placeopt import kubernetes shop --prices shop --to rolling-update -o shop.json",
            "placeopt evaluate-policy multi-cluster-fixed-rate20 --episodes 20",
            "placeopt sweep study",
        ),
    )
    app.callback()(_root)
    for name in MODULES if module is None else [module]:
        load(f"placeopt.cli.{name}:register")(app)
    if module is None:
        _add_doors(app)
        # The help shows groups in the order of their first commands, and doors add to any group.
        order = [SOLVE, LOOK, CLUSTERS, LEARN, EXPERIMENTS]
        app.registered_commands.sort(key=lambda one: _place(one.rich_help_panel, order))
    return app


def _add_doors(app: typer.Typer) -> None:
    """Add the commands of doors, and the groups ``import`` and ``export``."""

    from placeopt.doors import doors

    imports = new_app(help="Turn other formats into instances.")
    exports = new_app(help="Turn plans into scripts and manifests.")
    for door in doors():
        if door.commands is not None:
            door.load("commands")(app, imports, exports)
    load("placeopt.cli.instances:register_imports")(imports)
    app.add_typer(imports, name="import", rich_help_panel=CLUSTERS)
    if exports.registered_commands:
        app.add_typer(exports, name="export", rich_help_panel=CLUSTERS)


def _place(panel: object, order: Sequence[str]) -> int:
    """Return where a group stands in the order; what has none comes last."""
    return order.index(panel) if isinstance(panel, str) and panel in order else len(order)


def _module_of(words: Sequence[str]) -> str | None:
    """Return which module of ours has the command of a line; None where all have to be asked."""
    if not words or "_PLACEOPT_COMPLETE" in os.environ:
        return None
    return next((name for name, commands in MODULES.items() if words[0] in commands), None)


def __getattr__(name: str) -> Any:
    """Return ``app``: what doors add is loaded when it is asked for, not while this is imported."""
    if name == "app":
        return _built()
    raise AttributeError(f"module 'placeopt.cli' has no attribute {name!r}")


#: What typer raises for words that are no command line; it exports what is derived from it alone.
_UNREADABLE: Any = typer.BadParameter.__mro__[2]


@cache
def _command(module: str | None) -> Any:
    """Return the commands of a module or all, built once for a process that runs several."""
    return typer.main.get_command(_built(module))


def main(arguments: Sequence[str] | None = None, began: float | None = None) -> None:
    """Run the command line; always ends with SystemExit.

    ``PLACEOPT_DEBUG=1`` shows where an error was raised.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.
    began : float, optional
        When the process began, by ``time.perf_counter``: a time limit counts from then.
    """
    began = time.perf_counter() if began is None else began
    words = sys.argv[1:] if arguments is None else list(arguments)
    begin(words)
    try:
        with announced(), checked_output():
            run = _command(_module_of(words))
            code = run(words, prog_name="placeopt", obj=began, standalone_mode=False)
            sys.exit(code if isinstance(code, int) else 0)
    except _UNREADABLE as error:
        if told := error.format_message():  # nothing where the help was asked for by no words
            where = error.ctx.command_path if vars(error).get("ctx") else "placeopt"
            print(
                f"error: {' '.join(told.split()).rstrip('.')}; see `{where} --help`",
                file=sys.stderr,
            )
        sys.exit(error.exit_code)
    except PlaceoptError as error:
        if os.environ.get("PLACEOPT_DEBUG"):
            raise
        print("error: " + " ".join(str(error).splitlines()), file=sys.stderr)
        sys.exit(error.exit_code)
