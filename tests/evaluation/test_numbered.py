import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation import choose, numbered, optimal_player, random_player, solution
from azjax.evaluation.exact import exact_report, mistakes, versus
from azjax.evaluation.numbered import Scores
from azjax.evaluation.player_tables import optimal_table, random_table
from azjax.evaluation.solver import solve
from azjax.games.repetition import new_history

SANTORINI = azjax.games.make("santorini", size=2)
COUNTED = ("reachable", "terminal", "won", "drawn", "lost", "value_first_player", "best_first_actions", "longest_game")


def key():
    return jax.random.key(0)


def without_numbers(game):
    """The same rules, solved by hash."""

    class Unnumbered(type(game)):
        num_position_numbers = 0

    return Unnumbered(**{field.name: getattr(game, field.name) for field in dataclasses.fields(game)})


@pytest.fixture(
    scope="module",
    params=[pytest.param("santorini", marks=pytest.mark.slow), "row", "nim, two moves a turn", "nim, merged"],
)
def both(request, numbered_row, numbered_nim, solution_of):
    """A game solved by number and by hash: without draws and with them, and where positions come at several plies."""
    games = {
        "santorini": lambda: SANTORINI,
        "row": lambda: numbered_row(8),
        "nim, two moves a turn": lambda: numbered_nim((2, 2, 3), turn=2),
        "nim, merged": lambda: numbered_nim((1, 2, 3), counts_plies=False),
    }
    game = games[request.param]()
    return solution_of(game), solution_of(without_numbers(game))


def hash_rows(by_number, by_hash):
    """The rows of the hashed solution where the positions of the numbered one stand, all of them."""
    block = by_number.block(np.arange(by_number.num_rows))
    return by_hash.index(jax.tree.map(jnp.asarray, block.states))


def test_numbers_and_hashes_find_the_same_positions_plies_and_values(both):
    by_number, by_hash = both
    assert isinstance(by_number, numbered.NumberedSolution)
    assert not isinstance(by_hash, numbered.NumberedSolution)
    rows = hash_rows(by_number, by_hash)
    assert sorted(rows) == np.flatnonzero(~by_hash.terminated).tolist()
    np.testing.assert_array_equal(by_number.values, by_hash.values[rows])
    for ply in range(by_hash.num_plies):
        np.testing.assert_array_equal(np.sort(rows[by_number.unfinished(ply)]), by_hash.unfinished(ply))
    ours, theirs = by_number.summary(), by_hash.summary()
    assert {name: getattr(ours, name) for name in COUNTED} == {name: getattr(theirs, name) for name in COUNTED}


def test_numbers_and_hashes_agree_on_every_move(both):
    by_number, by_hash = both
    rows = hash_rows(by_number, by_hash)
    ours, theirs = by_number.block(np.arange(by_number.num_rows)), by_hash.block(rows)
    for name in ("actions", "rewards", "values", "action_values", "best", "legal", "goes_on"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
    np.testing.assert_array_equal(rows[ours.children[ours.goes_on]], theirs.children[theirs.goes_on])


def test_numbers_and_hashes_give_the_same_reports(both):
    for player in (random_player(both[1].game), optimal_player(both[1])):
        ours, theirs = (exact_report(player, solved, key()) for solved in both)
        for name, value in dataclasses.asdict(theirs.mistakes).items():
            np.testing.assert_allclose(getattr(ours.mistakes, name), value, atol=1e-4, err_msg=name)
        for opponent in ("against_random", "against_optimal"):
            for seat in ("moving_first", "moving_second"):
                found, expected = (getattr(getattr(report, opponent), seat) for report in (ours, theirs))
                np.testing.assert_allclose(
                    [found.win, found.draw, found.loss], [expected.win, expected.draw, expected.loss], atol=1e-6
                )
        np.testing.assert_array_equal(ours.value_error, theirs.value_error)
        np.testing.assert_array_equal(ours.value_sign_accuracy, theirs.value_sign_accuracy)


@pytest.mark.parametrize("both", ["row", "nim, merged"], indirect=True)
def test_the_optimal_player_is_the_same_by_numbers_and_by_hashes(both):
    states = jax.tree.map(jnp.asarray, both[0].block(np.arange(both[0].num_rows)).states)
    ours, theirs = (choose(optimal_player(solved), key(), states) for solved in both)
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found, expected)


