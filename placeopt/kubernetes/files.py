"""Files of other programs, JSON or YAML, read within limits into typed objects.

`read` gives the documents of a file as `Item`s: bytes and where they stand. `Item.decode` makes
a msgspec struct of them. What a struct does not declare is passed over. A value of the wrong kind
raises a `DocumentError` that names the file, the line and the path. Lines are looked up only when
something is wrong: the file is read once more for them.

YAML is read without surprises: plain values, built from the events of libyaml, within limits on
depth, size and aliases. Only strings, numbers, booleans, nulls, lists and mappings come out,
whatever tags a file has; a tag that asks for anything else is refused. Aliases are followed as long
as what they would expand to stays small.

The events are those of a CSafeLoader, without its nodes and constructors: it would count values,
levels and aliases only when all nodes are made. Of a dump of 2,000 pods they take 4.3 times the CPU
time (3.4 s for .8) and 172 MiB for 56.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml

from placeopt.core.errors import DocumentError, fault
from placeopt.core.files.documents import after_space, decode_at, json_line, parse_json
from placeopt.core.files.paths import AnyPath, open_bytes

#: Nesting, values of one file, and values that aliases may add.
MAX_DEPTH, MAX_VALUES, MAX_ALIASED = 100, 12_000_000, 10_000

_LOADER: Any = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader
_STRING_TAGS = {"!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "binary"))}
_PLAIN_TAGS = _STRING_TAGS | {
    f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "map", "seq")
}
_WORDS = {True: ("yes", "true", "on"), False: ("no", "false", "off")}
_BOOLEANS = {
    form: value
    for value, words in _WORDS.items()
    for word in words
    for form in (word, word.title(), word.upper())
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0o?[0-7]+|0x[0-9a-fA-F]+)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_STARTS = frozenset("0123456789+-.~ntfyoNTFYO")


_NO_KEY = object()


class _Open:
    """A list or mapping that is not complete yet."""

    __slots__ = ("anchor", "before", "is_map", "key", "merges", "value")

    def __init__(self, is_map: bool, anchor: str | None, before: int):
        self.is_map, self.anchor, self.before = is_map, anchor, before
        self.value: Any = {} if is_map else []
        self.key: Any = _NO_KEY  # the key that waits for its value
        self.merges: list[dict[str, Any]] = []


def yaml_documents(text: str, file: str) -> list[Any]:
    """Return the value of every document of a YAML text that is not empty.

    Raises
    ------
    DocumentError
        Names the file and the line.
    """
    results: list[Any] = []
    builder = _Builder(file)
    for event in events(text, file):
        if isinstance(event, yaml.DocumentEndEvent):
            if builder.result is not None:
                results.append(builder.result)
            builder = _Builder(file, builder.values, builder.aliased)
        else:
            builder.take(event)
    return results


def events(text: str, file: str) -> Iterator[Any]:
    """Yield the events of a text, errors of the syntax as `DocumentError`."""
    try:
        next_event = _LOADER(text).get_event
        while type(event := next_event()) is not yaml.StreamEndEvent:
            yield event
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text, file) from None
    except (yaml.YAMLError, UnicodeError, RecursionError, MemoryError) as error:
        raise DocumentError(
            f"not YAML: {' '.join(str(error).split())[:200]}",
            file=file,
            path="line 1",
            remedy="mend the file",
        ) from None


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> DocumentError:
    """Return what is wrong, and on which line.

    Where a value runs on into the next line by mistake, that is the line where it begins.
    """
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    said = " ".join(part for part in (error.context, error.problem) if part)
    if "mapping values are not allowed" in said and line > 1:
        before, here = text.split("\n", line)[line - 2 : line]
        indents = [len(part) - len(part.lstrip(" ")) for part in (before, here)]
        if indents[0] < indents[1] and re.search(r":\s+[^\s#]", before):
            runs_on = f"goes on in line {line}, which looks like a mapping"
            said = f"the value that begins here {runs_on}: {said}"
            line -= 1
    return fault(file, line, f"not YAML: {said}", "mend the file")


class _Builder:
    """Builds the value of one document, event after event."""

    def __init__(self, file: str, values: int = 0, aliased: int = 0):
        self.file, self.values, self.aliased = file, values, aliased
        self.result: Any = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}

    def take(self, event: Any) -> None:
        """Add one event."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._count(event)
            value = event.value
            if event.tag is not None or (event.implicit[0] and (not value or value[0] in _STARTS)):
                value = self._scalar(event)
            self._add(value, event, event.anchor, 1)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._open(event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._close(event)
        elif kind is yaml.AliasEvent:
            self._alias(event)

    def _count(self, event: Any) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._fault(
                event, f"more than {MAX_VALUES:,} values", "give JSON: kubectl get ... -o json"
            )

    def _open(self, event: Any) -> None:
        self._count(event)
        if len(self.stack) >= MAX_DEPTH:
            raise self._fault(event, "nested too deeply", f"legal: up to {MAX_DEPTH} levels")
        self._check_tag(event)
        is_map = type(event) is yaml.MappingStartEvent
        self.stack.append(_Open(is_map, event.anchor, self.values))

    def _close(self, event: Any) -> None:
        done = self.stack.pop()
        for merged in done.merges:  # keys of the mapping itself win, then the first merged
            for key, value in merged.items():
                done.value.setdefault(key, value)
        self._add(done.value, event, done.anchor, self.values - done.before + 1)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise self._fault(
                event,
                f"unknown or unfinished anchor {event.anchor[:40]!r}",
                "an alias names an anchor that is complete before it",
            )
        value, size = self.anchors[event.anchor]
        self.aliased += size
        self.values += size
        if self.aliased > MAX_ALIASED:
            raise self._fault(
                event,
                f"aliases expand to more than {MAX_ALIASED:,} values",
                "write the file without aliases",
            )
        self._add(value, event, None, size)

    def _add(self, value: Any, event: Any, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = value, size
        if not self.stack:
            self.result = value
            return
        into = self.stack[-1]
        if not into.is_map:
            into.value.append(value)
        elif into.key is _NO_KEY:
            into.key = value if type(value) is str else self._key(value, event)
        else:
            key, into.key = into.key, _NO_KEY
            if key in into.value or key == "<<":
                self._put(into, key, value, event)
            else:
                into.value[key] = value

    def _key(self, value: Any, event: Any) -> Any:
        if isinstance(value, (dict, list)):
            raise self._fault(event, "a list or mapping as a key", "keys are texts")
        return (
            event.value if isinstance(event, yaml.ScalarEvent) else str(value)
        )  # such as the label key `on`

    def _put(self, into: _Open, key: str, value: Any, event: Any) -> None:
        if key == "<<" and isinstance(value, (dict, list)):
            merged = value if isinstance(value, list) else [value]
            if not all(isinstance(m, dict) for m in merged):
                raise self._fault(
                    event, "<< merges something that is no mapping", "merge mappings only"
                )
            into.merges.extend(merged)
            return
        if key in into.value:
            raise self._fault(event, f"the key {key[:60]!r} stands twice", "keep one of the two")
        into.value[key] = value

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            raise self._fault(event, f"the tag {event.tag[:80]!r}", "plain YAML has no tags")

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is not None:
            self._check_tag(event)
            if tag in _STRING_TAGS:
                return text
        elif not event.implicit[0]:
            return text
        if text and text[0] not in _STARTS:
            return text
        return self._plain(text, event)

    def _plain(self, text: str, event: Any) -> Any:
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _INTEGER.fullmatch(text):
            if len(text) > 40:
                raise self._fault(event, f"a number of {len(text)} digits", "use ordinary numbers")
            return _integer(text)
        if _FLOAT.fullmatch(text) and "." in text:
            number = float(text)
            if not math.isfinite(number):
                raise self._fault(
                    event, f"{text[:40]} is not a finite number", "use finite numbers only"
                )
            return (
                text if len(text) > 17 else number
            )  # the digits of a longer one matter where it is a quantity
        return text

    def _fault(self, event: Any, problem: str, remedy: str) -> DocumentError:
        return fault(self.file, event.start_mark.line + 1, problem, remedy)


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    if digits[:2] == "0x":
        return sign * int(digits[2:], 16)
    if len(digits) > 1 and digits[0] == "0":
        return sign * int(digits.replace("o", ""), 8)
    return sign * int(digits)


def line_of(text: str, file: str, document: int, steps: tuple[Any, ...]) -> int:
    """Return the line, from 1, of the value that `steps` lead to; of the last step that is there.

    Parameters
    ----------
    document : int
        Counted from 0 over the documents that `documents` returns.
    """
    line, known = 1, -1
    for number, path, is_key, here in _positions(text, file):
        if number > document:
            break
        if number == document and known <= len(path) <= len(steps) and path == steps[: len(path)]:
            line, known = here, len(path)
            if known == len(steps) and not is_key:
                break
    return line


def _positions(text: str, file: str) -> Iterator[tuple[int, tuple[Any, ...], bool, int]]:
    """Yield (document, steps to it, whether it is a key, line) of every key and value.

    Empty documents are not counted.
    """
    number, line, fresh = -1, 1, True
    path: list[
        Any
    ] = []  # for every open list or mapping, the index or the key of the value that is being read
    maps: list[bool] = []
    waiting: list[bool] = []  # whether a mapping has its key and waits for the value
    for event in events(text, file):
        if isinstance(event, yaml.DocumentStartEvent):
            fresh = True
        elif isinstance(event, yaml.CollectionEndEvent):
            path.pop(), maps.pop(), waiting.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        line = event.start_mark.line + 1 if event.start_mark else line
        if fresh:
            number += not (
                isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NULLS
            )
            fresh = False
        is_key = bool(maps) and maps[-1] and not waiting[-1]
        if is_key:
            path[-1] = event.value if isinstance(event, yaml.ScalarEvent) else None
        elif maps and not maps[-1]:
            path[-1] += 1
        if maps and maps[-1]:
            waiting[-1] = is_key
        yield number, tuple(path), is_key, line
        if isinstance(event, yaml.CollectionStartEvent):
            maps.append(isinstance(event, yaml.MappingStartEvent))
            path.append(None if maps[-1] else -1)
            waiting.append(False)


# -- items -----------------------------------------------------------------------------------------


#: Files may be so large.
MAX_JSON_BYTES, MAX_YAML_BYTES = 512 * 2**20, 128 * 2**20
#: Values of a JSON file, by its commas, counted before any is made: ``[],`` takes three bytes in
#: the file and sixty in memory.
MAX_JSON_VALUES = 20_000_000
#: JSON of people is looked through for keys that stand twice; larger files are of servers, which
#: write every key once.
STRICT_BYTES = 4 * 2**20
#: JSON documents behind each other in one file.
MAX_DOCUMENTS = 100_000
STDIN = "-"

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BRACKET = re.compile(rb"\s*[\[{]")
#: Objects: names of machines, pods, services. Labels: values such as a zone.
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
LABEL_KEY = re.compile(
    r"([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII
)

T = TypeVar("T")


class WrongError(ValueError):
    """What is wrong with a value that is being decoded, what is legal, and the steps to it."""

    def __init__(self, problem: str, remedy: str, *steps: Any):
        super().__init__(problem)
        self.problem, self.remedy, self.steps = problem, remedy, steps


# -- where a value stands --------------------------------------------------------------------------


class Source:
    """A file that was read, or stdin, whose bytes are kept."""

    def __init__(self, path: str, kept: bytes | None = None):
        self.path, self.kept, self.is_yaml = path, kept, False
        self.file = "<stdin>" if path == STDIN else path

    def raw(self) -> bytes:
        """Return the bytes of the file.

        Raises
        ------
        DocumentError
            The file cannot be read, or is too large.
        """
        return _bytes(self.path) if self.kept is None else self.kept


class _Part(NamedTuple):
    """One of several documents of a file: its number, the lines before it, where it stands."""

    number: int = 0
    before: int = 0
    start: int = 0
    end: int | None = None


class Place:
    """Where a value stands: its file, its document, the keys and indices to it.

    All places are equal, as they say nothing of what stands there.
    """

    __slots__ = ("part", "source", "steps")

    def __init__(self, source: Source, part: _Part | None = None, steps: tuple[Any, ...] = ()):
        self.source, self.part, self.steps = source, part or _Part(), steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place)

    def __hash__(self) -> int:
        return 0

    @classmethod
    def read(cls, value: object) -> Place:
        """Refuse to be read from a file."""
        raise WrongError("no field of Kubernetes", "take it away")

    def at(self, *steps: Any) -> Place:
        """Return the place of a value that is inside."""
        return Place(self.source, self.part, (*self.steps, *steps))

    @property
    def line(self) -> int:
        """The line of the file, from 1."""
        try:
            text = without_logs(self.source.raw()).decode("utf-8-sig")
        except (DocumentError, UnicodeDecodeError):  # it is no longer there
            return 1
        if self.source.is_yaml:
            return line_of(text, self.source.file, self.part.number, self.steps)
        try:
            return self.part.before + json_line(text[self.part.start : self.part.end], self.steps)
        except (ValueError, IndexError, RecursionError):
            return self.part.before + 1

    def fault(self, problem: str, remedy: str, *steps: Any) -> DocumentError:
        """Return the error that names the file, the line and the path of a value inside."""
        if steps:
            return self.at(*steps).fault(problem, remedy)
        if not self.source.file:
            return DocumentError(problem, remedy=remedy)
        path = ""
        for step in self.steps:
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        where = f"line {self.line}" + (f", {shown(path.lstrip('.'), 200)[1:-1]}" if path else "")
        return DocumentError(problem, file=self.source.file, path=where, remedy=remedy)


#: Of what stands in no file.
NOWHERE = Place(Source("", b""))


def shown(value: Any, maximum: int = 60) -> str:
    """Return a value for a message: on one line, in ASCII where it is odd, and short."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else repr(value)
    return text if len(text) <= maximum else text[: maximum - 4] + "..." + text[-1]


# -- documents -------------------------------------------------------------------------------------


class Item:
    """A document, or an object of a list: its bytes as JSON, and where it stands."""

    __slots__ = ("group", "kind", "place", "raw")

    def __init__(self, raw: Any, place: Place):
        self.raw, self.place, self.kind = raw, place, ""
        self.group: str | None = None

    def decode(self, form: type[T]) -> T:
        """Return the item as a struct.

        Fields that are null count as absent.

        Raises
        ------
        DocumentError
            A value is of the wrong kind.
        """
        decoder: msgspec.json.Decoder[T] = _decoder(form)
        try:
            return decoder.decode(self.raw)
        except msgspec.ValidationError:
            value = _without_nulls(msgspec.json.decode(self.raw))
        try:
            return decoder.decode(json.dumps(value))
        except msgspec.ValidationError as error:
            wrong = _wrong(error, value)
            raise self.place.fault(wrong.problem, wrong.remedy, *wrong.steps) from None

    def begins(self, text: bytes) -> bool:
        """Return whether its bytes begin so."""
        return bytes(memoryview(self.raw)[: len(text)]) == text


def _whole(raw: bytes, place: Place) -> Item:
    """Return a document, of bytes that are nothing else."""
    return Item(msgspec.json.decode(raw, type=msgspec.Raw), place)


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a struct, made once."""
    if form not in _DECODERS:
        _DECODERS[form] = msgspec.json.Decoder(form, dec_hook=_made)
    return _DECODERS[form]


def _made(form: Any, value: object) -> Any:
    """Make a value of a class of ours, which reads plain values by itself."""
    return form.read(value)


def converted(value: Any, form: type[T]) -> T:
    """Return plain values as a struct.

    Raises
    ------
    WrongError
    """
    try:
        return msgspec.convert(value, form, dec_hook=_made)
    except msgspec.ValidationError as error:
        raise _wrong(error, value) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(own) for key, own in value.items() if own is not None}
    return [_without_nulls(own) for own in value] if isinstance(value, list) else value


