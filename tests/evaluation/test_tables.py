import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.agents import load_player, load_search_spec
from azjax.evaluation import choose, save_endings, save_solution, solve_endings
from azjax.evaluation.players import search
from azjax.evaluation.tables import ExactLeaves, game_of_table
from azjax.play.search_pool import SearchPool
from azjax.play.session import PlaySession
from azjax.search import evaluators

BRANDUB = azjax.make("brandub")
START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a"


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    """A file of endings, and what is in it."""
    path = tmp_path_factory.mktemp("endings") / "endings.npz"
    solution = solve_endings(BRANDUB, 1)
    save_endings(solution, path)
    return path, solution


def stacked(*texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(BRANDUB.from_text, texts))


def test_leaves_of_the_table_have_exact_values_and_the_best_moves_and_others_those_of_the_evaluator(endings):
    _, solution = endings
    states = stacked("1K5/7/7/7/7/7/5t1 d", "1K1t3/7/7/7/7/7/7 a", START)
    inner = evaluators.random(BRANDUB)
    evaluator = ExactLeaves(inner, BRANDUB)
    logits, values = evaluator((None, solution.best_moves()), jax.random.key(0), states)
    others, other_values = inner(None, jax.random.key(0), states)
    assert values[:2].tolist() == [1, 1]
    for row, moves in enumerate(({"b7-a7", "b7-g7"}, {"d7-c7"})):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        own = np.asarray(logits[row])
        assert {BRANDUB.action_to_text(state, action) for action in np.flatnonzero(own == 0).tolist()} == moves
        assert set(own.tolist()) == {0, -30}
    np.testing.assert_array_equal(logits[2], others[2])
    assert values[2] == other_values[2]


@pytest.mark.slow
def test_an_error_of_the_value_is_zero_in_the_table(endings):
    @dataclasses.dataclass(frozen=True)
    class WithError:
        game: object

        def __call__(self, params, key, states):
            batch = len(states.current_player)
            return jnp.zeros((batch, BRANDUB.num_actions)), jnp.full(batch, 0.5), jnp.full(batch, 0.25)

    states = stacked("1K5/7/7/7/7/7/5t1 d", START)
    evaluator = ExactLeaves(WithError(BRANDUB), BRANDUB)
    _, values, error = evaluator((None, endings[1].best_moves()), jax.random.key(0), states)
    assert (values.tolist(), error.tolist()) == ([1, 0.5], [0, 0.25])


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["alphazero", pytest.param("gumbel", marks=pytest.mark.slow)])
def test_a_search_sees_the_endings_behind_its_leaves(endings, policy):
    """One attacker and one defender, who is taken or takes: what follows is in the table."""
    path, _ = endings
    with_tables = load_player("brandub:16", tables=path, policy=policy)
    assert with_tables.name == f"network + 16 simulations + {policy} + tables endings.npz"
    state = stacked("7/7/7/3K3/7/7/1t5 d")
    choice = choose(with_tables, jax.random.key(0), state)
    assert float(choice.value[0]) == pytest.approx(1, abs=1e-3)
    states, plies = state, 0
    while not states.terminated.all():
        move = jnp.argmax(choose(with_tables, jax.random.key(0), states).probabilities, axis=1)
        states = jax.vmap(BRANDUB.step)(states, move.astype(jnp.int32))
        plies += 1
    assert (plies, states.rewards[0].tolist()) == (3, [-1, 1])


def test_analysis_searches_with_tables_too(endings):
    path, solution = endings
    spec, plain = load_search_spec("brandub", BRANDUB, path), load_search_spec("brandub", BRANDUB)
    assert spec.policy.evaluator == ExactLeaves(plain.policy.evaluator, BRANDUB)
    np.testing.assert_array_equal(spec.params[1].scores, solution.table.scores)


def test_the_page_tells_exact_values_where_the_table_has_them(endings):
    spec = load_search_spec("brandub", BRANDUB, endings[0])
    session = PlaySession(BRANDUB, "agent", SearchPool(spec.policy, spec.params, spec.hyper), {}, spec.exact)
    ending, start = (jax.tree.map(np.asarray, BRANDUB.from_text(text)) for text in ("1K5/7/7/7/7/7/5t1 d", START))
    value, action = session.exact_value(ending)
    assert (value, BRANDUB.action_to_text(ending, action)) in [(1, "b7-a7"), (1, "b7-g7")]
    assert session.exact_value(start) is None
    moves = session.position({"start": "1K5/7/7/7/7/7/5t1 d", "actions": []})["legal"]
    assert {each["move"] for each in moves if each["exact"] == 1} >= {"b7-a7", "b7-g7"}
    assert all("exact" not in each for each in session.position({"start": START, "actions": []})["legal"])


def test_a_solution_serves_as_a_table(solution_of, tmp_path):
    game = azjax.make("santorini", size=2)
    path = tmp_path / "santorini.npz"
    save_solution(solution_of(game), path)
    assert game_of_table(path) == game
    player = load_player("santorini_2x2:4", tables=path)
    states = jax.tree.map(lambda leaf: leaf[None], game.from_text("00101101"))
    # By the golden table one move wins.
    assert search(player, jax.random.key(0), states).action.tolist() == [6]
    assert search(player, jax.random.key(0), states).value.tolist() == [1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [("random", "tables is for trained agents; random is not one"), ("tictactoe", "tictactoe has no endings")],
)
def test_players_without_a_use_for_the_tables_are_refused(endings, spec, message):
    with pytest.raises(ValueError, match=message):
        load_player(spec, None if spec == "tictactoe" else BRANDUB, tables=endings[0])
