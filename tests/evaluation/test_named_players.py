import pytest

from azjax.evaluation.named_players import is_named, named_player, num_simulations_of
from azjax.games.registry import make


@pytest.mark.parametrize(
    ("name", "simulations"), [("random", 0), ("optimal", 0), ("uct:1000", 1000), ("uniform:1", 1), ("random:64", 64)]
)
def test_a_name_tells_the_simulations(name, simulations):
    assert is_named(name)
    assert num_simulations_of(name) == simulations


@pytest.mark.parametrize("name", ["uct", "magnus", "magnus:3", "optimal:3", ""])
def test_an_unknown_name_is_told_with_those_there_are(name):
    assert not is_named(name)
    with pytest.raises(ValueError, match=rf"unknown player '{name}'; available: random, optimal, uct:SIMULATIONS"):
        named_player(name, make("connect2"))


@pytest.mark.parametrize("count", ["", "0", "-1", "1.5", "many"])
def test_simulations_are_a_number_of_at_least_1(count):
    with pytest.raises(ValueError, match=rf"SIMULATIONS must be a whole number of at least 1, got '{count}'"):
        named_player(f"uct:{count}", make("connect2"))


def test_a_player_has_its_name_with_its_options():
    game = make("connect2")
    assert named_player("uct:8", game).name == "uct:8"
    assert named_player("uniform:8", game, solver=True, reuse_tree=True).name == "uniform:8 + solver + reused tree"
