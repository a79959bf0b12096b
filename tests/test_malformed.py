"""Malformed instances: whatever is wrong, one message with file, path and remedy, exit code 2, and
no traceback.

The files are made by breaking a generated instance of every problem in every place, so that a new
problem is covered as soon as it is listed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forks
import pytest

from placeopt import cli, registry
from placeopt.core.errors import DocumentError
from placeopt.registry import problem_class, specs

Step = str | int
Case = tuple[
    str, Any, Step | None
]  # (what was done, the document, a name that the message must hold)


def generated(kind: str) -> dict[str, Any]:
    return problem_class(kind).generate(1).to_document()


def places(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield every value below `value` with its path; of the records of a list only the second, of a
    map only the first.
    """
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in list(value.items()) if is_record(value) else list(value.items())[:1]:
            yield from places(inner, (*path, key))
    elif isinstance(value, list) and value:
        k = min(1, len(value) - 1)
        yield from places(value[k], (*path, k))


def is_record(value: dict[str, Any]) -> bool:
    """Whether keys are fields rather than the user's own names."""
    return not (
        value
        and len({type(v) for v in value.values()}) == 1
        and isinstance(next(iter(value.values())), (dict, float, int))
    )


def changed(document: Any, path: tuple[Step, ...], change: Callable[[Any, Step], None]) -> Any:
    """Return a copy in which `change(container, key)` was done at `path`."""
    broken = copy.deepcopy(document)
    container = broken
    for step in path[:-1]:
        container = container[step]
    change(container, path[-1])
    return broken


def put(value: Any) -> Callable[[Any, Step], None]:
    def change(container: Any, key: Step) -> None:
        container[key] = value

    return change


def field(path: tuple[Step, ...]) -> Step:
    return [step for step in path if isinstance(step, str)][-1]


# -- the ways to break a document ------------------------------------------------------------------


def wrong_types(document: Any) -> Iterator[Case]:
    """A value of every other type; null is left out, for it may mean absent."""
    for path, value in places(document):
        for other in ("text", 7.5, True, [1], {"x": 1}):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if type(other) is not type(value) and not (number and other == 7.5):
                yield f"{path} = {other!r}", changed(document, path, put(other)), field(path)


def bad_numbers(document: Any) -> Iterator[Case]:
    """Negative, not a number, infinite, beyond all measure."""
    for path, value in places(document):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            for number in (-1, -0.5, float("nan"), float("inf"), 1e300, 10**30):
                yield f"{path} = {number}", changed(document, path, put(number)), field(path)


def missing_fields(document: Any) -> Iterator[Case]:
    """Every field without which the exported schema refuses the document."""
    jsonschema = pytest.importorskip("jsonschema")
    legal = jsonschema.Draft202012Validator(
        problem_class(document["problem"]).model_json_schema(by_alias=True)
    ).is_valid
    for path, _ in places(document):
        broken = changed(document, path, lambda container, key: container.__delitem__(key))
        if isinstance(path[-1], str) and (path == ("problem",) or not legal(broken)):
            yield f"without {path}", broken, path[-1]


def unknown_fields(document: Any) -> Iterator[Case]:
    """One more in every record."""
    for path, value in [((), document), *places(document)]:
        if isinstance(value, dict) and is_record(value):
            target = (*path, "bogus")
            yield f"{target} added", changed(document, target, put(1)), "bogus"


def empty_and_long_names(document: Any) -> Iterator[Case]:
    """Of everything that has one."""
    for path, _ in places(document):
        if path[-1] == "name":
            for name in ("", "x" * 300):
                yield f"{path} = {name[:3]!r}...", changed(document, path, put(name)), "name"


def doubles(document: Any) -> Iterator[Case]:
    """The same record twice in every list of named records."""
    for path, value in places(document):
        if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
            yield (
                f"{path} doubled",
                changed(document, path, put([*value, value[0]])),
                value[0]["name"],
            )


def other_documents(document: Any) -> Iterator[Case]:
    """Not an instance at all, or of no problem that is known."""
    for other in (None, 3, "text", [], [document], {}):
        yield f"{str(other)[:20]} instead", other, None
    for kind in ("", "temporall", 5, None, ["temporal"]):
        yield f"problem {kind!r}", document | {"problem": kind}, "problem"


STRUCTURES = (
    wrong_types,
    bad_numbers,
    missing_fields,
    unknown_fields,
    empty_and_long_names,
    doubles,
    other_documents,
)


