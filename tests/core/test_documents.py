"""Documents: strict reading, atomic writing, messages that say where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import (
    layout,
    parse_json,
    read_json,
    sha256,
    validate,
    write_json,
    write_parts,
    write_text,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"x": [{}, {"a": 1, "a": 2}]}',
            r"^x\[1\]: the key 'a' stands twice; keep one of the two",
        ),
        ('{"x": [0, {"a": NaN}]}', r"^x\[1\]\.a: NaN is not a finite number"),
        ('{"a": -Infinity}', "^a: -Infinity is not a finite number"),
        ('{"a": {"b": 1e999}}', "^a.b: 1e999 is not a finite number"),
        ('{"a": ', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5000, "a number cannot be read"),
        ('{"a": "\\ud800"}', "^a: a text holds half of a surrogate pair"),
        ('{"a": "\\ud83d\\ude00", "b": 1, "b": 2}', "'b' stands twice"),
        ('{"\\udc00": 1}', "half of a surrogate pair"),
    ],
)
def test_what_json_leaves_open_is_refused(text: str, said: str) -> None:
    """Each in one line, with a remedy."""
    with pytest.raises(DocumentError, match=said) as caught:
        parse_json(text)
    assert caught.value.remedy and "\n" not in str(caught.value)


def test_reading_names_the_file(tmp_path: Path) -> None:
    """Whatever is wrong with it."""
    (tmp_path / "latin.json").write_bytes(b'{"name": "caf\xe9"}')
    (tmp_path / "broken.json").write_text("{")
    for name, said in (
        ("none.json", "No such file"),
        ("latin.json", "byte 13 is not UTF-8"),
        ("broken.json", "not JSON"),
        (".", "directory"),
    ):
        with pytest.raises(DocumentError, match=said) as caught:
            read_json(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name))


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    """Some editors write one."""
    (tmp_path / "bom.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "bom.json") == {"a": 1}


@given(JSON)
def test_layout_is_the_same_document(value: Any) -> None:
    """The text for people parses to what was laid out."""
    assert json.loads(layout(value)) == value


def plain_layout(value: Any, indent: str = "", key: str = "") -> str:
    """Lay out a document by its definition: every value is written anew at every depth."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list, tuple)) or not value:
        return line
    inner = list(value.values() if isinstance(value, dict) else value)
    width = 120 if any(isinstance(v, (dict, list, tuple)) for v in inner) else 300
    if len(indent) + len(key) + len(line) <= width:
        return line
    heads = [json.dumps(k, ensure_ascii=False) + ": " for k in value]
    heads = heads if isinstance(value, dict) else [""] * len(inner)
    parts = [h + plain_layout(v, indent + " ", h) for h, v in zip(heads, inner, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{indent} " + f",\n{indent} ".join(parts) + f"\n{indent}{closing}"


@given(JSON, st.integers(1, 60), st.integers(1, 400))
def test_layout_is_what_its_definition_says(value: Any, times: int, length: int) -> None:
    """The same bytes: of documents of any width, of records near 300 and 120 characters."""
    wide = {"many": [value] * times, "k" * (length // 3): "x" * length, "deep": [[{"a": value}]]}
    for document in (value, wide, [wide, {"plain": "ü" * length, "n": times, "e": []}]):
        assert layout(document) == plain_layout(document)


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, [object()], {"a": {1, 2}}])
def test_layout_refuses_what_json_cannot_hold(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        layout(value)


def test_layout_keeps_a_record_on_a_line() -> None:
    """A record of plain values is one line, even a long one; what does not fit is broken."""
    record = {f"field_{k}": k for k in range(12)}
    text = layout({"name": "x", "records": [record, record]})
    assert text.splitlines() == [
        "{",
        ' "name": "x",',
        ' "records": [',
        f"  {json.dumps(record)},",
        f"  {json.dumps(record)}",
        " ]",
        "}",
    ]


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_sha256_does_not_depend_on_order_or_layout(document: dict[str, Any]) -> None:
    """The canonical form has sorted keys."""
    backwards = dict(reversed(document.items()))
    assert sha256(document) == sha256(backwards) == sha256(json.loads(layout(document)))


def test_write_json_round_trip(tmp_path: Path) -> None:
    """The same document comes back, with the permissions of any new file."""
    write_json(tmp_path / "d.json", {"a": [1, {"ü": None}]})
    assert read_json(tmp_path / "d.json") == {"a": [1, {"ü": None}]}
    (tmp_path / "plain").touch()
    assert (tmp_path / "d.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.json", "plain"]


def test_writing_where_it_is_impossible_says_so(tmp_path: Path) -> None:
    """No such folder, a folder of that name."""
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "d.json", tmp_path / "folder"):
        with pytest.raises(DocumentError, match="cannot write"):
            write_text(path, "x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_failure_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    """The new text is written aside; nothing is left of it."""
    write_text(tmp_path / "d.json", "old")

    def parts():
        yield b"half of the new"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_parts(tmp_path / "d.json", parts())
    assert (tmp_path / "d.json").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_in_the_middle_of_writing_leaves_the_old_file(tmp_path: Path) -> None:
    """Killed between two parts, the process leaves the old file whole."""
    target = tmp_path / "front.json"
    target.write_text('{"old": true}')
    script = (
        "import sys, time\nfrom placeopt.core.files.documents import write_parts\n"
        "def parts():\n yield b'x' * 1_000_000\n print('half', flush=True)\n"
        " time.sleep(60)\n yield b'y'\n"
        f"write_parts({str(target)!r}, parts())"
    )
    writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None and writer.stdout.readline() == "half\n"
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(10)
    assert json.loads(target.read_text()) == {"old": True}


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    """While one process rewrites a file again and again, every reading of it is whole."""
    target = tmp_path / "d.json"
    write_json(target, {"n": -1, "filler": ["x"] * 5_000})
    script = (
        "from placeopt.core.files.documents import write_json\n"
        f"for n in range(20):\n write_json({str(target)!r}, {{'n': n, 'filler': ['x'] * 5_000}})"
    )
    writer = subprocess.Popen([sys.executable, "-c", script])
    seen = set()
    while writer.poll() is None:
        document = read_json(target)
        assert len(document["filler"]) == 5_000
        seen.add(document["n"])
        time.sleep(0.001)
    assert writer.returncode == 0 and read_json(target)["n"] == 19 and len(seen) > 1


class Inner(BaseModel):
    """A record."""

    model_config = ConfigDict(extra="forbid")
    size: Annotated[int, Field(strict=True, ge=1)]
    where: str | None = Field(None, alias="from")


class Outer(BaseModel):
    """A document."""

    model_config = ConfigDict(extra="forbid")
    rows: tuple[Inner, ...]
    table: dict[str, dict[str, float]] = {}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"rows": [{"size": 1}, {"size": 0}]},
            "rows[1].size: 0 is not legal; legal: greater than or equal to 1",
        ),
        ({"rows": [{"size": True}]}, "rows[0].size: True is not legal; legal: a valid integer"),
        ({"rows": [{}]}, "rows[0].size: this field is missing; add it"),
        (
            {"rows": [{"size": 1, "form": "x"}]},
            "rows[0].form: unknown field 'form'; did you mean 'from'? legal: size, from",
        ),
        (
            {"row": []},
            "row: unknown field 'row'; did you mean 'rows'? legal: rows, table (and 1 more)",
        ),
        (
            {"rows": [], "table": {"a": {"b": "x"}}},
            "table.a.b: 'x' is not legal; "
            "legal: a valid number, unable to parse string as a number",
        ),
        ({"rows": 7}, "rows: 7 is not legal; legal: a valid tuple"),
    ],
)
def test_validation_names_path_value_and_remedy(document: Any, said: str) -> None:
    """In one sentence, starting with the file."""
    with pytest.raises(DocumentError) as caught:
        validate(Outer, document, file="f.json")
    assert str(caught.value) == f"f.json: {said}"
