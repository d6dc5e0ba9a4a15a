import jax

from azjax.evaluation import mistakes, network_player, solve, tabulate
from azjax.games.game import make
from azjax.training import load_variables, preset, train


def test_the_preset_of_connect2_learns_to_make_no_mistake_on_any_position(tmp_path):
    game, config = make("connect2"), preset("connect2")
    solution = solve(game)
    train(game, config, tmp_path / "run")
    _, variables = load_variables(tmp_path / "run")
    table = tabulate(network_player(game, config.make_network(), variables), solution, jax.random.key(0))
    found = mistakes(solution, table)
    assert (found.states, found.count) == (23, 0)
