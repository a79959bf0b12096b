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

import contextlib
import difflib
import reprlib
from collections.abc import Iterable, Iterator, Sequence
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


# -- faults of a file ------------------------------------------------------------------------------


def fault(file: str, line: int, problem: str, remedy: str) -> DocumentError:
    """Return the error that names a line, counted from 1."""
    return DocumentError(problem, file=file, path=f"line {line}", remedy=remedy)


#: Faults that are gathered before an import ends, and those that the message names.
_GATHERED, _NAMED = 100, 20


class FaultsError(DocumentError):
    """Faults that are told at once: each with its place, what is wrong, and what to do.

    Parameters
    ----------
    found : sequence of DocumentError
        At least one.
    """

    def __init__(self, found: Sequence[DocumentError]):
        self.found = tuple(found)
        first, named = found[0], found[1:_NAMED]
        one = len({error.remedy for error in found}) == 1  # said once, at the end
        told = [
            _short(error, first.file) + ("" if one or not error.remedy else f"; {error.remedy}")
            for error in named
        ]
        if len(found) > _NAMED:
            least = "at least " if len(found) >= _GATHERED else ""
            told.append(f"{least}{len(found) - _NAMED} more")
        where = {"file": first.file, "path": first.path}
        if one:
            super().__init__(
                f"{first.problem}; and {'; '.join(told)}", **where, remedy=first.remedy
            )
        else:
            others = "; and ".join(told)
            super().__init__(
                first.problem, **where, remedy="; and ".join(filter(None, (first.remedy, others)))
            )

    def in_file(self, file: str) -> DocumentError:
        """Return the same error, naming `file`."""
        return DocumentError(self.problem, file=file, path=self.path, remedy=self.remedy)


class Faults:
    """Faults that do not hide each other."""

    def __init__(self) -> None:
        self.found: list[DocumentError] = []

    @contextlib.contextmanager
    def gather(self) -> Iterator[None]:
        """Keep the fault that is raised within, and go on.

        Raises
        ------
        DocumentError
            There are too many by now: all of them.
        """
        try:
            yield
        except DocumentError as error:
            existing = set(map(str, self.found))  # a value may be asked for at two stages
            parts = error.found if isinstance(error, FaultsError) else (error,)
            self.found += [part for part in parts if str(part) not in existing]
            if len(self.found) >= _GATHERED:
                self.check()

    def check(self) -> None:
        """Raise if there are any.

        Raises
        ------
        DocumentError
            The only one, or all.
        """
        if self.found:
            raise self.found[0] if len(self.found) == 1 else FaultsError(self.found)


def _short(error: DocumentError, file: str | None) -> str:
    """Return where and what, without a file that was named already."""
    where = [error.file] if error.file not in (None, file) else []
    return ": ".join([*filter(None, (*where, error.path)), error.problem])[:300]
