"""What `azjax play` gives to its page."""

import jax
import pytest
from refusals import refused_without_a_file
from small_run import SMALL

from azjax import make
from azjax.cli import main
from azjax.evaluation import GameRecord, RememberingPolicy, save_games
from azjax.runs import train

RUN = SMALL.replace(
    iterations=2,
    evaluate_every=0,
    ladder_every=2,
    ladder_games=8,
    ladder_opponents=("random",),
    evaluation_share=1e4,
)


@pytest.fixture
def shown(monkeypatch):
    """What the page is served with; nothing is served."""
    given = {}
    monkeypatch.setattr("azjax.play.server.serve", lambda *_, **options: given.update(options))
    return given


@pytest.mark.slow
def test_the_book_of_a_run_holds_the_games_of_its_ladder(tmp_path, shown):
    game = make("connect2")
    train(game, RUN, tmp_path)
    main(["play", str(tmp_path), "--web", "--book", str(tmp_path)])
    assert shown["book"].games == 8
    # All games begin at the start of the game.
    moves = shown["book"].moves(game.init(jax.random.key(0)))
    assert sum(move.games for move in moves) == 8


def test_the_book_of_a_run_without_a_ladder_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["play", "connect2", "--web", "--book", str(tmp_path)])
    assert f"{tmp_path} holds no games of a ladder: a run with --ladder-every keeps them" in capsys.readouterr().err


def test_a_book_without_a_finished_game_is_refused(tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    save_games(path, [GameRecord(make("connect2"), ("a", "b"), ("b1",), None)])
    with pytest.raises(SystemExit):
        main(["play", "connect2", "--web", "--book", str(path)])
    assert f"{path} holds no finished game" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "level"),
    [(["tictactoe:5"], "hard"), (["tictactoe", "--level", "easy"], "easy"), (["tictactoe"], None)],
)
def test_a_number_of_simulations_is_the_level_that_searches(arguments, level, monkeypatch):
    given = {}
    monkeypatch.setattr("azjax.commands.play.play_in_terminal", lambda game, players, **options: given.update(options))
    main(["play", *arguments])
    assert given["level"] == level


@pytest.mark.parametrize(("arguments", "keeping"), [([], ["hard"]), (["--no-reuse-tree"], [])])
def test_in_the_terminal_a_search_keeps_its_tree_unless_it_is_told_not_to(arguments, keeping, monkeypatch):
    given = []
    monkeypatch.setattr("azjax.commands.play.play_in_terminal", lambda game, players, **options: given.append(players))
    main(["play", "tictactoe", *arguments])
    (players,) = given
    assert list(players) == ["beginner", "easy", "medium", "hard"]
    assert [level for level, one in players.items() if isinstance(one.policy, RememberingPolicy)] == keeping


@pytest.mark.parametrize(("spec", "simulations"), [("tictactoe:32", 32), ("tictactoe", 64)])
def test_the_page_searches_with_the_simulations_of_the_player(spec, simulations, shown):
    main(["play", spec, "--web"])
    assert shown["num_simulations"] == simulations


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["play", "random", "--game", "connect2", "--level", "easy"],
            "level is for trained agents; random has only one",
        ),
        (
            ["play", "random", "--game", "connect2", "--web", "--host", ""],
            "--host must not be empty",
        ),
        (
            ["play", "random", "--game", "connect2", "--solver"],
            "solver and reuse_tree are for players that search; random does not",
        ),
        (["play", "connect2:400", "--level", "easy"], "num_simulations is for players that search; connect2:easy does"),
        (["play", "tictactoe", "--book", "games.jsonl"], "--book is for the page: add --web"),
        (
            ["play", "tictactoe", "--web", "--book", "."],
            ". holds no games of a ladder: a run with --ladder-every keeps them",
        ),
        (
            ["play", "tictactoe", "--web", "--book", "nowhere.jsonl"],
            "nowhere.jsonl could not be read: No such file or directory",
        ),
        (
            ["play", "tictactoe", "--web", "--level", "easy"],
            "a page goes without --level, --start, --policy and --seed: level and start are chosen on it, its "
            "searches are AlphaZero's, and its draws differ from game to game",
        ),
        (
            ["play", "tictactoe", "--web", "--no-reuse-tree"],
            "--no-reuse-tree is for the terminal; a page searches each position from an empty tree",
        ),
        (["play", "tictactoe", "--web", "--seed", "1"], "a page goes without --level, --start"),
        (["play", "tictactoe", "--web", "--export", "page"], "--web and --export are two ways to show the page"),
        (["play", "tictactoe", "--export", "page", "--start", "me"], "a page goes without --level, --start"),
        (
            ["play", "random", "--game", "tictactoe", "--export", "page"],
            "--export is for trained agents; random is not one",
        ),
        (["play", "tictactoe", "--export", "."], ". exists already; name another folder with --export"),
        (
            ["play", "tictactoe:1025", "--export", "page"],
            "a page without a server has at most 1,024 simulations, got 1,025",
        ),
        (["play", "tictactoe", "--port", "8001"], "--host and --port are for the page: add --web"),
        (["play", "tictactoe", "--export", "page", "--host", "::1"], "--host and --port are for the page: add --web"),
        (
            ["play", "tictactoe", "--level", "best"],
            "invalid choice 'best' for argument '--level'; available: None, beginner, easy, hard, medium; `azjax",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)
