"""What `azjax play` gives to its page."""

import jax
import pytest
from small_run import SMALL

from azjax import make
from azjax.cli import main
from azjax.evaluation import GameRecord, save_games
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


@pytest.mark.parametrize(("spec", "simulations"), [("tictactoe:32", 32), ("tictactoe", 64)])
def test_the_page_searches_with_the_simulations_of_the_player(spec, simulations, shown):
    main(["play", spec, "--web"])
    assert shown["num_simulations"] == simulations
