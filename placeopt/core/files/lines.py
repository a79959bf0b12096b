"""On which line of a JSON text a value stands; looked up only where something is wrong."""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecoder
from typing import Any

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import parse_json, read_text
from placeopt.core.files.paths import AnyPath

#: (text, where a value begins) -> (the value, where it ends).
decode_at = JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")


def with_line(error: DocumentError, path: AnyPath) -> DocumentError:
    """Return an error about a value of a JSON file with the line on which the value stands."""
    steps = tuple(
        int(part) if part.isdecimal() else part
        for part in re.findall(r"[^.\[\]]+", error.path or "")
    )
    try:
        text = read_text(path, "JSON")
        parse_json(text)
    except DocumentError:
        return error.in_file(str(path))
    return DocumentError(
        error.problem,
        file=str(path),
        path=f"line {json_line(text, steps)}" + (f", {error.path}" if error.path else ""),
        remedy=error.remedy,
    )


def json_line(text: str, steps: tuple[Any, ...]) -> int:
    """Return the line of a value of a JSON text that parses; of the last step that is there.

    Parameters
    ----------
    text : str
    steps : tuple
        Keys and indices from the document to the value.
    """
    at = after_space(text, 0)
    for step in steps:
        inside = _member(text, at, step)
        if inside is None:
            break
        at = inside
    return text.count("\n", 0, at) + 1


def after_space(text: str, at: int) -> int:
    """Return where the next value begins, from `at` on."""
    result = _SPACE.match(text, at)
    return result.end() if result else at


def _member(text: str, at: int, step: Any) -> int | None:
    """Return where the value of a key or index begins inside the value that begins at `at`."""
    is_map, count = text[at] == "{", 0
    if text[at] not in "{[":
        return None
    at = after_space(text, at + 1)
    while text[at] not in "}]":
        key: Any = count
        if is_map:
            key, at = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
            at = after_space(text, after_space(text, at) + 1)
        if key == step:
            return at
        _, at = decode_at(text, at)
        at = after_space(text, at)
        if text[at] == ",":
            at = after_space(text, at + 1)
        count += 1
    return None
