"""Pools: games of one file that later matches continue."""

import dataclasses

import jax
import pytest

from azjax.evaluation import (
    GameRecord,
    Record,
    load_games,
    play_match,
    play_round_robin,
    random_player,
    records_of,
    save_games,
)
from azjax.evaluation.pool import Pool
from azjax.games import make

GAME = make("connect2")


def named(name):
    return dataclasses.replace(random_player(GAME), name=name)


def play(pool, names, games):
    players = [named(name) for name in names]
    return play_round_robin(
        GAME, players, games, jax.random.key(0), opening_plies=1, played=pool.games_between, on_batch=pool.add
    )


def test_only_games_that_are_missing_are_played(tmp_path):
    path = tmp_path / "pool.jsonl"
    pool = Pool(path, GAME)
    assert pool.players == []
    assert [match.games for match in play(pool, "ab", 6)] == [6]
    assert [(match.first, match.second, match.games) for match in play(pool, "cba", 8)] == [
        ("c", "b", 8),
        ("c", "a", 8),
        ("b", "a", 2),
    ]
    again = Pool(path, GAME)
    assert again.records == pool.records == load_games(path)
    assert sorted(again.players) == ["a", "b", "c"]
    assert again.games_between("b", "a") == again.games_between("a", "b") == 8
    assert play(again, "abc", 8) == []


def test_two_matches_at_once_lose_no_games(tmp_path):
    path = tmp_path / "pool.jsonl"
    play(Pool(path, GAME), "ab", 2)
    path.write_bytes(path.read_bytes().rstrip())  # as an editor leaves it
    one, other = Pool(path, GAME), Pool(path, GAME)
    play(one, "ac", 2)
    play(other, "bc", 2)
    assert [set(record.players) for record in Pool(path, GAME).records[::2]] == [{"a", "b"}, {"a", "c"}, {"b", "c"}]


def test_games_that_follow_have_other_openings(tmp_path):
    pool = Pool(tmp_path / "pool.jsonl", GAME)
    play(pool, "ab", 40)
    play(pool, "ab", 80)
    moves = [record.moves for record in pool.records]
    assert moves[:40] != moves[40:]


def test_games_of_a_match_are_added_batch_by_batch_and_stay_when_it_stops(tmp_path):
    class Stopped(Exception):
        pass

    def stop_after_two_batches(match, since):
        if since == 4:
            raise Stopped
        pool.add(match, since)

    players = [named(name) for name in "ab"]
    pool = Pool(tmp_path / "pool.jsonl", GAME)
    whole = play_match(GAME, *players, 6, jax.random.key(0), batch_size=2, opening_plies=1)
    with pytest.raises(Stopped):
        play_match(GAME, *players, 6, jax.random.key(0), batch_size=2, opening_plies=1, on_batch=stop_after_two_batches)
    assert load_games(tmp_path / "pool.jsonl") == records_of(GAME, whole)[:4]
    assert records_of(GAME, whole, 3) == records_of(GAME, whole)[3:]
    pool.add(whole, 4)
    assert pool.records == records_of(GAME, whole)


def test_a_resigned_game_counts(tmp_path):
    save_games(tmp_path / "pool.jsonl", [GameRecord(GAME, ("a", "b"), (), (-1.0, 1.0), end="resignation")])
    assert Pool(tmp_path / "pool.jsonl", GAME).pairings() == [("a", "b", Record(0, 0, 1))]


def test_results_are_counted_for_the_player_that_moved_first_and_forfeits_are_not(tmp_path):
    path = tmp_path / "pool.jsonl"
    play(Pool(path, GAME), "ab", 2)
    # Player 0 wins with b1, c1; the third game ends at once by a fault.
    game = load_games(path)[0]
    won = dataclasses.replace(game, players=("a", "b"), moves=("b1", "a1", "c1"), rewards=(1.0, -1.0))
    forfeited = dataclasses.replace(game, players=("a", "b"), moves=("b1",), rewards=(1.0, -1.0), end="late move")
    of_itself = dataclasses.replace(won, players=("a", "a"))  # tells nothing
    save_games(path, [won, dataclasses.replace(won, players=("b", "a")), forfeited, of_itself])
    pool = Pool(path, GAME)
    assert pool.pairings() == [("a", "b", Record(1, 0, 0)), ("b", "a", Record(1, 0, 0))]
    assert pool.games_between("a", "b") == 3


def test_a_pool_of_another_game_is_refused_and_left_as_it_was(tmp_path):
    path = tmp_path / "pool.jsonl"
    play(Pool(path, GAME), "ab", 2)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"pool\.jsonl: game 1 is of .*connect2.*, and the match of .*tictactoe"):
        Pool(path, make("tictactoe"))
    path.write_bytes(before + b"{}\n")
    with pytest.raises(ValueError, match=r"pool\.jsonl, line 3: no game record"):
        Pool(path, GAME)


def test_a_match_that_cannot_be_saved_leaves_the_pool_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "pool.jsonl"
    pool = Pool(path, GAME)
    play(pool, "ab", 2)
    before = path.read_bytes()
    monkeypatch.setattr("azjax.core.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match=r"pool\.jsonl could not be written"):
        play(pool, "ab", 4)
    assert path.read_bytes() == before
