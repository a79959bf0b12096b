"""JSON documents: read strictly, written aside and renamed, known by their SHA-256."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from json.decoder import JSONDecoder
from typing import Any, get_type_hints

from placeopt.core.errors import DocumentError, did_you_mean, fault
from placeopt.core.files.paths import AnyPath, checked_path, read_bytes, write_parts

#: What an object of a JSON or YAML file is in Python.
Document = dict[str, Any]


def read_json(path: AnyPath) -> Any:
    """Read one JSON document, refusing what JSON leaves to the reader.

    Duplicate keys, ``NaN``, infinities, nesting too deep to hold and text that is not UTF-8 are
    errors.

    Raises
    ------
    DocumentError
        Names the file and what to do.
    """
    file, text = checked_path(path), read_text(path, "JSON")
    try:
        return parse_json(text)
    except DocumentError as error:
        if file.lower().endswith((".yaml", ".yml")):
            remedy = "manifests become instances by `placeopt import kubernetes`"
            raise DocumentError(
                "YAML, where a JSON document of placeopt is wanted", file=file, remedy=remedy
            ) from None
        raise error.in_file(file) from None


def read_text(path: AnyPath, kind: str) -> str:
    """Return the text of a file of some kind, such as JSON.

    Raises
    ------
    DocumentError
        The file cannot be read, or is not UTF-8.
    """
    file = checked_path(path)
    try:
        content = read_bytes(path)
        return content.decode("utf-8-sig")
    except OSError as error:
        problem, remedy = error.strerror or str(error), f"give the path of a readable {kind} file"
        raise DocumentError(problem, file=file, remedy=remedy) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise fault(
            file, line, f"byte {error.start} is not UTF-8", "save the file as UTF-8"
        ) from None


def what_is(document: Any) -> str | None:
    """Return what a document of placeopt is, in words; None for anything else.

    Examples
    --------
    >>> what_is({"problem": "temporal"}), what_is({"format": "placeopt/front@1"}), what_is([])
    ('a temporal instance', 'a front', None)
    """
    if not isinstance(document, dict):
        return None
    form, problem = document.get("format"), document.get("problem")
    if isinstance(form, str) and form.startswith("placeopt/"):
        name = form.removeprefix("placeopt/").partition("@")[0][:40]
        return {
            "front": "a front",
            "steps": "exported steps",
            "origin": "an origin",
            "prices": "a book of prices",
        }.get(name, f"a {name} file")
    return f"a {problem[:40]} instance" if isinstance(problem, str) else None


def parse_json(text: str) -> Any:
    """Parse JSON text with the same strictness as `read_json`."""
    odd: list[tuple[Any, DocumentError]] = []  # found while parsing, when the path is not yet known

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        results = dict(pairs)
        if len(results) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            odd.append(
                (
                    results,
                    DocumentError(f"the key {twice!r} stands twice", remedy="keep one of the two"),
                )
            )
        return results

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            odd.append(
                (
                    value,
                    DocumentError(
                        f"{number[:40]} is not a finite number", remedy="use finite numbers only"
                    ),
                )
            )
        return value

    try:
        document = json.loads(
            text, object_pairs_hook=unique, parse_constant=finite, parse_float=finite
        )
        if "\\ud" in text.lower():
            odd += _halves(document)
        if odd:
            thing, error = odd[0]
            raise DocumentError(error.problem, path=_path_to(document, thing), remedy=error.remedy)
        return document
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise DocumentError(
            f"not JSON: {error.msg} at {where}", remedy="a document is one complete JSON object"
        ) from None
    except RecursionError:
        raise DocumentError(
            "nested too deeply", remedy="no placeopt document nests deeper than ten levels"
        ) from None
    except ValueError as error:  # an integer literal of thousands of digits
        raise DocumentError(
            f"a number cannot be read ({error})", remedy="use ordinary numbers"
        ) from None


def _halves(document: Any) -> list[tuple[Any, DocumentError]]:
    """Return the texts that hold half of a surrogate pair.

    JSON can escape it, but no UTF-8 file can hold it.
    """
    texts = [
        text
        for _, value in _walk(document, "")
        for text in (
            [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
        )
    ]
    error = DocumentError(
        "a text holds half of a surrogate pair", remedy="write characters, not \\uD800 to \\uDFFF"
    )
    return [
        (text, error)
        for text in texts
        if any("\ud800" <= character <= "\udfff" for character in text)
    ]


def _path_to(document: Any, thing: Any) -> str | None:
    return next((path for path, value in _walk(document, "") if value is thing), "") or None


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every value below `value`, itself first, with its JSON path."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{k}]")


def write_json(path: AnyPath, document: Any) -> None:
    """Write `document` as JSON, atomically, laid out as by `layout`."""
    write_text(path, layout(document) + "\n")


#: Lines of records of plain values, and of all else, are at most so long; a member takes 3 of it.
_RECORD_WIDTH, _WIDTH, _MIN_MEMBER = 300, 120, 3
_Nest = (dict, list, tuple)
#: Return JSON text without a break.
_on_a_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def layout(value: Any) -> str:
    """Return JSON text for people.

    A record of plain values is one line, and so is what fits 120 characters; the rest is broken.

    Examples
    --------
    >>> print(layout({"name": "tiny", "offers": [{"size": "small"}]}))
    {"name": "tiny", "offers": [{"size": "small"}]}
    """
    return _laid_out(value, "", 0)


def _laid_out(value: Any, indent: str, taken: int) -> str:
    """Return the text of a value behind an indent and `taken` more characters of its line."""
    if not isinstance(value, _Nest) or not value:
        return _on_a_line(value)
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    width = _RECORD_WIDTH
    for member in inner:
        if isinstance(member, _Nest):
            width = _WIDTH
            break
    if len(value) * _MIN_MEMBER <= width:  # else it is broken anyway
        line = _on_a_line(value)
        if len(indent) + taken + len(line) <= width:
            return line
    deeper = indent + " "
    if isinstance(value, dict):
        heads = [_on_a_line(str(key)) + ": " for key in value]
        parts = [h + _laid_out(v, deeper, len(h)) for h, v in zip(heads, inner, strict=True)]
    else:
        parts = [_laid_out(v, deeper, 0) for v in inner]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"


def write_text(path: AnyPath, text: str) -> None:
    """Write `text` aside and rename: a reader sees the old file or the new one, never a part."""
    write_parts(path, (text.encode("utf-8"),))


def sha256(document: Any) -> str:
    """Return the SHA-256 of the canonical form of a JSON document (sorted keys, no spaces)."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def validate(schema: Any, document: Any, *, file: str | None = None) -> Any:
    """Return `document` as an instance of the class `schema`: of pydantic, or a dataclass.

    Raises
    ------
    DocumentError
        Names the JSON path of the first fault, the value, and what is legal there.
    """
    from pydantic import ValidationError

    try:
        return adapter(schema).validate_python(document)
    except ValidationError as error:
        raise _translate(error, schema, file) from None
    except DocumentError as error:  # from a validator of the class itself
        raise error if file is None else error.in_file(file) from None


