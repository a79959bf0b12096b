"""What the JSON Schemas say to those who write documents by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from placeopt.cli import app
from placeopt.core.spec import load
from placeopt.registry import PACKAGES

KINDS = [name.replace("_", "-") for name in PACKAGES]
DOCUMENTS = [*([kind] for kind in KINDS), *([kind, "--plan"] for kind in KINDS), ["front"]]

#: Ending of a field's name -> what its description has to name.
UNITS = {
    "_ms": "ms",
    "_gib": "GiB",
    "_mib": "MiB",
    "_millicores": "core",
    "_cores": ("core", "Core", "vCPU"),
    "_hours": "hours",
    "_usd_per_hour": "USD per hour",
    "_slots": "slots",
}


def described(arguments: list[str]) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["schema", *arguments])
    assert done.exit_code == 0
    return json.loads(done.stdout)


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field of a schema and of the records in it, by its path."""
    records = {"": schema, **schema.get("$defs", {})}
    for record, parts in records.items():
        for name, field in parts.get("properties", {}).items():
            yield f"{record}.{name}", field


@pytest.mark.parametrize("arguments", [*DOCUMENTS, ["steps"]], ids=" ".join)
def test_every_field_is_described(arguments: list[str]) -> None:
    """In a sentence of its own."""
    found = dict(fields(described(arguments)))
    assert found
    for path, field in found.items():
        text = field.get("description", "")
        assert text.endswith(".") and len(text.split()) >= 2, path


@pytest.mark.parametrize("arguments", DOCUMENTS, ids=" ".join)
def test_descriptions_name_units_and_what_absent_means(arguments: list[str]) -> None:
    for path, field in fields(described(arguments)):
        text = field.get("description", "")
        for ending, unit in UNITS.items():
            if path.endswith(ending):
                words = [unit] if isinstance(unit, str) else unit
                assert any(word in text for word in words), path
        nullable = {"type": "null"} in field.get("anyOf", [])
        assert not nullable or "null" in text, path


#: Documents that are written beside others, and have no schema of their own on the command line.
WRITTEN = (
    "placeopt.kubernetes.origin:Origin",
    "placeopt.kubernetes.consolidate.answer:ConsolidationAnswer",
)


def every_field() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field of every document that placeopt reads or writes."""
    from placeopt.doors import doors

    words = [word for door in doors() for word in door.schemas]
    for arguments in [*DOCUMENTS, *([word] for word in words)]:
        yield from fields(described(arguments))
    for where in WRITTEN:
        yield from fields(load(where).model_json_schema(by_alias=True))


def test_a_unit_is_called_a_unit() -> None:
    """Of every document: in its own schema, or written beside another."""
    for path, field in every_field():
        name, text = path.rpartition(".")[2], field.get("description", "")
        if name == "unit" or name.endswith("_unit"):
            assert "unit" in text.lower() and "replica" not in text.lower(), (path, text)


def test_a_field_without_words_is_found() -> None:
    """The test above sees one that lacks them."""
    from placeopt.core.problem import Record

    class Wordless(Record):
        latency: float

    assert [f for _, f in fields(Wordless.model_json_schema()) if "description" not in f]
