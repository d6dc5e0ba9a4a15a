"""Searches for a time, one position after another of a game."""

import jax
import numpy as np
import pytest

from azjax.evaluation import play_match, search_player
from azjax.evaluation.searching_players import for_seconds, keeping_trees
from azjax.evaluation.timed import TimedPlayer, TimedSearch
from azjax.games.registry import make
from azjax.search import evaluators
from azjax.search.tree import ROOT

GAME = make("tictactoe")
KEY = jax.random.key(0)
NO_TIME = 1e-9  # one chunk of simulations
LEAVES = 4
CHUNK = 16 * LEAVES


def player(*, keeps):
    plain = search_player(GAME, evaluators.uniform(GAME), num_simulations=CHUNK, leaves_per_step=LEAVES)
    return for_seconds(keeping_trees(plain) if keeps else plain, 0.1)


def position(*moves):
    state = GAME.init(KEY)
    for move in moves:
        state = GAME.step(state, move)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def root_visits(result):
    return int(result.tree.visits[ROOT, 0])


def searched(*, keeps):
    """A search and its result at the start."""
    search = TimedSearch(player(keeps=keeps))
    result = search.search(KEY, position(), (), NO_TIME)
    return search, result


def test_it_goes_on_below_the_moves_that_were_played():
    search, first = searched(keeps=True)
    assert root_visits(first) == 1 + CHUNK
    move = int(first.action[0])
    kept = int(first.visits[0, move])
    below = search.search(KEY, position(move), (move,), NO_TIME)
    assert root_visits(below) == kept + CHUNK
    reply = int(below.action[0])
    nodes = jax.tree.map(lambda column: np.asarray(column)[:, 0], below.tree.nodes)
    (child,) = np.flatnonzero((nodes.visits > 0) & (nodes.parent == ROOT) & (nodes.slot == reply))
    grandchildren = np.flatnonzero((nodes.visits > 0) & (nodes.parent == child))
    node = grandchildren[np.argmax(nodes.visits[grandchildren])]
    played = (move, reply, int(nodes.slot[node]))
    assert nodes.visits[node] >= 2
    assert root_visits(search.search(KEY, position(*played), played, NO_TIME)) == nodes.visits[node] + CHUNK


def test_the_same_position_is_searched_further():
    search, first = searched(keeps=True)
    assert root_visits(first) == 1 + CHUNK
    assert root_visits(search.search(KEY, position(), (), NO_TIME)) == 1 + 2 * CHUNK


@pytest.mark.parametrize("course", ["another move", "another game", "no memory"])
def test_it_begins_again_where_the_tree_is_of_no_use(course):
    search, first = searched(keeps=course != "no memory")
    move = int(first.action[0])
    search.search(KEY, position(move), (move,), NO_TIME)
    other = (move + 1) % 9
    played = (other,) if course == "another move" else (move,)
    if course == "another game":
        search.forget()
    assert root_visits(search.search(KEY, position(*played), played, NO_TIME)) == 1 + CHUNK


def test_nothing_is_compiled_while_the_time_of_a_move_runs(caplog):
    several = search_player(GAME, evaluators.uniform(GAME), num_simulations=5, leaves_per_step=5, reuse_tree=True)
    search = TimedSearch(for_seconds(several, 0.2))  # of a shape that no other test compiles

    def compiled():
        lines = [record.message for record in caplog.records if "Finished XLA compilation" in record.message]
        return {name for name in ("search", "below", "child") if any(name in line for line in lines)}

    with jax.log_compiles(), caplog.at_level("WARNING"):
        search.compile(position())
        assert compiled() == {"search", "below", "child"}
        caplog.clear()
        first = search.search(KEY, position(), (), NO_TIME)
        move = int(first.action[0])
        second = search.search(KEY, position(move), (move,), NO_TIME)
        search.search(KEY, position(move, int(second.action[0])), (move, int(second.action[0])), NO_TIME)
    assert compiled() == set()
    assert root_visits(first) == 1 + 16 * 5  # what was compiled left no tree


def test_in_a_match_each_game_has_its_own_tree(monkeypatch):
    visits = []

    def noting(search, key, states, played, seconds):
        result = TimedSearch.search(search, key, states, played, seconds)
        visits.append((len(played), root_visits(result)))
        return result

    monkeypatch.setattr("azjax.evaluation.timed.TimedSearch", type("Noting", (TimedSearch,), {"search": noting}))
    timed = TimedPlayer("timed", player(keeps=True), NO_TIME)
    plain = search_player(GAME, evaluators.uniform(GAME), num_simulations=8)
    match = play_match(GAME, timed, plain, 2, KEY)
    of_games = visits[2:]  # after those that compile
    moves = sum((len(actions) + 1 - number) // 2 for number, actions in enumerate(match.actions))
    assert len(of_games) == moves
    # The first move of each game has a new tree.
    assert {number for ply, number in of_games if ply <= 1} == {1 + CHUNK}
    assert max(number for ply, number in of_games if ply > 1) > 1 + CHUNK
