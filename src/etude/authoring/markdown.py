"""A syllabus in Markdown.

    # Course            ## Module             ### Words | Facts | Steps | Sentences | …
    A summary.          An introduction.      - **evaporation**: water turns into vapour

A heading of the third level says by its words what is below it: goals, words, steps, sentences,
questions, a project; every other one is a topic whose sentences are facts. `Audience:` and
`Goals:` may stand below the first heading.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from etude.authoring.material import Fact, Ref, Section, Syllabus, Term, Unit
from etude.authoring.wording import key

Kind = Literal["goals", "terms", "steps", "sentences", "questions", "tasks", "facts", "audience"]

_HEADING: Final = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_BULLET: Final = re.compile(r"^(?:[-*+•]|\d{1,3}[.)、])\s+(.*)$")
_LABEL: Final = re.compile(r"^\**([A-Za-z一-鿿 ]{2,24})\**\s*[:：]\**\s*(.*)$")  # noqa: RUF001 - Chinese colon
_TERM: Final = re.compile(
    r"^\*\*(.{1,60}?)\*\*\s*[:：–—-]\s*(.+)$"  # noqa: RUF001 - dashes and Chinese colons
    r"|^([^:：*|]{1,40})\s*[:：]\s*(.+)$"  # noqa: RUF001 - Chinese colons
)
_ROW: Final = re.compile(r"^\|(.+)\|$")
_RULE: Final = re.compile(r"^\|?[\s:|-]+\|?$")
_MARKED: Final = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|【(.+?)】")
_MARKUP: Final = re.compile(r"\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)|!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“*])|(?<=[。！？])\s*(?=\S)")  # noqa: RUF001 - Chinese marks
_EXAMPLE: Final = re.compile(
    r"\s*\(?(?:e\.g\.|for example|Example|例句?|例如)\s*[:：,，]?\s*(.+?)\)?$"  # noqa: RUF001 - Chinese marks
)
_GLOSS: Final = " // "
_LEAST_STEPS: Final = 3
_KINDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "goals": ("goal", "objective", "outcome", "目标"),
    "terms": ("term", "vocabulary", "words", "glossary", "词语", "生词", "术语", "词汇", "关键词"),
    "steps": ("step", "how it goes", "sequence", "步骤", "过程", "顺序", "流程"),
    "sentences": ("sentence", "read aloud", "say it", "follow", "句子", "跟读", "朗读"),
    "questions": ("question", "discuss", "talk about", "讨论", "思考", "问题"),
    "tasks": ("project", "task", "make it", "项目", "任务", "动手"),
    "audience": ("audience", "who", "learners", "对象", "学习者"),
}


class _Line(NamedTuple):
    ref: Ref
    text: str
    bullet: bool
    numbered: bool = False


class _Block(NamedTuple):
    level: int
    title: str
    ref: Ref
    lines: list[_Line]


def read_markdown(text: str, file: int) -> Syllabus:
    """Return the syllabus of a Markdown text; `file` is its place among the files."""
    title, at = "", Ref(file, 1)
    summary, audience = list[str](), ""
    goals: list[str] = []
    units: list[list[_Block]] = []
    for block in _blocks(text, file):
        if block.level <= 1 and not units:
            title, at = title or block.title, block.ref if block.title else at
            for kind, lines in _labelled(block.lines):
                if kind == "goals":
                    goals += [fact.text for fact in facts_of(lines)]
                elif kind == "audience":
                    audience = " ".join(fact.text for fact in facts_of(lines))
                else:
                    summary += [fact.text for fact in facts_of(lines)]
        elif block.level <= 2:  # noqa: PLR2004 - the heading of a lesson
            units.append([block])
        else:
            if not units:
                units.append([_Block(2, title, block.ref, [])])
            units[-1].append(block)
    return Syllabus(
        title=title,
        summary=" ".join(summary),
        audience=audience,
        goals=tuple(goals),
        language="en",
        units=tuple(unit for blocks in units if (unit := _unit(blocks)).size),
        ref=at,
    )


def read_text(text: str, file: int) -> Syllabus:
    """Return a text as one unit: its headings begin topics and lists, not lessons."""
    blocks = list(_blocks(text, file))
    heads = [block for block in blocks if block.title]
    first = [block for block in heads if block.level == 1] or (heads if len(heads) == 1 else [])
    title = first[0].title if first else ""
    unit = _unit([_Block(2, title, blocks[0].ref, []), *blocks])
    units = (unit,) if unit.size else ()
    return Syllabus(title=title, language="en", units=units, ref=unit.ref)


def is_prose(text: str) -> bool:
    """Whether a text has lower headings or paragraphs: a list has one thing a line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    heads = [match for line in lines if (match := _HEADING.match(line))]
    several = [line for line in lines if len(_SENTENCE_END.split(line)) > 1]
    return any(len(head[1]) > 1 for head in heads) or len(several) * 2 > len(lines) - len(heads)


