"""The example's distribution on the path, and its problem registered while its tests run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "machine_reassignment"))


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    """Register the problem as a notebook would; forget it afterwards."""
    from machine_reassignment import SPEC

    import placeopt
    from placeopt.core.spec import ADDED

    before = dict(ADDED)
    placeopt.register(SPEC)
    yield
    ADDED.clear()
    ADDED.update(before)
