"""Kubernetes quantities, exactly: ``500Mi``, ``100m``, ``1.5Gi``, ``129e6``, ``644245094400m``.

A quantity is a decimal number with an optional exponent, or with one suffix: n u m k M G T P E
(powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024). ``K``, which the API refuses, is read as
``k``, as the Python client of Kubernetes does.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from placeopt.core.errors import DocumentError

_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkKMGTPE])?",
    re.ASCII,
)
_LARGE = "KMGTPE"
_FACTOR = {
    **{suffix: Fraction(1000) ** -k for k, suffix in enumerate(("", "m", "u", "n"))},
    **{suffix: Fraction(1000) ** k for k, suffix in enumerate(_LARGE, start=1)},
    **{f"{suffix}i": Fraction(1024) ** k for k, suffix in enumerate(_LARGE, start=1)},
    "k": Fraction(1000),
}
#: Longer texts and larger exponents are refused before they are computed.
MAX_CHARACTERS, MAX_EXPONENT = 64, 40
#: The largest amount that Kubernetes holds.
LARGEST = 2**63 - 1
MIB = 2**20


def parse(value: Any) -> Fraction:
    """Return a quantity as an exact fraction of its base unit (cores, bytes).

    Raises
    ------
    DocumentError
        It is not a quantity.

    Examples
    --------
    >>> parse("1.5Gi"), parse("644245094400m"), parse(0.1)
    (Fraction(1610612736, 1), Fraction(3221225472, 5), Fraction(1, 10))
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _fault(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise _too_large(value.bit_length() * 3 // 10)
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_CHARACTERS:
        raise DocumentError(
            f"{text[:20]!r}... is no quantity",
            remedy=f"legal: at most {MAX_CHARACTERS} characters, such as 100m or 128Mi",
        )
    return _parse(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    form = _FORM.fullmatch(text)
    if form is None:
        raise _fault(text)
    number, exponent, suffix = form[1], int(form[2] or 0), form[3] or ""
    if abs(exponent) > MAX_EXPONENT:
        raise _too_large(exponent) if exponent > 0 else _fault(text)
    amount = Fraction(number) * Fraction(10) ** exponent * _FACTOR[suffix]
    if abs(amount) > LARGEST:
        raise _too_large(len(str(math.floor(abs(amount)))))
    return amount


def _fault(value: Any) -> DocumentError:
    remedy = "legal: a number with a suffix of Kubernetes, such as 100m, 0.5, 128Mi or 1.5Gi"
    return DocumentError(f"{str(value)[:60]!r} is no quantity", remedy=remedy)


def _too_large(digits: int) -> DocumentError:
    return DocumentError(
        f"a quantity of about {digits} digits is too large", remedy="legal: up to 2^63 - 1"
    )


def _whole(value: Any, per_unit: int, capacity: bool) -> int:
    if type(value) is str:  # a cluster says the same few quantities thousands of times
        return _whole_text(value, per_unit, capacity)
    return _rounded(value, per_unit, capacity)


@lru_cache(maxsize=4096)
def _whole_text(text: str, per_unit: int, capacity: bool) -> int:
    return _rounded(text, per_unit, capacity)


def _rounded(value: Any, per_unit: int, capacity: bool) -> int:
    amount = parse(value)
    if amount < 0:
        raise DocumentError(
            f"{str(value)[:60]!r} is negative", remedy="legal: an amount of at least 0"
        )
    return math.floor(amount * per_unit) if capacity else math.ceil(amount * per_unit)


def millicores(value: Any, *, capacity: bool = False) -> int:
    """Return whole milli-CPU: a request is rounded up, a capacity down.

    Examples
    --------
    >>> millicores("100m"), millicores("0.5"), millicores("1n"), millicores("1n", capacity=True)
    (100, 500, 1, 0)
    """
    return _whole(value, 1000, capacity)


def whole_bytes(value: Any, *, capacity: bool = False) -> int:
    """Return whole bytes: a request is rounded up, a capacity down.

    Examples
    --------
    >>> whole_bytes("500Mi"), whole_bytes("129e6"), whole_bytes("644245094400m")
    (524288000, 129000000, 644245095)
    """
    return _whole(value, 1, capacity)


def mebibytes(amount: int, *, capacity: bool = False) -> int:
    """Return bytes as whole MiB: a request is rounded up, a capacity down.

    Examples
    --------
    >>> mebibytes(524288000), mebibytes(129000000), mebibytes(129000000, capacity=True)
    (500, 124, 123)
    """
    return amount // MIB if capacity else -(-amount // MIB)