#: What pydantic calls a field that a class, or a dataclass, does not have.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


@cache
def adapter(schema: Any) -> Any:
    """Return what validates, and describes, a class of pydantic or a dataclass."""
    from pydantic import TypeAdapter

    return TypeAdapter(schema)


def _translate(error: Any, schema: Any, file: str | None) -> DocumentError:
    faults = error.errors(include_url=False)
    fault = next((f for f in faults if f["type"] in _UNKNOWN), faults[0])
    path, value = _json_path(fault["loc"]), _shown(fault["input"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    if fault["type"] in _UNKNOWN:
        problem, remedy = (
            f"unknown field {str(fault['loc'][-1])!r}",
            did_you_mean(str(fault["loc"][-1]), _siblings(schema, fault["loc"])),
        )
    elif fault["type"] == "missing":
        problem, remedy = "this field is missing", "add it"
    else:
        problem, remedy = f"{value} is not legal", _sentence(fault["msg"])
    return DocumentError(problem, file=file, path=path or None, remedy=remedy + more)


def _json_path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else (f".{step}" if path else str(step))
    return path


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split("\n"))
    return text if len(text) <= 60 else text[:57] + "..."


def _sentence(message: str) -> str:
    return "legal: " + (message[:1].lower() + message[1:]).removeprefix(
        "input should be "
    ).removeprefix("value error, ")


def _siblings(schema: Any, location: tuple[int | str, ...]) -> list[str]:
    """Return the legal field names beside the last step of `location`."""
    from typing import get_args

    for step in location[:-1]:
        if isinstance(step, int) or step not in _fields(schema):
            continue
        schema = _fields(schema)[step].annotation
        while get_args(schema):
            inner = [kind for kind in get_args(schema) if kind not in (type(None), Ellipsis, str)]
            if not inner:
                break
            schema = inner[-1]
    return [field.alias or name for name, field in _fields(schema).items()]


def _fields(schema: Any) -> dict[str, Any]:
    """Return the fields of a pydantic class or a dataclass; none of any other type."""
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_fields
    if not dataclasses.is_dataclass(schema):
        return {}
    hints = get_type_hints(schema)
    return {f.name: FieldInfo(annotation=hints[f.name]) for f in dataclasses.fields(schema)}


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
