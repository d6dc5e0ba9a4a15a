import dataclasses
import fractions
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation import exact, player_tables
from azjax.evaluation.exact import Outcome, exact_report, expected_outcome, mistakes, versus
from azjax.evaluation.player_tables import epsilon_optimal_table, optimal_table, random_table, tabulate
from azjax.evaluation.players import MoveChoice, Player
from azjax.evaluation.standard_players import optimal_player, random_player
from benchmarks.rules.mnk import MnkRules

CONNECT2 = azjax.games.make("connect2")
SOLVED = ("tictactoe", "connect2")


def key():
    return jax.random.key(0)


def lowest_table(block):
    """The legal action of the lowest number, without values."""
    actions = np.where(block.legal, block.actions, np.iinfo(np.int32).max)
    table = np.zeros(actions.shape)
    table[np.arange(len(table)), actions.argmin(axis=1)] = 1
    return table, np.full(len(table), np.nan)


def in_one_block(solution):
    """All unfinished positions."""
    return solution.block(np.concatenate([solution.unfinished(ply) for ply in range(solution.num_plies)]))


def lowest(legal):
    return {min(legal): fractions.Fraction(1)}


def uniform(legal):
    return {action: fractions.Fraction(1, len(legal)) for action in legal}


def slow_outcome(rules, position, policies):
    """(win, draw, loss) of player 0 as exact fractions, by recursion in plain Python."""
    if position.terminal:
        return tuple(fractions.Fraction(position.rewards[0] == result) for result in (1, 0, -1))
    total = [fractions.Fraction(0)] * 3
    for action, weight in policies[position.player](rules.legal_actions(position)).items():
        later = slow_outcome(rules, rules.step(position, action), policies)
        total = [sum_ + weight * x for sum_, x in zip(total, later, strict=True)]
    return tuple(total)


@pytest.fixture(params=["stored", "computed"])
def tables(request, monkeypatch):
    """Small tables are stored; large ones are computed when they are read."""
    if request.param == "computed":
        monkeypatch.setattr(player_tables, "_MAX_STORED", 0)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", SOLVED)
def test_the_table_of_the_random_player_is_uniform_over_legal_slots(solution_of, name):
    block = in_one_block(solution_of(name))
    probabilities, value = tabulate(random_player(solution_of(name).game), solution_of(name), key())(block)
    np.testing.assert_allclose(probabilities, random_table(block)[0], rtol=1e-6)
    assert np.isnan(value).all()


def test_a_table_does_not_depend_on_the_size_of_the_batches(solution_of):
    solution = solution_of("connect2")
    player, block = optimal_player(solution), in_one_block(solution)
    whole, pieces = tabulate(player, solution, key()), tabulate(player, solution, key(), batch_size=5)
    np.testing.assert_array_equal(whole(block)[0], pieces(block)[0])
    np.testing.assert_array_equal(whole(block)[1], pieces(block)[1])


@pytest.mark.usefixtures("tables")
def test_the_table_of_a_player_that_draws_gives_the_same_answer_each_time(solution_of):
    @dataclasses.dataclass(frozen=True)
    class Random:
        def __call__(self, params, key, states):
            choice = random_player(CONNECT2).policy(params, key, states)
            return choice._replace(value=jax.random.uniform(key, states.terminated.shape))

    solution = solution_of("connect2")
    block, table = in_one_block(solution), tabulate(Player("drawing", Random()), solution, key())
    np.testing.assert_array_equal(table(block)[1], table(block)[1])
    assert len(np.unique(table(block)[1])) > 1


@pytest.mark.usefixtures("tables")
def test_a_table_goes_from_actions_to_slots_where_there_are_holes(nim, solution_of):
    solution = solution_of(nim((1, 2, 3)))
    block = in_one_block(solution)
    probabilities, value = tabulate(optimal_player(solution), solution, key())(block)
    np.testing.assert_allclose(probabilities, optimal_table(block)[0], rtol=1e-6)
    np.testing.assert_array_equal(value, block.values)


def test_a_player_with_probability_on_illegal_moves_is_refused(solution_of):
    @dataclasses.dataclass(frozen=True)
    class Illegal:
        def __call__(self, params, key, states):
            legal = jnp.full((len(states.terminated), 4), 0.25)
            return MoveChoice(legal, jnp.zeros(len(states.terminated)), legal)

    with pytest.raises(
        ValueError, match=r"careless gives probability 0\.\d+ to the legal actions of position \d+ of c"
    ):
        tabulate(Player("careless", Illegal()), solution_of("connect2"), key())


