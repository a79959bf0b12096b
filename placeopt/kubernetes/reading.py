"""Files of other programs, JSON or YAML, read within limits; every value with its line.

A `View` is a value and where it stands. Asking it for what is not there gives an empty view; asking
for the wrong kind of value raises a `DocumentError` that names the file, the line and the path.
Lines are looked up only when something is wrong.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import after_space, decode_at, json_line, parse_json
from placeopt.core.files.paths import AnyPath, open_bytes
from placeopt.kubernetes import yaml_reading

#: Files may be so large.
MAX_JSON_BYTES, MAX_YAML_BYTES = 512 * 2**20, 128 * 2**20
#: Values of a JSON file, counted before any is made: ``[],`` takes three bytes in the file and
#: sixty in memory.
MAX_JSON_VALUES = 20_000_000
#: JSON documents behind each other in one file.
MAX_DOCUMENTS = 100_000
STDIN = "-"

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BRACKET = re.compile(r"\s*[\[{]")
#: Objects: names of machines, pods, services. Labels: values such as a zone.
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
LABEL_KEY = re.compile(
    r"([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII
)


class Source:
    """A text that was read, kept to find lines in; `before` it the file has so many lines."""

    def __init__(self, file: str, text: str, *, is_json: bool, before: int = 0):
        self.file, self.text, self.is_json, self.before = file, text, is_json, before

    def line(self, document: int, steps: tuple[Any, ...]) -> int:
        """Return the line of a value, from 1."""
        if self.is_json:
            return self.before + json_line(self.text, steps)
        return yaml_reading.line_of(self.text, self.file, document, steps)


class View:
    """A value of a document and where it stands; `value` is None where nothing is there."""

    __slots__ = ("document", "key", "parent", "source", "value")

    def __init__(
        self,
        value: Any,
        source: Source,
        document: int = 0,
        parent: View | None = None,
        key: Any = None,
    ):
        self.value, self.source, self.document = value, source, document
        self.parent, self.key = parent, key

    @classmethod
    def nothing(cls) -> View:
        """Return the view of what stands in no file."""
        return cls({}, Source("", "", is_json=True))

    def __getitem__(self, key: str) -> View:
        result = (
            self.value
        )  # asked a million times of a large cluster: no call where none is needed
        if type(result) is not dict:
            result = self._checked(dict, "a mapping", f"give a mapping with {key!r}") or {}
        return View(result.get(key), self.source, self.document, self, key)

    def __bool__(self) -> bool:
        return self.value is not None

    def items(self) -> Iterable[View]:
        """Return the members of a list, one after another; none where nothing is there."""
        return () if self.value is None else self._members()

    def _members(self) -> Iterator[View]:
        for k, item in enumerate(self._checked(list, "a list", "give a list")):
            yield View(item, self.source, self.document, self, k)

    def mapping(self) -> dict[str, Any]:
        """Return a mapping; empty where nothing is there."""
        return self._checked(dict, "a mapping", "give a mapping") or {}

    def text(self, default: str = "") -> str:
        """Return a text."""
        if type(self.value) is str:
            return self.value
        remedy = "give a text, in quotes if it looks like a number"
        result = self._checked(str, "a text", remedy)
        return default if result is None else str(result)

    def _checked(self, kind: type, what: str, remedy: str) -> Any:
        """Return the value if it is of a kind, or None."""
        if self.value is not None and not isinstance(self.value, kind):
            raise self.fault(f"{_shown(self.value)} where {what} is expected", remedy)
        return self.value

    def name(self, default: str = "") -> str:
        """Return the name of an object, as Kubernetes allows it."""
        text = self.text(default)
        if text != default and not NAME.fullmatch(text):
            raise self.fault(
                f"{_shown(text)} is no name of Kubernetes",
                "legal: lower-case letters, digits, - and ., up to 253",
            )
        return text

    def labels(self) -> dict[str, str]:
        """Return labels, checked to be what Kubernetes allows."""
        result = self.mapping()
        for key, value in result.items():
            if not isinstance(value, str) or not LABEL.fullmatch(value):
                raise self[key].fault(
                    f"{_shown(value)} is no value of a label",
                    "legal: letters, digits, -, _ and ., up to 63; numbers in quotes",
                )
            if not LABEL_KEY.fullmatch(key):
                raise self[key].fault(
                    f"{_shown(key)} is no key of a label", "legal: such as app or example.org/app"
                )
        return result

    def whole(self, default: int, *, maximum: int = 10**6) -> int:
        """Return a whole number from 0 to `maximum`."""
        legal = f"legal: a whole number, 0 to {maximum:,}"
        return default if self.value is None else int(self._up_to(maximum, int, legal))

    def number(self, default: float, *, maximum: float = 1e9) -> float:
        """Return a number from 0 to `maximum`."""
        legal = f"legal: a number, 0 to {maximum:g}"
        return default if self.value is None else float(self._up_to(maximum, (int, float), legal))

    def _up_to(self, maximum: float, kind: Any, legal: str) -> Any:
        """Return the value if it is a number of a kind from 0 to `maximum`."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= maximum:
            raise self.fault(f"{_shown(value)} is not legal", legal)
        return value

    def flag(self) -> bool:
        """Return true or false; false where nothing is there."""
        return bool(self._checked(bool, "true or false", "give true or false"))

    @property
    def steps(self) -> tuple[Any, ...]:
        """Keys and indices from the document to here."""
        results: list[Any] = []
        view: View | None = self
        while view is not None and view.parent is not None:
            results.append(view.key)
            view = view.parent
        return tuple(reversed(results))

    @property
    def line(self) -> int:
        """The line of the file, from 1."""
        return self.source.line(self.document, self.steps)

    def fault(self, problem: str, remedy: str) -> DocumentError:
        """Return the error that names the file, the line and the path."""
        path = ""
        for step in self.steps:
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        where = f"line {self.line}" + (f", {_shown(path.lstrip('.'), 200)[1:-1]}" if path else "")
        return DocumentError(problem, file=self.source.file, path=where, remedy=remedy)


