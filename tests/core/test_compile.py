"""Compiled kernels: an edit is never served stale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
from placeopt.core.kernels.compile import kernel

FACTOR = {factor}

@kernel
def inner(x):
    return FACTOR * x

@kernel
def outer(x):
    return inner(x) + 0
"""


def run(folder: Path, code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    ).stdout.strip()


def test_an_edit_of_a_callee_is_not_served_stale(tmp_path: Path) -> None:
    """The same file name, length and time of change, another constant: the new one is used; without
    an edit, the cache is.
    """
    module = tmp_path / "edited.py"
    seen = []
    for factor in (2, 3):
        module.write_text(MODULE.format(factor=factor))
        os.utime(module, (1_700_000_000, 1_700_000_000))
        code = "import edited; print(edited.outer(5), len(edited.outer.stats.cache_hits))"
        seen.append((run(tmp_path, code), run(tmp_path, code)))
    assert seen == [("10 0", "10 1"), ("15 0", "15 1")]


CALLEE = """
from placeopt.core.kernels.compile import kernel

SCALE = {scale}

@kernel
def inner(x):
    return {factor} * x
"""
CALLER = """
from typing import NamedTuple

from placeopt.core.kernels.compile import kernel
{imports}

@kernel
def outer(x):
    return {call}
"""
CODE = "import caller; print(caller.outer(5), len(caller.outer.stats.cache_hits))"


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from callee import SCALE, inner", "inner(x) * SCALE"),
        ("import callee", "callee.inner(x) * callee.SCALE"),
        ("import middle", "middle.through(x)"),
    ],
    ids=["names", "module", "two files away"],
)
def test_an_edit_in_another_file_is_not_served_stale(
    tmp_path: Path, imports: str, call: str
) -> None:
    """A kernel, or a constant, of another file changes: the caller is compiled again, else not."""
    (tmp_path / "caller.py").write_text(CALLER.format(imports=imports, call=call))
    (tmp_path / "middle.py").write_text(
        "from callee import SCALE, inner\nfrom placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef through(x):\n    return inner(x) * SCALE\n"
    )
    seen = []
    for factor, scale in ((2, 1), (3, 1), (3, 10)):
        (tmp_path / "callee.py").write_text(CALLEE.format(factor=factor, scale=scale))
        os.utime(tmp_path / "callee.py", (1_700_000_000, 1_700_000_000))
        seen.append((run(tmp_path, CODE), run(tmp_path, CODE)))
    assert seen == [("10 0", "10 1"), ("15 0", "15 1"), ("150 0", "150 1")]


TUPLES = """
from typing import NamedTuple

from uses import read

class Pair(NamedTuple):
    {first}: int
    {second}: int

print(read(Pair({first}=1, {second}=2)))
"""


def test_fields_of_a_named_tuple_in_another_order_are_compiled_anew(tmp_path: Path) -> None:
    """The kernel's file does not import the class, and the types of its fields are the same."""
    (tmp_path / "uses.py").write_text(
        "from placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef read(pair):\n    return pair.a\n"
    )
    (tmp_path / "tuples.py").write_text(TUPLES.format(first="a", second="b"))
    assert run(tmp_path, "import tuples") == "1"
    (tmp_path / "tuples.py").write_text(TUPLES.format(first="b", second="a"))
    os.utime(tmp_path / "tuples.py", (1_700_000_000, 1_700_000_000))
    assert run(tmp_path, "import tuples") == "2"
