import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.core.errors import InputError
from azjax.evaluation.exact import versus
from azjax.evaluation.host_games import host_step
from azjax.evaluation.match_result import Record
from azjax.evaluation.matches import play_match, play_round_robin
from azjax.evaluation.player_tables import optimal_table, random_table
from azjax.evaluation.players import Player, act, choose
from azjax.evaluation.searching_players import search_player
from azjax.evaluation.sequential import SequentialTest
from azjax.evaluation.solver import solve
from azjax.evaluation.standard_players import optimal_player, random_player
from azjax.packaged import load_agent
from azjax.search import evaluators

CONNECT2 = azjax.games.make("connect2")
TICTACTOE = azjax.games.make("tictactoe")


def key(seed=0):
    return jax.random.key(seed)


def test_best_play_wins_connect2_for_the_first_mover_in_three_plies(solution_of):
    best = optimal_player(solution_of("connect2"))
    result = play_match(CONNECT2, best, best, 20, key())
    assert result.moving_first == Record(10, 0, 0)
    assert result.moving_second == Record(0, 0, 10)
    assert (result.wins, result.draws, result.losses, result.games) == (10, 0, 10, 20)
    assert result.score == 0.5
    assert result.mean_length == 3


def test_best_play_draws_tictactoe_in_nine_plies(solution_of):
    best = optimal_player(solution_of("tictactoe"))
    result = play_match(TICTACTOE, best, best, 10, key())
    assert result.total == Record(0, 10, 0)
    assert result.mean_length == 9


def test_results_agree_with_the_exact_expectation_by_seat(solution_of):
    solution = solution_of("tictactoe")
    result = play_match(TICTACTOE, optimal_player(solution), random_player(TICTACTOE), 64, key(1))
    exact = versus(solution, optimal_table, random_table)
    assert (result.first, result.second) == ("optimal", "random")
    for record, outcome in ((result.moving_first, exact.moving_first), (result.moving_second, exact.moving_second)):
        assert record.games == 32
        assert record.losses == 0 == outcome.loss
        deviation = math.sqrt(outcome.win * outcome.draw / 32)
        assert abs(record.wins / 32 - outcome.win) < 4 * deviation


def test_a_player_that_moves_twice_in_a_row_chooses_both_moves(nim, solution_of):
    game = nim((2, 2, 3), turn=2)
    best = optimal_player(solution_of(game))
    result = play_match(game, best, best, 8, key())
    wins = 4 if solution_of(game).values[0] > 0 else 0
    assert result.moving_first == Record(wins, 0, 4 - wins)
    assert result.moving_second == Record(4 - wins, 0, wins)
    # The score against random moves is the exact one only if each move is chosen by the right player.
    solution = solution_of(game)
    outcome = versus(solution, optimal_table, random_table).alternating
    result = play_match(game, best, random_player(game), 64, key())
    assert abs(result.score - outcome.score) < 4 * math.sqrt(outcome.win * outcome.loss / 64)


def test_games_begin_at_the_given_states_and_each_player_has_each_side_of_each(solution_of, positions_of):
    best = optimal_player(solution_of("tictactoe"))
    # X wins at once; O wins at once.
    starts = positions_of(TICTACTOE, "XX_OO____", "XX_OO_X__")
    result = play_match(TICTACTOE, best, best, 8, key(), start_states=starts)
    assert result.mean_length == 1
    assert result.moving_first == Record(2, 0, 2)
    assert result.moving_second == Record(2, 0, 2)
    only_first = jax.tree.map(lambda leaf: leaf[:1], starts)
    result = play_match(TICTACTOE, best, best, 8, key(), start_states=only_first)
    assert result.moving_first == Record(4, 0, 0)
    assert result.moving_second == Record(0, 0, 4)


def test_batches_add_up_and_progress_is_reported_after_each(solution_of):
    best = optimal_player(solution_of("connect2"))
    calls = []
    result = play_match(
        CONNECT2, best, best, 10, key(), batch_size=4, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(4, 10), (8, 10), (10, 10)]
    assert result.moving_first == Record(5, 0, 0)
    assert result.moving_second == Record(0, 0, 5)


def test_openings_are_legal_the_same_for_both_of_a_pair_and_do_not_end_games():
    player = random_player(TICTACTOE)
    result = play_match(TICTACTOE, player, player, 200, key(), opening_plies=6)
    openings = [actions[:6] for actions in result.actions]
    assert openings[::2] == openings[1::2]
    assert len(set(openings)) > 90
    assert min(result.plies) > 6
    assert all(len(set(actions)) == len(actions) for actions in result.actions)
    with pytest.raises(InputError, match="tictactoe: 9 random plies ended a game 1000 times in a row"):
        play_match(TICTACTOE, player, player, 2, key(), opening_plies=9)
    with pytest.raises(ValueError, match="opening_plies must be at least 0, got -1"):
        play_match(TICTACTOE, player, player, 2, key(), opening_plies=-1)


