"""A game in progress, and what its player remembers."""

from azjax.evaluation import search_player
from azjax.evaluation.timed import TimedSearch
from azjax.games.registry import make
from azjax.play.ongoing_game import OngoingGame
from azjax.search import evaluators
from azjax.search.tree import ROOT

GAME = make("tictactoe")
CHUNK = 64
NO_TIME = 1e-9


def keeping(num_simulations=CHUNK):
    uniform = evaluators.uniform(GAME)
    return search_player(GAME, uniform, num_simulations=num_simulations, leaves_per_step=4, reuse_tree=True)


def visits_in_memory(game):
    return int(game._memory.sums[0, ROOT, 0])


def test_one_memory_follows_the_game_and_begins_again_when_a_move_is_taken_back():
    game = OngoingGame(GAME, keeping())
    assert visits_in_memory(game) == 0
    game.choose()
    after_one = visits_in_memory(game)
    assert 0 < after_one < CHUNK
    game.choose()
    assert 0 < visits_in_memory(game) < after_one + CHUNK
    game.undo()
    assert visits_in_memory(game) == 0
    assert GAME.to_text(game.state).count("X") == 1
    game.choose()
    assert 0 < visits_in_memory(game) < CHUNK


def test_a_search_for_a_time_goes_on_until_another_game_begins(monkeypatch):
    visits = []

    class Noting(TimedSearch):
        def search(self, *arguments):
            result = super().search(*arguments)
            visits.append(int(result.tree.visits[ROOT, 0]))
            return result

    monkeypatch.setattr("azjax.play.ongoing_game.TimedSearch", Noting)
    game = OngoingGame(GAME, keeping(), seconds=NO_TIME)
    first = game.choose()
    game.choose()
    *compiled, new, kept = visits
    assert len(compiled) == 2
    assert new == 1 + CHUNK < kept
    game.undo()
    game.analyze(NO_TIME)  # of the position that was searched before
    assert visits[-1] == kept + CHUNK
    game.begin()
    game.analyze(NO_TIME)
    assert visits[-1] == new
    game.play(first)
    game.undo()
    game.play(next(text for text in ("a1", "b2") if text != first))
    game.analyze(NO_TIME)
    assert visits[-1] > 1 + CHUNK  # below the move that was played in the end