_STEP = re.compile(r"\.([^.\[\]`]+)|\[(\d+|\.\.\.)\]")
_SAID = re.compile(r"Expected `(.+?)`(?:, got `(\w+)`| ([<>]=) ([-\d.]+))?")
#: What messages call kinds of values, and what to do.
_KINDS = {
    "str": ("a text", "give a text, in quotes if it looks like a number"),
    "object": ("a mapping", "give a mapping"),
    "array": ("a list", "give a list"),
    "bool": ("true or false", "give true or false"),
}
_TYPES = {"str": str, "object": dict, "array": list, "bool": bool, "int": int, "float": float}


def _wrong(error: msgspec.ValidationError, value: Any) -> WrongError:
    """Return what is wrong in words of ours, with the steps to it."""
    message, cause = str(error), error.__cause__
    said, _, path = message.partition(" - at `$")
    found = _SAID.match(said)
    steps, value = _walk(value, _STEP.findall(path), found[2] if found else None)
    if isinstance(cause, WrongError):
        return WrongError(cause.problem, cause.remedy, *steps, *cause.steps)
    if found is None:
        missing = re.search("required field `(.+)`", said)
        problem = f"no {missing[1]}" if missing else said[:200]
        return WrongError(problem, "give it" if missing else "mend it", *steps)
    kind, sign, bound = found[1].removesuffix(" | null"), found[3], found[4]
    if kind in _KINDS and found[2]:
        what, remedy = _KINDS[kind]
        return WrongError(f"{shown(value)} where {what} is expected", remedy, *steps)
    if "matching regex" in said:
        legal = "legal: lower-case letters, digits, - and ., up to 253"
        return WrongError(f"{shown(value)} is no name of Kubernetes", legal, *steps)
    which = "a whole number" if kind == "int" else "a number"
    if kind not in ("int", "float"):
        which = " or ".join(_KINDS.get(k, ("a number",))[0] for k in kind.split(" | "))
    limit = {"<=": ", at most ", ">=": ", at least "}.get(sign or "", "")
    legal = f"{float(bound):,.15g}" if limit else ""
    return WrongError(f"{shown(value)} is not legal", f"legal: {which}{limit}{legal}", *steps)


