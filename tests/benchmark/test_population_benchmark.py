"""The benchmark of populations at a size that takes no time."""

import io
import json

import pytest
from rich.console import Console

from azjax.benchmark.population import PopulationBenchmark


@pytest.mark.slow
def test_it_counts_the_iterations_of_all_members_and_writes_what_it_found(tmp_path):
    output = tmp_path / "population.json"
    benchmark = PopulationBenchmark(games=("connect2",), members=2, repeats=1, seconds=0.01, output=output)
    text = io.StringIO()
    report = benchmark.run(Console(file=text, width=120))
    assert json.loads(output.read_text()) == report
    (row,) = report["rows"]
    rates = row["iterations_per_second"]
    assert row["ratio"] == pytest.approx(rates["population"] / rates["one run"])
    assert row["ratio_range"] == [row["ratio"]] * 2
    assert report["settings"]["devices"] == 1  # JAX runs already
    assert f"{rates['population']:,.1f}" in text.getvalue()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"seconds": 0.0}, "seconds must be above 0, got 0.0"),
        ({"seconds": float("inf")}, "seconds must be at most 1,000,000, got inf"),
        ({"games": ("chess",)}, "unknown game 'chess'"),
        ({"games": ()}, "games must name one or more, got none"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        PopulationBenchmark(**options)
