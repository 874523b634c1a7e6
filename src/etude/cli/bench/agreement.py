"""`etude bench agreement`: how well the model of pronunciation agrees with raters.

Recomputed from the table of features that ships: each row is predicted by a model that was fitted
without its speaker. No sound, no engine, no network.
"""

from typing import Any

from etude.assess.agreement import agreement as agreement_of
from etude.assess.agreement import compared, held_out, pearson
from etude.assess.intervals import covered
from etude.assess.model_file import FIRST, card_of, models_folder
from etude.assess.probes import TARGETS
from etude.assess.table import ATTRIBUTION, shipped_table

_BASELINE = "similarity"


def agreement() -> dict[str, Any]:
    """Measure agreement by target and group; the baseline is the likeness of the texts alone."""
    table, card = shipped_table(), card_of(models_folder())
    predicted = held_out(table)
    figures = agreement_of(table, predicted)
    likeness = table.features[:, list(table.names).index(_BASELINE)]
    total = table.targets[:, TARGETS.index("total")]
    baseline = round(pearson(likeness, total), 4)
    return {
        **figures,
        "word_hints": card.word_hints,
        "covered": covered(table, predicted, card.coverage),
        "better_than_v1": compared(shipped_table(FIRST), table),
        "utterances": len(table.ids),
        "speakers": len(set(table.speakers)),
        "attribution": ATTRIBUTION,
        "baseline": "text_similarity_v0 alone, on total",
        "baseline_pearson": baseline,
        "ratio": round(figures["total"]["pearson"] / baseline, 2) if baseline else None,
    }
