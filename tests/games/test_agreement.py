"""Random plies of tic-tac-toe and Connect Four agree with OpenSpiel and with pgx, which are not needed otherwise.

Othello and Hex of pgx agree with OpenSpiel, whose bots play them in matches.

Axis letters: `T` plies one after the other, `B` games side by side, `A` actions.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.evaluation.host_games import host_step, position_from_text
from azjax.evaluation.openspiel import NAMES_IN_OPENSPIEL
from azjax.games.game import random_legal_action
from azjax.games.protocols import next_game
from azjax.games.registry import make

PLIES, GAMES = 400, 256  # 102,400 in all
NAMES = {"tictactoe": "tic_tac_toe", "connect_four": "connect_four"}  # ours, and theirs


@functools.cache
def random_plies(name, plies=PLIES):
    """NumPy arrays [T, B, ...] of each ply: legal, player and action before it, terminated and rewards after it."""
    game = make(name)

    def play(states, key):
        actions = jax.vmap(functools.partial(random_legal_action, game))(jax.random.split(key, GAMES), states)
        following = jax.vmap(game.step)(states, actions)
        ply = {
            "legal": jax.vmap(game.legal_action_mask)(states),
            "player": states.current_player,
            "action": actions,
            "terminated": following.terminated,
            "rewards": following.rewards,
        }
        return jax.vmap(functools.partial(next_game, game), (None, 0))(key, following), ply

    keys = jax.random.split(jax.random.key(0), plies)
    starts = jax.vmap(game.init)(jax.random.split(keys[0], GAMES))
    return jax.device_get(jax.jit(lambda: jax.lax.scan(play, starts, keys)[1])())


@pytest.mark.parametrize("name", NAMES)
def test_100_000_random_plies_agree_with_openspiel(name):
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    rules, plies = pyspiel.load_game(NAMES[name]), random_plies(name)
    actions, players = plies["action"].T.tolist(), plies["player"].T.tolist()
    ends, rewards = plies["terminated"].T.tolist(), np.moveaxis(plies["rewards"], 1, 0).tolist()
    legal = [[np.flatnonzero(mask).tolist() for mask in game] for game in np.moveaxis(plies["legal"], 1, 0)]
    for game in range(GAMES):
        state = rules.new_initial_state()
        for ply in range(PLIES):
            assert state.legal_actions() == legal[game][ply]
            assert state.current_player() == players[game][ply]
            state.apply_action(actions[game][ply])
            assert state.is_terminal() == ends[game][ply]
            assert state.rewards() == rewards[game][ply]
            if state.is_terminal():
                state = rules.new_initial_state()


@pytest.mark.parametrize("name", NAMES)
def test_100_000_random_plies_agree_with_pgx(name):
    pgx = pytest.importorskip("pgx", reason="pgx is not installed")
    rules, plies = pgx.make(NAMES[name]), random_plies(name)

    def play(carry, ply):
        # pgx draws which of its players moves first; `first` is that player.
        states, first = carry
        action, key = ply
        following = jax.vmap(rules.step)(states, action)
        shown = {
            "legal": states.legal_action_mask,
            "player": states.current_player ^ first,
            "action": action,
            "terminated": following.terminated,
            "rewards": jnp.where(first[:, None] == 0, following.rewards, following.rewards[:, ::-1]),
        }
        starts = jax.vmap(rules.init)(jax.random.split(key, GAMES))

        def renew(new, old):
            return jnp.where(following.terminated.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        renewed = jax.tree.map(renew, starts, following)
        return (renewed, renew(starts.current_player, first)), shown

    keys = jax.random.split(jax.random.key(1), PLIES)
    starts = jax.vmap(rules.init)(jax.random.split(jax.random.key(2), GAMES))
    replay = jax.jit(lambda actions: jax.lax.scan(play, (starts, starts.current_player), (actions, keys))[1])
    jax.tree.map(np.testing.assert_array_equal, plies, jax.device_get(replay(plies["action"])))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pgx:hex", "pgx:othello"])
def test_random_games_of_pgx_agree_with_openspiel(name):
    """The same numbers are the same moves, that of the pass in Othello too."""
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    pytest.importorskip("pgx", reason="pgx is not installed")
    rules, plies = pyspiel.load_game(NAMES_IN_OPENSPIEL[name]), random_plies(name, make(name).max_plies)
    passes, last_passes = 0, 0
    for number in range(GAMES):
        game = jax.tree.map(lambda leaf, number=number: leaf[:, number], plies)
        state = rules.new_initial_state()
        for ply in range(make(name).max_plies):
            legal, action = np.flatnonzero(game["legal"][ply]).tolist(), int(game["action"][ply])
            if state.is_terminal():
                assert legal == [64]  # no player can move: two passes follow in pgx
                last_passes += 1
            else:
                assert state.legal_actions() == legal
                assert state.current_player() == game["player"][ply]
                passes += action == 64
                state.apply_action(action)
            if game["terminated"][ply]:
                break
        assert state.is_terminal()
        assert game["terminated"][ply]
        assert state.returns() == game["rewards"][ply].tolist()
    assert name == "pgx:hex" or (passes > 0 and last_passes > 0)


def test_the_swap_of_hex_is_that_of_openspiel():
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    pytest.importorskip("pgx", reason="pgx is not installed")
    game, rng = make("pgx:hex"), np.random.default_rng(0)
    here = position_from_text(game, "14 121")  # a stone that is not on the diagonal, and the swap
    state = pyspiel.load_game(NAMES_IN_OPENSPIEL["pgx:hex"]).new_initial_state()
    for action in (14, 121):
        state.apply_action(action)
    while not here.terminated:
        legal = np.flatnonzero(game.legal_action_mask(here)).tolist()
        assert state.legal_actions() == legal
        assert state.current_player() == here.current_player
        action = int(rng.choice(legal))
        state.apply_action(action)
        here = host_step(game, here, action)
    assert state.is_terminal()
    assert state.returns() == here.rewards.tolist()
