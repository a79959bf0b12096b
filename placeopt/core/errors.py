"""Every error that placeopt raises on purpose.

::

    PlaceoptError                     exit code of the command line
    ├── InputError                    2   a file, a field or an argument is wrong
    │   ├── DocumentError             2   a file cannot be read, or a value in it is not legal
    │   └── UsageError                2   an argument is not legal
    ├── UnsupportedError              2   the method cannot do what was asked of it
    │   └── MissingExtraError         2   an optional package is not installed
    ├── InfeasibleInstanceError       3   no plan can satisfy the instance; carries the reasons
    ├── SolverError                   1   a solver failed, and failed again when retried
    └── OutputError                   1   a result could not be written where it was wanted
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class PlaceoptError(Exception):
    """Base of all errors that placeopt raises on purpose."""

    exit_code = 1

    def __init__(self, message: str = ""):
        super().__init__(" ".join(message.split("\n")) if "\n" in message else message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let errors pass between processes, whatever their constructors take."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[PlaceoptError], args: tuple[Any, ...], state: dict[str, Any]
) -> PlaceoptError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InputError(PlaceoptError):
    """Something given to placeopt is wrong; the message says what, where, and what is legal."""

    exit_code = 2


class DocumentError(InputError):
    """A document cannot be read, or a value in it is not legal.

    Parameters
    ----------
    problem : str
        What is wrong, with the offending value.
    file : str, optional
        The file that was read.
    path : str, optional
        JSON path of the value, such as ``requests[3].cpu_cores``.
    remedy : str, optional
        What is legal, or what to do.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        path: str | None = None,
        remedy: str | None = None,
    ):
        self.problem, self.file, self.path, self.remedy = problem, file, path, remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.path) if part)
        text = (
            (f"{where}: " if where else "")
            + self.problem
            + (f"; {self.remedy}" if self.remedy else "")
        )
        return " ".join(text.split("\n"))

    def in_file(self, file: str) -> DocumentError:
        """Return the same error, naming `file`."""
        return type(self)(self.problem, file=file, path=self.path, remedy=self.remedy)


class UsageError(InputError):
    """An argument of a call or of the command line is not legal."""


class UnsupportedError(PlaceoptError):
    """The method does not support this problem, or a feature that the instance uses."""

    exit_code = 2


class MissingExtraError(UnsupportedError):
    """An optional package is needed: the message says which extra installs it."""

    def __init__(self, what: str, extra: str):
        super().__init__(
            f"{what} needs the optional packages of placeopt[{extra}]: "
            f"pip install 'placeopt[{extra}]'"
        )


class InfeasibleInstanceError(PlaceoptError):
    """No plan can satisfy the instance.

    Parameters
    ----------
    reasons : sequence of str
        One sentence each, in the instance's own names.
    """

    exit_code = 3

    def __init__(self, reasons: Sequence[str]):
        self.reasons = tuple(reasons)
        super().__init__("the instance is infeasible: " + "; ".join(self.reasons))


class SolverError(PlaceoptError):
    """A solver failed, and failed again when retried with other settings."""


class OutputError(PlaceoptError):
    """A result could not be written where it was wanted; the message says where it is instead."""


def shown(value: object) -> str:
    """Return a value in one short line, for an error."""
    return " ".join(reprlib.repr(value).split())


def require_known(what: str, word: object, legal: Iterable[str]) -> None:
    """Raise unless `word` is one of `legal`.

    Raises
    ------
    UsageError
        Names `what` it is, the word, and what is legal.
    """
    existing = list(legal)
    if not isinstance(word, str) or word not in existing:
        near = did_you_mean(str(word)[:100], existing)
        raise UsageError(f"unknown {what} {shown(word)}; {near}")


def did_you_mean(word: str, legal: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? legal: ..."`` for an unknown `word`.

    Examples
    --------
    >>> did_you_mean("nsga33", ["nsga2", "nsga3"])
    "did you mean 'nsga3'? legal: nsga2, nsga3"
    """
    names = [str(name) for name in legal]
    close = difflib.get_close_matches(word, names, n=1)
    return (f"did you mean {close[0]!r}? " if close else "") + "legal: " + ", ".join(names)


def optional(module: str, what: str, extra: str) -> Any:
    """Return a module that an extra installs.

    Raises
    ------
    MissingExtraError
        It is not installed: ``what`` needs ``placeopt[extra]``.
    """
    if find_spec(module) is None:
        raise MissingExtraError(what, extra)
    return import_module(module)
