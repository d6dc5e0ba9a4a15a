"""Committed results are those of their scripts: each names its command, and has the settings that it has by default."""

import inspect
import json

import pytest
from studies import EXPERIMENTS, load_study, result_of

from azjax import make
from azjax.training.saved_config import config_from_json

RESULTS = sorted(path.stem for path in (EXPERIMENTS / "results").glob("*.json"))
INPUTS = ["connect_four_positions"]  # made once by another solver, and read by scripts
# Their settings have other names in the script, or are those of a preset (see below), or there are none.
NOT_COMPARED = ["brandub", "santorini_5x5", "search_scaling", "small_boards", "survival"]
JSON_TYPES = (bool, int, float, str, tuple, list, dict)


def defaults_of(study):
    """What a script uses unless told otherwise: its constants, by their names in lower case, and its options."""
    constants = {name.lower(): value for name, value in vars(study).items() if name.isupper()}
    options = inspect.signature(study.main).parameters.values()
    found = {**constants, **{option.name: option.default for option in options}}
    return {name: value for name, value in found.items() if isinstance(value, JSON_TYPES)}


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in INPUTS])
def test_results_have_the_settings_of_their_script(name):
    results = result_of(name)
    command, script, *_ = results["command"].split()
    if command == "azjax":
        assert script == "benchmark"
        return
    assert (command, (EXPERIMENTS.parent / script).parent) == ("python", EXPERIMENTS)
    if name == "connect_four_best_play":
        pytest.importorskip("bitbully")
    defaults = defaults_of(load_study(script.partition("/")[2].removesuffix(".py")))
    shared = sorted(set(results["settings"]) & set(defaults))
    assert bool(shared) is (name not in NOT_COMPARED)
    assert {key: results["settings"][key] for key in shared} == json.loads(
        json.dumps({key: defaults[key] for key in shared})
    )


@pytest.mark.parametrize("name", ["brandub", "brandub_before", "connect_four", "santorini_5x5", "santorini_5x5_before"])
def test_results_of_a_training_are_those_of_its_agent(name):
    settings = result_of(name)["settings"]
    game = make(settings.get("game", name), **settings.get("options", {}))
    assert config_from_json(settings["config"]) == load_study("study").config_of(name.removesuffix("_before"), game)
