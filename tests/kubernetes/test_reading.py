"""Files of others: read as PyYAML and json read them, with lines, in limits, never executed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hands import within
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError
from placeopt.kubernetes import files
from placeopt.kubernetes.files import Item, read
from placeopt.kubernetes.values import Count, Labels, Name, form

LETTERS = st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("Cc", "Zs"))
KEYS = st.text(alphabet=LETTERS, min_size=1, max_size=8).filter(lambda k: k != "<<")
ODD = st.sampled_from(["yes", "1e3", "0x1f", "1.5", "~", "on", "1:30"])
PLAIN = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12) | ODD
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def everywhere(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Return (steps, value) of all that is below a value."""
    found = [(steps, value)]
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else listed:
        found += everywhere(inner, (*steps, key))
    return found


@given(VALUES, st.booleans())
def test_yaml_reads_back(value: Any, flow: bool) -> None:
    """What PyYAML writes is read as PyYAML reads it, all but empty documents."""
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow)
    theirs = yaml.load(text, Loader=yaml.CSafeLoader)
    assert files.yaml_documents(text, "f") == ([] if theirs is None else [theirs])


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.sampled_from(["json", "yaml"]))
def test_every_value_knows_its_line(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], form: str
) -> None:
    """A mark in the place of a value is found on the line that is named, in YAML and in JSON."""
    for steps, _ in everywhere(value)[1:5]:
        marked = json.loads(json.dumps(value))
        holder = marked
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = "MARK-OF-THIS-VALUE"
        text = json.dumps(marked, indent=1)
        if form == "yaml":
            text = "---\nfirst: 1\n---\n" + yaml.safe_dump(marked, allow_unicode=True)
        path = tmp_path_factory.getbasetemp() / f"marked.{form}"
        path.write_text(text, encoding="utf-8")
        place = read(path)[-1].place.at(*steps)
        assert "MARK-OF-THIS-VALUE" in text.split("\n")[place.line - 1]


@pytest.mark.parametrize(
    "name", ["online-boutique.yaml", "sock-shop.yaml", "hotel-reservation.yaml"]
)
def test_manifests_read_as_pyyaml_reads_them(name: str, kubernetes_data: Path) -> None:
    """Value for value."""
    text = (kubernetes_data / "kubernetes" / name).read_text(encoding="utf-8")
    theirs = [d for d in yaml.safe_load_all(text) if d is not None]
    assert files.yaml_documents(text, name) == theirs


def value_of(item: Item) -> Any:
    """Return a document as plain values."""
    return json.loads(bytes(item.raw))


def refused(tmp_path: Path, text: str | bytes, name: str = "f.yaml") -> DocumentError:
    """Return the error for a file with this text, which must come soon and name file and line."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with within(0, 10), pytest.raises(DocumentError) as error:
        read(path)
    assert error.value.file == str(path), error.value
    assert (error.value.path or "").startswith("line "), error.value
    assert len(str(error.value)) < 600 and str(error.value).isprintable()
    return error.value


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        (LAUGHS, "aliases expand", 4),
        ("a: &a [*a]", "unfinished anchor", 1),
        ("x: *nobody", "anchor", 1),
        ("a: 1\nb: !!python/object/apply:os.system ['touch /tmp/pwned']", "tag", 2),
        ("a: !ruby/object:Gem {}", "tag", 1),
        ("a: 1\nb:\n  c: 1\n  c: 2", "twice", 4),
        ("[" * 500_000, "nested too deeply", 1),
        ("- " * 3000 + "a", "nested too deeply", 1),
        ("{" * 3000, "", 1),
        ('{"a": ' * 100_000, "", 1),
        ('{"a": 1,\n"a": 2}', "twice", 2),
        ('{"a": NaN}', "", 1),
        ('{"a":\n 1e999}', "finite", 2),
        ("a: 1.5e999", "finite", 1),
        ("a: " + "9" * 5000, "digits", 1),
        ('{"a": ' + "9" * 5000 + "}", "number", 1),
        ("a: \x00", "control", 1),
        ("a: 1\nb: \x1b[2J", "control", 2),
        ('{"a": "\x01"}', "control", 1),
        ("a: [1, 2\n", "not YAML", 2),
        ("a: b: c", "not YAML", 1),
        ("- workload: x\n    kind: y\n", "goes on in line 2", 1),
        ("? [1]\n: 2", "as a key", 1),
        ("a: 'x", "not YAML", 1),
        (b"a: \xff\xfe", "not UTF-8", 1),
        (b"x: 1\n" + "y".encode("utf-16"), "not UTF-8", 2),
        ("<<: 5\na: [\n", "", 1),
        ("%YAML 9.9\n---\na: 1", "", 1),
        ('{"a": "\\ud800"}', "surrogate", 1),
    ],
)
def test_hostile_files_are_refused_with_their_line(
    tmp_path: Path, text: str | bytes, says: str, line: int
) -> None:
    """In bounded time, with one short message."""
    error = refused(tmp_path, text)
    assert says in error.problem
    assert error.path is not None and (int(error.path.split(",")[0].split()[1]) == line or not says)
    assert not Path("/tmp/pwned").exists()


@pytest.mark.parametrize(
    "text", ["a: " + "x" * 50_000_000, '{"a": "' + "x" * 50_000_000 + '"}'], ids=["yaml", "json"]
)
def test_fifty_megabytes(tmp_path: Path, text: str) -> None:
    """In one line: read, soon."""
    (tmp_path / "large").write_text(text, encoding="utf-8")
    with within(0, 10):
        assert len(read(tmp_path / "large")) == 1


def test_too_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And too many bytes: the limits, made small."""
    monkeypatch.setattr(files, "MAX_VALUES", 1000)
    assert "more than 1,000 values" in refused(tmp_path, "a: [" + "1," * 2000 + "1]").problem
    monkeypatch.setattr(files, "MAX_JSON_VALUES", 1000)
    assert "more than 1,000 values" in refused(tmp_path, '{"a": [' + "[]," * 2000 + "[]]}").problem
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 1000)
    (tmp_path / "f").write_text("a" * 2000, encoding="utf-8")
    with pytest.raises(DocumentError, match="MiB"):
        read(tmp_path / "f")


