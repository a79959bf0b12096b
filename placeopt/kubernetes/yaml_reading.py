"""YAML without surprises: plain values built from the events of libyaml, within limits.

The limits are on depth, size and aliases.

Only strings, numbers, booleans, nulls, lists and mappings come out, whatever tags a file has; a tag
that asks for anything else is
refused. Aliases are followed as long as what they would expand to stays small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from placeopt.core.errors import DocumentError, fault

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


def documents(text: str, file: str) -> list[Any]:
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
