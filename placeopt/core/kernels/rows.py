"""Rows of arrays."""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def copy_row(source, target):
    """Copy numbers to the begin of another row; ``target[:] = source`` asks for memory."""
    for k in range(len(source)):
        target[k] = source[k]