def spoilt_texts(document: Any) -> Iterator[tuple[str, bytes]]:
    """Files that are no JSON, or not the JSON that is meant."""
    text = json.dumps(document)
    for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999):
        yield f"cut at {share:.1%}", text[: int(share * len(text))].encode()
    yield "a key twice", text.replace('"name"', '"name": "x", "name"', 1).encode()
    yield "a key of a record twice", text.replace('[{"name"', '[{"name": "x", "name"', 1).encode()
    yield "two documents", (text + text).encode()
    yield "trailing comma", (text[:-1] + ",}").encode()
    yield "comments", ("// mine\n" + text).encode()
    yield "single quotes", text.replace('"', "'").encode()
    yield "UTF-16", text.encode("utf-16")
    yield "Latin-1", text.replace('"name": "', '"name": "\xe9', 1).encode("latin-1")
    yield "a NUL", text.encode().replace(b'"name"', b'"na\0me"', 1)
    yield "5000 digits", text.replace('"name"', '"big": ' + "9" * 5000 + ', "name"', 1).encode()
    yield "half a surrogate pair", text.replace('"name": "', '"name": "\\ud800', 1).encode()
    yield "10 MB of brackets", b"[" * 10_000_000
    yield "10 MB of braces", b'{"a":' * 2_000_000
    yield "spaces only", b" \n" * 10
    yield "bytes", bytes(range(256))


# -- what must come of it --------------------------------------------------------------------------


def said_of(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Check a file in this process, as the command line does; return the one message."""
    with pytest.raises(SystemExit) as end:
        cli.main(["check", str(path)])
    out, err = capsys.readouterr()
    assert end.value.code == 2 and out == ""
    assert err.count("\n") == 1 and "Traceback" not in err, err
    assert err.startswith(f"error: {path}: "), err
    assert "; " in err, f"no remedy: {err}"
    assert len(err) < 1500, err
    return err


@pytest.mark.parametrize("breaker", STRUCTURES, ids=lambda breaker: breaker.__name__)
@pytest.mark.parametrize("kind", specs())
def test_malformed_documents(
    kind: str,
    breaker: Callable[[Any], Iterator[Case]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message holds the name of what is wrong, within a path."""
    count = 0
    for k, (what, document, named) in enumerate(breaker(generated(kind))):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(document))
        said = said_of(path, capsys)
        assert named is None or str(named)[:50] in said, f"{what}: {said}"
        count += 1
    assert count >= 1


@pytest.mark.parametrize("kind", specs())
def test_spoilt_texts(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the bytes."""
    for k, (_, text) in enumerate(spoilt_texts(generated(kind))):
        path = tmp_path / f"{k}.json"
        path.write_bytes(text)
        said_of(path, capsys)
        path.unlink()


@pytest.mark.parametrize("kind", specs())
def test_texts_in_place_of_texts_never_crash(kind: str, tmp_path: Path) -> None:
    """A name that nothing has is an error or, where any name will do, legal."""
    document = generated(kind)
    for place, value in places(document):
        if isinstance(value, str):
            (tmp_path / "x.json").write_text(json.dumps(changed(document, place, put("nowhere"))))
            try:
                registry.read(tmp_path / "x.json").infeasibility()
            except DocumentError as error:
                assert "nowhere" in str(error) and error.path and error.remedy, error


def test_unknown_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A request from a place without latencies."""
    document = generated("temporal")
    document["requests"][3]["origin"] = "eu-south-11"
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert (
        "requests[3].origin: unknown origin 'eu-south-11'; did you mean 'eu-south-1'? legal: "
        in said_of(tmp_path / "x.json", capsys)
    )


def test_paths_that_are_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder, nothing, a file in a file."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "none.json", tmp_path / "file" / "x.json"):
        said_of(path, capsys)


def test_there_are_enough() -> None:
    """At least 200 malformed files of every problem."""
    for kind in specs():
        document = generated(kind)
        assert (
            sum(1 for breaker in STRUCTURES for _ in breaker(document))
            + sum(1 for _ in spoilt_texts(document))
            >= 200
        ), kind


@pytest.mark.parametrize(
    "text",
    ["", '{"problem": "temporal"', "[" * 1000, '{"problem": "temporal", "name": NaN}', "\xff\xfe"],
)
def test_as_a_user_runs_it(tmp_path: Path, text: str) -> None:
    """In a process of its own: exit code 2, one line on stderr, nothing on stdout."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="latin-1")
    done = forks.placeopt("check", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"error: {path}: ")
