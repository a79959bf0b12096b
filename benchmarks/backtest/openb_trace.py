"""The openb trace, from the folder that ``PLACEOPT_DATA`` names."""

from __future__ import annotations

import os
from pathlib import Path

from placeopt.backtest.arrays import TraceArrays, arrays_of
from placeopt.backtest.readers import openb
from placeopt.backtest.trace import ClusterTrace


def trace() -> ClusterTrace:
    """Return the whole trace."""
    return openb.read(Path(os.environ["PLACEOPT_DATA"]) / "openb")


def gpu_nodes() -> TraceArrays:
    """Return it with its GPU nodes alone, as the experiments of FGD have it."""
    whole = trace()
    with_gpus = {m.name for m in whole.machines if m.gpus}
    nodes = tuple(n for n in whole.nodes if n.machine in with_gpus)
    return arrays_of(whole.model_copy(update={"nodes": nodes}))
