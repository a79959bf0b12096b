"""The papers' distribution, as if it were installed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Offer the entry points of papers/pyproject.toml while the tests of a module run."""
    from placeopt import cli, doors, registry
    from placeopt.core.spec import offered, records

    with (ROOT / "papers" / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    folder = tmp_path_factory.mktemp("site")
    facts = folder / "placeopt_papers-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: placeopt-papers\nVersion: 1.0\n")
    groups = project["entry-points"].items()
    lines = [
        line
        for group, points in groups
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")
    caches = (offered, doors.doors, registry.installed, records, cli._built, cli._command)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        for cached in caches:
            cached.cache_clear()
        get_reusable_executor().shutdown()  # processes of earlier tests do not see the folder
        yield
        get_reusable_executor().shutdown()
    for cached in caches:
        cached.cache_clear()
