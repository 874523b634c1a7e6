"""Exact arithmetic for scores: rounding, and an interval that every machine computes alike."""

import math
from fractions import Fraction
from typing import Final

Z: Final = Fraction(49, 25)
"""1.96: 95 % of a normal distribution."""
_DIGITS: Final = 10**15


def half_up(number: Fraction) -> int:
    """Round to the nearest whole number, halves up."""
    return math.floor(number + Fraction(1, 2))


def tenths(number: Fraction) -> float:
    """Round to a tenth, halves up."""
    return half_up(number * 10) / 10


def root(number: Fraction) -> Fraction:
    """Return the square root of a number ≥ 0, cut off behind its fifteenth decimal."""
    scaled = number.numerator * _DIGITS * _DIGITS // number.denominator
    return Fraction(math.isqrt(scaled), _DIGITS)


def wilson(value: Fraction, count: Fraction) -> tuple[Fraction, Fraction]:
    """Return the ends of Wilson's interval of a mean between 0 and 1 (Wilson 1927), 95 %.

    Args:
        value: the mean, 0 to 1.
        count: the effective number of observations: the sum of their confidences, above 0. So an
            observation that is half sure tells half as much.
    """
    spread = Z * Z / count
    centre = (value + spread / 2) / (1 + spread)
    half = Z * root(value * (1 - value) / count + spread / (4 * count)) / (1 + spread)
    return max(centre - half, Fraction(0)), min(centre + half, Fraction(1))
