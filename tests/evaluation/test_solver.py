import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.core.errors import InputError
from azjax.evaluation.move_counts import perft, total_ways, ways_to_children
from azjax.evaluation.solution import UNREACHABLE
from azjax.evaluation.solver import solve

GOLDEN = Path(__file__).parents[1] / "golden"
COUNTS = json.loads((GOLDEN / "counts.json").read_text())
PERFT = json.loads((GOLDEN / "perft.json").read_text())
SOLVED = ("tictactoe", "connect2")


def action_values(solution, row):
    """{action: value} of one position."""
    valid = solution.actions[row] >= 0
    return dict(zip(solution.actions[row][valid].tolist(), solution.action_values[row][valid].tolist(), strict=True))


@pytest.mark.parametrize("name", SOLVED)
def test_every_value_of_every_position_is_the_golden_one(golden, solution_of, name):
    solution = solution_of(name)
    planes = np.asarray(jax.vmap(solution.game.observe)(solution.states)).reshape(solution.num_states, -1, 2)
    mover = solution.current_player[:, None]
    boards = (planes[..., 0] * (mover + 1) + planes[..., 1] * (2 - mover)).astype(int)
    rows = {tuple(board): row for row, board in enumerate(boards.tolist())}
    lines = golden(f"solved/{name}")
    assert rows.keys() == {tuple(line["board"]) for line in lines}
    for line in lines:
        row = rows[tuple(line["board"])]
        assert solution.terminated[row] == (line["end"] is not None)
        # A golden line gives the result after the end too; a solution counts what is still to come.
        assert solution.values[row] == (line["value"] if line["end"] is None else 0)
        assert action_values(solution, row) == dict(zip(line["legal"], line["action_values"], strict=True))


@pytest.mark.parametrize("name", SOLVED)
def test_the_summary_gives_the_golden_counts(solution_of, name):
    summary = solution_of(name).summary()
    for fact in set(COUNTS[name]) & set(summary._fields):
        assert getattr(summary, fact) == COUNTS[name][fact], fact
    assert summary.games == summary.games_first_wins + summary.games_second_wins + summary.games_drawn


def test_best_first_moves_and_longest_games(solution_of):
    assert solution_of("tictactoe").summary().best_first_actions == tuple(range(9))
    assert solution_of("tictactoe").summary().longest_game == 9
    assert solution_of("connect2").summary().best_first_actions == (1, 2)
    assert solution_of("connect2").summary().longest_game == 4


@pytest.mark.parametrize("name", SOLVED)
def test_perft_gives_the_golden_counts_and_zero_beyond_the_longest_game(name):
    assert perft(azjax.games.make(name), len(PERFT[name]) + 2) == [*PERFT[name], 0, 0]


def test_perft_to_depth_0_counts_nothing_and_a_negative_depth_is_refused():
    assert perft(azjax.games.make("connect2"), 0) == []
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        perft(azjax.games.make("connect2"), -1)


def test_counts_of_move_sequences_do_not_overflow():
    ways = np.ones((1, 1), np.int64)
    for _ in range(100):
        ways = ways_to_children(ways, np.array([[0, -1, 0]]), 1)
    assert total_ways(ways, np.array([3])) == 3 * 2**100


def test_rows_are_ordered_by_ply_and_children_are_one_ply_later(solution_of):
    solution = solution_of("tictactoe")
    stones = np.bitwise_count(solution.states.stones).sum(axis=(0, 1))
    assert [layer.stop - layer.start for layer in solution.layers] == [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78]
    for ply, layer in enumerate(solution.layers):
        assert (stones[layer] == ply).all()
    valid = solution.children >= 0
    assert (stones[solution.children][valid] == np.broadcast_to(stones[:, None] + 1, valid.shape)[valid]).all()
    assert ((solution.actions >= 0) == valid).all()


def test_the_winning_move_rewards_its_mover(solution_of, positions_of):
    solution = solution_of("tictactoe")
    first, second = solution.index(positions_of(solution.game, "XX_OO____", "XX_OO_X__"))
    assert action_values(solution, first) == {2: 1.0, 5: 0.0, 6: -1.0, 7: -1.0, 8: -1.0}
    assert solution.rewards[first][2] == 1.0
    assert solution.rewards[second][5] == 1.0
    assert solution.rewards[second][2] == 0.0


@pytest.mark.parametrize("heaps", [(1, 2, 3), (2, 2), (1, 1, 3)])
def test_nim_is_lost_for_the_side_to_move_exactly_where_the_nim_sum_is_zero(nim, solution_of, heaps):
    solution = solution_of(nim(heaps))
    running = ~solution.terminated
    nim_sum = np.bitwise_xor.reduce(solution.states.heaps, axis=1)
    np.testing.assert_array_equal(solution.values[running], np.where(nim_sum == 0, -1, 1)[running])
    # Three slots hold the last three stones; the table has holes.
    assert solution.actions.shape[1] == sum(heaps)


