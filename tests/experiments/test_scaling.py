"""The study of training against thinking."""

import json

import jax
import numpy as np
import pytest
from studies import load_study

from azjax.games.registry import make


@pytest.fixture(scope="module")
def scaling():
    return load_study("scaling")  # once: it registers a game


def test_the_exponents_of_a_power_law_are_found(scaling):
    def share(flops, simulations):
        return 0.5 * flops**-0.4 * (simulations + 1) ** -0.2

    rows = [
        {"seed": seed, "training_flops": flops, "num_simulations": count, "mistakes": share(flops, count)}
        for seed in (0, 1)
        for flops in (2.0**20, 2.0**22, 2.0**25)
        for count in scaling.SIMULATIONS
    ]
    # A larger network that needs more for the same is not on the frontier.
    rows += [{**row, "training_flops": 4 * row["training_flops"], "mistakes": 2 * row["mistakes"]} for row in rows]
    for fit in scaling.fits_of(rows):
        assert (fit.training, fit.play) == (pytest.approx(0.4), pytest.approx(0.2))
        assert fit.doublings == pytest.approx(2.0)


def test_the_interval_over_seeds_is_that_of_student(scaling):
    # t(0.975, 2 degrees of freedom) = 4.3027; the standard error of 1, 2, 3 is 1 / sqrt(3).
    assert scaling.summary([1.0, 2.0, 3.0]) == {
        "by_seed": [1.0, 2.0, 3.0],
        "mean": 2.0,
        "interval": [pytest.approx(2 - 4.3027 / 3**0.5, abs=1e-3), pytest.approx(2 + 4.3027 / 3**0.5, abs=1e-3)],
    }
    assert scaling.summary([1.0]) == {"by_seed": [1.0], "mean": 1.0}


def test_a_decision_has_a_move_that_loses_value_and_one_that_does_not(scaling):
    game = make("tictactoe")
    positions = scaling.decisions(game, 10_000)
    legal = np.asarray(jax.vmap(game.legal_action_mask)(positions.states))
    assert (positions.loses <= legal).all()
    assert positions.loses.any(axis=1).all()
    assert (legal & ~positions.loses).any(axis=1).all()


@pytest.mark.slow
def test_the_scaling_study_goes_on_where_it_stopped(scaling, tmp_path):
    options = {"widths": (8,), "num_positions": 64, "folder": tmp_path}
    options |= {"output": tmp_path / "results.json", "plot": tmp_path / "plot.png", "doublings": 1}
    scaling.main(seeds=(0,), **options)
    scaling.main(seeds=(0, 1), **options)
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["rows"]) == 2 * 2 * len(scaling.SIMULATIONS)
    assert all(0 <= row["mistakes"] <= 1 for row in results["rows"])
    assert "interval" in results["exponents"]["exponent of training"]
    assert (tmp_path / "plot.png").exists()
