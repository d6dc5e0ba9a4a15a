"""`alphazero_policy` against a plain-Python search, to the last bit, and against facts known by hand."""

import dataclasses
import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from results import without_tree

import azjax.games
from azjax.games.mnk import Mnk
from azjax.search import alphazero_policy, evaluators
from azjax.search.draws import log_gamma_draws
from benchmarks.rules.mnk import MnkRules
from benchmarks.rules.table_game import TableGame, node_of, plain_search
from benchmarks.searches import puct

KEY_SEED = 0
NUM_ROWS = 97  # of the table that evaluates m,n,k positions
BATCH = 64


def search(params, states, *, game, evaluator, num_simulations, key_seed=KEY_SEED, **options):
    """The result on the host without its tree, and no NaN anywhere in it."""
    result = alphazero_policy(
        params,
        jax.random.key(key_seed),
        states,
        game=game,
        evaluator=evaluator,
        num_simulations=num_simulations,
        **options,
    )
    result = without_tree(result)
    for leaf in jax.tree.leaves(result):
        if np.issubdtype(leaf.dtype, np.floating):
            assert not np.isnan(leaf).any()
    return result


def assert_equal_rows(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


# Games of random tables.

SOME_SLOTS = TableGame(seed=1, width=128, depth=8, actions=11, slots=6)
ALL_SLOTS = TableGame(seed=2, width=128, depth=8, actions=7, slots=7)
# With so many slots edges are kept with their children alone, eight in a row.
SOME_OF_40 = TableGame(seed=3, width=64, depth=8, actions=40, slots=24)
SOME_OF_100 = TableGame(seed=4, width=64, depth=8, actions=100, slots=40)
ALL_OF_24 = TableGame(seed=5, width=64, depth=8, actions=24, slots=24)
TABLE = evaluators.table(node_of)


def real_numbers_of(game):
    return dataclasses.replace(game, real=True)


def search_table_game(game, nodes, num_simulations, *, params=None, c_puct=1.25):
    return search(
        params or (game.tables.prior_logits, game.tables.values),
        game.state_at(nodes),
        game=game,
        evaluator=TABLE,
        num_simulations=num_simulations,
        c_puct=c_puct,
    )


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"),
    [
        (SOME_SLOTS, 1, 1024),
        pytest.param(SOME_SLOTS, 2, 1024, marks=pytest.mark.slow),
        (SOME_SLOTS, 16, 1024),
        (SOME_SLOTS, 100, 512),
        pytest.param(ALL_SLOTS, 100, 256, marks=pytest.mark.slow),
    ],
    ids=lambda value: value.slots if isinstance(value, TableGame) else value,
)
def test_trees_of_random_games_equal_those_of_a_plain_python_search(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    assert game.tables.terminal[nodes].any()
    result = search_table_game(game, nodes, num_simulations)
    puct.assert_equal(result, plain_search(game, nodes, num_simulations))


@pytest.mark.parametrize("c_puct", [0.25, 4.0])
def test_trees_equal_those_of_a_plain_python_search_with_other_exploration(c_puct):
    nodes = np.arange(1024)
    result = search_table_game(SOME_SLOTS, nodes, 16, c_puct=c_puct)
    puct.assert_equal(result, plain_search(SOME_SLOTS, nodes, 16, c_puct))


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots", "c_puct"),
    [
        pytest.param(SOME_OF_40, 150, 64, 1.25, marks=pytest.mark.slow),
        (real_numbers_of(ALL_OF_24), 150, 64, 1.25),
        pytest.param(SOME_OF_100, 400, 32, 4.0, marks=pytest.mark.slow),
        (real_numbers_of(SOME_OF_100), 400, 32, 4.0),
    ],
    ids=str,
)
def test_trees_of_many_slots_equal_those_of_a_plain_python_search(game, num_simulations, num_roots, c_puct):
    nodes = np.arange(num_roots)
    expected = plain_search(game, nodes, num_simulations, c_puct)
    below_the_roots = [
        len(node.children) for row in expected for node in row.root.descendants() if node is not row.root
    ]
    assert max(below_the_roots) > 8
    assert num_simulations < 400 or {8, 9, 16, 17} <= set(below_the_roots)
    puct.assert_equal(search_table_game(game, nodes, num_simulations, c_puct=c_puct), expected)