def _walk(value: Any, path: list[tuple[str, str]], got: str | None) -> tuple[list[Any], Any]:
    """Return the steps of a path of msgspec, and the value there.

    ``[...]`` is any key of a mapping: the first whose value is of the kind that was `got`.
    """
    if not path:
        return [], value
    (key, index), *rest = path
    if index == "...":
        tries = [(k, *_walk(inner, rest, got)) for k, inner in dict(value).items()]
        kind = _TYPES.get(got or "", object)
        hits = [(k, steps, end) for k, steps, end in tries if type(end) is kind or kind is object]
        k, steps, end = (hits or tries)[0]
        return [k, *steps], end
    step: Any = key or int(index)
    try:
        inner = value[step]
    except (KeyError, IndexError, TypeError):
        return [step], None
    steps, end = _walk(inner, rest, got)
    return [step, *steps], end


# -- reading ---------------------------------------------------------------------------------------


def read(path: AnyPath) -> list[Item]:
    """Return the documents of a file, of stdin for ``-``.

    Raises
    ------
    DocumentError
        The file cannot be read, is too large, or is neither JSON nor YAML; the line is named.
    """
    raw = _bytes(str(path))
    source = Source(str(path), raw if str(path) == STDIN else None)
    count = len(raw)
    raw = without_logs(_as_utf8(raw, source.file))
    if _BRACKET.match(raw) and (documents := _json(raw, source)) is not None:
        return documents
    text = raw.decode()
    _no_control(text, source.file)
    if count > MAX_YAML_BYTES:
        raise DocumentError(
            f"more than {MAX_YAML_BYTES // 2**20} MiB of YAML",
            file=source.file,
            remedy="give JSON: kubectl get ... -o json",
        )
    source.is_yaml = True
    values = yaml_documents(text, source.file)
    return [
        _whole(json.dumps(value).encode(), Place(source, _Part(k)))
        for k, value in enumerate(values)
    ]


