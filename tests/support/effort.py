"""How much the tests try: what a suite of minutes allows, or, by `make thorough`, all of it."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("PLACEOPT_THOROUGH", "0") not in ("", "0")


def tries(few: int, many: int) -> int:
    """Return how many cases a test tries."""
    return many if THOROUGH else few