@pytest.mark.slow
def test_trees_of_real_numbers_equal_those_of_a_plain_python_search():
    game, nodes = real_numbers_of(SOME_SLOTS), np.arange(256)
    puct.assert_equal(search_table_game(game, nodes, 64), plain_search(game, nodes, 64))


def test_evaluations_of_ended_games_and_illegal_actions_are_ignored():
    game, nodes = SOME_SLOTS, np.arange(1024)
    tables = game.tables
    logits = np.where(tables.legal, tables.prior_logits, np.nan)
    values = np.where(tables.terminal, np.nan, tables.values)
    result = search_table_game(game, nodes, 16, params=(logits, values))
    assert_equal_rows(result, search_table_game(game, nodes, 16))


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"), [(SOME_SLOTS, 16, 1024), (SOME_OF_100, 400, 32)], ids=str
)
def test_rows_of_a_batch_do_not_influence_one_another(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    order = np.random.default_rng(0).permutation(nodes)
    order[1::2] = order[::2]  # every row twice
    result, shuffled = (search_table_game(game, rows, num_simulations, c_puct=4.0) for rows in (nodes, order))
    assert_equal_rows(jax.tree.map(lambda leaf: leaf[order], result), shuffled)
    alone = search_table_game(game, nodes[:1], num_simulations, c_puct=4.0)
    assert_equal_rows(jax.tree.map(lambda leaf: leaf[:1], result), alone)


# m,n,k games.


@dataclasses.dataclass(frozen=True)
class HashedRow:
    """The table row of a position: the stones weigh random integers, modulo the number of rows."""

    game: Mnk

    @property
    def weights(self):
        return np.random.default_rng(3).integers(0, 1 << 20, (self.game.num_actions, 2), dtype=np.int32)

    def __call__(self, state):
        stones = self.game.observe(state).reshape(-1, 2).astype(jnp.int32)
        return jnp.sum(stones * self.weights) % NUM_ROWS

    def of_position(self, position):
        own, other = position.player + 1, 2 - position.player
        stones = np.array([[cell == own, cell == other] for cell in position.board])
        return int((stones * self.weights).sum() % NUM_ROWS)


def hashed_params(game):
    generator = np.random.default_rng(4)
    logits = generator.integers(-2, 4, (NUM_ROWS, game.num_actions)).astype(np.float32)
    return logits, (generator.integers(-8, 9, NUM_ROWS) / 8).astype(np.float32)


def uniform_params(game):
    return np.zeros((NUM_ROWS, game.num_actions), np.float32), np.zeros(NUM_ROWS, np.float32)


masked_softmax = jax.jit(lambda logits, valid: jax.nn.softmax(jnp.where(valid, logits, -jnp.inf)))


def plain_search_of_mnk(game, params, positions, num_simulations):
    rules, row_of = MnkRules(game.columns, game.rows, game.in_a_row), HashedRow(game)

    @functools.cache
    def evaluate(position):
        row = row_of.of_position(position)
        return np.asarray(masked_softmax(params[0][row], np.array(position.board) == 0)), params[1][row]

    return [puct.search(rules, evaluate, position, num_simulations, game.num_actions) for position in positions]


@functools.partial(jax.jit, static_argnums=0)
def play_all(game, actions):
    """States [B, ...] after actions int32 [B, T]; -1 plays nothing."""

    def play_one(sequence):
        start = game.init(jax.random.key(KEY_SEED))
        return jax.lax.scan(lambda state, action: (game.step(state, action), None), start, sequence)[0]

    return jax.vmap(play_one)(actions)


def states_after(game, sequences):
    length = game.num_actions
    return play_all(game, np.array([[*moves, *[-1] * (length - len(moves))] for moves in sequences], np.int32))


def random_positions(game, keep=None):
    """Positions of random games, a batch of them, and their states."""
    rules = MnkRules(game.columns, game.rows, game.in_a_row)
    positions, sequences = zip(*rules.random_positions(random.Random(game.num_actions), BATCH, keep), strict=True)
    return positions, states_after(game, sequences)


TICTACTOE = azjax.games.make("tictactoe")
CONNECT2 = azjax.games.make("connect2")
HASH_EVALUATOR = evaluators.table(HashedRow(TICTACTOE))


@pytest.mark.parametrize("make_params", [hashed_params, uniform_params])
@pytest.mark.parametrize(
    ("game", "num_simulations"),
    [
        pytest.param(TICTACTOE, 1, marks=pytest.mark.slow),
        (TICTACTOE, 16),
        pytest.param(TICTACTOE, 100, marks=pytest.mark.slow),
        (CONNECT2, 100),
        (Mnk(4, 4, 3), 100),
    ],
    ids=str,
)
def test_trees_of_mnk_games_equal_those_of_a_plain_python_search(game, num_simulations, make_params):
    positions, states = random_positions(game)
    assert any(position.terminal for position in positions)
    params, evaluator = make_params(game), evaluators.table(HashedRow(game))
    result = search(params, states, game=game, evaluator=evaluator, num_simulations=num_simulations)
    puct.assert_equal(result, plain_search_of_mnk(game, params, positions, num_simulations))


def test_the_uniform_evaluator_is_a_table_of_zeros():
    _, states = random_positions(TICTACTOE)
    uniform = search(None, states, game=TICTACTOE, evaluator=evaluators.uniform(TICTACTOE), num_simulations=100)
    zeros = search(uniform_params(TICTACTOE), states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=100)
    assert_equal_rows(uniform, zeros)


# What a search finds, known by hand.


def tictactoe_search(states, num_simulations=100):
    params = uniform_params(TICTACTOE)
    return search(params, states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=num_simulations)


def connect2_search(sequences):
    states = states_after(CONNECT2, (sequences * BATCH)[:BATCH])
    evaluator = evaluators.table(HashedRow(CONNECT2))
    return search(uniform_params(CONNECT2), states, game=CONNECT2, evaluator=evaluator, num_simulations=100)


def winning_actions(rules, position):
    """The legal actions that win at once."""
    return [a for a in rules.legal_actions(position) if rules.step(position, a).rewards[position.player] == 1]


def test_a_win_in_one_is_played():
    positions, states = random_positions(TICTACTOE, keep=winning_actions)
    result = tictactoe_search(states)
    for position, action, q_values in zip(positions, result.action, result.q_values, strict=True):
        assert action in winning_actions(MnkRules(3, 3, 3), position)
        assert q_values[action] == 1


@pytest.mark.slow
def test_equal_actions_are_visited_in_order():
    positions, states = random_positions(TICTACTOE)
    assert positions[0] == MnkRules(3, 3, 3).start()
    assert tictactoe_search(states, 1).visits[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    # Nobody can win in three plies from the start, so that all values are still 0.
    assert tictactoe_search(states, 16).visits[0].tolist() == [2, 2, 2, 2, 2, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("urgency", "visits"), [(2.0, [2, 2, 2, 2, 2, 2, 2, 1, 1]), (-2.0, [16, 0, 0, 0, 0, 0, 0, 0, 0])]
)
def test_first_play_urgency_is_the_value_of_untried_actions(urgency, visits):
    states = states_after(TICTACTOE, [[]] * BATCH)
    params, options = uniform_params(TICTACTOE), {"num_simulations": 16, "first_play_urgency": urgency}
    result = search(params, states, game=TICTACTOE, evaluator=HASH_EVALUATOR, **options)
    assert result.visits[0].tolist() == visits


def test_connect2_is_opened_in_one_of_the_two_middle_cells_which_win():
    result = connect2_search([[]])
    assert result.action[0] in (1, 2)
    assert result.q_values[0, 1:3].max() > 0.8
    assert result.value[0] > 0.5


def test_a_forced_last_move_gets_every_visit():
    # X_OX is won for O, who takes the last cell; XOX_ is drawn when O does.
    result = connect2_search([[0, 2, 3], [0, 1, 2]])
    assert result.visits[:2].tolist() == [[0, 100, 0, 0], [0, 0, 0, 100]]
    assert result.policy[:2].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert result.q_values[:2].tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    # The root's own evaluation, 0, is one of 101 values.
    assert result.value[:2].tolist() == pytest.approx([100 / 101, 0], abs=1e-6)


def test_an_ended_game_has_no_visits_no_policy_and_no_value():
    positions, states = random_positions(TICTACTOE, keep=lambda rules, position: position.terminal)
    result = search(hashed_params(TICTACTOE), states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=16)
    assert all(position.terminal for position in positions)
    for field in (result.visits, result.policy, result.q_values, result.value):
        assert not field.any()


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"), [(SOME_SLOTS, 16, 1024), (ALL_SLOTS, 100, 256)], ids=str
)
def test_policies_sum_to_one_over_the_legal_actions(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    result = search_table_game(game, nodes, num_simulations)
    legal, running = game.tables.legal[nodes], ~game.tables.terminal[nodes]
    assert (result.visits.sum(axis=1) == np.where(running, num_simulations, 0)).all()
    assert not result.visits[~legal].any()
    assert not result.policy[~legal].any()
    np.testing.assert_allclose(result.policy.sum(axis=1), running.astype(np.float32), atol=1e-6)
    assert legal[np.arange(len(nodes)), result.action][running].all()
    assert result.action.dtype == result.visits.dtype == np.int32
    assert result.policy.dtype == result.value.dtype == result.q_values.dtype == np.float32


# The choice of action.


def same_search(temperature, key_seed=KEY_SEED, **options):
    """One tictactoe position, X_O______ with X to move, searched in every one of 4096 rows."""
    states = states_after(TICTACTOE, [[0, 2]] * 4096)
    return search(
        hashed_params(TICTACTOE),
        states,
        game=TICTACTOE,
        evaluator=HASH_EVALUATOR,
        num_simulations=16,
        temperature=temperature,
        key_seed=key_seed,
        **options,
    )


LEGAL = [1, 3, 4, 5, 6, 7, 8]  # of X_O______


def assert_drawn_from(actions, probabilities):
    """Chi-square; the limits are exceeded once in 1000 keys by a draw from `probabilities`."""
    counts = np.bincount(actions, minlength=len(probabilities))
    possible = probabilities > 0
    assert not counts[~possible].any()
    expected = len(actions) * probabilities[possible]
    limits = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46}
    assert ((counts[possible] - expected) ** 2 / expected).sum() < limits[possible.sum() - 1]


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_actions_are_drawn_from_visits_to_the_power_of_the_inverse_temperature(temperature):
    result = same_search(temperature)
    visits = result.visits[0].astype(float)
    assert len(set(visits[visits > 0])) > 1
    if temperature == 0:
        assert (result.action == np.argmax(visits)).all()
    else:
        assert_drawn_from(result.action, visits ** (1 / temperature) / np.sum(visits ** (1 / temperature)))


def test_at_infinite_temperature_legal_actions_are_drawn_uniformly():
    result = same_search(np.inf)
    assert_drawn_from(result.action, np.isin(np.arange(9), LEGAL) / len(LEGAL))


def test_near_temperature_0_only_the_most_visited_actions_are_drawn():
    result = same_search(1e-3)
    assert set(result.action) == set(np.flatnonzero(result.visits[0] == result.visits[0].max()))


def test_the_training_target_does_not_depend_on_the_temperature():
    for temperature in (0.5, np.inf):
        np.testing.assert_array_equal(same_search(temperature).policy, same_search(0.0).policy)


def test_equal_keys_choose_equally_and_others_do_not():
    assert_equal_rows(same_search(1.0, key_seed=5), same_search(1.0, key_seed=5))
    assert (same_search(1.0, key_seed=5).action != same_search(1.0, key_seed=6).action).any()


# Root noise.


def test_without_noise_the_key_changes_nothing():
    assert_equal_rows(same_search(0.0, key_seed=5), same_search(0.0, key_seed=6))


FOUR_CELLS_LEFT = Mnk(26, 1, 26)  # a row that no one can win: all values are 0 and visits follow the priors
FREE = [3, 9, 10, 25]


def visits_of_four_cells(**options):
    """Visits of the 4 free cells in 1024 rows and 100 simulations; the priors are 1 at cell 9, else 0."""
    game = FOUR_CELLS_LEFT
    moves = [cell for cell in range(26) if cell not in FREE]
    logits = np.where(np.arange(26) == 9, 50.0, 0.0).astype(np.float32)
    params = np.tile(logits, (NUM_ROWS, 1)), np.zeros(NUM_ROWS, np.float32)
    result = search(
        params,
        states_after(game, [moves] * 1024),
        game=game,
        evaluator=evaluators.table(HashedRow(game)),
        num_simulations=100,
        **options,
    )
    assert result.visits.sum() == result.visits[:, FREE].sum() == 100 * 1024
    return result.visits[:, FREE]


def test_the_noise_is_shared_among_the_legal_actions_alone():
    # Even noise gives each of 4 legal actions 1/4 of the noise's share, not 1/26: with 40% of noise, priors 70%,
    # 10%, 10% and 10%.
    visits = visits_of_four_cells(dirichlet_fraction=0.4, dirichlet_alpha=1e6)
    assert (np.abs(visits - [10, 70, 10, 10]) <= 3).all()


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 5.0])
def test_the_draws_of_the_noise_are_gamma_variates(alpha):
    keys = jax.random.split(jax.random.key(int(100 * alpha)), 1000)
    draws = log_gamma_draws(keys, jnp.full((1000, 100), alpha, jnp.float32)).reshape(-1)
    assert np.isfinite(draws).all()
    # In logarithms too, since most of the draws at a small alpha underflow.
    assert scipy.stats.kstest(np.asarray(draws, float), scipy.stats.loggamma(alpha).cdf).pvalue > 0.01
    assert scipy.stats.kstest(np.exp(np.asarray(draws, float)), scipy.stats.gamma(alpha).cdf).pvalue > 0.01


