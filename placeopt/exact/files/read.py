"""From a file of a model to a Pyomo model."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placeopt.core.errors import DocumentError, UnsupportedError, require_known
from placeopt.core.files.paths import AnyPath, read_bytes
from placeopt.exact.files.content import Content
from placeopt.exact.files.lp_mps import read_lp, read_mps
from placeopt.exact.files.mof import read_mof
from placeopt.exact.files.voptlib import LAYOUTS, read_voptlib

#: Readers by the end of a file's name, which may have ``.gz`` behind it.
READERS = {".lp": read_lp, ".mps": read_mps, ".mop": read_mps, ".json": read_mof}
_VOPTLIB = (".dat", ".txt")


def read_model(
    path: AnyPath, goals: Sequence[str] | None = None, *, layout: str | None = None
) -> Any:
    """Read a file of a linear model.

    LP and MPS are read by HiGHS. All rows of type N of an MPS file are goals. Those of an LP file
    are the objective, all of a section ``minimize multi-objectives``, and all rows without a limit,
    such as ``cost: 3 x + y >= -infinity``; rows have the sense of the file. MathOptFormat names no
    goals: they are ``objective``, or ``f1``, ``f2``, ... Of vOptLib knapsacks (ukp), set covering
    (scp), partitioning (spa) and packing (spp), and facility location (uflp) are read.

    Parameters
    ----------
    path : path
        Ends in ``.lp``, ``.mps``, ``.mop``, ``.mof.json`` or, of vOptLib, ``.dat`` or ``.txt``;
        ``.gz`` may stand behind it.
    goals : sequence of str, optional
        Which goals, in this order, by the file's names; ``max:profit`` or ``min:cost`` sets the
        sense. A row with limits may be one too, and keeps them. By default all.
    layout : {"ukp", "scp", "spa", "spp", "uflp"}, optional
        Of a file of vOptLib, where its numbers fit more than one.

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
        return _content(file, layout).with_goals(goals).model()
    except DocumentError as error:
        raise error.in_file(str(file)) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{file}: {error}") from None


def _content(file: Path, layout: str | None) -> Content:
    if layout is not None:
        require_known("layout", layout, LAYOUTS)
    name = file.name.removesuffix(".gz").lower()
    ends = [end for end in (*READERS, *_VOPTLIB) if name.endswith(end)]
    if not ends and layout is None:
        raise DocumentError(
            "the end of the file's name tells no format",
            remedy=f"name it {', '.join(READERS)} or, of vOptLib, {', '.join(_VOPTLIB)}",
        )
    text, stem = _text(file), file.name.split(".")[0]
    if layout is not None or ends[0] in _VOPTLIB:
        return read_voptlib(text, stem, layout)
    return READERS[ends[0]](text, stem)


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
