"""What is wrong with the files of an import, gathered, so that one message names all of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from placeopt.core.errors import DocumentError

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
            existing = {
                str(fault) for fault in self.found
            }  # a value may be asked for at two stages
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


_GATHERED_BY: ContextVar[Faults | None] = ContextVar("gathered by", default=None)


@contextlib.contextmanager
def gathering(faults: Faults) -> Iterator[None]:
    """Gather in `faults` what `tolerated` meets within."""
    token = _GATHERED_BY.set(faults)
    try:
        yield
    finally:
        _GATHERED_BY.reset(token)


class _Tolerated:
    """What `tolerated` returns: it is entered for every object, and has to be quick."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        faults = _GATHERED_BY.get()
        if faults is None or not isinstance(error, DocumentError):
            return False
        with faults.gather():
            raise error
        return True


_TOLERATED = _Tolerated()


def tolerated() -> _Tolerated:
    """Go on after a fault that is raised within, where faults are gathered; else let it pass."""
    return _TOLERATED


def check_faults() -> None:
    """Raise what was gathered until now, if anything was.

    Raises
    ------
    DocumentError
    """
    faults = _GATHERED_BY.get()
    if faults is not None:
        faults.check()


def _short(error: DocumentError, file: str | None) -> str:
    """Return where and what, without a file that was named already."""
    where = [error.file] if error.file not in (None, file) else []
    return ": ".join([*filter(None, (*where, error.path)), error.problem])[:300]