def test_noise_alone_prefers_each_legal_action_equally_often():
    visits = visits_of_four_cells(dirichlet_fraction=1.0, dirichlet_alpha=0.3)
    # Rows where two actions are visited alike would count for the lower one.
    untied = visits[np.sort(visits, axis=1)[:, -1] > np.sort(visits, axis=1)[:, -2]]
    assert len(untied) > 900
    assert_drawn_from(np.argmax(untied, axis=1), np.full(4, 1 / 4))


def test_noise_of_low_concentration_falls_on_one_action_at_a_time():
    visits = visits_of_four_cells(dirichlet_fraction=0.4, dirichlet_alpha=0.01)
    np.testing.assert_allclose(visits.mean(axis=0), [10, 70, 10, 10], atol=4)
    largest = visits[:, [0, 2, 3]].max(axis=1)
    assert np.mean(largest > 35) == pytest.approx(3 / 4, abs=0.1)
    assert np.mean(largest < 5) == pytest.approx(1 / 4, abs=0.1)


def test_without_noise_an_action_of_prior_0_is_not_visited():
    assert (visits_of_four_cells(dirichlet_fraction=0.0, dirichlet_alpha=0.3) == [0, 100, 0, 0]).all()


def test_the_default_concentration_is_10_over_the_number_of_legal_actions():
    default = visits_of_four_cells(dirichlet_fraction=0.5)
    stated = visits_of_four_cells(dirichlet_fraction=0.5, dirichlet_alpha=10 / 4)
    np.testing.assert_array_equal(default, stated)


