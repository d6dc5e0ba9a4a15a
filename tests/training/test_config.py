import dataclasses
import math

import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import Mlp
from azjax.training import Config, Hyper, preset


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_simulations": 0}, "num_simulations must be at least 1, got 0"),
        ({"seed": 2**32}, r"seed must be below 2\^32, got 4294967296"),
        ({"iterations": -1}, "iterations must be at least 1, got -1"),
        ({"keep_checkpoints": 2**63}, "keep_checkpoints must be at most 1,073,741,824, got 9,223,372,036,854,775,808"),
        ({"width": 2**31}, "width must be at most 1,073,741,824, got 2,147,483,648"),
        ({"hyper": Hyper(l2=1e39)}, r"l2 must be at most 3.4e\+38, got 1e\+39"),
        ({"random_start_plies": -1}, "random_start_plies must be at least 0, got -1"),
        ({"replay_size": 8, "batch_size": 9}, "replay_size must be at least batch_size = 9, got 8"),
        ({"network": "cnn"}, "unknown network 'cnn'; available: axial, board, equivariant_mlp, mlp"),
        ({"width": 0}, "network width must be a whole number of at least 1, got 0"),
        ({"hyper": Hyper(learning_rate=0.0)}, "learning_rate must be above 0 in float32, got 0"),
        ({"hyper": Hyper(learning_rate=float("nan"))}, "learning_rate must be a finite number of at least 0, got nan"),
        ({"hyper": Hyper(c_puct=-1.0)}, "c_puct must be a finite number of at least 0, got -1.0"),
        ({"hyper": Hyper(dirichlet_fraction=1.5)}, r"dirichlet_fraction must be 0\.\.1, got 1.5"),
        ({"hyper": Hyper(dirichlet_alpha=0.0)}, "dirichlet_alpha must be above 0 in float32, got 0"),
        ({"hyper": Hyper(learning_rate=1e-50)}, "learning_rate must be above 0 in float32, got 1e-50"),
        ({"hyper": Hyper(ema_decay=0.99999999)}, "ema_decay must be below 1 in float32, got 0.99999999"),
        ({"hyper": Hyper(ema_decay=1.0)}, "ema_decay must be below 1 in float32, got 1.0"),
        ({"hyper": Hyper(root_value_fraction=1.5)}, r"root_value_fraction must be 0\.\.1, got 1.5"),
        ({"hyper": Hyper(max_gradient_norm=0.0)}, "max_gradient_norm must be above 0 in float32, got 0"),
        ({"optimizer": "sgd"}, "unknown optimizer 'sgd'; available: adam, muon"),
        ({"policy": "muzero"}, "unknown policy 'muzero'; available: alphazero, gumbel"),
        ({"selection": "puctt"}, r"unknown rule of selection 'puctt' \(did you mean puct\?\); available: puct, regul"),
        ({"policy": "gumbel", "selection": "variance_scaled"}, "selection variance_scaled needs the policy alphazero"),
        (
            {"policy": "gumbel", "hyper": Hyper(late_temperature=math.inf)},
            "late_temperature must be finite with the policy gumbel, whose noise it scales, got inf",
        ),
        ({"num_simulations": 8, "fast_simulations": 8}, "fast_simulations must be below num_simulations = 8, got 8"),
        ({"num_simulations": 8, "first_simulations": 8}, "first_simulations must be below num_simulations = 8, got 8"),
        ({"first_simulations": -1}, "first_simulations must be at least 0, got -1"),
        ({"doubling_iterations": 0}, "doubling_iterations must be at least 1, got 0"),
        (
            {"first_simulations": 2, "fast_simulations": 4},
            "first_simulations = 2 and fast_simulations = 4 do not go together; one of them must be 0",
        ),
        (
            {"hyper": Hyper(schedule_iterations=-1.0)},
            "schedule_iterations must be a finite number of at least 0, got -1.0",
        ),
        (
            {"hyper": Hyper(final_temperature=math.inf)},
            "final_temperature must be a finite number of at least 0, got inf",
        ),
        (
            {"hyper": Hyper(final_temperature=0.5)},
            "final_temperature = 0.5 needs schedule_iterations above 0",
        ),
        (
            {"random_start_plies": 4, "hyper": Hyper(final_random_start_plies=2.0)},
            "final_random_start_plies = 2 needs schedule_iterations above 0",
        ),
        (
            {"hyper": Hyper(temperature=math.inf, final_temperature=1.0)},
            "temperature must be finite with a final_temperature, got inf",
        ),
        (
            {"random_start_plies": 4, "hyper": Hyper(schedule_iterations=9.0, final_random_start_plies=4.0)},
            "final_random_start_plies must be below random_start_plies = 4, got 4",
        ),
        ({"precision": "float16"}, "float16"),
        ({"activation": "tanh"}, "unknown activation 'tanh'; available: relu, squared_relu"),
        ({"ladder_games": 0}, "ladder_games must be at least 1, got 0"),
        ({"ladder_games": 3}, "ladder_games must be even, so that both move first equally; got 3"),
        ({"gate_games": 1}, "gate_games must be even, so that both move first equally; got 1"),
        ({"ladder_opponents": ("random", "random")}, "ladder_opponents: each once, got random, random"),
        ({"evaluation_share": 0.0}, "evaluation_share must be a number above 0, got 0.0"),
        ({"exploring_starts": 1.5}, "exploring_starts must be 0..1, got 1.5"),
        ({"exploring_plies": 2}, "exploring_plies = 2 needs exploring_starts above 0"),
        ({"value_scale": 0.0}, "value_scale must be a number above 0, got 0.0"),
        ({"start_positions": "X________"}, "start_positions must be a sequence of texts, got 'X________'"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name_and_value(changes, message):
    with pytest.raises(ValueError, match=message):
        Config(**changes)


def test_the_replay_holds_a_whole_game_beside_an_iteration():
    config = Config(num_games=10, steps_per_iteration=4, replay_size=129, batch_size=1)
    with pytest.raises(ValueError, match=r"at least num_games \* \(steps_per_iteration \+ 9\) = 130"):
        config.replay_rows(make("tictactoe"))
    # 130 positions are 13 rows; rows come in iterations of 4.
    assert dataclasses.replace(config, replay_size=130).replay_rows(make("tictactoe")) == 16


@pytest.mark.parametrize("name", ["connect2", "tictactoe"])
def test_the_preset_of_a_game_fits_it(name):
    assert preset(name).replay_rows(make(name)) > 0


def test_a_preset_is_that_of_the_options():
    small, large = make("santorini", size=2), make("santorini", size=5)
    assert preset(small) != preset(large)
    assert preset(small).replay_rows(small) > 0


def test_numbers_of_numpy_are_those_of_python():
    config = Config(num_games=np.int64(32), evaluation_share=np.float32(0.5), hyper=Hyper(c_puct=np.float64(2.0)))
    assert config == Config(num_games=32, evaluation_share=0.5).replace(c_puct=2.0)
    assert [type(each) for each in (config.num_games, config.evaluation_share, config.hyper.c_puct)] == [
        int,
        float,
        float,
    ]


def test_numbers_without_an_effect_are_told():
    gumbel = preset("connect_four").unread
    assert {"c_puct", "dirichlet_fraction", "restart_fraction", "ladder_games"} <= gumbel.keys()
    assert not {"learning_rate", "final_learning_rate", "temperature", "value_scale", "width"} & gumbel.keys()
    assert gumbel["c_puct"] == "policy = gumbel"
    used = Config(restart_candidates=2, gate_games=2, fast_simulations=2, decay_updates=9, ladder_every=9)
    used = used.replace(temperature_plies=9.0, schedule_iterations=9.0, final_temperature=0.5)
    of_gumbel = {"max_num_considered_actions", "value_scale", "rescale_values"}
    assert used.unread.keys() == {*of_gumbel, "doubling_iterations", "activation"}
    assert used.replace(selection="relative_entropy").unread["c_puct"] == "selection = relative_entropy"
    assert Config(network=Mlp(4, 1)).unread.keys() >= {"width", "depth", "activation"}


def test_fields_of_its_own_and_of_hyper_are_replaced_together():
    changed = Config().replace(width=8, c_puct=2.0)
    assert (changed.width, changed.hyper.c_puct) == (8, 2.0)
    assert changed.replace(width=Config().width, c_puct=Config().hyper.c_puct) == Config()
    other = Config().replace(hyper=Hyper(l2=0.1), c_puct=2.0)
    assert (other.hyper.l2, other.hyper.c_puct) == (0.1, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wings'"):
        Config().replace(wings=2)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        Config().replace(batch_size=0)


def test_the_search_has_the_numbers_of_the_configuration_and_no_noise_where_it_is_fast():
    config = Config().replace(value_scale=0.5, rescale_values=False, c_puct=2.0, forced_playouts=3.0)
    full, fast = (config.search_hyper(config.hyper, 0.7, full=full) for full in (True, False))
    for numbers in (full, fast):
        assert (numbers.value_scale, numbers.rescale_values, numbers.c_puct) == (0.5, False, 2.0)
        assert numbers.temperature == 0.7
    assert (full.dirichlet_fraction, full.gumbel_scale, full.forced_playouts) == (0.25, 0.7, 3.0)
    assert (fast.dirichlet_fraction, fast.gumbel_scale, fast.forced_playouts) == (0.0, 0.0, 0.0)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hyper": None}, "hyper must be a Hyper, got None"),
        ({"hyper": {"l2": 1}}, "hyper must be a Hyper, got {'l2': 1}"),
        ({"start_positions": 5}, "start_positions must be a sequence of texts, got 5"),
        ({"auxiliary_losses": None}, "auxiliary_losses must be a sequence of texts, got None"),
    ],
)
def test_fields_of_other_types_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Config(**fields)
