"""Files: read whole, written aside and renamed, never lost and never left half written."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from placeopt.core.errors import DocumentError, shown

#: Where a file is, as text or as an object such as `pathlib.Path`.
AnyPath = str | os.PathLike[str]
#: Largest file that is read, in bytes: no document comes near it, and /dev/zero never ends.
LARGEST = 2**29


def checked_path(path: AnyPath) -> str:
    """Return a path as text that a file can have.

    Raises
    ------
    DocumentError
        It is no text or path object (a number would be an open file of the process), or holds a
        character that no file's name has.
    """
    try:
        text = os.fspath(path)
        if isinstance(text, str) and b"\0" not in os.fsencode(text):
            return text
    except (TypeError, UnicodeEncodeError):
        pass
    raise DocumentError(f"{shown(path)} is no path", remedy="give a text or a pathlib.Path")


# -- reading ---------------------------------------------------------------------------------------


def open_bytes(path: AnyPath) -> BinaryIO:
    """Open a file for reading; a FIFO as well, once somebody writes into it.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    return open(checked_path(path), "rb")


def read_bytes(path: AnyPath, largest: int = LARGEST) -> bytes:
    """Return the contents of a file, as `open_bytes` opens it.

    Raises
    ------
    OSError
        The file cannot be read.
    DocumentError
        It holds more than `largest` bytes.
    """
    with open_bytes(path) as stream:
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise DocumentError(
            f"more than {largest:,} bytes", file=str(path), remedy="give a smaller file"
        )
    return content


# -- writing ---------------------------------------------------------------------------------------


def write_parts(path: AnyPath, parts: Iterable[bytes]) -> None:
    """Write `parts` one after another, aside, then rename: a reader sees the old or the new file.

    A symbolic link keeps pointing to what is replaced; mode and owner stay. A device or FIFO is
    opened and written.

    Raises
    ------
    DocumentError
        The folder does not exist or cannot be written, the disk is full.
    """
    path = checked_path(path)
    try:
        known = _status(path)
        if known is not None and not stat.S_ISREG(known.st_mode):
            with open(path, "wb") as stream:
                stream.writelines(parts)
        else:
            _replace(Path(os.path.realpath(path)), parts, known)
    except OSError as error:
        raise DocumentError(
            f"cannot write: {error.strerror}",
            file=str(path),
            remedy="give a path in a folder that exists, is writable and has room",
        ) from None


def _replace(target: Path, parts: Iterable[bytes], known: os.stat_result | None) -> None:
    """Write beside `target` and rename; `known` is what is there now."""
    mark = f".{target.name[:40]}."
    handle, aside = tempfile.mkstemp(dir=target.parent, prefix=mark, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        if known is not None and hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):  # only root gives files away
                os.chown(aside, known.st_uid, known.st_gid)
        os.chmod(aside, 0o666 & ~_umask() if known is None else stat.S_IMODE(known.st_mode))
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise


def _status(path: AnyPath) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# -- before the work begins ------------------------------------------------------------------------


def require_outputs(*outputs: AnyPath | None, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Raise unless every output can be written, is named once, and is no input: before work begins.

    Raises
    ------
    DocumentError
        Names the output and what to do.
    """
    taken = {
        _identity(path): f"the input {os.fspath(path)!r}, which would be lost"
        for path in inputs
        if path is not None and os.path.isfile(path)
    }
    for path in outputs:
        if path is None:
            continue
        _require_writable(path)
        same = _identity(path)
        if same in taken:
            raise DocumentError(
                f"is also {taken[same]}", file=str(path), remedy="give another path"
            )
        if not os.path.exists(path) or os.path.isfile(path):  # a device takes any number
            taken[same] = "another output of this command"


def _identity(path: AnyPath) -> tuple[object, ...]:
    status = _status(path)
    return (os.path.realpath(path),) if status is None else (status.st_dev, status.st_ino)


def _require_writable(path: AnyPath) -> None:
    file, folder = str(path), os.path.dirname(os.path.realpath(path))
    try:
        known = _status(path)
    except OSError as error:
        raise DocumentError(
            f"cannot write: {error.strerror}", file=file, remedy="give another path"
        ) from None
    if known is not None and stat.S_ISDIR(known.st_mode):
        raise DocumentError("is a folder", file=file, remedy="give the path of a file")
    if known is not None and not os.access(path, os.W_OK):
        raise DocumentError("cannot write: not writable", file=file, remedy="give another path")
    if known is not None and not stat.S_ISREG(known.st_mode):
        return  # a device or FIFO is opened where it is
    named = os.path.dirname(file) or "."
    if not os.path.isdir(folder):
        remedy = f"create it first: mkdir -p '{named}'"
        raise DocumentError("cannot write: no such folder", file=file, remedy=remedy)
    if not os.access(folder, os.W_OK):
        problem = f"cannot write: the folder '{named}' is not writable"
        raise DocumentError(problem, file=file, remedy="give a path in another one")
