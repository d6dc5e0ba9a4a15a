"""Dirichlet noise in the priors of the root."""

import numpy as np
import pytest
from searches import (
    NUM_ROWS,
    HashedRow,
    assert_drawn_from,
    assert_equal_rows,
    same_search,
    search,
    states_after,
)

from azjax.games.mnk import Mnk
from azjax.search import evaluators


def test_without_noise_the_key_changes_nothing():
    assert_equal_rows(same_search(0.0, key_seed=5), same_search(0.0, key_seed=6))


FOUR_CELLS_LEFT = Mnk(26, 1, 26)  # a row that no one can win: all values are 0 and visits follow the priors
FREE = [3, 9, 10, 25]


def visits_of_four_cells(**options):
    """Visits of the 4 free cells in 1024 rows and 100 simulations; the priors are 1 at cell 9, else 0."""
    game = FOUR_CELLS_LEFT
    moves = [cell for cell in range(26) if cell not in FREE]
    logits = np.where(np.arange(26) == 9, 50.0, 0.0).astype(np.float32)
    params = np.tile(logits, (NUM_ROWS, 1)), np.zeros(NUM_ROWS, np.float32)
    result = search(
        params,
        states_after(game, [moves] * 1024),
        game=game,
        evaluator=evaluators.table(HashedRow(game)),
        num_simulations=100,
        **options,
    )
    assert result.visits.sum() == result.visits[:, FREE].sum() == 100 * 1024
    return result.visits[:, FREE]


def test_the_noise_is_shared_among_the_legal_actions_alone():
    # Even noise gives each of 4 legal actions 1/4 of the noise's share, not 1/26: with 40% of noise, priors 70%,
    # 10%, 10% and 10%.
    visits = visits_of_four_cells(dirichlet_fraction=0.4, dirichlet_alpha=1e6)
    assert (np.abs(visits - [10, 70, 10, 10]) <= 3).all()


def test_noise_alone_prefers_each_legal_action_equally_often():
    visits = visits_of_four_cells(dirichlet_fraction=1.0, dirichlet_alpha=0.3)
    # Rows where two actions are visited alike would count for the lower one.
    untied = visits[np.sort(visits, axis=1)[:, -1] > np.sort(visits, axis=1)[:, -2]]
    assert len(untied) > 900
    assert_drawn_from(np.argmax(untied, axis=1), np.full(4, 1 / 4))


def test_noise_of_low_concentration_falls_on_one_action_at_a_time():
    visits = visits_of_four_cells(dirichlet_fraction=0.4, dirichlet_alpha=0.01)
    np.testing.assert_allclose(visits.mean(axis=0), [10, 70, 10, 10], atol=4)
    largest = visits[:, [0, 2, 3]].max(axis=1)
    assert np.mean(largest > 35) == pytest.approx(3 / 4, abs=0.1)
    assert np.mean(largest < 5) == pytest.approx(1 / 4, abs=0.1)


def test_without_noise_an_action_of_prior_0_is_not_visited():
    assert (visits_of_four_cells(dirichlet_fraction=0.0, dirichlet_alpha=0.3) == [0, 100, 0, 0]).all()


def test_the_default_concentration_is_10_over_the_number_of_legal_actions():
    default = visits_of_four_cells(dirichlet_fraction=0.5)
    stated = visits_of_four_cells(dirichlet_fraction=0.5, dirichlet_alpha=10 / 4)
    np.testing.assert_array_equal(default, stated)
