"""Quantities: exact, and the same as the Python client of Kubernetes reads."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

from placeopt.core.errors import DocumentError
from placeopt.kubernetes.values import LARGEST, mebibytes, millicores, parse, whole_bytes

SUFFIXES = ("", *"numkKMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def random_text(rng: np.random.Generator) -> str:
    """Return a quantity in most cases; in some, one with a character too many or too few."""
    digits = "".join(str(d) for d in rng.integers(0, 10, int(rng.integers(1, 12))))
    point = int(rng.integers(0, len(digits) + 1))
    number = digits if rng.random() < 0.5 else f"{digits[:point]}.{digits[point:]}"
    sign = str(rng.choice(["", "", "", "+", "-"]))
    exponent = ""
    if rng.random() < 0.25:
        exponent = f"{rng.choice(['e', 'E'])}{rng.choice(['', '+', '-'])}{int(rng.integers(0, 12))}"
    text = sign + number + exponent
    text += "" if exponent and rng.random() < 0.9 else str(rng.choice(SUFFIXES))
    if rng.random() < 0.15:
        at, extra = (
            int(rng.integers(0, len(text) + 1)),
            rng.choice([*"0123456789.eE+-numkKMGTPEi x"]),
        )
        text = text[:at] + str(extra) + text[at + int(rng.integers(0, 2)) :]
    return text


def test_ten_thousand_random_texts_read_as_the_python_client_reads_them() -> None:
    """The verdict and, exactly, the value; from the smallest to the largest that is legal."""
    utils = pytest.importorskip("kubernetes.utils.quantity")
    tiny = Fraction(1, 10**30)
    rng, legal, refused = np.random.default_rng(11), 0, 0
    with decimal.localcontext() as context:
        context.prec = 400
        for _ in range(10_000):
            text = random_text(rng)
            try:
                theirs: Fraction | None = Fraction(utils.parse_quantity(text))
            except ValueError:
                theirs = None
            # Blanks, which only the client accepts; what Kubernetes cannot hold.
            if theirs is not None and (abs(theirs) > LARGEST or 0 < abs(theirs) < tiny):
                theirs = None
            theirs = None if " " in text else theirs
            try:
                mine: Fraction | None = parse(text)
            except DocumentError:
                mine = None
            assert mine == theirs or (mine is not None and 0 < abs(mine) < tiny), text
            legal, refused = legal + (mine is not None), refused + (mine is None)
    assert legal > 7000 and refused > 500


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("500Mi", 500 * 2**20),
        ("644245094400m", 644245095),
        ("129e6", 129_000_000),
        ("1.5Gi", 3 * 2**29),
        ("0", 0),
        ("128974848", 128974848),
        (5, 5),
    ],
)
def test_memory(text: object, bytes_: int) -> None:
    """Whole bytes, a part of one rounded up."""
    assert whole_bytes(text) == bytes_


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("100m", 100),
        ("0.5", 500),
        (2, 2000),
        (0.1, 100),
        ("1500u", 2),
        ("250000n", 1),
        ("1e-1", 100),
    ],
)
def test_cpu(text: object, milli: int) -> None:
    """Whole milli-CPU, a part of one rounded up, for a capacity down."""
    assert millicores(text) == milli
    assert millicores(text, capacity=True) == math.floor(parse(text) * 1000)


def test_mebibytes() -> None:
    """Requests up, capacities down."""
    assert (mebibytes(2**20 + 1), mebibytes(2**20 + 1, capacity=True), mebibytes(0)) == (2, 1, 0)


ODD = (
    "", "m", "1 Gi", "1gi", "1mi", "NaN", "inf", "Infinity", "1_000", "٣", "0x10", "--1", "1e",
    "1e999999999", "1e-999999999", "1e41", "9" * 63, "9" * 5000, "1" * 65, True, None, [], {},
    10**400, 1e300, "1e30Ei", "<script>",
)  # fmt: skip


@pytest.mark.parametrize("value", ODD)
def test_refused(value: object) -> None:
    """At once, with what is legal."""
    with pytest.raises(DocumentError) as error:
        parse(value)
    assert error.value.remedy and len(str(error.value)) < 200


@pytest.mark.parametrize("value", ["-1", "-100m", -5])
def test_negative_amounts_are_refused(value: object) -> None:
    """A quantity may be negative, an amount may not."""
    with pytest.raises(DocumentError, match="negative"):
        millicores(value)
