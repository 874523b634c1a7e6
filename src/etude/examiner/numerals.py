"""Numbers in running text, English and Chinese: 91%, 0.91, 九十一, nineteen, 百分之九十一, 两次.

Made for checking what a model wrote, so in doubt something is a number: a text that is refused
costs nothing but its style.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

import msgspec

_DIGITS: Final = {character: value for value, character in enumerate("零一二三四五六七八九")} | {
    "\u3007": 0,
    "两": 2,
    "俩": 2,
    "仨": 3,
    "壹": 1,
    "贰": 2,
    "叁": 3,
    "肆": 4,
    "伍": 5,
    "陆": 6,
    "柒": 7,
    "捌": 8,
    "玖": 9,
}
_STEPS: Final = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS: Final = {"万": 10**4, "亿": 10**8}
_HAN: Final = "".join((*_DIGITS, *_STEPS, *_MYRIADS))
# Words that merely contain such a character; longer ones first.
_IDIOMS: Final = re.compile(
    "统一|唯一|万一|专一|单一|一起|一致|一直|一样|一定|一些|一下|一边|一般|一点(?![零一二三四五六七八九两])|一旦|一律|一并"
    "|一切|一共|一同|一向|一度|下一|上一|每一|这一|那一|某一|另一|任一|同一|进一步|万分|三角"
)
_ENGLISH: Final = {
    word: value
    for value, words in enumerate(
        (
            "zero",
            "one first",
            "two twice double couple",
            "three third thirds thrice triple",
            "four fourth fourths quadruple",
            "five fifth fifths",
            "six sixth sixths",
            "seven seventh",
            "eight eighth eighths",
            "nine ninth",
            "ten tenth tenths",
            "eleven eleventh",
            "twelve twelfth dozen",
            "thirteen thirteenth",
            "fourteen fourteenth",
            "fifteen fifteenth",
            "sixteen sixteenth",
            "seventeen seventeenth",
            "eighteen eighteenth",
            "nineteen nineteenth",
        )
    )
    for word in words.split()
}
_TENS: Final = {
    word: value
    for value, words in zip(
        range(20, 100, 10),
        (
            "twenty twentieth",
            "thirty thirtieth",
            "forty fortieth",
            "fifty fiftieth",
            "sixty sixtieth",
            "seventy seventieth",
            "eighty eightieth",
            "ninety ninetieth",
        ),
        strict=True,
    )
    for word in words.split()
}
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6}
_NUMBER_WORD: Final = "|".join(
    sorted((*_ENGLISH, *_TENS, *_SCALES, "half", "quarter", "quarters"), key=len, reverse=True)
)
_ENGLISH_RUN: Final = re.compile(
    rf"\b(?:{_NUMBER_WORD})\b(?:(?:[\s-]+|\s+and\s+)(?:{_NUMBER_WORD})\b)*", re.IGNORECASE
)
_ORDINAL_SECOND: Final = re.compile(
    r"\bsecond\s+(?=(?:bar|measure|step|time|line|phrase|try|attempt|note|clip|half|word|sentence"
    r"|session|part|one|observation)\b)",
    re.IGNORECASE,
)
# "one" as a pronoun: this one, one another.
_PRONOUN: Final = re.compile(
    r"\b(?:this|that|each|every|no|any|which|another)\s+one\b|\bone\s+another\b", re.IGNORECASE
)
_ARABIC: Final = re.compile(r"(?<![\d.])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")
_PERCENT_BEHIND: Final = re.compile(r"\s*(?:%|percent(?:age)?\b|per\s*cent\b)", re.IGNORECASE)
_HAN_RUN: Final = re.compile(rf"[{_HAN}]+(?:点[{''.join(_DIGITS)}]+)?")
_POINTS: Final = re.compile("个?百分点")
_HALVES: Final = re.compile("一半|半")


class Numeral(msgspec.Struct, frozen=True, kw_only=True):
    """A number that a text names."""

    text: str
    number: Fraction
    percent: bool = False


def numerals(text: str) -> list[Numeral]:
    """Return every number that `text` names, in both languages at once."""
    plain = _POINTS.sub("%", unicodedata.normalize("NFKC", text))
    found = list(_arabic(plain))
    found += _english(_PRONOUN.sub(" ", _ORDINAL_SECOND.sub("two ", plain)))
    found += _han(_IDIOMS.sub("□", plain))
    return found


def _arabic(text: str) -> Iterator[Numeral]:
    for match in _ARABIC.finditer(text):
        number = Fraction(Decimal(match[1].replace(",", "") + (match[2] or "")))
        before = text[: match.start()].rstrip()
        behind = _PERCENT_BEHIND.match(text, match.end())
        is_percent = behind is not None or before.endswith("百分之")
        yield Numeral(text=match[0], number=number, percent=is_percent)


def _english(text: str) -> Iterator[Numeral]:
    for match in _ENGLISH_RUN.finditer(text):
        behind = _PERCENT_BEHIND.match(text, match.end())
        for number in _english_numbers(match[0].lower()):
            yield Numeral(text=match[0], number=number, percent=behind is not None)


def _english_numbers(run: str) -> list[Fraction]:
    """Return the numbers of a run of number words; words that do not build one are several."""
    numbers: list[int] = []
    total: int | None = None
    fractions = []
    for word in re.split(r"[\s-]+", run):
        if word in {"half", "quarter", "quarters"}:
            fractions.append(Fraction(1, 2 if word == "half" else 4))
        elif word in _SCALES:
            total = (1 if total is None else total) * _SCALES[word]
        elif word in _TENS or word in _ENGLISH:
            value = _TENS.get(word, _ENGLISH.get(word, 0))
            if total is not None and _fits(total, value):
                total += value
            else:
                numbers += [] if total is None else [total]
                total = value
    if total is not None:
        numbers.append(total)
    return [*map(Fraction, numbers), *fractions]


def _fits(total: int, value: int) -> bool:
    """Whether `value` goes on with a number: twenty-five, a hundred and ten; not: ten, five."""
    open_places = total % 100
    if total < 20:  # noqa: PLR2004 - the English words up to nineteen stand alone
        return False
    return open_places == 0 or (open_places >= 20 and open_places % 10 == 0 and 0 < value < 10)  # noqa: PLR2004 - places of the decimal system


def _han(text: str) -> Iterator[Numeral]:
    for match in _HAN_RUN.finditer(text):
        run, behind = match[0], text[match.end() : match.end() + 1]
        if behind == "成":  # 九成 = nine tenths
            yield Numeral(text=f"{run}成", number=_read_han(run) * 10, percent=True)
            continue
        before = text[: match.start()]
        if before.endswith("百分之"):
            yield Numeral(text=run, number=_read_han(run), percent=True)
            continue
        rest = run.removesuffix("百") if text.startswith("分之", match.end()) else run
        if not rest:
            continue  # 百分之: said by the number behind it
        is_percent = _PERCENT_BEHIND.match(text, match.end()) is not None
        yield Numeral(text=rest, number=_read_han(rest), percent=is_percent)
    for match in _HALVES.finditer(text):
        yield Numeral(text=match[0], number=Fraction(1, 2))


def _read_han(run: str) -> Fraction:
    """Return what a run of Chinese numerals says: 一百零三, 九一 (digit by digit), 零点九一."""
    whole, _, decimals = run.partition("点")
    if len(whole) > 1 and all(character in _DIGITS for character in whole):
        number = Fraction(int("".join(str(_DIGITS[character]) for character in whole)))
    else:
        number = Fraction(_read_steps(whole))
    if decimals:
        digits = "".join(str(_DIGITS[character]) for character in decimals)
        number += Fraction(int(digits), 10 ** len(digits))
    return number


def _read_steps(whole: str) -> int:
    total, part, digit = 0, 0, None
    for character in whole:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _STEPS:
            part += (1 if digit is None else digit) * _STEPS[character]
            digit = None
        else:
            total = (total + part + (digit or 0) or 1) * _MYRIADS[character]
            part, digit = 0, None
    return total + part + (digit or 0)