def test_openings_are_drawn_again_until_the_judge_finds_them_balanced():
    player, solution = random_player(TICTACTOE), solve(TICTACTOE)
    judge = optimal_player(solution)
    for balance, values in ((0.3, {0}), (1.0, {-1, 0, 1})):
        result = play_match(TICTACTOE, player, player, 100, key(), opening_plies=4, judge=judge, balance=balance)
        states = jax.tree.map(lambda leaf: np.repeat(leaf, 2, axis=0), result.starts)
        for ply in range(4):
            states = host_step(TICTACTOE, states, np.array([actions[ply] for actions in result.actions]))
        assert set(np.sign(choose(judge, key(), states).value).tolist()) == values
    # Half of the lines of three plies end a game of Connect-2, so that there may be nothing to judge.
    connect2 = azjax.games.make("connect2")
    players = random_player(connect2), optimal_player(solve(connect2))
    for seed in range(6):
        match = play_match(connect2, *players, 2, jax.random.key(seed), opening_plies=3, judge=players[1])
        assert min(match.plies) > 3
    with pytest.raises(ValueError, match="a judge needs openings: opening_plies must be at least 1, got 0"):
        play_match(TICTACTOE, player, player, 2, key(), judge=judge)
    with pytest.raises(ValueError, match=r"balance must be 0\.\.1, got 1.5"):
        play_match(TICTACTOE, player, player, 2, key(), opening_plies=1, balance=1.5)
    with pytest.raises(ValueError, match="random cannot judge openings: it has no values"):
        play_match(TICTACTOE, player, player, 2, key(), opening_plies=1, judge=player)

    def certain(params, key, states):
        return player.policy(params, key, states)._replace(value=jnp.ones(len(states.terminated)))

    with pytest.raises(ValueError, match="1 random plies ended a game or were not balanced 1000 times in a row"):
        play_match(TICTACTOE, player, player, 2, key(), opening_plies=1, judge=Player("certain", certain))


@pytest.mark.slow
def test_games_side_by_side_are_those_played_one_at_a_time():
    """Two searches, one with a network, play one move in each position after the opening."""
    agent = load_agent("tictactoe")
    network = evaluators.network(agent.network, TICTACTOE)
    players = (
        search_player(TICTACTOE, network, agent.variables, num_simulations=16),
        search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=16),
    )
    match = play_match(TICTACTOE, *players, 12, key(), batch_size=5, opening_plies=3)
    assert len(set(match.actions)) > 6
    for number, (actions, reward) in enumerate(zip(match.actions, match.rewards, strict=True)):
        state, total = TICTACTOE.init(key()), 0.0
        for ply, played in enumerate(actions):
            mover = int(state.current_player)
            alone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
            if ply >= 3:
                chosen, _, _ = act(players[mover ^ (number % 2)], key(), alone)
                assert int(chosen[0]) == played, (number, ply)
            state = TICTACTOE.step(state, jnp.int32(played))
            total += float(state.rewards[number % 2])
        assert bool(state.terminated)
        assert total == reward


def test_a_sequential_test_stops_the_match_once_it_is_decided(solution_of):
    best, weak = optimal_player(solution_of("tictactoe")), random_player(TICTACTOE)
    decided = play_match(TICTACTOE, best, weak, 400, key(), batch_size=20, sequential_test=SequentialTest(0.0, 100.0))
    assert decided.accepted == 100
    assert 20 <= decided.games < 400
    assert len(decided.actions) == decided.games
    undecided = play_match(TICTACTOE, weak, weak, 20, key(), sequential_test=SequentialTest(0.0, 1.0))
    assert undecided.accepted is None
    assert undecided.games == 20


def test_a_round_robin_plays_each_pair_once(solution_of):
    players = [
        dataclasses.replace(random_player(CONNECT2), name="a"),
        dataclasses.replace(optimal_player(solution_of("connect2")), name="b"),
        dataclasses.replace(random_player(CONNECT2), name="c"),
    ]
    calls = []
    matches = play_round_robin(CONNECT2, players, 40, key(), progress=lambda *call: calls.append(call))
    assert [(match.first, match.second) for match in matches] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert calls == [(40, 120), (80, 120), (120, 120)]
    assert matches[0].score < 0.5 < matches[2].score
    for wrong in (players[:1], [players[0], players[0]]):
        with pytest.raises(ValueError, match="matches need two players or more, each with a name of its own; got a"):
            play_round_robin(CONNECT2, wrong, 2, key())


def test_a_game_without_its_pair_does_not_count_as_played():
    players = [dataclasses.replace(random_player(CONNECT2), name=name) for name in "ab"]
    (match,) = play_round_robin(CONNECT2, players, 8, key(), played=lambda *_: 3)
    assert match.games == 8 - 2


