"""The questions of the inline tasks, and whether an answer is exactly the one.

The tasks: `docs/practice.md §The others`. The only place of the runtime where an answer is compared
at once: that is what these tasks are. Chance comes from outside, so that a test sees the same
questions each time.
"""

import random
import re
from typing import Final

import msgspec

from etude.i18n import text
from etude.practice.numerals import digits_in, number_in
from etude.practice.phrases import normalise
from etude.practice.tasks import Activity

EXACT_MATCH: Final = "exact_match_v1"
"""The name of the comparison: 1 or 0, and nothing between."""

IDIOMS: Final = {
    "一鸣惊人": "人山人海",
    "人山人海": "海阔天空",
    "海阔天空": "空前绝后",
    "空前绝后": "后来居上",
    "后来居上": "上行下效",
    "一心一意": "意气风发",
    "守株待兔": "兔死狐悲",
    "马到成功": "功成名就",
    "功成名就": "就地取材",
    "名不虚传": "传宗接代",
    "百发百中": "中流砥柱",
    "心想事成": "成千上万",
    "成千上万": "万众一心",
    "万众一心": "心平气和",
    "心平气和": "和颜悦色",
    "自强不息": "息息相关",
    "息息相关": "关门大吉",
    "学以致用": "用心良苦",
    "用心良苦": "苦尽甘来",
    "苦尽甘来": "来日方长",
    "来日方长": "长年累月",
    "长年累月": "月下老人",
    "日新月异": "异口同声",
    "异口同声": "声东击西",
}
"""Idioms to begin with, and one that goes on from each."""
_IDIOM: Final = re.compile(r"[\u4e00-\u9fff]{4}")
_LONGEST_ROW: Final = 7


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question and an answer to it; of an idiom chain one of many."""

    activity: Activity
    text: str
    answer: str

    def spoken(self, language: str) -> str:
        """Return the question as it is said aloud in a language."""
        if self.activity is Activity.REVERSE_DIGITS:
            digits = ", ".join(self.text.split())
            return text("question.reverse_digits", language, digits=digits)
        if self.activity is Activity.MENTAL_ARITHMETIC:
            first, sign, second, *_ = self.text.split()
            name = "plus" if sign == "+" else "minus"
            return text(f"question.{name}", language, first=first, second=second)
        return self.text

    def match(self, said: str) -> int:
        """Return 1 if `said` is an answer, else 0 (`exact_match_v1`)."""
        if self.activity is Activity.REVERSE_DIGITS:
            return int(digits_in(said) == self.answer)
        if self.activity is Activity.MENTAL_ARITHMETIC:
            return int(number_in(said) == int(self.answer))
        idiom = normalise(said)
        follows = bool(_IDIOM.fullmatch(idiom)) and idiom[0] == self.text[-1]
        return int(follows and idiom != self.text)


def ask(activity: Activity, step_index: int, chance: random.Random) -> Question:
    """Return the question of a step; rows of digits grow from three to seven."""
    if activity is Activity.REVERSE_DIGITS:
        digits = [str(chance.randrange(10)) for _ in range(min(3 + step_index // 2, _LONGEST_ROW))]
        answer = "".join(reversed(digits))
        return Question(activity=activity, text=" ".join(digits), answer=answer)
    if activity is Activity.MENTAL_ARITHMETIC:
        large, small = sorted((chance.randint(1, 50), chance.randint(1, 50)), reverse=True)
        if chance.random() < 0.5:  # noqa: PLR2004 - one of two
            return Question(
                activity=activity, text=f"{large} + {small} = ?", answer=str(large + small)
            )
        return Question(activity=activity, text=f"{large} - {small} = ?", answer=str(large - small))
    idiom = chance.choice(sorted(IDIOMS))
    return Question(activity=activity, text=idiom, answer=IDIOMS[idiom])