def _unit(blocks: Sequence[_Block]) -> Unit:
    found: dict[Kind, list[Fact]] = {
        kind: [] for kind in ("goals", "sentences", "questions", "tasks")
    }
    terms: list[Term] = []
    sections: list[Section] = []
    steps: list[Section] = []
    head = blocks[0]
    for block in blocks:
        for kind, lines in _labelled(
            block.lines, kind_of(block.title) if block is not head else None
        ):
            if kind == "terms":
                terms += _terms(lines)
            elif kind == "steps" or (kind == "facts" and _is_order(lines)):
                steps.append(Section(title=block.title, facts=tuple(_whole(lines))))
            elif kind in found:
                found[kind] += _whole(lines) if kind != "sentences" else facts_of(lines)
            elif facts := facts_of(lines):
                sections.append(Section(title=block.title, facts=tuple(facts)))
    return Unit(
        title=_plain(head.title),
        ref=head.ref,
        goals=tuple(found["goals"]),
        terms=tuple(terms),
        sections=tuple(sections),
        steps=tuple(one for one in steps if one.facts),
        sentences=tuple(found["sentences"]),
        questions=tuple(found["questions"]),
        tasks=tuple(found["tasks"]),
    )


def _is_order(lines: Sequence[_Line]) -> bool:
    """Whether lines are a numbered list: then their order matters."""
    return len(lines) >= _LEAST_STEPS and all(one.numbered for one in lines)


def kind_of(title: str) -> Kind:
    """Return what stands below a heading, by its words."""
    folded = title.casefold()
    for kind, words in _KINDS.items():
        if any(word in folded for word in words):
            return kind
    return "facts"


def facts_of(lines: Sequence[_Line]) -> list[Fact]:
    """Return the sentences of lines: a paragraph's lines belong together, a bullet stands alone.

    What is blank without its markup is none.
    """
    found = [plain_fact(one, line.ref) for line in lines for one in _SENTENCE_END.split(line.text)]
    return [fact for fact in found if key(fact.text)]


def plain_fact(text: str, ref: Ref, *, marked: tuple[str, ...] = ()) -> Fact:
    """Return a sentence without its markup, which says what was emphasised."""
    said, _, gloss = text.partition(_GLOSS)
    found = [_plain(next(filter(None, groups))) for groups in _MARKED.findall(said)]
    emphasised = tuple(filter(None, found))
    return Fact(text=_plain(said), ref=ref, marked=emphasised or marked, gloss=_plain(gloss))


def _whole(lines: Sequence[_Line]) -> list[Fact]:
    found = [plain_fact(line.text, line.ref) for line in lines]
    return [fact for fact in found if key(fact.text)]


def _terms(lines: Sequence[_Line]) -> Iterator[Term]:
    for line in lines:
        if row := _ROW.match(line.text):
            cells = [_plain(cell) for cell in row[1].split("|")]
            if len(cells) > 1 and cells[0] and cells[1]:
                example = cells[2] if len(cells) > 2 else ""  # noqa: PLR2004 - the third column
                yield Term(term=cells[0], meaning=cells[1], ref=line.ref, example=example)
            continue
        match = _TERM.match(line.text)
        if match is None:
            continue
        term, meaning = (match[1], match[2]) if match[1] else (match[3], match[4])
        shown = _EXAMPLE.search(meaning)
        if shown:
            meaning = meaning[: shown.start()]
        made = Term(
            term=_plain(term),
            meaning=_plain(meaning).rstrip("."),
            ref=line.ref,
            example=_plain(shown[1]) if shown else "",
        )
        if key(made.term) and key(made.meaning):
            yield made


def _labelled(
    lines: Sequence[_Line], kind: Kind | None = None
) -> Iterator[tuple[Kind, list[_Line]]]:
    """Yield lines by what they are; a line such as `Goals:` changes that until a blank line."""
    at: Kind = kind or "facts"
    gathered: list[_Line] = []
    for line in lines:
        label = _LABEL.match(line.text) if not line.bullet and at != "terms" else None
        wanted = kind_of(label[1]) if label else "facts"
        if label and wanted in {"goals", "audience", "terms", "questions"}:
            if gathered:
                yield at, gathered
            at, gathered = wanted, []
            if label[2]:
                yield at, [line._replace(text=label[2])]
                at = kind or "facts"
        else:
            if at != (kind or "facts") and not line.bullet and gathered:
                yield at, gathered
                at, gathered = kind or "facts", []
            gathered.append(line)
    if gathered:
        yield at, gathered


def _blocks(text: str, file: int) -> Iterator[_Block]:
    block = _Block(0, "", Ref(file, 1), [])
    open_paragraph = fenced = False
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = raw.strip()
        if line.startswith("```"):
            fenced = not fenced
        if _RULE.match(line) and "|" in line and block.lines and _ROW.match(block.lines[-1].text):
            del block.lines[-1]  # the head of a table says what its columns are
        if fenced or line.startswith(("```", "<!--")) or (_RULE.match(line) and line):
            continue
        if heading := _HEADING.match(line):
            yield block
            block = _Block(len(heading[1]), _plain(heading[2]), Ref(file, number), [])
            open_paragraph = False
        elif not line:
            open_paragraph = False
        elif bullet := _BULLET.match(line):
            numbered = line[0].isdigit()
            block.lines.append(_Line(Ref(file, number), bullet[1], bullet=True, numbered=numbered))
            open_paragraph = raw[:1] != " "
        elif open_paragraph and block.lines and not line.startswith("|") and not _LABEL.match(line):
            last = block.lines[-1]
            gap = "" if last.text[-1:] > "⺀" else " "
            block.lines[-1] = last._replace(text=f"{last.text}{gap}{line}")
        else:
            block.lines.append(_Line(Ref(file, number), line.removeprefix("> "), bullet=False))
            open_paragraph = True
    yield block


def _plain(text: str) -> str:
    without = _MARKUP.sub(lambda match: match[1] or "", text.replace("【", "").replace("】", ""))
    return " ".join(without.split()) if key(without) else ""
