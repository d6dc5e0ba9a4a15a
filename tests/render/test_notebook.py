import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest

import azjax.games
from azjax.games.check import check_game
from azjax.games.mnk import Mnk
from azjax.render.picture import svg

GAMES = {
    "tictactoe": {},
    "connect_four": {},
    "santorini": {"size": 3, "workers": 1},
    "brandub": {},
    "pgx:tic_tac_toe": {},
}
TICTACTOE = azjax.games.make("tictactoe")


def starts(game, count):
    return jax.vmap(game.init)(jax.random.split(jax.random.key(0), count))


@pytest.mark.parametrize("name", GAMES)
def test_a_state_shows_the_picture_of_its_game_and_a_batch_its_first_six(name):
    if name.startswith("pgx:"):
        pytest.importorskip("pgx")
    game = azjax.games.make(name, **GAMES[name])
    batch = starts(game, 8)
    state = jax.tree.map(lambda leaf: leaf[7], batch)
    assert state._repr_svg_() == svg(game, state)
    assert state._repr_html_() is None
    shown = batch._repr_html_()
    assert batch._repr_svg_() is None
    assert shown.count("<svg ") == shown.count("</svg>") == 6
    assert f"6 of 8 positions of {game.name}" in shown


def test_a_game_of_other_options_is_another_structure_and_an_equal_one_the_same():
    one, equal, other = (azjax.games.make("mnk", columns=4, rows=4, in_a_row=k).init(None) for k in (3, 3, 4))
    assert jax.tree.structure(one) == jax.tree.structure(equal) != jax.tree.structure(other)
    calls = []
    identity = jax.jit(lambda state: calls.append(state) or state)
    assert [identity(state).game.in_a_row for state in (one, equal, other)] == [3, 3, 4]
    assert len(calls) == 2
    assert "game" not in "".join(jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(one))


def nothing(state):
    return state._repr_svg_() is None and state._repr_html_() is None


def test_what_is_no_position_shows_nothing_and_raises_nothing():
    state = TICTACTOE.init(jax.random.key(0))

    @jax.jit
    def traced(state):
        assert nothing(state)
        return state

    traced(state)
    jax.vmap(traced)(starts(TICTACTOE, 2))
    assert nothing(jax.eval_shape(lambda: state))
    assert nothing(jax.tree.map(lambda leaf: leaf + 0.5, state))
    assert nothing(jax.tree.map(lambda leaf: None, state))
    assert nothing(jax.tree.map(lambda leaf: jnp.zeros((2, 3, *leaf.shape), leaf.dtype), state))
    gone = TICTACTOE.step(state, 0)
    jax.tree.map(lambda leaf: leaf.delete(), gone)
    assert nothing(gone)
    assert "MnkState(stones=" in repr(state)
    assert "game" not in repr(state)


class Named(Mnk):
    """Its name may hold anything."""


def test_a_name_is_written_as_text():
    game = Named(3, 3, 3, name="<b>&")
    assert "2 of 2 positions of &lt;b&gt;&amp;" in starts(game, 2)._repr_html_()
    ElementTree.fromstring(game.init(None)._repr_svg_())
    check_game(game, num_games=4)