# The call.


@pytest.mark.parametrize("num_simulations", [0, -3])
def test_a_search_without_simulations_is_refused(num_simulations):
    with pytest.raises(ValueError, match=f"num_simulations.*{num_simulations}"):
        search_table_game(SOME_SLOTS, np.arange(4), num_simulations)


def test_calls_of_equal_shapes_are_traced_once():
    game, traced = ALL_SLOTS, []

    def evaluator(params, key, states):
        assert states.terminated.shape == (4,)
        traced.append(1)
        return TABLE(params, key, states)

    tables = game.tables
    for call, (c_puct, fraction, temperature) in enumerate([(1.25, 0.0, 0.0), (2.0, 0.25, 1.0), (1.0, 1.0, np.inf)]):
        search(
            (tables.prior_logits, tables.values * (call + 1) / 8),
            game.state_at(np.arange(4) + call),
            game=game,
            evaluator=evaluator,
            num_simulations=3,
            key_seed=call,
            c_puct=c_puct,
            dirichlet_fraction=fraction,
            temperature=temperature,
        )
        if call == 0:
            traces = len(traced)
    assert len(traced) == traces > 0


def test_equal_evaluators_are_one():
    assert evaluators.table(HashedRow(TICTACTOE)) == evaluators.table(HashedRow(azjax.games.make("tictactoe")))
    assert evaluators.uniform(TICTACTOE) == evaluators.uniform(azjax.games.make("tictactoe"))
    assert hash(evaluators.uniform(TICTACTOE)) == hash(evaluators.uniform(azjax.games.make("tictactoe")))
