"""``placeopt explore``: a page on this machine in which a plan is chosen."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from placeopt.cli.advice import page_of
from placeopt.cli.commands import LOOK, add
from placeopt.cli.completion import instance_names
from placeopt.cli.screen import emit, say


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    add(app, explore, "placeopt explore shop --solve", group=LOOK)


def explore(
    what: Annotated[
        Path,
        Argument(
            metavar="FRONT|INSTANCE|RUN-DIR",
            help="A front, an instance (file or name), or a folder of runs.",
            autocompletion=instance_names,
        ),
    ],
    instance: Annotated[
        Path | None,
        Option(
            help="Instance of the fronts (default: found beside them, or among the shipped ones)."
        ),
    ] = None,
    solve: Annotated[
        bool, Option("--solve", help="Let the page start runs and write their fronts.")
    ] = False,
    port: Annotated[
        int, Option(min=0, max=65535, help="Port of the page (default: any free one).")
    ] = 0,
    show: Annotated[bool, Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Choose a plan in the browser.

    The page grows while runs work.

    The page is served on 127.0.0.1 until Ctrl-C, to those who know the address. It needs no
    network.
    """
    from placeopt.explore import serve
    from placeopt.explore.source import FrontSource

    def ready(address: str) -> None:
        emit(address)
        say("Open this address in a browser on this machine. Ctrl-C ends it.")
        if show:
            import webbrowser

            webbrowser.open(address)

    source = FrontSource(what, instance, lambda *files: page_of(*files)["commands"])
    for number in (signal.SIGINT, signal.SIGTERM):  # they end the server, and a run keeps its front
        signal.signal(number, signal.default_int_handler)
    serve(source, port=port, solve=solve, ready=ready)
