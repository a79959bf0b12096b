"""The episodes that the authors tested on, against what their result files say of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("requests", "known"), [("LOWERED", {1832: 4, 1838: 2}), ("PRINTED", None)]
)
def test_what_finds_no_place_is_what_their_agents_reject(
    monkeypatch: pytest.MonkeyPatch, requests: str, known: dict[int, int] | None
) -> None:
    """Six agents reject these six of 200,000, all in two episodes; with one spread as theirs."""
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("papers.authors_episodes")
    batch = module.AuthorsEpisodes(
        2000, 2000, memory=getattr(module, requests), spreads=1, accept="first"
    )
    batch.reset(np.arange(2000, dtype=np.uint64))
    refused = np.zeros(2000, dtype=int)
    for _ in range(batch.steps):
        refused += ~batch.outcomes.accepts[:, :5].any(axis=1)
        batch.step(batch.masks.argmax(axis=1))
    found = {int(e): int(refused[e]) for e in np.flatnonzero(refused)}
    assert sum(found.values()) == (50 if known is None else 6)
    assert known is None or found == known
