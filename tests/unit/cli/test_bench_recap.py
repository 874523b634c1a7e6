from etude.cli.bench.recap import recap


def test_the_recap_bench_measures_both() -> None:
    """The bench returns percentiles of recap and baseline, and their ratio."""
    figures = recap(events=10, runs=3)
    assert figures["events"] == 10
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]
    assert figures["baseline_p50_ms"] > 0
    assert figures["ratio"] > 0
