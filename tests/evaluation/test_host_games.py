"""Positions as text."""

import jax
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.evaluation.host_games import position_from_text, replay
from azjax.games.game import Game
from azjax.games.registry import make

TICTACTOE = make("tictactoe")


class Bare(Game):
    """Tic-tac-toe by its rules alone, without text."""

    name = "bare"
    num_actions = TICTACTOE.num_actions
    max_legal_actions = TICTACTOE.max_legal_actions
    max_plies = TICTACTOE.max_plies
    observation_shape = TICTACTOE.observation_shape
    init, step = TICTACTOE.init, TICTACTOE.step
    legal_action_mask, observe = TICTACTOE.legal_action_mask, TICTACTOE.observe


def test_a_position_of_a_game_without_a_notation_is_the_moves_that_lead_there():
    assert TICTACTOE.to_text(position_from_text(Bare(), "4 0 8")) == "O___X___X"
    assert TICTACTOE.to_text(position_from_text(Bare(), "")) == "_________"
    assert TICTACTOE.to_text(position_from_text(TICTACTOE, "O___X___X")) == "O___X___X"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 0 4", "move 3: '4' is not a legal move here; legal: 1, 2, 3, 5, 6, 7, 8"),
        ("4 x", "move 2: 'x' is not a legal move here; legal: 0, 1, 2, 3, 5, 6, 7, 8"),
        ("0 3 1 4 2 5", "the game ended after 5 moves, and has 6"),
    ],
)
def test_moves_that_the_rules_do_not_allow_are_refused_by_their_place(text, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        position_from_text(Bare(), text)


def test_a_replay_has_one_position_more_than_moves():
    states, actions = replay(TICTACTOE, TICTACTOE.init(jax.random.key(0)), ["b2", "a3"])
    assert [TICTACTOE.to_text(state) for state in states] == ["_________", "____X____", "O___X____"]
    assert actions == [4, 0]
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(states))
