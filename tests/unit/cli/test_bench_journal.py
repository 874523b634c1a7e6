from pathlib import Path

from etude.cli.bench.journal import journal


def test_the_journal_bench_measures_append_and_reading(tmp_path: Path) -> None:
    """Appends against bare writes; a journal read to its end with its extra memory."""
    figures = journal(events=50, read_mib=2, folder=str(tmp_path))
    assert 0 < figures["append_p50_us"] <= figures["append_p99_us"]
    assert figures["baseline_p50_us"] > 0
    assert figures["ratio"] > 0
    assert figures["read_events"] > 1000
    assert 0 <= figures["read_extra_mib"] < 64
    assert list(tmp_path.iterdir()) == []