def test_merge_keys_and_anchors(tmp_path: Path) -> None:
    """Small uses are legal: own keys win over merged ones."""
    path = tmp_path / "f.yaml"
    path.write_text(
        "base: &b {a: 1, b: 2}\nmine:\n  <<: *b\n  b: 3\nlist: [*b, *b]\n", encoding="utf-8"
    )
    assert value_of(read(path)[0])["mine"] == {"a": 1, "b": 3}


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n---\nb: 2\n")))
    assert [value_of(item) for item in read("-")] == [{"a": 1}, {"b": 2}]


def test_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    """A text where a list is expected, and the like, with path and line; odd characters too."""
    path = tmp_path / "f.yaml"
    path.write_text(
        'a:\n  b: "x"\n  n: -3\n  "\\e[2J": {}\n  t: "\\e[2J"\n  k: {one: {c: 1}, two: {c: x}}\n',
        encoding="utf-8",
    )
    item = read(path)[0]
    cases = [
        ({"b": [str]}, "line 2, a.b", "a list"),
        ({"b": {"c": str}}, "line 2, a.b", "a mapping"),
        (str, "line 2, a", "a text"),
        ({"n": Count}, "line 3, a.n", "at least 0"),
        ({"b": bool}, "line 2, a.b", "true or false"),
        ({"t": Name}, "line 5, a.t", "lower-case"),
        (Labels, "line 3, a.n", "numbers in quotes"),
        ({"b": float | None}, "line 2, a.b", "a number"),
        ({"k": dict[str, form({"c": int})]}, "line 6, a.k.two.c", "a whole number"),
    ]
    for kind, where, legal in cases:
        with pytest.raises(DocumentError) as error:
            item.decode(form({"a": kind}))
        assert error.value.path == where
        assert legal in str(error.value) and str(error.value).isprintable()


def test_what_is_null_is_absent(tmp_path: Path) -> None:
    """As the API server takes it; at any depth."""
    path = tmp_path / "f.json"
    path.write_text('{"a": {"b": null, "c": 3}}', encoding="utf-8")
    read_as = read(path)[0].decode(form({"a": {"b": str, "c": int}}))
    assert (read_as.a.b, read_as.a.c) == ("", 3)


def test_large_json_is_read_without_looking_for_keys_that_stand_twice(tmp_path: Path) -> None:
    """The last of them counts; what is no JSON is refused with its line, as in small files."""
    filler = "x" * files.STRICT_BYTES
    path = tmp_path / "f.json"
    path.write_text(f'{{"a": 1,\n"b": "{filler}",\n"a": 2}}', encoding="utf-8")
    assert read(path)[0].decode(form({"a": int})).a == 2
    for wrong in ('"a": }', '"a": NaN}', '"a": "\\ud800"}'):
        assert refused(tmp_path, f'{{"b": "{filler}",\n{wrong}').path is not None


@pytest.mark.parametrize("path", ["/nonexistent/x.yaml", "/tmp", "bad\0name"])
def test_files_that_are_none(path: str) -> None:
    """Named, not traced."""
    with pytest.raises(DocumentError):
        read(path)
