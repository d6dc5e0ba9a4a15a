import dataclasses
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

import azjax
from azjax.games import check_game
from azjax.games.pgx import _MAX_PLIES, _MISFITS
from azjax.games.registry import options_of
from azjax.render.picture import svg
from azjax.training import init, make_iteration


@pytest.fixture
def pgx():
    return pytest.importorskip("pgx", reason="pgx is not installed")


@pytest.mark.slow
@pytest.mark.usefixtures("pgx")
def test_tic_tac_toe_of_pgx_keeps_every_law():
    check_game(azjax.make("pgx:tic_tac_toe"), num_games=4)  # the others in tests/slow


@pytest.mark.usefixtures("pgx")
def test_a_game_of_pgx_is_made_again_by_its_name():
    game = azjax.make("pgx:hex")
    assert game.name == "pgx:hex"
    assert options_of(game) == {}
    assert azjax.make("pgx:hex") == game
    assert hash(azjax.make("pgx:hex")) == hash(game)
    assert azjax.make("pgx:othello") != game
    assert "pgx:" not in azjax.available()


@pytest.mark.usefixtures("pgx")
def test_tic_tac_toe_of_pgx_is_tictactoe_along_random_games():
    ours, theirs = azjax.make("tictactoe"), azjax.make("pgx:tic_tac_toe")

    def play(states, key):
        own, other = states
        action = jax.vmap(ours.sample_legal_action)(own, jax.random.bits(key, (64,)))
        following = jax.vmap(ours.step)(own, action), jax.vmap(theirs.step)(other, action)
        shown = [
            (s.current_player, s.terminated, s.rewards, jax.vmap(g.legal_action_mask)(s), jax.vmap(g.observe)(s))
            for g, s in zip((ours, theirs), following, strict=True)
        ]
        return following, shown

    starts = tuple(jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64)) for game in (ours, theirs))
    own, other = jax.jit(lambda: jax.lax.scan(play, starts, jax.random.split(jax.random.key(1), 9))[1])()
    jax.tree.map(np.testing.assert_array_equal, own, other)
    assert np.asarray(own[1][-1]).all()


@pytest.mark.slow
@pytest.mark.usefixtures("pgx")
def test_a_random_search_of_go_plays_a_legal_move():
    game = azjax.make("pgx:go_9x9")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    options = {"game": game, "evaluator": azjax.evaluators.uniform(game), "num_simulations": 8}
    result = jax.jit(functools.partial(azjax.alphazero_policy, **options))(None, jax.random.key(1), states)
    assert np.asarray(jax.vmap(game.legal_action_mask)(states))[np.arange(2), result.action].all()
    assert result.visits.sum(axis=1).tolist() == [8, 8]


@pytest.mark.slow
@pytest.mark.usefixtures("pgx")
def test_an_iteration_of_training_learns_from_tic_tac_toe_of_pgx():
    game = azjax.make("pgx:tic_tac_toe")
    hyper = jax.tree.map(jnp.float32, SMALL.hyper)
    config = dataclasses.replace(SMALL, steps_per_iteration=16, replay_size=128)
    state = jax.jit(lambda: init(game, config, 0, hyper))()
    state, metrics = jax.jit(make_iteration(game, config))(state, hyper)
    assert int(state.iteration) == 1
    assert metrics["games"] >= 4
    assert np.isfinite(metrics["loss"])


@pytest.mark.usefixtures("pgx")
def test_a_position_is_drawn_by_pgx():
    game = azjax.make("pgx:go_9x9")
    state = jax.jit(game.step)(game.init(jax.random.key(0)), 40)
    pictures = svg(game, game.init(jax.random.key(0))), svg(game, state, last_action=40)
    assert all(picture.startswith("<svg") and picture.endswith("</svg>") for picture in pictures)
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backgammon", "it has dice"),
        ("kuhn_poker", "its players hold cards that the other does not see"),
        ("minatar-breakout", "it has one player"),
        ("sparrow_mahjong", "it has three players"),
    ],
)
def test_a_game_that_does_not_fit_is_refused_with_the_reason(name, reason):
    with pytest.raises(ValueError, match=f"pgx:{name} is not a game for azjax: {reason}; available: animal_shogi"):
        azjax.make(f"pgx:{name}")


def test_an_unknown_game_of_pgx_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"unknown game of pgx 'go'; available: .*go_19x19, go_9x9, hex"):
        azjax.make("pgx:go")
    with pytest.raises(ValueError, match="pgx:hex has no option 'size'; its options: none"):
        azjax.make("pgx:hex", size=9)


def test_a_missing_pgx_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"^the games of pgx need pgx: pip install 'azjax\[interop\]'$"):
        azjax.make("pgx:shogi")


def test_every_game_of_pgx_is_known_to_fit_or_not(pgx):
    assert set(pgx.available_envs()) <= {*_MAX_PLIES, *_MISFITS}
    assert not {*_MAX_PLIES} & {*_MISFITS}


@pytest.mark.slow_except("tic_tac_toe-8", "go_9x9-1")
@pytest.mark.usefixtures("pgx")
@pytest.mark.parametrize(("name", "count"), [("hex", 2), ("othello", 8), ("tic_tac_toe", 8), ("go_9x9", 1)])
def test_the_symmetries_of_a_board_of_pgx_turn_what_the_network_sees(name, count):
    game = azjax.make(f"pgx:{name}")

    def play(state, bits):
        return jax.jit(game.step)(state, jax.jit(game.sample_legal_action)(state, bits))

    state = functools.reduce(play, jax.random.bits(jax.random.key(3), (4,)), game.init(jax.random.key(0)))
    images, permutation = game.symmetries(state)
    seen = np.asarray(game.observe(state))
    turned = [np.rot90(board, turns) for board in (seen, seen.swapaxes(0, 1)) for turns in range(4)]
    if name == "hex":
        turned = [seen, np.rot90(seen, 2)]
    assert len(permutation) == count
    assert {np.asarray(image).tobytes() for image in jax.vmap(game.observe)(images)} == {
        np.ascontiguousarray(image).tobytes() for image in turned[:count]
    }
    squares = seen.shape[0] * seen.shape[1]
    assert (np.asarray(permutation)[:, squares:] == np.arange(squares, game.num_actions)).all()  # pass, swap
