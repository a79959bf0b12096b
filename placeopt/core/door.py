"""What a distribution adds around placeopt: ways in and out, as strings until they are used.

A door leads from the files of another system to instances, and from plans back to it. It is named
by the entry point group ``placeopt.doors``; that to Kubernetes is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from placeopt.core.errors import UnsupportedError
from placeopt.core.spec import load


@dataclass(frozen=True, kw_only=True)
class Door:
    """Ways in and out in one record; the strings are ``"module:name"``.

    Attributes
    ----------
    name : str
        Of the other system, such as ``"kubernetes"``.
    commands : str or None
        ``function(app, imports, exports)``: adds commands to those of ``placeopt``, of ``placeopt
        import`` and of ``placeopt export``, each a ``typer.Typer``.
    beside : str or None
        ``function(instance) -> Path``: the file that an import writes beside an instance.
    approval : str or None
        ``function(front, problem, index, beside) -> Approved``: what those who approve a plan want
        to know; `beside` is the path of the file beside the instance, or None. Raises
        `UnsupportedError` where it cannot say.
    next_steps : str or None
        ``function(front, instance, index) -> list of (what, arguments)``: commands that may follow
        a solve; `instance` is the path of the instance or None.
    plans : mapping of str to str
        Format of a document that holds a plan -> ``function(document, file) -> (plan, sha256)``:
        the plan, and the SHA-256 of its instance.
    schemas : mapping of str to str
        Word of ``placeopt schema`` -> the pydantic class of a document.
    generators : mapping of str to str
        Word of ``placeopt generate`` -> ``function(seed, **sizes) -> document``: a drawn document
        of pydantic; its sizes have defaults and are given by name.
    traces : str or None
        ``function(folder) -> trace or None``: what `placeopt.backtest` plays of a folder; None
        where the folder is not of the other system.
    """

    name: str
    commands: str | None = None
    beside: str | None = None
    approval: str | None = None
    next_steps: str | None = None
    plans: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    generators: Mapping[str, str] = field(default_factory=dict)
    traces: str | None = None

    def load(self, member: str) -> Any:
        """Return what a member that is a string stands for.

        Raises
        ------
        UnsupportedError
            The door has no such member.
        """
        entry = vars(self)[member]
        if entry is None:
            raise UnsupportedError(f"{self.name} has no {member.replace('_', ' ')}")
        return load(entry)


class Approved(Protocol):
    """What a door knows of a plan for those who approve it.

    Attributes
    ----------
    saving : float
        What the plan saves, in the unit of the prices.
    breaks : bool
        Whether the plan breaks the instance.
    """

    saving: float
    breaks: bool

    def tiles(self) -> list[tuple[str, str, str]]:
        """Return large figures: (name, figure, hint)."""

    def html(self) -> str:
        """Return a section of a page."""

    def markdown(self, title: str) -> str:
        """Return the same in short, for a pull request."""
