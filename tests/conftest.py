"""What all tests share."""

from __future__ import annotations

import os

import hypothesis
import numba  # noqa: F401  # so that commands that a test runs in its own process find compiled kernels

# A deadline is one of the machine: beside other work the same code takes ten times as long.
hypothesis.settings.register_profile("placeopt", deadline=None)
hypothesis.settings.load_profile("placeopt")

# Tests run side by side, one on each core: threads of torch and BLAS would wait for each other,
# which cost an example that trains an agent seven times the CPU seconds.
os.environ.setdefault("OMP_NUM_THREADS", "1")
