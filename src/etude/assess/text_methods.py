"""Methods that compare what was heard with what was to be read; they need no engine of their own.

Clipped at 0: a recogniser that runs away can make more mistakes than there are words.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from etude.assess.metrics import UNIT_RATIO, Metric
from etude.assess.pinyin import syllables
from etude.assess.words import capped, is_chinese, normalise, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIMILARITY: Final = "text_similarity_v0"
CER: Final = "cer_v1"
WER: Final = "wer_v1"
COMPLETENESS: Final = "completeness_v1"


def similarity(expected: str, heard: str) -> float:
    """Return difflib's ratio of the two normalised texts, 0 to 1 (`docs/rules.md 25`)."""
    return SequenceMatcher(None, normalise(expected), normalise(heard), autojunk=False).ratio()


def distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many insertions, deletions and substitutions make one into the other."""
    row = list(range(len(second) + 1))
    for count, one in enumerate(first, 1):
        before, row[0] = row[0], count
        for place, other in enumerate(second, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (one != other)),
            )
    return row[-1]


def error_rate(expected: Sequence[str], heard: Sequence[str]) -> float:
    """Return the distance for each expected piece, at most 1; 0 where nothing was expected."""
    if not expected:
        return 0.0
    return min(1.0, distance(expected, heard) / len(expected))


def found_words(expected: Sequence[str], heard: Sequence[str]) -> list[bool]:
    """Say of each expected word whether it was heard, in order (each heard word counts once)."""
    matcher = SequenceMatcher(None, expected, heard, autojunk=False)
    found = [False] * len(expected)
    for block in matcher.get_matching_blocks():
        for place in range(block.a, block.a + block.size):
            found[place] = True
    return found


def text_similarity_v0(
    expected_text: str | None,
    asr_text: str | None,
    audio: "NDArray[np.float32] | None",  # noqa: ARG001 - every method has the same arguments
    sample_rate: int,  # noqa: ARG001 - see above
) -> list[Metric]:
    """Return the likeness of the two texts; of Chinese, character by character."""
    if not _comparable(expected_text, asr_text):
        return []
    value = round(similarity(expected_text or "", asr_text or ""), 4)
    return [Metric(method=SIMILARITY, value=value, unit=UNIT_RATIO)]


def cer_v1(
    expected_text: str | None,
    asr_text: str | None,
    audio: "NDArray[np.float32] | None",  # noqa: ARG001 - every method has the same arguments
    sample_rate: int,  # noqa: ARG001 - see above
) -> list[Metric]:
    """Return the error rate of characters; of Chinese, of toneless pinyin syllables.

    `detail.toned` is the rate with tones: characters that sound alike are the same to the ear.
    """
    if not _comparable(expected_text, asr_text):
        return []
    expected, heard = expected_text or "", asr_text or ""
    detail: dict[str, Any] = {}
    if is_chinese(expected):
        plain, toned = (
            [syllables(text, tones=tones) for text in (expected, heard)] for tones in (False, True)
        )
        if plain[0] is not None and plain[1] is not None:
            value = error_rate(plain[0], plain[1])
            detail = {"of": "pinyin", "toned": round(error_rate(toned[0] or [], toned[1] or []), 4)}
            return [Metric(method=CER, value=round(value, 4), unit=UNIT_RATIO, detail=detail)]
        detail = {"of": "characters"}
    value = error_rate(normalise(expected), normalise(heard))
    return [Metric(method=CER, value=round(value, 4), unit=UNIT_RATIO, detail=detail)]


def wer_v1(
    expected_text: str | None,
    asr_text: str | None,
    audio: "NDArray[np.float32] | None",  # noqa: ARG001 - every method has the same arguments
    sample_rate: int,  # noqa: ARG001 - see above
) -> list[Metric]:
    """Return the error rate of words, the heard ones capped (`words.capped`)."""
    if not _comparable(expected_text, asr_text):
        return []
    expected = words_of(expected_text or "")
    heard = capped(words_of(asr_text or ""), expected)
    value = round(error_rate(expected, heard), 4)
    return [Metric(method=WER, value=value, unit=UNIT_RATIO)]


def completeness_v1(
    expected_text: str | None,
    asr_text: str | None,
    audio: "NDArray[np.float32] | None",  # noqa: ARG001 - every method has the same arguments
    sample_rate: int,  # noqa: ARG001 - see above
) -> list[Metric]:
    """Return the share of expected words that were heard, in their order."""
    if not _comparable(expected_text, asr_text):
        return []
    expected = words_of(expected_text or "")
    found = found_words(expected, capped(words_of(asr_text or ""), expected))
    missing = [place for place, was_found in enumerate(found) if not was_found]
    value = round(sum(found) / len(found), 4)
    detail = {"words": len(found), "not_heard": missing}
    return [Metric(method=COMPLETENESS, value=value, unit=UNIT_RATIO, detail=detail)]


def _comparable(expected_text: str | None, asr_text: str | None) -> bool:
    """Say whether there are two texts; one of them without a word in it is none."""
    return asr_text is not None and expected_text is not None and bool(words_of(expected_text))