def test_uniform_play_wins_tictactoe_for_player_0_with_737_in_1260(solution_of):
    solution = solution_of("tictactoe")
    outcome = expected_outcome(solution, random_table, random_table)
    # A classical result; the 255168 games weighted by 1 / (9 * 8 * 7 * ...) of their length.
    assert outcome.win == pytest.approx(737 / 1260, abs=1e-12)
    assert outcome.draw == pytest.approx(8 / 63, abs=1e-12)
    assert outcome.loss == pytest.approx(121 / 420, abs=1e-12)
    assert outcome.score == pytest.approx(737 / 1260 + 4 / 63, abs=1e-12)


@pytest.mark.parametrize("size", [(4, 1, 2), (3, 2, 3)])
@pytest.mark.parametrize(("first", "second"), [("uniform", "uniform"), ("lowest", "uniform"), ("uniform", "lowest")])
def test_expected_outcomes_are_those_of_a_slow_recursion(solution_of, size, first, second):
    columns, rows, in_a_row = size
    solution = solution_of(azjax.games.make("mnk", columns=columns, rows=rows, in_a_row=in_a_row))
    tables, policies = {"uniform": random_table, "lowest": lowest_table}, {"uniform": uniform, "lowest": lowest}
    rules = MnkRules(*size)
    slow = slow_outcome(rules, rules.start(), (policies[first], policies[second]))
    fast = expected_outcome(solution, tables[first], tables[second])
    np.testing.assert_allclose((fast.win, fast.draw, fast.loss), [float(x) for x in slow], atol=1e-12)


