import itertools
import json

import pytest
from rich.console import Console
from small_run import SMALL

import azjax
from azjax.networks import NETWORKS, Mlp
from azjax.runs import load_run, precision, train
from azjax.runs.precision import gain_of_bfloat16, settle_precision
from azjax.training import Config

GAME = azjax.make("connect2")
MEASURED = SMALL.replace(precision="auto", evaluate_every=0, iterations=1)


@pytest.fixture
def gain(monkeypatch):
    """A function that says what the measurement finds, and returns how often it was asked."""
    asked = []

    def find(value):
        monkeypatch.setattr(precision, "gain_of_bfloat16", lambda *_: asked.append(value) or value)
        return asked

    return find


@pytest.mark.slow_except("0.6-float32", "1.8-bfloat16")
@pytest.mark.parametrize(("found", "chosen"), [(0.6, "float32"), (1.05, "float32"), (1.8, "bfloat16")])
def test_a_run_takes_the_faster_precision_and_saves_it(gain, tmp_path, found, chosen):
    gain(found)
    train(GAME, MEASURED, tmp_path / "run")
    assert json.loads((tmp_path / "run/config.json").read_text())["config"]["precision"] == chosen
    assert load_run(tmp_path / "run")[1].make_network(GAME).precision == chosen


def test_a_run_goes_on_with_its_precision_and_measures_nothing(gain, tmp_path):
    gain(1.8)
    train(GAME, MEASURED, tmp_path / "run")
    asked = gain(0.6)
    train(GAME, MEASURED.replace(iterations=2), tmp_path / "run", resume=True)
    assert load_run(tmp_path / "run")[1].precision == "bfloat16"
    assert asked == [1.8]


@pytest.mark.slow
def test_the_members_of_a_population_have_one_precision(gain, tmp_path):
    asked = gain(1.8)
    folders = [tmp_path / "a", tmp_path / "b"]
    azjax.runs.train_population(GAME, [MEASURED, MEASURED.replace(seed=1)], folders)
    assert [load_run(folder)[1].precision for folder in folders] == ["bfloat16", "bfloat16"]
    assert len(asked) == 1


def test_a_network_that_is_an_object_is_not_measured(gain, tmp_path):
    asked = gain(1.8)
    config = MEASURED.replace(network=Mlp(8, 1))
    assert settle_precision(GAME, config, tmp_path, Console(quiet=True)) == config
    assert asked == []


def test_a_registered_network_without_a_precision_is_not_measured(gain, tmp_path, monkeypatch):
    monkeypatch.setattr(NETWORKS, "_entries", {**NETWORKS._entries, "plain": lambda width: Mlp(width, 1)})
    asked = gain(1.8)
    config = MEASURED.replace(network="plain")
    assert settle_precision(GAME, config, tmp_path, Console(quiet=True)).precision == "float32"
    assert asked == []


def test_without_a_run_auto_is_float32():
    assert Config().precision == "auto"
    assert Config(network="mlp", width=8).make_network(GAME).precision == "float32"


def test_the_gain_is_that_of_the_network_in_self_play_and_in_learning(monkeypatch):
    """Of 16 + 4 evaluations and 2 learning steps: (20 * 3 + 2 * 5) / (20 * 1 + 2 * 5)."""
    seconds = {("float32", "_evaluate"): 3.0, ("float32", "_learn"): 5.0, ("bfloat16", "_evaluate"): 1.0}

    slow_rounds = itertools.cycle([1.0, 7.0, 4.0, 1.0, 9.0])  # other work on the machine
    measured = []

    def timed_loop(call, variables, observations):
        (network,), kind = call.args, call.func.__name__
        assert len(observations) == (SMALL.num_games if kind == "_evaluate" else SMALL.batch_size)

        def measure():
            measured.append(network.precision)
            return seconds.get((network.precision, kind), 5.0) * next(slow_rounds)

        return measure

    monkeypatch.setattr(precision, "_timed_loop", timed_loop)
    gain_of_bfloat16.cache_clear()
    assert gain_of_bfloat16(GAME, SMALL.static) == pytest.approx(70 / 30)
    assert measured[:8] == 2 * ["float32", "float32", "bfloat16", "bfloat16"]
    gain_of_bfloat16.cache_clear()


@pytest.mark.slow
def test_the_measurement_runs():
    config = SMALL.replace(network="resnet", width=2)
    assert gain_of_bfloat16(GAME, config.static) > 0
