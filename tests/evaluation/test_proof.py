import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ring_game import Ring, ring_values

import azjax
from azjax.evaluation import proof, prove, solve_endings


def rows_and_states(solution, count):
    """Unfinished positions of a solution, drawn evenly."""
    rows = np.concatenate([solution.unfinished(ply) for ply in range(solution.num_plies)])
    for row in np.random.default_rng(0).choice(rows, min(count, len(rows)), replace=False):
        yield row, jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), solution.block(np.array([row])).states)


@pytest.mark.parametrize("name", ["santorini", "tictactoe", "nim, two moves a turn"])
def test_proofs_have_the_values_of_solved_games_and_moves_that_keep_them(name, solution_of, nim):
    """Games without draws, with draws, and in which a player moves twice in a row."""
    games = {"santorini": lambda: azjax.make("santorini", size=2), "tictactoe": lambda: azjax.make("tictactoe")}
    solution = solution_of(games[name]() if name in games else nim((2, 2, 3), turn=2))
    found = set()
    for row, state in rows_and_states(solution, 25):
        proof = prove(solution.game, state)
        block = solution.block(np.array([row]))
        assert proof.value == proof.at_least == proof.at_most == block.values[0]
        found.add(proof.value)
        if proof.value > -1:
            assert proof.best_action in block.actions[0][block.best[0]]
        else:
            assert proof.best_action is None
    assert found == ({1, -1} if name != "tictactoe" else {1, 0, -1})


def test_the_first_player_wins_hex():
    """By strategy stealing (J. Nash)."""
    game = azjax.make("hex", size=3)
    proof = prove(game, game.init(jax.random.key(0)))
    assert proof.value == 1
    assert proof.positions < 5_514  # the board's reachable positions


@pytest.mark.slow
def test_a_board_of_which_the_value_is_published():
    """Connect Four on 4x4 is a draw (J. Tromp), which takes two proofs: it is no win, and it is more than a loss."""
    game = azjax.make("connect_four", columns=4, rows=4)
    proof = prove(game, game.init(jax.random.key(0)))
    assert proof.value == 0
    assert proof.positions < 161_029  # the board's reachable positions


@pytest.mark.slow
def test_what_positions_that_come_back_prove_is_what_a_plain_program_finds():
    """In the ring game the token can go round for ever: such a draw has no proof, and all else has one."""
    game = Ring()
    for (lives, player, cell), (value, _) in ring_values().items():
        state = game.state(jnp.int32(cell), jnp.int32(lives), jnp.int32(player))
        proof = prove(game, state, max_positions=3000)
        assert proof.at_least <= value <= proof.at_most
        assert proof.value == value or value == 0


def test_numbers_that_many_orders_of_moves_add_up_do_not_look_like_a_leaf_that_waits(monkeypatch):
    monkeypatch.setattr(proof, "_WAITS", 20)
    game = azjax.make("tictactoe")
    found = prove(game, game.init(jax.random.key(0)))
    assert found.value == 0


def test_a_table_ends_the_search_where_its_positions_begin(solution_of):
    game = azjax.make("santorini", size=2)
    state, solution = game.init(jax.random.key(0)), solution_of(game)
    alone, with_table = prove(game, state), prove(game, state, table=solution.best_moves())
    assert alone.value == with_table.value == -1
    assert with_table.positions <= 1 + game.max_legal_actions < alone.positions


@pytest.mark.slow
def test_brandub_is_proven_with_endings_and_without():
    game = azjax.make("brandub")
    endings = solve_endings(game, 1).best_moves()
    for text, value in {
        "1K5/7/7/7/3t3/7/7 d": 1,
        "7/7/7/3K3/7/7/1t5 d": 1,
        "1K1t3/7/7/7/7/7/7 a": 1,
        "1t5/7/1K5/7/7/7/7 a": -1,
    }.items():
        state = game.from_text(text)
        alone, with_table = prove(game, state), prove(game, state, table=endings)
        assert alone.value == with_table.value == value, text
        assert with_table.positions <= alone.positions


def test_a_search_that_ends_early_says_what_it_knows():
    game = azjax.make("connect_four")
    proof = prove(game, game.init(jax.random.key(0)), max_positions=1000)
    assert (proof.value, proof.at_least, proof.at_most, proof.best_action) == (None, -1, 1, None)
    assert 1000 - 7 < proof.positions <= 1000


@pytest.mark.parametrize("most", [1, 2, 9, 40, 200, 1000])
def test_a_proof_looks_at_no_more_positions_than_it_may(most):
    for game in (azjax.make("tictactoe"), azjax.make("hex", size=3)):
        proof = prove(game, game.init(jax.random.key(0)), max_positions=most)
        assert 1 <= proof.positions <= most


def test_a_finished_position_is_refused():
    game = azjax.make("tictactoe")
    with pytest.raises(ValueError, match="the game is over in this position, so that there is nothing to prove"):
        prove(game, game.from_text("XXXOO____"))


def test_a_state_of_another_game_and_a_batch_are_refused():
    game = azjax.make("tictactoe")
    own, other = (each.init(jax.random.key(0)) for each in (game, azjax.make("connect2")))
    with pytest.raises(ValueError, match=r"^tictactoe: these states are of another game than Mnk"):
        prove(game, other)
    with pytest.raises(ValueError, match=r"^tictactoe needs one state; got a leaf of shape \[1\]$"):
        prove(game, jax.tree.map(lambda leaf: leaf[None], own))


def test_progress_is_told():
    told = []
    game = azjax.make("santorini", size=2)
    prove(game, game.init(jax.random.key(0)), progress=lambda *each: told.append(each))
    assert {task for task, _, _ in told} == {"proving a win"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
