"""Self-play with the options of its search."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.core.errors import InputError
from azjax.games.protocols import without_history
from azjax.games.registry import make
from azjax.search import AlphaZero, evaluators
from azjax.search.result import root_priors
from azjax.training import init
from azjax.training.restarts import Restarts
from azjax.training.self_play import make_start, policy_of_slots, self_play, surprise


def _play(game, config, restarts=None):
    """The steps of one iteration of self-play, on the host."""

    @jax.jit
    def play():
        hyper = jax.tree.map(jnp.float32, config.hyper)
        state = init(game, config, 0, hyper)
        network = config.make_network(game)
        return self_play(
            game, network, config, state.variables, hyper, state.iteration, jax.random.key(1), state.games, restarts
        )[1]

    return jax.device_get(play())


@pytest.mark.slow
def test_a_reused_tree_keeps_the_visits_below_the_move_and_a_new_game_starts_a_new_one():
    game = make("tictactoe")
    config = dataclasses.replace(SMALL, num_simulations=6, steps_per_iteration=12, replay_size=128, reuse_tree=True)
    steps = _play(game, config)
    boards = np.asarray(jax.vmap(jax.vmap(game.observe))(steps.states)).reshape(12, 4, 9, -1).any(axis=3)
    totals = np.full(4, 6)
    reused = 0
    for ply in range(12):
        visits = steps.policy[ply] * totals[:, None]
        # The policy is made of whole visits, as many as the rule says.
        np.testing.assert_allclose(visits, np.round(visits), atol=1e-4)
        np.testing.assert_allclose(visits.sum(axis=1), totals, rtol=1e-5)
        if ply == 11:
            break
        action = np.argmax(boards[ply + 1] & ~boards[ply], axis=1)
        # One visit of the child was its own evaluation, the others went on below it.
        below = np.round(visits[np.arange(4), action]).astype(int) - 1
        reused += (~steps.ended[ply] & (below > 0)).sum()
        totals = 6 + np.where(steps.ended[ply], 0, np.maximum(below, 0))
    assert steps.ended[:11].sum() >= 4
    assert reused >= 4


@pytest.mark.slow
def test_the_solver_gives_the_whole_policy_to_the_move_that_it_proved():
    game = make("tictactoe")
    # X has one move that wins, on c3.
    config = dataclasses.replace(SMALL, num_simulations=32, steps_per_iteration=1, start_positions=("XX_OO____",))
    steps = _play(game, dataclasses.replace(config, solver=True))
    np.testing.assert_array_equal(steps.policy, np.broadcast_to(np.arange(9) == 2, (1, 4, 9)))
    np.testing.assert_array_equal(steps.reward, 1)


@pytest.mark.slow
def test_gumbel_self_play_learns_the_improved_policy():
    """It is positive for every legal move; a policy of visits is zero for moves that were not tried."""
    game = make("tictactoe")
    config = dataclasses.replace(SMALL, policy="gumbel", num_simulations=2, replay_size=128)
    steps = _play(game, config)
    legal = np.asarray(jax.vmap(jax.vmap(game.legal_action_mask))(steps.states))
    np.testing.assert_array_equal(steps.policy > 0, legal)
    np.testing.assert_allclose(steps.policy.sum(axis=2), 1, rtol=1e-5)
    assert steps.learned.all()
    assert not steps.proven.any()


def test_fast_searches_are_not_learned_from_and_all_games_have_them_at_once():
    game = make("tictactoe")
    hyper = dataclasses.replace(SMALL.hyper, full_search_fraction=0.5)
    config = dataclasses.replace(
        SMALL, num_simulations=12, fast_simulations=2, steps_per_iteration=32, replay_size=256, hyper=hyper
    )
    steps = _play(game, config)
    assert (steps.learned == steps.learned[:, :1]).all()
    full = steps.learned[:, 0]
    assert 4 < full.sum() < 28
    # The policy is made of whole visits.
    for count, rows in ((12, full), (2, ~full)):
        visits = steps.policy[rows] * count
        np.testing.assert_allclose(visits, np.round(visits), atol=1e-4)
        np.testing.assert_allclose(visits.sum(axis=2), count, rtol=1e-5)
    assert (np.round(steps.policy[full] * 2) != steps.policy[full] * 2).any()


@pytest.mark.slow_except("4_plies")
@pytest.mark.parametrize(("plies", "player", "sign"), [(3, 0, 1), (4, 1, -1)], ids=["3_plies", "4_plies"])
def test_truncated_games_end_with_the_value_of_the_search_for_the_first_player(plies, player, sign):
    game = make("tictactoe")
    config = SMALL.replace(num_simulations=4, truncate_at_ply=plies, steps_per_iteration=2 * plies, replay_size=64)
    steps = _play(game, config)
    # No game is won after four plies. The value is that of the player to make the last move.
    np.testing.assert_array_equal(steps.ended, np.repeat(np.arange(1, 2 * plies + 1)[:, None] % plies == 0, 4, axis=1))
    np.testing.assert_array_equal(steps.truncated, steps.ended)
    assert (steps.states.current_player[steps.truncated] == player).all()
    assert (steps.value[steps.truncated] != 0).all()
    np.testing.assert_array_equal(steps.reward[steps.truncated], sign * steps.value[steps.truncated])
    assert (steps.reward[~steps.truncated] == 0).all()


@pytest.mark.slow
def test_moves_far_less_likely_than_the_best_one_cut_the_result():
    game, share = make("tictactoe"), 0.6
    steps = _play(game, SMALL.replace(num_simulations=6, steps_per_iteration=12, replay_size=128, trace_cut=share))
    boards = np.asarray(jax.vmap(jax.vmap(game.observe))(steps.states)).reshape(12, 4, 9, -1).any(axis=3)
    goes_on = ~steps.ended[:-1]
    action = np.argmax(boards[1:] & ~boards[:-1], axis=2)
    chosen = np.take_along_axis(steps.policy[:-1], action[..., None], axis=2)[..., 0]
    exploratory = chosen < share * steps.policy[:-1].max(axis=2)
    np.testing.assert_array_equal(steps.trace[:-1][goes_on], ~exploratory[goes_on])
    assert 4 < exploratory[goes_on].sum() < goes_on.sum() - 4


@pytest.mark.slow_except("td_lambda")
@pytest.mark.parametrize(
    ("hyper", "trace"),
    [({}, 1), ({"trace_cut": 0.5}, 0), ({"td_lambda": 0.9}, 0)],
    ids=["results", "trace_cut", "td_lambda"],
)
def test_proven_values_cut_the_result_where_values_count(hyper, trace):
    game = make("tictactoe")
    # X has one move that wins, on c3.
    config = SMALL.replace(num_simulations=32, steps_per_iteration=1, start_positions=("XX_OO____",), solver=True)
    steps = _play(game, config.replace(**hyper))
    assert (steps.trace == trace).all()
    np.testing.assert_array_equal(steps.value, 1)


def test_td_lambda_is_the_weight_of_what_comes_later():
    steps = _play(make("tictactoe"), SMALL.replace(num_simulations=2, td_lambda=0.75))
    assert not steps.proven.any()
    assert (steps.trace == 0.75).all()


def test_exploring_starts_are_spread_evenly_over_the_unfinished_positions():
    game = make("santorini", size=2, workers=1)
    numbers = np.arange(game.num_position_numbers, dtype=np.uint32)
    unfinished = np.flatnonzero(~np.asarray(jax.vmap(game.from_position_number)(numbers).terminated))

    @jax.jit
    def starts(keys):
        return jax.vmap(game.position_number)(jax.vmap(make_start(game, SMALL.replace(exploring_starts=1.0)))(keys))

    drawn, counts = np.unique(starts(jax.random.split(jax.random.key(0), 40_000)), return_counts=True)
    assert set(drawn) <= set(unfinished)
    assert len(drawn) == len(unfinished)
    # Chi-squared has the mean n - 1 and the variance 2 (n - 1).
    expected, freedom = 40_000 / len(unfinished), len(unfinished) - 1
    assert abs(np.sum((counts - expected) ** 2) / expected - freedom) < 4 * math.sqrt(2 * freedom)


def test_a_share_of_the_games_begins_anywhere_and_the_others_as_without():
    game = make("santorini", size=2, workers=1)
    keys = jax.random.split(jax.random.key(0), 1000)
    first, mixed = (
        jax.jit(jax.vmap(make_start(game, SMALL.replace(random_start_plies=0, exploring_starts=share))))(keys)
        for share in (0.0, 0.3)
    )
    first, mixed = (np.asarray(jax.vmap(game.position_number)(states)) for states in (first, mixed))
    assert len(set(first.tolist())) == 1
    assert 0.25 < np.mean(mixed != first) < 0.35


@pytest.mark.slow
def test_exploring_games_alone_are_truncated_early():
    game = make("santorini", size=2, workers=1)
    changes = {"exploring_starts": 0.5, "exploring_plies": 1, "steps_per_iteration": 64, "replay_size": 512}
    steps = _play(game, SMALL.replace(**changes))
    numbers = np.asarray(jax.vmap(jax.vmap(game.position_number))(steps.states))
    usual = numbers == int(game.position_number(game.init(jax.random.key(0))))
    begins = np.concatenate([np.ones((1, 4), bool), steps.ended[:-1]])
    assert (begins & ~usual).sum() > 5
    assert steps.ended[begins & ~usual].all()
    assert (begins & usual).sum() > 3
    assert steps.truncated[begins & ~usual].any()
    assert not steps.truncated[~(begins & ~usual)].any()


@pytest.mark.slow
def test_a_game_that_begins_in_the_replay_is_no_exploring_game():
    """The others are truncated after one ply; from the start of the game the end is further away than that."""
    game = make("santorini", size=2, workers=1)
    config = SMALL.replace(exploring_starts=1.0, exploring_plies=1, restart_candidates=1, num_simulations=2)
    start = without_history(game, game.init(jax.random.key(0)))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4, 4, *leaf.shape)), start)
    chosen = jnp.broadcast_to(jnp.array([True, True, False, False]), (4, 4))
    steps = _play(game, config, Restarts(states, chosen))
    # The first games are exploring ones in any case.
    assert steps.ended[0].all()
    assert steps.ended[1].tolist() == [False, False, True, True]
    assert not steps.truncated[1:, :2].any()
    assert steps.ended[:, 2:].all()


def test_games_without_numbers_have_no_exploring_starts():
    with pytest.raises(InputError, match="exploring_starts: tictactoe does not number its positions"):
        make_start(make("tictactoe"), SMALL.replace(exploring_starts=0.5))


@pytest.mark.slow
def test_late_moves_are_not_drawn_at_random():
    game = make("tictactoe")
    hyper = dataclasses.replace(SMALL.hyper, temperature=math.inf, temperature_plies=1.0, dirichlet_fraction=0.0)
    config = dataclasses.replace(
        SMALL, num_games=16, num_simulations=16, steps_per_iteration=3, replay_size=256, hyper=hyper
    )
    steps = _play(game, config)
    boards = np.asarray(jax.vmap(jax.vmap(game.observe))(steps.states)).reshape(3, 16, 9, -1).any(axis=3)
    first, second = (np.argmax(boards[ply + 1] & ~boards[ply], axis=1) for ply in (0, 1))
    assert len(set(first)) > 4
    # After the first move, the most visited is played: equal games stay equal.
    np.testing.assert_array_equal(second, np.argmax(steps.policy[1], axis=1))
    assert len(set(zip(first, second, strict=True))) == len(set(first))


@pytest.mark.slow
def test_the_temperature_scales_the_noise_of_the_gumbel_search():
    game = make("tictactoe")
    hyper = dataclasses.replace(SMALL.hyper, temperature_plies=1.0)
    config = dataclasses.replace(
        SMALL, policy="gumbel", num_games=16, num_simulations=16, steps_per_iteration=3, replay_size=256, hyper=hyper
    )
    steps = _play(game, config)
    boards = np.asarray(jax.vmap(jax.vmap(game.observe))(steps.states)).reshape(3, 16, 9, -1).any(axis=3)
    first, second = (np.argmax(boards[ply + 1] & ~boards[ply], axis=1) for ply in (0, 1))
    assert 4 < len(set(first)) < 16
    # After the first move there is no noise: equal games stay equal.
    assert len(set(zip(first, second, strict=True))) == len(set(first))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["alphazero", "gumbel"])
def test_proven_positions_are_marked(policy):
    game = make("tictactoe")
    # X has one move that wins, on c3.
    config = dataclasses.replace(
        SMALL, policy=policy, num_simulations=32, steps_per_iteration=1, start_positions=("XX_OO____",), solver=True
    )
    steps = _play(game, config)
    assert steps.proven.all()
    np.testing.assert_array_equal(steps.value, 1)


def test_the_policy_over_the_slots_is_zero_in_holes():
    """A hole names action 0, which is legal in one of these positions: its share must not be counted twice."""
    game = make("santorini", size=3, workers=1)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    for ply in range(8):
        states = jax.vmap(game.step)(
            states, jax.vmap(game.sample_legal_action)(states, jax.random.bits(jax.random.key(ply), (64,)))
        )
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    assert legal[:, 0].any()
    policy = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    slots = policy_of_slots(game, states, jnp.asarray(policy, jnp.float32))
    np.testing.assert_allclose(slots.sum(axis=1), policy.sum(axis=1), rtol=1e-6)


def test_the_surprise_is_the_divergence_of_the_policy_from_the_prior():
    """With the prior 1/5 on each action, one that has all of the policy is a surprise of log 5."""
    game = make("tictactoe")
    states = jax.tree.map(lambda leaf: leaf[None], game.from_text("XX_OO____"))  # X wins on c3, as the solver proves
    policy = AlphaZero(game, evaluators.uniform(game), 32, solver=True)
    result = policy(None, jax.random.key(0), states)
    assert float(surprise(game, states, result)[0]) == pytest.approx(np.log(5))
    even = dataclasses.replace(result, policy=game.legal_action_mask(game.from_text("XX_OO____"))[None] / 5)
    assert float(surprise(game, states, even)[0]) == pytest.approx(0, abs=1e-6)


def test_root_priors_are_those_of_the_evaluator_for_actions_with_a_child_and_without():
    game = make("tictactoe")
    logits = jnp.log(jnp.arange(1, 10, dtype=jnp.float32))

    def evaluator(params, key, states):
        return jnp.tile(logits, (len(states.terminated), 1)), jnp.zeros(len(states.terminated))

    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    result = AlphaZero(game, evaluator, 3)(None, jax.random.key(0), states)
    assert 0 < (np.asarray(result.visits) > 0).sum() <= 3
    np.testing.assert_allclose(root_priors(result.tree)[0], np.arange(1, 10) / 45, rtol=1e-5)