def number(text):
    """Heights in base 5, then the squares of the side to move and of the opponent in base 4."""
    squares = [2 * int(text[index]) + int(text[index + 1]) for index in (4, 6)]
    return int(text[:4], 5) * 16 + squares[0] * 4 + squares[1]


def test_rows_have_the_numbers_whose_bits_are_set_and_are_found_by_them():
    source = np.random.default_rng(0)
    words = source.integers(0, 1 << 32, 1000, dtype=np.uint32) & source.integers(0, 1 << 32, 1000, dtype=np.uint32)
    words[source.random(1000) < 0.3] = 0
    words[:3], words[-2:] = (0, 1, 2**32 - 1), (1 << 31, 0)
    expected = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    table, rows = Scores.of(words, np.zeros(len(expected), np.int8)), np.arange(len(expected))
    np.testing.assert_array_equal(table.numbers(rows), expected)
    np.testing.assert_array_equal(table.find(jnp.asarray(expected, jnp.uint32)), rows)


def test_every_santorini_position_on_2x2_has_the_golden_value_and_distance(golden, solution_of):
    solved, lines = solution_of(SANTORINI), golden("solved/santorini_2_1")
    assert len(lines) == solved.num_states == 2047
    assert sum(line["end"] is not None for line in lines) == solved.terminal == 736
    running = [line for line in lines if line["end"] is None]
    numbers = solved.table.numbers(np.arange(solved.num_rows))
    rows = np.searchsorted(numbers, [number(line["state"]) for line in running])
    np.testing.assert_array_equal(np.sort(rows), np.arange(solved.num_rows))
    np.testing.assert_array_equal(solved.values[rows], [line["value"] for line in running])
    np.testing.assert_array_equal(solved.distances(rows), [line["plies"] for line in running])
    np.testing.assert_array_equal(solved.plies[rows], [line["ply"] for line in running])
    block = solved.block(rows)
    for place, line in enumerate(running):
        legal = block.legal[place]
        found = dict(zip(block.actions[place][legal].tolist(), block.action_values[place][legal].tolist(), strict=True))
        assert found == dict(zip(line["legal"], line["action_values"], strict=True))


def test_the_summary_of_santorini_on_2x2(solution_of):
    facts = solution_of(SANTORINI).summary()
    assert (facts.reachable, facts.terminal, facts.longest_game, facts.value_first_player) == (2047, 736, 12, -1)
    assert facts.best_first_actions == (35, 37, 49, 50)  # all lose
    assert facts.games is facts.reachable_up_to_symmetry is None


def test_best_play_on_2x2_santorini_scores_7_8_of_random_play_moving_first_and_all_moving_second(solution_of):
    results = versus(solution_of(SANTORINI), optimal_table, random_table)
    assert results.moving_first.score == pytest.approx(0.875, abs=1e-12)
    assert results.moving_second.score == pytest.approx(1, abs=1e-12)
    assert results.alternating.score == pytest.approx(0.9375, abs=1e-12)


def test_small_pieces_in_threads_find_the_same(monkeypatch, numbered_row, solution_of):
    whole = solution_of(numbered_row(8))
    for module in (numbered, solution):
        monkeypatch.setattr(module, "BLOCK_CHILDREN", 8 * 100)
    pieces = numbered.solve_numbered(whole.game)
    np.testing.assert_array_equal(whole.table.reached, pieces.table.reached)
    np.testing.assert_array_equal(whole.table.scores, pieces.table.scores)
    np.testing.assert_array_equal(whole.plies, pieces.plies)
    assert mistakes(pieces, random_table).count == pytest.approx(mistakes(whole, random_table).count)


