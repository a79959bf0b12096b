"""Files of models, LP, MPS and MathOptFormat, as Pyomo models."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.core.files.paths import AnyPath, read_bytes
from placeopt.exact.files.draft import Draft
from placeopt.exact.files.lp import read_lp
from placeopt.exact.files.mof import read_mof
from placeopt.exact.files.mps import read_mps

#: Readers by the end of a file's name, which may have ``.gz`` behind it.
READERS = {".lp": read_lp, ".mps": read_mps, ".mop": read_mps, ".json": read_mof}


def read_model(path: AnyPath, goals: Sequence[str] | None = None) -> Any:
    """Read a file of a linear model.

    All rows of type N of an MPS file are goals. Those of an LP file are the objective, all of a
    section ``minimize multi-objectives``, and all rows without a limit, such as
    ``cost: 3 x + y >= -infinity``; rows have the sense of the file. MathOptFormat names no goals:
    they are ``objective``, or ``f1``, ``f2``, ...

    Parameters
    ----------
    path : path
        Ends in ``.lp``, ``.mps``, ``.mop`` or ``.mof.json``; ``.gz`` may stand behind it.
    goals : sequence of str, optional
        Which goals, in this order, by the file's names; ``max:profit`` or ``min:cost`` sets the
        sense. A row with limits may be one too, and keeps them. By default all.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With ``model.x[name]``, ``model.row[name]`` and ``model.goal[name]``, for
        `placeopt.enumerate`.

    Raises
    ------
    DocumentError
        The file cannot be read; says what is wrong and where.
    UnsupportedError
        The model is not linear.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "small.lp"
    >>> _ = file.write_text("max profit: 3 x + y\\nst\\n c: x + y <= 4\\n cost: x >= -inf\\nend")
    >>> list(read_model(file, ["profit", "min:cost"]).goal)
    ['profit', 'cost']
    """
    file = Path(path)
    try:
        return _draft(file).model(goals)
    except DocumentError as error:
        raise error.in_file(str(file)) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{file}: {error}") from None


def _draft(file: Path) -> Draft:
    name = file.name.removesuffix(".gz").lower()
    read = next((one for end, one in READERS.items() if name.endswith(end)), None)
    if read is None:
        raise DocumentError(
            "the end of the file's name tells no format", remedy=f"name it {', '.join(READERS)}"
        )
    return read(_text(file), file.name.split(".")[0])


def _text(file: Path) -> str:
    """Return what a file says."""
    try:
        data = read_bytes(file)
        if file.name.endswith(".gz"):
            data = gzip.decompress(data)
        return data.decode("utf-8")
    except FileNotFoundError:
        raise DocumentError("there is no such file") from None
    except gzip.BadGzipFile:
        raise DocumentError("this is no gzip file") from None
    except OSError as error:
        raise DocumentError(f"cannot read: {error.strerror or error}") from None
    except (UnicodeDecodeError, EOFError, zlib.error):
        raise DocumentError("this is no text", remedy="give a file of a model") from None
