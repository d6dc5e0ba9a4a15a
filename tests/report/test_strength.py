"""Which games are solved to measure players; tests of reports and of commands have the measurements."""

import jax.numpy as jnp
import pytest
from rules_alone import RulesAlone

from azjax.core.pytree import replace_fields
from azjax.games.registry import make
from azjax.report.strength import try_solve


class PaysOnTheWay(RulesAlone):
    """Each stone is paid for, so that the last reward is not the result."""

    def step(self, state, action):
        following = super().step(state, action)
        paid = jnp.where(state.terminated, 0.0, jnp.array([0.05, -0.05]))
        return replace_fields(following, rewards=0.25 * following.rewards + paid)


@pytest.mark.parametrize(("game", "is_solved"), [(make("connect2"), True), (PaysOnTheWay(), False)])
def test_small_games_are_solved_unless_wins_cannot_be_counted(game, is_solved):
    assert (try_solve(game) is not None) == is_solved
