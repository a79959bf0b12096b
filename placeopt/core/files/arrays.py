"""Plain arrays with a JSON header in one file, an .npz; nothing is unpickled, all is checked."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.files import documents
from placeopt.core.files.paths import AnyPath, read_bytes, write_parts


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays by name, and what is said of them.

    Attributes
    ----------
    header : mapping
        A JSON object.
    arrays : mapping of str to ndarray
        No name is ``header``; no array holds objects.
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def write_arrays(path: AnyPath, content: Arrays) -> None:
    """Write arrays as .npz, atomically; the same content gives the same bytes."""
    text = json.dumps(content.header, ensure_ascii=False, allow_nan=False, sort_keys=True).encode()
    stream = io.BytesIO()
    stored: dict[str, Any] = {key: np.asarray(value) for key, value in content.arrays.items()}
    np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **stored)
    write_parts(path, (stream.getvalue(),))


def read_arrays(path: AnyPath, what: str, max_bytes: int) -> Arrays:
    """Return what `write_arrays` wrote; files that unpack to more than `max_bytes` are not read.

    Raises
    ------
    DocumentError
        It is not such a file, or not whole.
    """
    file = str(path)
    broken = f"give a {what} file of placeopt; this one is damaged, or something else"

    def fault(problem: str, remedy: str = broken) -> DocumentError:
        return DocumentError(problem, file=file, remedy=remedy)

    try:
        content = io.BytesIO(read_bytes(path, max_bytes))
        with zipfile.ZipFile(content) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > max_bytes:
                raise fault(f"unpacks to {size:,} bytes, more than the {max_bytes:,} of any {what}")
            if archive.testzip() is not None:
                raise fault(f"not a {what}: its checksum does not hold")
        content.seek(0)
        with np.load(content, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except OSError as error:
        raise fault(
            error.strerror or str(error), f"give the path of a readable {what} file"
        ) from None
    except DocumentError:
        raise
    except Exception:  # zipfile, the decompressors and NumPy raise errors of a dozen kinds
        raise fault(f"not a {what}") from None
    header = arrays.pop("header", None)
    if header is None or header.dtype != np.uint8 or header.ndim != 1:
        raise fault(f"not a {what}: it has no header")
    try:
        document = documents.parse_json(header.tobytes().decode())
    except (UnicodeDecodeError, DocumentError):
        raise fault(f"not a {what}: its header is not JSON") from None
    if not isinstance(document, dict):
        raise fault(f"not a {what}: its header is not a JSON object")
    return Arrays(document, arrays)
