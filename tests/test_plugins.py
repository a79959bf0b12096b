"""One door for plug-ins: whatever examples and how-tos import stands there, typed and described."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from placeopt import plugins

ROOT = Path(__file__).resolve().parents[1]
#: Modules whose names are public: see docs/reference.md.
PUBLIC = {"placeopt", "placeopt.plugins", "placeopt.ask", "placeopt.models"}
PUBLIC |= {"placeopt.environments", "placeopt.kubernetes"}


def code() -> Iterator[tuple[str, str]]:
    """Yield name and source of every example, and of every block of Python on the pages."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        for k, block in enumerate(blocks):
            yield f"{path.relative_to(ROOT)}, block {k}", block


def test_examples_and_pages_use_the_door() -> None:
    for name, source in code():
        if name.startswith("docs/inside.md"):  # it is about the rooms themselves
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("placeopt"):
                assert node.module in PUBLIC, f"{name} imports from {node.module}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    own = alias.name.partition(".")[0] == "placeopt"
                    assert not own or alias.name in PUBLIC, f"{name} imports {alias.name}"


def test_every_name_is_typed_and_in_the_reference() -> None:
    tree = ast.parse((ROOT / "placeopt" / "plugins.py").read_text(encoding="utf-8"))
    typed = {
        alias.asname
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(plugins.__all__) == set(dir(plugins))
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    section = page.partition("## placeopt.plugins")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == typed


@pytest.mark.parametrize("name", plugins.__all__)
def test_every_name_is_there(name: str) -> None:
    if name in ("BatchVecEnv", "DeepSetsActorCritic", "numpy_arrays"):
        pytest.importorskip("sb3_contrib", reason="needs the extra rl")
    assert getattr(plugins, name) is not None


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Encodr'"):
        _ = plugins.Encodr
