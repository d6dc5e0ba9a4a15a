import io
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from azjax.benchmark.search import SearchBenchmark, peaked
from azjax.games.game import make


def test_a_benchmark_writes_what_it_prints(tmp_path):
    screen = io.StringIO()
    output = tmp_path / "results" / "search.json"
    benchmark = SearchBenchmark(game="connect2", batch=8, num_simulations=4, repeats=3, output=output)
    report = benchmark.run(Console(file=screen, width=120))
    assert json.loads(output.read_text()) == report
    assert [row["evaluator"] for row in report["rows"]] == ["uniform", "peaked"]
    assert report["settings"] == {"game": "connect2", "batch": 8, "num_simulations": 4, "repeats": 3}
    for row in report["rows"]:
        rates = row["simulations_per_second"]
        assert row["ratio_range"][0] <= row["ratio"] <= row["ratio_range"][1]
        assert f"{rates['azjax']:,}" in screen.getvalue()
    assert set(report["machine"]["versions"]) == {"azjax", "jax", "jaxlib", "mctx"}


@pytest.mark.parametrize("field", ["batch", "num_simulations", "repeats"])
def test_sizes_below_one_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        SearchBenchmark(**{field: 0})


def test_the_peaked_stand_in_is_a_fixed_function_of_the_position():
    game = make("tictactoe")
    texts = ["_________", "X________", "_X_______", "_________"]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[game.from_text(text) for text in texts])
    logits, value = peaked(game)(None, jax.random.key(0), states)
    np.testing.assert_array_equal(logits[0], logits[3])
    assert value[0] == value[3]
    assert len({float(v) for v in value}) == 3
    assert float(logits.min()) >= 0
    assert float(logits.max()) <= 8
    assert np.all(np.abs(value) <= 1)
    again, _ = peaked(game)(None, jax.random.key(7), states)
    np.testing.assert_array_equal(logits, again)