def test_values_keep_their_sign_where_a_player_moves_twice(nim, solution_of):
    solution = solution_of(nim((2, 2, 3), turn=2))

    def value(heaps, ply):
        mover, following = (ply + 1) // 2 % 2, (ply + 2) // 2 % 2
        results = []
        for heap, stones in enumerate(heaps):
            for taken in range(1, stones + 1):
                rest = (*heaps[:heap], stones - taken, *heaps[heap + 1 :])
                later = value(rest, ply + 1) if any(rest) else -1 if following != mover else 1
                results.append(later if following == mover else -later)
        return max(results)

    states = solution.states
    for row in np.flatnonzero(~solution.terminated):
        assert solution.values[row] == value(tuple(states.heaps[row].tolist()), int(states.ply[row]))
    assert set(solution.values[~solution.terminated]) == {-1.0, 1.0}


def test_merging_equal_positions_of_different_plies_changes_no_value(nim):
    separate, merged = solve(nim((1, 2, 3))), solve(nim((1, 2, 3), counts_plies=False))
    assert merged.num_states < separate.num_states
    facts, expected = merged.summary(), separate.summary()
    for field in ("value_first_player", "best_first_actions", "longest_game", "games", "games_first_wins"):
        assert getattr(facts, field) == getattr(expected, field)
    # Moves lead to later rows, and the player who leaves heaps of nim-sum 0 wins (Bouton 1901).
    rows, slots = np.nonzero(merged.children >= 0)
    assert (merged.children[rows, slots] > rows).all()
    running = ~merged.terminated
    nim_sum = np.bitwise_xor.reduce(merged.states.heaps[running], axis=1)
    np.testing.assert_array_equal(merged.values[running], np.where(nim_sum == 0, -1, 1))


def test_a_game_whose_positions_repeat_is_refused(nim):
    class Refilled(nim):
        def step(self, state, action):
            after = super().step(state, action)
            return dataclasses.replace(after, heaps=jnp.where(after.heaps == 1, 3, after.heaps))

    with pytest.raises(ValueError, match="nim: positions repeat within a game"):
        solve(Refilled((3,), counts_plies=False))


def test_too_many_positions_are_refused_with_the_count_so_far():
    with pytest.raises(ValueError, match=r"tictactoe has more than max_states = 100 reachable positions: 252 found"):
        solve(azjax.games.make("tictactoe"), max_states=100)
    assert solve(azjax.games.make("connect2"), max_states=32).num_states == 32
    with pytest.raises(ValueError, match="max_states = 31"):
        solve(azjax.games.make("connect2"), max_states=31)
    chomp = azjax.games.make("chomp", columns=4, rows=3)  # positions come back at later plies, and count once
    assert solve(chomp, max_states=68).num_states == 68
    with pytest.raises(ValueError, match="more than max_states = 67 reachable positions"):
        solve(chomp, max_states=67)


def test_progress_is_reported_after_every_ply():
    calls = []
    solve(azjax.games.make("connect2"), progress=lambda *call: calls.append(call))
    assert calls == [(f"finding positions, ply {ply}", found, None) for ply, found in enumerate((1, 5, 17, 29, 32))]


@pytest.mark.parametrize("name", SOLVED)
def test_index_and_lookup_find_every_position_at_its_row(solution_of, name):
    solution = solution_of(name)
    rows = np.arange(solution.num_states)[::-1]
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    np.testing.assert_array_equal(solution.index(states), rows)
    lookup = jax.tree.map(jnp.asarray, solution.lookup)
    np.testing.assert_array_equal(jax.jit(lambda lookup, s: lookup.find(s))(lookup, states), rows)


def test_an_unreachable_position_has_no_row(solution_of, positions_of):
    solution = solution_of("connect2")
    both = positions_of(solution.game, "_XO_", "_XO_")
    # It is X's move there.
    unreachable = dataclasses.replace(both, current_player=both.current_player.at[1].set(1))
    rows = solution.lookup.find(unreachable)
    assert rows[0] == solution.index(both)[0]
    assert rows[1] == UNREACHABLE
    with pytest.raises(ValueError, match="connect2: state 1 of 2 is not reachable"):
        solution.index(unreachable)


@pytest.mark.parametrize("game", [azjax.games.make("tictactoe"), azjax.games.make("hex", size=2)], ids=str)
def test_states_of_another_game_and_one_state_have_no_rows(game, solution_of):
    own, other = (each.init(jax.random.key(0)) for each in (game, azjax.games.make("mnk", columns=4)))
    with pytest.raises(InputError, match=f"^{game.name}: these states are of another game than"):
        solution_of(game).index(jax.tree.map(lambda leaf: leaf[None], other))
    with pytest.raises(InputError, match=rf"^{game.name} needs a batch of states, every leaf .*; got a leaf"):
        solution_of(game).index(own)


def test_optimal_moves_are_those_that_keep_the_value(solution_of, positions_of):
    solution = solution_of("tictactoe")
    row, lost, over = solution.index(positions_of(solution.game, "XX_OO____", "X_O_X____", "XXXOO____"))
    assert solution.actions[row][solution.optimal_mask[row]].tolist() == [2]
    assert solution.actions[lost][solution.optimal_mask[lost]].tolist() == [8]
    assert not solution.optimal_mask[over].any()
