import pytest

from azjax.evaluation.standard_players import is_player_name, named_player, num_simulations_of
from azjax.games.registry import make


@pytest.mark.parametrize(
    ("name", "simulations"), [("random", 0), ("optimal", 0), ("uct:1000", 1000), ("uniform:1", 1), ("random:64", 64)]
)
def test_a_name_gives_the_number_of_simulations(name, simulations):
    assert is_player_name(name)
    assert num_simulations_of(name) == simulations


@pytest.mark.parametrize("name", ["uct", "magnus", "magnus:3", "optimal:3", ""])
def test_the_error_of_an_unknown_name_lists_the_known_ones(name):
    assert not is_player_name(name)
    with pytest.raises(ValueError, match=rf"unknown player '{name}'; available: random, optimal, uct:SIMULATIONS"):
        named_player(name, make("connect2"))


@pytest.mark.parametrize("count", ["", "0", "-1", "1.5", "many"])
def test_simulations_are_a_number_of_at_least_1(count):
    with pytest.raises(ValueError, match=rf"SIMULATIONS must be a whole number of at least 1, got '{count}'"):
        named_player(f"uct:{count}", make("connect2"))


def test_the_name_of_a_player_includes_its_options():
    game = make("connect2")
    assert named_player("uct:8", game).name == "uct:8"
    assert named_player("uniform:8", game, solver=True, reuse_tree=True).name == "uniform:8 + solver + reused tree"
