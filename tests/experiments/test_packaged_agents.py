"""The cards of the packaged agents say what the result files of their studies say."""

import subprocess

import pytest
from studies import load_study

from azjax.packaged import archive, packaged


@pytest.fixture(scope="module")
def study():
    return load_study("packaged_agents")


def test_every_packaged_agent_has_a_recipe(study):
    assert sorted(study.RECIPES) == sorted(packaged())


@pytest.mark.parametrize("name", packaged())
def test_a_card_names_one_command_and_has_the_curve_of_its_study(study, name):
    card = (archive.FOLDER / f"{name}.md").read_text()
    assert f"| Command | `python experiments/packaged_agents.py {name}` |" in card
    curve = study.RECIPES[name].curve
    assert ("## Strength against the minutes of training" in card) == (curve is not None)
    if curve is not None:
        assert "\n".join(curve(name)) in card


def test_a_study_runs_first_and_its_failure_ends_this_one(monkeypatch):
    study, started = load_study("study"), []
    for code in (0, 7):
        monkeypatch.setattr(
            study.subprocess,
            "run",
            lambda command, code=code: started.append(command[1:]) or subprocess.CompletedProcess(command, code),
        )
        if code:
            with pytest.raises(SystemExit, match="7"):
                study.run_other("against_uct.py", "brandub")
        else:
            study.run_other("against_uct.py", "brandub")
    assert started == [[str(study.ROOT / "experiments" / "against_uct.py"), "brandub"]] * 2
