"""What an import says: notes for its report, and what is wrong with its files."""

from __future__ import annotations

import contextlib
import html
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from placeopt.core.errors import DocumentError, Faults

T = TypeVar("T")

#: Topic -> heading, in the order in which a reader wants them.
TOPICS = {
    "assumption": "Assumed",
    "pinned": "Stays where it is",
    "capacity": "Counted against its node, not moved",
    "left-out": "Left out",
    "kept": "Constraints that the instance keeps",
    "not-expressed": "What the model cannot say",
    "ignored": "Not read",
}
#: Subjects of one note that are listed.
MAX_SUBJECTS = 1000


@dataclass
class Notes:
    """Notes of an import, gathered while it runs."""

    files: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def add(self, topic: str, text: str, subject: str | None = None) -> None:
        """Note `text` under a topic of `TOPICS`, about `subject`."""
        assert topic in TOPICS
        subjects = self.found.setdefault((topic, text), {})
        if subject is not None:
            subjects[subject] = None

    def leave_out(self, text: str, subject: str) -> None:
        """Note that `subject`, of which an assumption was noted, is left out after all."""
        for key in [k for k, own in self.found.items() if k[0] == "assumption" and subject in own]:
            del self.found[key][subject]
            if not self.found[key]:
                del self.found[key]
        self.add("left-out", text, subject)

    def read(self, file: str, kinds: Counter[str]) -> None:
        """Note a file and what it holds."""
        self.files.append({"file": file, "objects": dict(sorted(kinds.items()))})

    def taken(self, stage: tuple[T, Notes]) -> T:
        """Add the notes of a stage behind these; return its value."""
        value, others = stage
        self.files += others.files
        for key, subjects in others.found.items():
            self.found.setdefault(key, {}).update(subjects)
        return value

    def of(self, topic: str) -> list[tuple[str, list[str]]]:
        """Return (text, subjects) of the notes of a topic."""
        return [(text, list(subjects)) for (t, text), subjects in self.found.items() if t == topic]

    def document(self, problem: str) -> dict[str, Any]:
        """Return the report as a JSON document."""
        notes = [
            {
                "topic": topic,
                "text": text,
                "count": max(1, len(subjects)),
                "subjects": subjects[:MAX_SUBJECTS],
            }
            for topic in TOPICS
            for text, subjects in self.of(topic)
        ]
        return {
            "format": "placeopt/import@1",
            "problem": problem,
            "files": self.files,
            "counts": self.counts,
            "notes": notes,
        }

    def markdown(self, problem: str) -> str:
        """Return the report as markdown; texts of the files are set as code, so never as markup."""
        lines = [f"# Import to {problem}", ""]
        for entry in self.files:
            lines.append(
                f"* {code(entry['file'])}: "
                + (
                    ", ".join(f"{n} {code(kind)}" for kind, n in entry["objects"].items())
                    or "nothing"
                )
            )
        lines += ["", ", ".join(f"{n} {what}" for what, n in self.counts.items()), ""]
        for topic, heading in TOPICS.items():
            if rows := self.of(topic):
                lines += [
                    f"## {heading}",
                    "",
                    *(
                        f"* {escape(text)}"
                        + (": " + _some([code(s) for s in subjects], 50) if subjects else "")
                        for text, subjects in rows
                    ),
                    "",
                ]
        return "\n".join(lines)

    def summary(self) -> list[str]:
        """Return a few lines for the terminal: every note once, with its first subjects."""
        lines = [", ".join(f"{n} {what}" for what, n in self.counts.items())]
        for topic, heading in TOPICS.items():
            for text, subjects in self.of(topic):
                about = f" ({_some(subjects, 3)})" if subjects else ""
                lines.append(printable(f"{heading.lower()}: {text}{about}"))
        return [line for line in lines if line]


# -- who notes, and who keeps it -------------------------------------------------------------------

_KEPT_BY: ContextVar[Notes | None] = ContextVar("kept by", default=None)


def note(topic: str, text: str, subject: str | None = None) -> None:
    """Note something of an import, as `warnings.warn` warns: who records keeps it, else nobody."""
    kept_by = _KEPT_BY.get()
    if kept_by is not None:
        kept_by.add(topic, text, subject)


def note_file(file: str, kinds: Counter[str]) -> None:
    """Note a file that was read, and how many objects of each kind it holds."""
    kept_by = _KEPT_BY.get()
    if kept_by is not None:
        kept_by.read(file, kinds)


@contextlib.contextmanager
def recorded() -> Iterator[Notes]:
    """Keep what is noted within, and give it to nobody else."""
    notes = Notes()
    token = _KEPT_BY.set(notes)
    try:
        yield notes
    finally:
        _KEPT_BY.reset(token)


def _some(subjects: Sequence[str], maximum: int) -> str:
    more = f" and {len(subjects) - maximum} more" if len(subjects) > maximum else ""
    return ", ".join(subjects[:maximum]) + more


def printable(text: str) -> str:
    """Return text in which nothing can move a terminal's cursor."""
    return "".join(
        c if c.isprintable() else c.encode("ascii", "backslashreplace").decode() for c in text
    )


def escape(text: str) -> str:
    """Return text that markdown shows as it is."""
    return html.escape(printable(text), quote=False)


def code(text: str) -> str:
    """Return text as a piece of code of markdown."""
    return "`" + printable(text).replace("`", "'") + "`"


# -- faults ----------------------------------------------------------------------------------------

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
