"""The book of games that were played, by hand."""

import jax
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.evaluation import GameRecord
from azjax.evaluation.host_games import replay
from azjax.games.registry import make
from azjax.play.book import Book, BookMove

GAME = make("tictactoe")
WON, LOST, DRAWN = (1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)


def record(moves, rewards, **options):
    return GameRecord(GAME, ("one", "other"), tuple(moves.split()), rewards, **options)


def after(moves):
    return replay(GAME, GAME.init(jax.random.key(0)), moves.split())[0][-1]


GAMES = [
    record("b2 a1 c1 a3 a2 c2 b1 b3 c3", DRAWN),
    record("b2 b1 a1 c3 a3 c1 a2", WON),
    record("a1 b2 b1 c1 c3 a3", LOST),
]


def test_the_moves_of_a_position_are_counted_with_the_points_of_their_players():
    book = Book(GAME, GAMES)
    assert book.games == 3
    assert book.moves(after("")) == [BookMove(4, "b2", 2, 0.75), BookMove(6, "a1", 1, 0.0)]
    assert [move[1:] for move in book.moves(after("b2"))] == [("a1", 1, 0.5), ("b1", 1, 0.0)]
    assert [move[1:] for move in book.moves(after("a1"))] == [("b2", 1, 1.0)]
    assert book.moves(after("c3")) == []


def test_games_meet_in_equal_positions():
    """X takes b2 and c1 in either order."""
    book = Book(GAME, [GAMES[0], record("c1 a1 b2 a3 a2 c2 b1 b3 c3", DRAWN)])
    assert [move[1:] for move in book.moves(after("b2 a1 c1"))] == [("a3", 2, 0.5)]
    assert [move[1:3] for move in book.moves(after("b2 a1"))] == [("c1", 1)]


def test_random_openings_and_unfinished_games_do_not_count():
    book = Book(GAME, [record("b2 b1 a1 c3 a3 c1 a2", WON, opening_plies=2), record("c3 b2", None)])
    assert book.games == 1
    assert book.moves(after("")) == book.moves(after("b2")) == []
    assert [move[1:] for move in book.moves(after("b2 b1"))] == [("a1", 1, 1.0)]


def test_a_resigned_game_counts_with_its_result():
    book = Book(GAME, [record("c3 b2", LOST, end="resignation")])
    assert [move[1:] for move in book.moves(after(""))] == [("c3", 1, 0.0)]


def test_a_game_by_other_rules_is_refused_by_its_number():
    other = GameRecord(make("connect2"), ("one", "other"), ("b1", "a1", "c1"), WON)
    with pytest.raises(InputError, match=r"game 2 is of .*connect2.*, not of .*tictactoe"):
        Book(GAME, [GAMES[0], other])


def test_points_of_many_games_are_their_mean():
    book = Book(GAME, [GAMES[0], GAMES[1], GAMES[1], GAMES[1]])
    (move,) = book.moves(after(""))
    assert move.games == 4
    np.testing.assert_allclose(move.points, (0.5 + 3) / 4)


def test_games_of_tafl_meet_whatever_led_to_a_position():
    game = make("brandub")
    orders = ["d1-e1 d3-c3 d7-e7 d5-c5", "d7-e7 d3-c3 d1-e1 d5-c5"]
    played = [(*moves.split(), "a4-a3") for moves in orders]
    book = Book(game, [GameRecord(game, ("a", "b"), moves, WON, end="resignation") for moves in played])
    met = replay(game, game.init(jax.random.key(0)), orders[0].split())[0][-1]
    assert [move[1:] for move in book.moves(met)] == [("a4-a3", 2, 1.0)]
    assert [move[1:] for move in book.moves(game.from_text(game.to_text(met)))] == [("a4-a3", 2, 1.0)]