def test_the_optimal_player_on_santorini_in_reach_after_the_end_and_out_of_reach(solution_of, positions_of):
    solved, states = solution_of(SANTORINI), positions_of(SANTORINI, "00101101", "00220001", "00000001")
    assert states.terminated.tolist() == [False, True, False]
    probabilities, value, _ = choose(optimal_player(solved), key(), states)
    # By the golden table action 6 alone wins.
    assert np.flatnonzero(probabilities[0]).tolist() == [6]
    assert not probabilities[1].any()
    legal = np.asarray(SANTORINI.legal_action_mask(jax.tree.map(lambda leaf: leaf[2], states)))
    np.testing.assert_allclose(probabilities[2], legal / legal.sum(), rtol=1e-6)
    assert value[:2].tolist() == [1, 0]
    assert np.isnan(value[2])
    for row, problem in ((1, "finished"), (2, "not reachable from the start")):
        with pytest.raises(ValueError, match=f"santorini: state 1 of 2 is {problem}"):
            solved.index(jax.tree.map(lambda leaf: leaf[np.array([0, row])], states))


def test_progress_reports_the_positions_found_and_then_those_solved(numbered_row):
    calls = []
    solve(numbered_row(), progress=lambda *call: calls.append(call))
    assert calls == [
        *((f"finding positions, ply {ply}", found, None) for ply, found in ((1, 5), (2, 17), (3, 29), (4, 32))),
        *((f"finding values, ply {ply}", done, 23) for ply, done in ((3, 6), (2, 18), (1, 22), (0, 23))),
    ]


def test_too_many_positions_are_refused_with_the_count_so_far(numbered_row):
    with pytest.raises(ValueError, match="row has more than max_states = 31 reachable positions: 32 found so far"):
        solve(numbered_row(), max_states=31)
    assert solve(numbered_row(), max_states=32).num_states == 32


def test_a_game_whose_positions_repeat_is_refused(numbered_nim):
    class Refilled(numbered_nim):
        def step(self, state, action):
            after = super().step(state, action)
            return dataclasses.replace(after, heaps=jnp.where(after.heaps == 1, 3, after.heaps))

    with pytest.raises(ValueError, match="nim: positions repeat within a game"):
        solve(Refilled((3,), counts_plies=False))


@pytest.mark.parametrize("reward", [0.5, 2.0])
def test_results_other_than_win_draw_and_loss_are_refused(numbered_row, reward):
    class Richer(numbered_row):
        def step(self, state, action):
            after = super().step(state, action)
            return dataclasses.replace(after, rewards=after.rewards * reward)

    with pytest.raises(ValueError, match="row has rewards before the end, or other results than 1, 0 and -1"):
        solve(Richer())


def test_rewards_before_the_end_are_refused(numbered_row):
    class Early(numbered_row):
        def step(self, state, action):
            after = super().step(state, action)
            return dataclasses.replace(after, rewards=jnp.array([1.0, -1.0], jnp.float32))

    with pytest.raises(ValueError, match="row has rewards before the end"):
        solve(Early())


def test_games_of_more_plies_than_a_score_can_express_are_refused(numbered_row):
    class Endless(numbered_row):
        max_plies = 127

    with pytest.raises(ValueError, match="row: games have up to 127 plies, and at most 126 can be solved"):
        solve(Endless())


def test_a_game_whose_values_depend_on_its_history_is_refused(numbered_row):
    class Remembering(numbered_row):
        """A `RepetitionGame`."""

        repetitions = 2

        def earlier_positions(self, state):
            return new_history(1, jnp.zeros(2, jnp.uint32))

        without_history = with_empty_history = position_key = repeated = next_game = with_max_plies = earlier_positions

    for game in (Remembering(), without_numbers(Remembering())):
        with pytest.raises(ValueError, match="row cannot be solved: its values depend on which positions"):
            solve(game)
