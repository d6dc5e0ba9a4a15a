"""Configurations are JSON in run folders."""

import dataclasses
import json

import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import Mlp, make_network
from azjax.training import Config, Hyper
from azjax.training.saved_config import config_from_json, config_to_json


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """A network whose field JSON cannot hold."""

    inner: Mlp

    def init(self, key, game):
        return self.inner.init(key, game)

    def apply(self, variables, observations, train):
        return self.inner.apply(variables, observations, train)


@dataclasses.dataclass(frozen=True)
class Pyramid(Mlp):
    """A network with a field of tuples."""

    sizes: tuple[tuple[int, ...], ...] = ()


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(network="mlp", ladder_opponents=("random",), hyper=Hyper(dirichlet_alpha=0.3)),
        Config(network=Mlp(16, 3)),
    ],
)
def test_a_configuration_is_read_as_it_was_written(config):
    saved = json.loads(json.dumps(config_to_json(config)))
    assert config_from_json(saved) == config


def test_a_network_that_is_an_object_is_saved_as_its_class_and_fields():
    network = config_to_json(Config(network=Mlp(16, 3)))["network"]
    fields = {"width": 16, "depth": 3, "precision": "float32"}  # without what belongs to a game
    assert network == {"source": "azjax.networks.mlp", "class": "Mlp", "fields": fields}


@pytest.mark.parametrize("name", ["equivariant_mlp", "board", "axial", "se_resnet"])
def test_a_network_that_was_made_for_a_game_is_made_again_for_it(name):
    game = make("connect_four", columns=4, rows=4)
    network = make_network(name, game, width=16, depth=1)
    saved = json.loads(json.dumps(config_to_json(Config(network=network))))
    assert config_from_json(saved).make_network(game) == network


def test_tuples_within_tuples_are_read_as_such():
    config = Config(network=Pyramid(8, 1, sizes=((1, 2), (3,))))
    assert config_from_json(json.loads(json.dumps(config_to_json(config)))) == config


def test_beside_a_network_that_is_an_object_the_width_means_nothing():
    saved = config_to_json(Config(network=Mlp(8, 1), width=0))
    assert saved["width"] == 0
    assert config_from_json(saved) == Config(network=Mlp(8, 1), width=0)


def test_a_network_that_json_cannot_hold_is_saved_and_not_read():
    saved = config_to_json(Config(network=Wrapped(Mlp(8, 1))))
    assert saved["network"]["fields"] is None
    with pytest.raises(InputError, match=r"the network Wrapped of .* cannot be made again from a file"):
        config_from_json(saved)


def test_a_class_that_is_gone_is_named():
    saved = config_to_json(Config(network=Mlp(8, 1)))
    saved["network"]["class"] = "Cnn"
    with pytest.raises(InputError, match=r"azjax\.networks\.mlp has no network Cnn"):
        config_from_json(saved)


@pytest.mark.parametrize(
    "network",
    [
        {"source": "os", "class": "system", "fields": {"command": "exit 1"}},
        {"source": "subprocess", "class": "Popen", "fields": {"args": "false"}},
        {"source": "azjax.networks.mlp", "class": "dataclasses.dataclass", "fields": {}},
        {"source": "azjax.training.config", "class": "Config", "fields": {}},
    ],
)
def test_a_file_makes_nothing_but_networks(network, monkeypatch):
    def call(*arguments, **options):
        raise AssertionError("a file ran a program")

    for name in ("os.system", "subprocess.Popen.__init__"):
        monkeypatch.setattr(name, call)
    saved = config_to_json(Config()) | {"network": network}
    with pytest.raises(InputError, match=f"{network['source']} has no network {network['class']}"):
        config_from_json(saved)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (None, "network must be a name, or have a source, a class and fields, got None"),
        ([1], r"network must be a name, .*, got \(1,\)"),
        ({"source": 6, "class": 5, "fields": {}}, "network must be a name, .*, got {'source': 6"),
        ({"class": "Mlp", "fields": {}}, "network: source missing"),
    ],
)
def test_a_damaged_network_is_named(network, message):
    with pytest.raises(InputError, match=message):
        config_from_json(config_to_json(Config()) | {"network": network})
