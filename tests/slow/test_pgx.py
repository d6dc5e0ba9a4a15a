"""The games of pgx keep the laws of the contract. Compiling them takes the time."""

import pytest

import azjax
from azjax.games import check_game

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name", ["animal_shogi", "chess", "connect_four", "gardner_chess", "go_9x9", "hex", "othello", "shogi"]
)
def test_a_game_of_pgx_keeps_every_law(name):
    pytest.importorskip("pgx", reason="pgx is not installed")
    check_game(azjax.make(f"pgx:{name}"), num_games=4)