def _shown(value: Any, maximum: int = 60) -> str:
    """Return a value for a message: on one line, in ASCII where it is odd, and short."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else repr(value)
    return text if len(text) <= maximum else text[: maximum - 4] + "..." + text[-1]


def require_whole(view: View) -> None:
    """Raise if a list of the API was cut off: what it lacks would count as not there.

    Servers cut a list at the ``limit`` of a request, and say where to go on.
    """
    about = view["metadata"]
    more, left = about["continue"], about["remainingItemCount"]
    if more.value or left.value:
        lacks = f"lacks {left.value} objects" if isinstance(left.value, int) else "lacks objects"
        raise (more if more.value else left).fault(
            f"the list is not whole: it was cut off by a limit and {lacks}",
            "ask for it without a limit, or follow continue and give one list of all objects; "
            "kubectl get -o json does so",
        )


def read(path: AnyPath) -> list[View]:
    """Return the documents of a file, of stdin for ``-``.

    Raises
    ------
    DocumentError
        The file cannot be read, is too large, or is neither JSON nor YAML; the line is named.
    """
    file, text, count = _text(str(path))
    text = without_logs(text)
    if _BRACKET.match(text) and (documents := _json(text, file)) is not None:
        return documents
    _no_control(text, file)
    if count > MAX_YAML_BYTES:
        raise DocumentError(
            f"more than {MAX_YAML_BYTES // 2**20} MiB of YAML",
            file=file,
            remedy="give JSON: kubectl get ... -o json",
        )
    source = Source(file, text, is_json=False)
    return [View(value, source, k) for k, value in enumerate(yaml_reading.documents(text, file))]


def read_text(path: AnyPath) -> tuple[str, str]:
    """Return (file, text) of a text file that is no YAML, such as CSV.

    Raises
    ------
    DocumentError
        It cannot be read, is too large, or is not text.
    """
    file, text, count = _text(str(path))
    if count > MAX_YAML_BYTES:
        raise DocumentError(
            f"more than {MAX_YAML_BYTES // 2**20} MiB",
            file=file,
            path="line 1",
            remedy="give a shorter table",
        )
    _no_control(text, file)
    return file, text


def _no_control(text: str, file: str) -> None:
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise yaml_reading.fault(
            file, line, f"the control character {control[0]!a}", "give a text file"
        )


def _text(path: str) -> tuple[str, str, int]:
    file = "<stdin>" if path == STDIN else path
    try:
        if path == STDIN:
            raw = sys.stdin.buffer.read(MAX_JSON_BYTES + 1)
        else:
            with open_bytes(path) as stream:
                raw = stream.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        remedy = "give the path of a readable file"
        raise DocumentError(said, file=file, remedy=remedy) from None
    if len(raw) > MAX_JSON_BYTES:
        raise DocumentError(
            f"more than {MAX_JSON_BYTES // 2**20} MiB",
            file=file,
            remedy="split the file, or name fewer resources",
        )
    try:
        return file, raw.decode("utf-8-sig"), len(raw)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise yaml_reading.fault(
            file, line, f"byte {error.start} is not UTF-8", "save the file as UTF-8"
        ) from None


def _json(text: str, file: str, before: int = 0) -> list[View] | None:
    """Return a JSON document, or several behind each other; None where the text is rather YAML.

    Such YAML begins with a brace. `before` are the lines of the file before the text.
    """
    if sum(map(text.count, ",[{")) > MAX_JSON_VALUES:
        raise yaml_reading.fault(
            file,
            before + 1,
            f"more than {MAX_JSON_VALUES:,} values",
            "name fewer resources, or split the file",
        )
    try:
        return [View(parse_json(text), Source(file, text, is_json=True, before=before))]
    except DocumentError as error:
        if not error.problem.startswith("not JSON"):
            line = before + _line_of_fault(text, file, error.problem)
            raise yaml_reading.fault(file, line, error.problem, "mend the file") from None
        if error.problem.startswith("not JSON: Extra data") and (parts := _parts(text)):
            if len(parts) > MAX_DOCUMENTS:
                problem = f"more than {MAX_DOCUMENTS:,} JSON documents"
                raise yaml_reading.fault(file, parts[-1][0] + 1, problem, "give one list") from None
            return [
                view
                for lines, start, end in parts
                for view in _json(text[start:end], file, lines) or ()
            ]
        if not re.match(r'\s*[\[{]\s*["\[{]', text):
            return None
        result = re.search(r"line (\d+)", error.problem)
        raise yaml_reading.fault(
            file,
            before + (int(result[1]) if result else 1),
            error.problem,
            "give complete JSON documents",
        ) from None


def _parts(text: str) -> list[tuple[int, int, int]]:
    """Return (lines before it, begin, end) of each of several JSON documents.

    They stand behind each other, as kubectl prints a stream; none where something else does, and
    one more than `MAX_DOCUMENTS` at most.
    """
    results: list[tuple[int, int, int]] = []
    lines, last, at = 0, 0, after_space(text, 0)
    while at < len(text) and len(results) <= MAX_DOCUMENTS:
        if text[at] not in "{[":
            return []
        try:
            _, end = decode_at(text, at)
        except (ValueError, RecursionError):
            return []
        lines += text.count("\n", last, at)
        results.append((lines, at, end))
        last, at = at, after_space(text, end)
    return results


def _line_of_fault(text: str, file: str, problem: str) -> int:
    """Return the line of a fault that the JSON parser found but did not place.

    That is a key that stands twice, a number that is none, or nesting too deep. JSON is YAML, whose
    reader knows its lines.
    """
    if problem.endswith("is not a finite number"):
        return text.count("\n", 0, max(0, text.find(problem.split()[0]))) + 1
    try:
        yaml_reading.documents(text[:MAX_YAML_BYTES], file)
    except DocumentError as error:
        return int((error.path or "line 1").split()[1])
    return 1


# -- folders and dumps of kubectl cluster-info -----------------------------------------------------


#: Files of a folder that are read, by the end of their names, and how many there may be.
_READ, _MAX_FILES = (".json", ".yaml", ".yml"), 20_000
_START = "==== START logs for container "
_LOG = re.compile(
    rf"^{_START}(?P<which>.*) ====\n.*?==== END logs for container (?P=which) ====$",
    re.DOTALL | re.MULTILINE,
)


def without_logs(text: str) -> str:
    """Return a dump of ``kubectl cluster-info dump`` without logs; its lines keep their numbers."""
    if _START not in text:
        return text
    return _LOG.sub(lambda log: "\n" * log[0].count("\n"), text)


def with_folders(paths: Iterable[AnyPath]) -> list[AnyPath]:
    """Return paths with the JSON and YAML files of a folder, at any depth, in its place.

    Raises
    ------
    DocumentError
        A folder has no such file, or too many.
    """
    return [file for path in paths for file in _files(path)]


def _files(path: AnyPath) -> Iterator[AnyPath]:
    if not Path(path).is_dir():
        yield path
        return
    results = sorted(file for file in Path(path).rglob("*") if file.suffix.lower() in _READ)
    if not results or len(results) > _MAX_FILES:
        problem = f"{len(results):,} files" if results else "no file"
        raise DocumentError(
            f"{problem} of {', '.join(_READ)} in this folder",
            file=str(path),
            remedy=f"give the folder of a cluster-info dump; legal: 1 to {_MAX_FILES:,} files",
        )
    yield from results
