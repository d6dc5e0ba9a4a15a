import jax
import pytest
from each_game import each_game
from ring_game import Ring

from azjax.evaluation import mistakes, network_player, solve, tabulate
from azjax.games.registry import available, make
from azjax.runs import load_variables, train
from azjax.training import Config, preset
from azjax.training.ladder import ladder_cost
from azjax.training.presets import games_with_presets

PGX = ("animal_shogi", "gardner_chess", "go_9x9", "hex", "othello")
GAMES = [
    ("connect2", {}),
    ("tictactoe", {}),
    ("connect_four", {}),
    ("connect_four", {"columns": 5, "rows": 4}),
    ("hex", {"size": 4}),
    *((name, {}) for name in ("brandub", "ard_ri", "tablut", "tawlbwrdd", "hnefatafl")),
    *((name, {}) for name in ("hex", "othello", "breakthrough", "chomp")),
    ("hex", {"size": 7, "swap": True}),
    ("othello", {"size": 6}),
    *((f"pgx:{name}", {}) for name in PGX),
    *(("santorini", {"size": size, "workers": workers}) for size, workers in ((2, 1), (3, 1), (4, 2), (5, 2))),
    *(("mnk", {"columns": size, "rows": size, "in_a_row": row}) for size, row in ((3, 3), (9, 5), (15, 5))),
]


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_a_preset_is_the_game_s_own_and_a_whole_game_fits_into_its_replay(name, options):
    if name.startswith("pgx:"):
        pytest.importorskip("pgx", reason="pgx is not installed")
    game = make(name, **options)
    config = preset(game)
    assert config != Config()
    assert config.replay_rows(game) * config.num_games >= config.replay_size


@each_game()
def test_every_game_of_the_package_has_a_preset(name):
    assert preset(name) != Config()


def test_a_game_from_outside_has_no_preset():
    assert preset(Ring()) == Config()


@pytest.mark.parametrize("name", PGX)
def test_the_ladder_of_a_game_of_pgx_is_small_beside_its_training(name):
    pytest.importorskip("pgx", reason="pgx is not installed")
    game = make(f"pgx:{name}")
    config = preset(game)
    assert config.ladder_opponents == ("random", "uct:100")
    cost = ladder_cost(game, config) / config.ladder_every
    assert cost <= config.evaluation_share * config.evaluations_per_iteration  # else `train` refuses it


def test_larger_boards_of_chomp_are_not_measured_on_all_positions():
    default, large = (preset(make("chomp", **options)) for options in ({}, {"rows": 10, "columns": 10}))
    assert default.evaluate_every > 0
    assert large == default.replace(evaluate_every=0)


def test_games_of_other_packages_are_not_among_those_of_the_doctor():
    assert {name.split()[0] for name in games_with_presets()} <= set(available())


@pytest.mark.slow
def test_the_preset_of_connect2_learns_to_make_no_mistake_on_any_position(tmp_path):
    game, config = make("connect2"), preset("connect2")
    solution = solve(game)
    train(game, config, tmp_path / "run")
    _, variables = load_variables(tmp_path / "run")
    table = tabulate(network_player(game, config.make_network(game), variables), solution, jax.random.key(0))
    found = mistakes(solution, table)
    assert (found.states, found.count) == (23, 0)