def test_a_match_repeats_with_its_key_and_differs_with_another():
    player = random_player(TICTACTOE)
    results = [play_match(TICTACTOE, player, player, 64, key(seed)) for seed in (5, 5, 6)]
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize("num_games", [0, 3, -2])
def test_an_odd_or_empty_match_is_refused(num_games):
    player = random_player(CONNECT2)
    with pytest.raises(ValueError, match=rf"num_games must be even and at least 2.*got {num_games}"):
        play_match(CONNECT2, player, player, num_games, key())
    with pytest.raises(ValueError, match=rf"num_games must be even and at least 2.*got {num_games}"):
        play_round_robin(CONNECT2, [player, dataclasses.replace(player, name="other")], num_games, key())


def test_a_finished_start_and_an_empty_batch_are_refused(positions_of):
    player = random_player(TICTACTOE)
    with pytest.raises(ValueError, match="start state 1 is a finished game"):
        play_match(TICTACTOE, player, player, 2, key(), start_states=positions_of(TICTACTOE, "X________", "XXXOO____"))
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        play_match(TICTACTOE, player, player, 2, key(), batch_size=0)


def test_no_start_at_all_is_refused():
    none = jax.tree.map(lambda leaf: leaf[:0], jax.vmap(TICTACTOE.init)(jax.random.split(jax.random.key(0), 1)))
    player = random_player(TICTACTOE)
    with pytest.raises(InputError, match="start_states must hold at least one position, got none"):
        play_match(TICTACTOE, player, player, 2, jax.random.key(0), start_states=none)


def test_a_game_that_outlasts_max_plies_is_an_error(nim):
    @dataclasses.dataclass(frozen=True)
    class Hasty(nim):
        @property
        def max_plies(self):
            return 1

    player = random_player(Hasty((1, 1)))
    with pytest.raises(InputError, match="nim: 4 games go on after 1 plies: a player chose actions that are not legal"):
        play_match(Hasty((1, 1)), player, player, 4, key())


@dataclasses.dataclass(frozen=True)
class Remembers:
    """Moves at random while its memory, the position and the number of its own moves, is right; else not legally."""

    def __call__(self, params, key, states):
        raise AssertionError("it was called without its memory")

    def start(self, params, states):
        return states, jnp.zeros_like(states.current_player)

    def think(self, params, key, states, memory):
        position, thoughts = memory
        stones = jax.vmap(lambda state: TICTACTOE.observe(state).sum())(states).astype(jnp.int32)
        right = thoughts == stones // 2
        for known, true in zip(jax.tree.leaves(position), jax.tree.leaves(states), strict=True):
            right &= (known == true).reshape(len(right), -1).all(axis=1)
        choice = random_player(TICTACTOE).policy(params, key, states)
        occupied = 1.0 - jax.vmap(TICTACTOE.legal_action_mask)(states)
        probabilities = jnp.where(right[:, None], choice.probabilities, occupied)
        return choice._replace(probabilities=probabilities), (position, thoughts + 1)

    def observe(self, memory, action):
        position, thoughts = memory
        return jax.vmap(TICTACTOE.step)(position, action), thoughts


def test_a_memory_belongs_to_its_game_and_its_player():
    # An illegal move changes nothing, so that the game would not end in time.
    result = play_match(TICTACTOE, Player("a", Remembers()), Player("b", Remembers()), 40, key(), batch_size=16)
    assert result.games == 40
    assert 5 <= result.mean_length <= 9


@pytest.mark.slow
def test_a_search_that_reuses_its_tree_moves_in_some_of_the_games_at_a_time():
    prover = search_player(CONNECT2, evaluators.uniform(CONNECT2), num_simulations=64, solver=True, reuse_tree=True)
    # The first player wins connect2.
    assert play_match(CONNECT2, prover, prover, 6, key()).moving_first == Record(3, 0, 0)


@pytest.fixture(scope="module")
def prover():
    uniform = evaluators.uniform(TICTACTOE)
    return search_player(TICTACTOE, uniform, num_simulations=2000, solver=True, reuse_tree=True)


@pytest.mark.slow
def test_a_search_with_solver_and_reused_tree_draws_with_itself_and_with_the_optimal_player(prover, solution_of):
    for other in (prover, optimal_player(solution_of("tictactoe"))):
        result = play_match(TICTACTOE, prover, other, 32, key())
        assert result.total == Record(0, 32, 0)
        assert result.mean_length == 9


@pytest.mark.slow
def test_a_search_with_solver_and_reused_tree_never_loses_against_random_moves(prover):
    result = play_match(TICTACTOE, prover, random_player(TICTACTOE), 64, key(), batch_size=32)
    assert result.losses == 0
    assert result.wins > 50
