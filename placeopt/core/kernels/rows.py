"""Rows of arrays."""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def copy_row(source, target):
    """Copy numbers to the begin of another row.

    ``target[:] = source`` asks for memory, and takes two seconds to compile.
    """
    for k in range(len(source)):
        target[k] = source[k]


@kernel
def copy_rows(source, target):
    """Copy all rows of a table to the first rows of another one that is as wide, or wider."""
    for k in range(len(source)):
        copy_row(source[k], target[k])