def _no_control(text: str, file: str) -> None:
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise fault(file, line, f"the control character {control[0]!a}", "give a text file")


def _bytes(path: str) -> bytes:
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
    return bytes(raw)


def _as_utf8(raw: bytes, file: str) -> bytes:
    """Return bytes that are UTF-8, without the mark of it; no text is made of all of them."""
    check, at, step = codecs.getincrementaldecoder("utf-8")(), 0, 2**20
    for at in range(0, 0 if raw.isascii() else len(raw), step):
        try:
            check.decode(raw[at : at + step], at + step >= len(raw))
        except UnicodeDecodeError as error:
            wrong = max(0, at + error.start - (len(error.object) - len(raw[at : at + step])))
            line = raw.count(b"\n", 0, wrong) + 1
            raise fault(
                file, line, f"byte {wrong} is not UTF-8", "save the file as UTF-8"
            ) from None
    return raw.removeprefix(codecs.BOM_UTF8)


def _json(raw: bytes, source: Source) -> list[Item] | None:
    """Return a JSON document, or several behind each other; None where the text is rather YAML.

    Such YAML begins with a brace.
    """
    if raw.count(b",") > MAX_JSON_VALUES:
        raise fault(
            source.file,
            1,
            f"more than {MAX_JSON_VALUES:,} values",
            "name fewer resources, or split the file",
        )
    if len(raw) > STRICT_BYTES:
        try:
            return [_whole(raw, Place(source))]
        except (msgspec.DecodeError, RecursionError):
            pass  # what is wrong, and on which line, is known to the reader below
    text = raw.decode()
    try:
        parse_json(text)
    except DocumentError as error:
        return _parts_of(text, source, error)
    return [_whole(raw, Place(source))]


