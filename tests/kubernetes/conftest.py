"""What the tests of Kubernetes share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kubernetes_data() -> Path:
    """Return the folder of outside data, or skip."""
    folder = os.environ.get("PLACEOPT_DATA")
    if not folder:
        pytest.skip("PLACEOPT_DATA does not name the folder of outside data")
    return Path(folder)
