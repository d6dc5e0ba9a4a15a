"""Games by every rule option keep the laws of the contract. Compiling them takes the time."""

import pytest

import azjax
from azjax.games import check_game
from azjax.games.santorini import Santorini

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [(2, 1), (4, 1), (4, 2), (5, 1), (5, 2)], ids=str)
def test_santorini_of_other_sizes_keeps_every_law(size):
    check_game(Santorini(*size), num_games=4)


@pytest.mark.parametrize("size", [(1, 5, 2), (2, 1, 2), (9, 4, 3)], ids=str)
def test_connect_four_of_other_sizes_keeps_every_law(size):
    columns, rows, in_a_row = size
    check_game(azjax.make("connect_four", columns=columns, rows=rows, in_a_row=in_a_row), num_games=2)


# Each value of a rule that is not Brandub's own, where other games of tafl have no such rule.
@pytest.mark.parametrize(
    "options",
    [
        {"rules": "seed000"},
        {"king": "by_two"},
        {"castle_hostile": "never"},
        {"attackers_gone": "ignored"},
        {"repetition": "never"},
        {"no_moves": "loss"},
        {"max_plies": 40},
        {"history": 1},
        {"king": "by_four"},
        {"king_captures": "unarmed"},
        {"escape": "edge"},
        {"castle": "king"},
        {"castle": "anyone"},
        {"encirclement": "attackers_win"},
        {"longest_move": 1},
        {"repetitions": 3},
    ],
    ids=str,
)
def test_brandub_by_other_rules_keeps_every_law(options):
    check_game(azjax.make("brandub", **options), num_games=4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("othello", {"size": 4}),
        ("othello", {"size": 6}),
        ("chomp", {"columns": 3, "rows": 5}),
        ("tablut", {"king_captures": "unarmed", "castle": "king"}),
        ("ard_ri", {"encirclement": "attackers_win", "castle": "anyone"}),
    ],
    ids=str,
)
def test_other_boards_and_rules_keep_every_law(name, options):
    check_game(azjax.make(name, **options), num_games=4)
