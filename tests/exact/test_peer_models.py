"""What the tests of MultiObjectiveAlgorithms.jl state holds of `placeopt.enumerate`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from effort import tries

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "enumeration"))
from peer_models import PEERS, judged

QUICK = [peer for peer in PEERS if not peer.is_slow][:: tries(3, 1)]


@pytest.mark.parametrize("peer", QUICK, ids=lambda peer: peer.name)
def test_what_a_peer_states_holds(peer):
    said, is_stated, _ = judged(peer, solver="highs")
    assert is_stated, said
    assert "-0.0" not in said
