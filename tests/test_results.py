"""Committed results are those of their scripts: each names its command, and has the settings that it has by default."""

import inspect
import json

import pytest
from studies import EXPERIMENTS, load_study, result_of

RESULTS = sorted(path.stem for path in (EXPERIMENTS / "results").glob("*.json"))
INPUTS = ["connect_four_positions"]  # made once by another solver, and read by scripts
# Settings of a file and what the script has under their names: a version and a path are none of its settings.
NUMBERS = (bool, int, float, str, tuple, list, dict)


def defaults_of(study):
    """What a script uses unless told otherwise: its constants, by their names in lower case, and its options."""
    constants = {name.lower(): value for name, value in vars(study).items() if name.isupper()}
    options = inspect.signature(study.main).parameters.values()
    found = {**constants, **{option.name: option.default for option in options}}
    return {name: value for name, value in found.items() if isinstance(value, NUMBERS)}


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
    assert {key: results["settings"][key] for key in shared} == json.loads(
        json.dumps({key: defaults[key] for key in shared})
    )


def test_most_results_have_such_settings():
    """The test above compares something."""
    study = load_study("levels")
    assert {"num_simulations", "opening_plies"} <= set(defaults_of(study)) & set(result_of("levels")["settings"])