def test_expected_outcomes_follow_the_player_to_move_where_one_moves_twice(nim, solution_of):
    solution = solution_of(nim((2, 2, 3), turn=2))

    def win(heaps, ply):
        """The probability that player 0 wins with the lowest action against uniform moves."""
        if not any(heaps):
            return float(ply // 2 % 2 == 0)  # the mover of the ply before
        moves = [(*heaps[:h], heaps[h] - t, *heaps[h + 1 :]) for h in range(3) for t in range(1, heaps[h] + 1)]
        moves = moves[:1] if (ply + 1) // 2 % 2 == 0 else moves
        return sum(win(rest, ply + 1) for rest in moves) / len(moves)

    outcome = expected_outcome(solution, lowest_table, random_table)
    assert outcome.win == pytest.approx(win((2, 2, 3), 0), abs=1e-12)
    assert outcome.loss == pytest.approx(1 - outcome.win, abs=1e-12)
    assert 0 < outcome.win < 1


def test_moving_second_is_seen_by_the_player_itself(solution_of):
    solution = solution_of("connect2")
    results = versus(solution, optimal_table, random_table)
    # A middle stone first always wins.
    assert results.moving_first == Outcome(1.0, 0.0, 0.0)
    mirrored = expected_outcome(solution, random_table, optimal_table)
    assert results.moving_second.win == mirrored.loss
    assert results.moving_second.loss == mirrored.win
    assert results.alternating.score == pytest.approx((1 + results.moving_second.score) / 2)
    assert results.alternating.loss == pytest.approx(mirrored.win / 2)


def test_an_opponent_who_errs_now_and_then_gives_away_what_it_does_by_hand(solution_of):
    """On Connect-2, moving first, with a random move in 3 of 10.

    It opens in the middle with probability 1 - 0.3 / 2, which wins; two of the three answers leave it two cells, of
    which one wins, the third leaves two that do: (2 (1 - 0.3 / 2) + 1) / 3 = 1 - 0.3 / 3. Opened at the edge the best
    answer is beside it, and of the two cells left then one draws and one loses.
    """
    solution = solution_of("connect2")
    found = versus(solution, optimal_table, epsilon_optimal_table(0.3))
    assert found.moving_first == Outcome(1.0, 0.0, 0.0)
    second = found.moving_second
    expected = (0.15 * 0.15, 1 - 0.15 * 0.15 - 0.85 * 0.9, 0.85 * 0.9)
    assert (second.win, second.draw, second.loss) == pytest.approx(expected)


def test_epsilon_goes_from_best_to_random_play(solution_of):
    block = in_one_block(solution_of("tictactoe"))
    for epsilon, table in ((0.0, optimal_table), (1.0, random_table)):
        np.testing.assert_allclose(epsilon_optimal_table(epsilon)(block)[0], table(block)[0])
    with pytest.raises(ValueError, match=r"epsilon must be 0\.\.1, got 1\.5"):
        epsilon_optimal_table(1.5)


def test_the_perfect_player_makes_no_mistake_and_never_loses_tictactoe(solution_of):
    solution = solution_of("tictactoe")
    report = exact_report(optimal_player(solution), solution, key())
    assert report.mistakes.states == 4520
    assert report.mistakes.count == report.mistakes.own_count == 0
    assert report.against_random.alternating.loss == 0
    assert report.against_optimal.alternating.draw == pytest.approx(1)
    assert (report.value_sign_accuracy, report.value_error) == (1, 0)


@pytest.mark.parametrize("name", SOLVED)
def test_the_mistakes_of_the_random_player_are_the_share_of_worse_golden_actions(golden, solution_of, name):
    expected, by_ply = 0.0, [0.0] * 10
    for line in golden(f"solved/{name}"):
        if line["end"] is None:
            share = sum(value < line["value"] for value in line["action_values"]) / len(line["legal"])
            expected += share
            by_ply[sum(cell != 0 for cell in line["board"])] += share
    found = mistakes(solution_of(name), random_table)
    assert found.count == pytest.approx(expected)
    np.testing.assert_allclose(found.count_by_ply, by_ply[: len(found.count_by_ply)], atol=1e-9)
    assert found.share == pytest.approx(expected / found.states)
    # It plays every move, so every position occurs in its games.
    assert found.own_states == found.states == sum(found.states_by_ply)
    assert found.own_count == pytest.approx(found.count)


def test_own_positions_are_those_that_a_fixed_player_meets(golden, solution_of):
    solution, rules = solution_of("tictactoe"), MnkRules(3, 3, 3)
    met, mistaken = set(), set()
    for line in golden("solved/tictactoe"):
        if line["end"] is None and line["action_values"][0] < line["value"]:  # of the lowest legal action
            mistaken.add(tuple(line["board"]))

    def walk(position, seat):
        if position.terminal:
            return
        legal = rules.legal_actions(position)
        if position.player == seat:
            met.add(position.board)
        for action in [min(legal)] if position.player == seat else legal:
            walk(rules.step(position, action), seat)

    for seat in (0, 1):
        walk(rules.start(), seat)
    found = mistakes(solution, lowest_table)
    assert found.own_states == len(met)
    assert found.own_count == len(met & mistaken) < len(mistaken) == found.count


def test_the_lowest_move_gives_away_the_win_at_the_start_of_connect2(solution_of):
    # It plays a1 (a draw at best) and then the lowest empty cell; as player 0 it meets the start and three answers.
    assert mistakes(solution_of("connect2"), lowest_table).count_by_ply[0] == 1


def test_a_report_has_rows_of_text_and_values_only_for_players_that_have_them(solution_of):
    solution = solution_of("connect2")
    random = exact_report(random_player(CONNECT2), solution, key())
    assert math.isnan(random.value_error)
    assert math.isnan(random.value_sign_accuracy)
    rows = dict(random.rows())
    assert rows["player"] == "random"
    assert rows["positions"] == "23"
    assert rows["mistakes"] == "6.83 (29.71%)"
    assert rows["score against random, alternating"] == "0.5000, loses 33.3%"
    assert rows["score against optimal, second"] == "0.0000, loses 100.0%"
    assert not any("value" in label for label in rows)
    best = dict(exact_report(optimal_player(solution), solution, key(), epsilons=(0.3,)).rows())
    assert best["score against 0.3-optimal, second"] == "0.1288, loses 76.5%"
    assert best["mistakes"] == "0 (0.00%)"
    assert best["sign of the value right"] == "100.00%"


def test_value_error_and_sign_are_taken_over_unfinished_positions(solution_of):
    @dataclasses.dataclass(frozen=True)
    class Hopeful:
        def __call__(self, params, key, states):
            choice = random_player(CONNECT2).policy(params, key, states)
            return choice._replace(value=jnp.full(len(states.terminated), 0.5))

    solution = solution_of("connect2")
    report = exact_report(Player("hopeful", Hopeful()), solution, key())
    true = solution.values[~solution.terminated]
    won, drawn, lost = ((true == result).sum() for result in (1, 0, -1))
    assert report.value_sign_accuracy == won / (won + lost)
    assert report.value_error == pytest.approx((0.5 * won + 0.5 * drawn + 1.5 * lost) / 23)


def test_the_sign_of_a_value_is_right_for_results_other_than_1():
    errors = exact._ValueErrors()
    errors.add(np.array([0.3, -0.1, 0.2, 0.5]), np.array([0.25, -0.25, -0.25, 0.0]))
    assert (errors.decided, errors.right_sign) == (3, 2)