def _parts_of(text: str, source: Source, error: DocumentError) -> list[Item] | None:
    """Return several JSON documents of a text which is not one, as the error says; None for YAML.

    Raises
    ------
    DocumentError
        It is not JSON; the line is named.
    """
    if not error.problem.startswith("not JSON"):
        line = _line_of_fault(text, source.file, error.problem)
        raise fault(source.file, line, error.problem, "mend the file") from None
    if error.problem.startswith("not JSON: Extra data") and (parts := _parts(text)):
        if len(parts) > MAX_DOCUMENTS:
            problem = f"more than {MAX_DOCUMENTS:,} JSON documents"
            line = parts[-1].before + 1
            raise fault(source.file, line, problem, "give one list") from None
        return [_item(text, source, part) for part in parts]
    if not re.match(r'\s*[\[{]\s*["\[{]', text):
        return None
    raise _not_json(source.file, error) from None


def _not_json(file: str, error: DocumentError, before: int = 0) -> DocumentError:
    result = re.search(r"line (\d+)", error.problem)
    line = before + (int(result[1]) if result else 1)
    return fault(file, line, error.problem, "give complete JSON documents")


def _item(text: str, source: Source, part: _Part) -> Item:
    """Return one of several JSON documents."""
    own = text[part.start : part.end]
    try:
        parse_json(own)
    except DocumentError as error:
        if error.problem.startswith("not JSON"):
            raise _not_json(source.file, error, part.before) from None
        line = part.before + _line_of_fault(own, source.file, error.problem)
        raise fault(source.file, line, error.problem, "mend the file") from None
    return _whole(own.encode(), Place(source, part))


