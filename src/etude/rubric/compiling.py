"""A rubric's polarity as the one table that every recap is made from.

What counts without a rubric: `docs/events.md §What the recap counts`. The rubric's rules come
first, the default ones behind them, so that what a rubric does not speak of counts as ever.
"""

from collections.abc import Iterator

from etude.rubric import polarity
from etude.rubric.model import Condition, Expected, Rubric, Signal


def compile_table(rubric: Rubric) -> polarity.TableDocument:
    """Return the polarity table of `rubric`."""
    own = tuple(rule for name, signal in rubric.signals.items() for rule in _rules(name, signal))
    return polarity.TableDocument(
        table_version=polarity.TABLE_VERSION,
        phases=tuple(phase.id for phase in rubric.phases),
        rules=(*own, *polarity.default_table().rules),
    )


def _rules(name: str, signal: Signal) -> Iterator[polarity.Rule]:
    for known_as in signal.observe.signals or (name,):
        for kind in signal.observe.event_types:
            path = signal.measure.get(kind)
            if path is not None and signal.polarity is not None:
                issue = signal.polarity.issue
                yield polarity.Rule(
                    event_types=(kind,),
                    signal=known_as,
                    measure=path,
                    positive=_condition(signal.polarity.positive),
                    issue=None if issue is None else _condition(issue),
                )
            elif path is None and signal.primitive == "presence":
                yield polarity.Rule(event_types=(kind,), signal=known_as, counts="positive")


def _condition(expected: Expected | Condition) -> polarity.Condition:
    if isinstance(expected, Condition):
        return polarity.Condition(
            at_least=expected.at_least, at_most=expected.at_most, one_of=expected.one_of
        )
    return polarity.Condition(equals=expected)
