"""Steps: the number that values of a linear function over whole numbers are multiples of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np

#: A float that is written with at most so many decimals, or digits, means that decimal number.
_MAX_DECIMALS, _MAX_DIGITS = 9, 12
#: Other floats mean a fraction with at most this denominator, up to the rounding of arithmetic.
_MAX_DENOMINATOR, _ROUNDING = 10**6, 1e-14
#: Numbers of steps have no more digits than floats have.
_MOST_STEPS = 2**53


def fraction(value: float) -> Fraction | None:
    """Return the number that a float stands for, None where it is no short decimal or fraction.

    Examples
    --------
    >>> fraction(0.1), fraction(0.1 + 0.2), fraction(1 / 3), fraction(math.pi)
    (Fraction(1, 10), Fraction(3, 10), Fraction(1, 3), None)
    """
    written = Decimal(repr(float(value)))
    _, digits, exponent = written.as_tuple()
    if len(digits) <= _MAX_DIGITS or (isinstance(exponent, int) and exponent >= -_MAX_DECIMALS):
        return Fraction(written)
    exact = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
    return exact if abs(float(exact) - value) <= _ROUNDING * abs(value) else None


def exactly(value: float) -> Fraction:
    """Return the number that a float stands for, or else is."""
    exact = fraction(value)
    return Fraction(value) if exact is None else exact


def exact_step(coefficients: Iterable[float]) -> Fraction | None:
    """Return the largest number that all coefficients are whole multiples of, if there is one.

    1 where there are no coefficients.
    """
    numerator, denominator, largest = 0, 1, 0.0
    for value in set(map(abs, coefficients)):
        exact = fraction(value)
        if exact is None:
            return None
        numerator = math.gcd(numerator * exact.denominator, exact.numerator * denominator)
        denominator *= exact.denominator
        shared = math.gcd(numerator, denominator)
        numerator, denominator = numerator // shared, denominator // shared
        largest = max(largest, value)
        if largest > _MOST_STEPS * (numerator / denominator):
            return None
    return Fraction(numerator, denominator) if numerator else Fraction(1)


def common_step(coefficients: np.ndarray) -> float | None:
    """Return the largest number that all coefficients are whole multiples of, if there is one.

    Examples
    --------
    >>> common_step(np.array([0.5, 0.75])), common_step(np.array([6.0, -4.0]))
    (0.25, 2.0)
    """
    step = exact_step(coefficients.tolist())
    return None if step is None else float(step)