def _parts(text: str) -> list[_Part]:
    """Return where each of several JSON documents stands.

    They stand behind each other, as kubectl prints a stream; none where something else does, and
    one more than `MAX_DOCUMENTS` at most.
    """
    results: list[_Part] = []
    lines, last, at = 0, 0, after_space(text, 0)
    while at < len(text) and len(results) <= MAX_DOCUMENTS:
        if text[at] not in "{[":
            return []
        try:
            _, end = decode_at(text, at)
        except (ValueError, RecursionError):
            return []
        lines += text.count("\n", last, at)
        results.append(_Part(len(results), lines, at, end))
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
        yaml_documents(text[:MAX_YAML_BYTES], file)
    except DocumentError as error:
        return int((error.path or "line 1").split()[1])
    return 1


# -- folders and dumps of kubectl cluster-info -----------------------------------------------------


#: Files of a folder that are read, by the end of their names, and how many there may be.
_READ, _MAX_FILES = (".json", ".yaml", ".yml"), 20_000
_START = b"==== START logs for container "
_LOG = re.compile(
    rb"^" + _START + rb"(?P<which>.*) ====\n.*?==== END logs for container (?P=which) ====$",
    re.DOTALL | re.MULTILINE,
)


def without_logs(raw: bytes) -> bytes:
    """Return a dump of ``kubectl cluster-info dump`` without logs; its lines keep their numbers."""
    if _START not in raw:
        return raw
    return _LOG.sub(lambda log: b"\n" * log[0].count(b"\n"), raw)


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
