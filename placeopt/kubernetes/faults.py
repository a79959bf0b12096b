"""What is wrong with the files of an import, gathered, so that one message names all of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from placeopt.core.errors import DocumentError

#: Faults that are gathered before an import ends, and those that the message names.
_GATHERED, _NAMED = 100, 20


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
            self.found.append(error)
            if len(self.found) == _GATHERED:
                self.check()

    def check(self) -> None:
        """Raise if there are any.

        Raises
        ------
        DocumentError
            The first one, with the others behind it.
        """
        if not self.found:
            return
        first, others = self.found[0], self.found[1:]
        if not others:
            raise first
        told = [_short(error, first.file) for error in others[: _NAMED - 1]]
        if len(others) >= _NAMED:
            count = len(others) - _NAMED + 1
            told.append(f"{'at least ' if len(self.found) == _GATHERED else ''}{count} more")
        problem = f"{first.problem}; and {'; '.join(told)}"
        raise DocumentError(problem, file=first.file, path=first.path, remedy=first.remedy)


def _short(error: DocumentError, file: str | None) -> str:
    """Return where and what, without a file that was named already."""
    where = [error.file] if error.file not in (None, file) else []
    return ": ".join([*filter(None, (*where, error.path)), error.problem])[:300]
