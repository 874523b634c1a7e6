"""The shipped table and model: the figures anyone can recompute."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from etude.assess.agreement import agreement, compared, held_out, pearson
from etude.assess.errors import ModelFileDamagedError, TableDamagedError
from etude.assess.model_file import (
    ARRAYS,
    CARD,
    FIRST,
    NAMES,
    Arrays,
    card_of,
    load_model,
    models_folder,
)
from etude.assess.table import ATTRIBUTION, TABLE, Table, shipped_table


@pytest.fixture(scope="module")
def table() -> Table:
    return shipped_table()


def test_the_figures_are_recomputed_from_the_table(table: Table) -> None:
    """Held out by speaker, agreement is what the model's card says, and reaches its goals."""
    figures = agreement(table, held_out(table))
    told = card_of(models_folder()).figures
    for target, goal in (("accuracy", 0.86), ("fluency", 0.89), ("total", 0.87)):
        assert figures[target]["pearson"] == pytest.approx(told[target]["pearson"], abs=2e-3)
        assert figures[target]["pearson"] >= goal
    assert figures["total"]["children"]["pearson"] >= 0.66


def test_the_second_model_agrees_better_than_the_first(table: Table) -> None:
    """On the same speakers, held out alike: better by more than chance, children's too."""
    better = compared(shipped_table(FIRST), table)
    assert better["total"]["difference"] > 0
    assert better["total"]["interval"][0] > 0
    assert better["total"]["children"]["difference"] > 0


def test_no_speaker_is_on_both_sides(table: Table) -> None:
    """All utterances of a speaker are held out together."""
    folds: dict[str, set[int]] = {}
    for speaker, fold in zip(table.speakers, table.folds.tolist(), strict=True):
        folds.setdefault(speaker, set()).add(fold)
    assert all(len(own) == 1 for own in folds.values())
    assert len({fold for own in folds.values() for fold in own}) == 10


def test_what_ships_names_its_source_and_holds_no_recording() -> None:
    """Table and card carry the attribution; there is nothing beside numbers and corpus ids."""
    folder = models_folder()
    files = {f"{name}{end}" for name in NAMES for end in (".npz", ".json", ".csv.gz")}
    assert {path.name for path in folder.iterdir()} == files >= {ARRAYS, CARD, TABLE}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    for name in NAMES:
        assert card_of(folder, name).attribution == ATTRIBUTION
        assert all(re.fullmatch(r"\d{9}", one) for one in shipped_table(name).ids)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_one_its_card_names(name: str) -> None:
    """The sha256 in the card is that of the arrays, which survive being written again."""
    folder = models_folder()
    data = (folder / f"{name}.npz").read_bytes()
    assert hashlib.sha256(data).hexdigest() == card_of(folder, name).sha256
    assert Arrays.decoded(data).encoded() == data
    assert load_model(folder, name).card.version == card_of(folder, name).sha256[:12]


def test_a_table_survives_being_written(table: Table) -> None:
    """The same table gives the same bytes, and the bytes the same table."""
    encoded = table.encoded()
    again = Table.decoded(encoded)
    assert again.encoded() == encoded
    assert np.array_equal(again.features, table.features, equal_nan=True)


@pytest.mark.parametrize("data", [b"", b"not gzip", b"\x1f\x8b\x08"])
def test_a_damaged_table_is_refused(data: bytes) -> None:
    """Bytes that are no table are a typed error."""
    with pytest.raises(TableDamagedError):
        Table.decoded(data)


def test_a_changed_model_is_refused(tmp_path: Path) -> None:
    """One other byte, a cut file or a missing card is named; nothing is assessed with it."""
    folder = models_folder()
    data = bytearray((folder / ARRAYS).read_bytes())
    (tmp_path / CARD).write_bytes((folder / CARD).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / ARRAYS).write_bytes(bytes(data))
    with pytest.raises(ModelFileDamagedError) as caught:
        load_model(tmp_path)
    assert caught.value.params["reason"] == "sha256"
    with pytest.raises(ModelFileDamagedError):
        Arrays.decoded(bytes(data[:100]))
    (tmp_path / CARD).write_text(json.dumps({"sha256": "0"}))
    with pytest.raises(ModelFileDamagedError):
        load_model(tmp_path)


def test_pearson_of_what_does_not_vary_is_zero() -> None:
    """Where one side is constant there is no agreement to speak of."""
    assert pearson(np.ones(3), np.arange(3.0)) == 0.0
