"""What the doctor finds and advises."""

import io
import json
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from azjax.benchmark import doctor
from azjax.benchmark.doctor import Doctor, advise, measure_rates, preset_need, read_reference
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.training import preset
from azjax.training.presets import games_with_presets

RATES = {"matrix, float32": 100.0, "network, float32": 10.0, "network, bfloat16": 20.0, "search": 50.0}
WELL = {
    "machine": {"device": "cpu: cpu, 1 in all", "load_average": 0.1},
    "extras": {"play": True, "plot": True},
    "free_memory": 10**9,
    "presets": {"connect2": {"replay": 10**6, "learner": 10**5, "trees": 10**4, "temporary": 0}},
    "rates": RATES,
}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)


def advice(reference=RATES, **changes):
    return advise(WELL | changes, {"rates": reference})


def test_a_machine_like_that_of_reference_needs_nothing():
    (line,) = advice()
    assert line.startswith("Nothing to set")


def test_advice_names_what_to_set():
    (line,) = advice(rates=RATES | {"search": 24.0})
    assert line == "Less than half as fast as the reference machine: search."
    (line,) = advice(machine={"device": "cpu: cpu, 1 in all", "load_average": 2.5})
    assert "(load average 2.5)" in line
    (line,) = advice(extras={"play": True, "plot": False})
    assert line == "Not installed: pip install 'azjax[plot]' adds learning curves and reports."
    (line,) = advice(free_memory=10**6)
    assert line == (
        "The preset of connect2 does not fit: about 1.1 MB are needed: replay 1.0 MB (replay_size = 4096), search "
        "trees 10.0 kB (num_games = 64, num_simulations = 16), weights, optimizer and games 100.0 kB; lower "
        "replay_size."
    )
    assert "fits barely" in advice(free_memory=13 * 10**5)[0]


def test_a_gpu_that_jax_does_not_use_is_told(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    (line,) = advice()
    assert "pip install 'azjax[cuda]'" in line


def test_what_a_preset_needs_is_its_arrays():
    """Of a position: two sets of stones, who moves, whether it is over, rewards; and what is learned of it."""
    config, game = preset("connect2"), make("connect2")
    need = preset_need(game)
    state, steps = 4 + 4 + 4 + 1 + 8, 4 * 4 + 4 + 1 + 1 + 4 + 1 + 1 + 4
    assert need.replay == config.replay_rows(game) * config.num_games * (state + steps + 4 + 1) + 4


def test_an_extra_is_installed_if_all_of_its_packages_are():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    counts = {extra: len(packages) for extra, packages in project["optional-dependencies"].items()}
    assert {extra: len(packages) for extra, (packages, _) in doctor._EXTRAS.items()}.items() <= counts.items()


@pytest.mark.slow
def test_the_findings_are_written_and_shown_beside_the_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "measure_rates", lambda progress: read_reference()["rates"])
    said = io.StringIO()
    found = Doctor(tmp_path / "found.json").run(Console(file=said, width=140))
    assert json.loads((tmp_path / "found.json").read_text()) == found
    assert found["presets"].keys() == games_with_presets().keys()
    assert "santorini --size 5 --workers 2" in said.getvalue()
    assert "1.00" in said.getvalue()


def test_the_network_that_is_timed_is_that_of_the_reference_whatever_the_presets_are(monkeypatch):
    made = []
    monkeypatch.setattr(doctor, "preset", lambda game: pytest.fail("a preset was asked for"))
    monkeypatch.setattr(doctor, "make_network", lambda *of, **kind: made.append(make_network(*of, **kind)) or made[-1])
    monkeypatch.setattr(doctor, "_SEARCHES", ())
    monkeypatch.setattr(doctor, "median_seconds", lambda call, calls: 2.0)
    rates = measure_rates()
    # mlp, 768 x 4, 512 positions at once: the preset of Connect Four when reference.json was measured.
    assert [str(network) for network in made] == [
        "Mlp(width=768, depth=4, precision='float32')",
        "Mlp(width=768, depth=4, precision='bfloat16')",
    ]
    assert rates["network of connect_four, float32, evaluations/s"] == 256


@pytest.mark.slow
def test_rates_are_measured():
    told = []
    rates = measure_rates(told.append)
    assert list(rates) == told == list(read_reference()["rates"])
    assert min(rates.values()) > 0
