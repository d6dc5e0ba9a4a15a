"""Run folders: the rules of a game have a fingerprint, and configurations are read or refused in one line."""

import dataclasses
import importlib.metadata
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

import azjax
from azjax.cli import main
from azjax.core.errors import RunError
from azjax.games.mnk import Mnk
from azjax.games.registry import make
from azjax.runs import Checkpoints, load_run, load_state, load_variables, train
from azjax.runs.run_folder import describe_run, rules_fingerprint
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm

GAME = make("connect2")
OLD_CONFIG = Path(__file__).parent / "config_0.1.0.json"


class Rewritten(Mnk):
    def observe(self, state):
        return super().observe(state) * 1.0


class OtherObservation(Mnk):
    def observe(self, state):
        return super().observe(state)[..., ::-1]


class OtherResult(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=-following.rewards)


class OtherSymmetries(Mnk):
    def symmetries(self, state):
        states, permutations = super().symmetries(state)
        return states, permutations[:, ::-1]


def _connect2(kind):
    return kind(**{field.name: getattr(GAME, field.name) for field in dataclasses.fields(GAME)})


def test_the_rules_of_connect2_have_their_old_fingerprint():
    assert rules_fingerprint(GAME) == "d6f76a36fab20a6b"


def test_another_implementation_of_the_rules_has_the_same_fingerprint():
    assert rules_fingerprint(_connect2(Rewritten)) == rules_fingerprint(GAME)


@pytest.mark.parametrize("kind", [OtherObservation, OtherResult, OtherSymmetries])
def test_other_rules_have_another_fingerprint(kind):
    assert rules_fingerprint(_connect2(kind)) != rules_fingerprint(GAME)


@pytest.fixture
def old_run(tmp_path):
    """The folder of a run of azjax 0.1.0."""
    (tmp_path / "config.json").write_text(OLD_CONFIG.read_text())
    return tmp_path


def test_a_run_of_azjax_0_1_is_refused_in_one_line(old_run):
    message = (
        f"{old_run} was written by azjax 0.1.0, whose runs this version cannot load; to train it again, take the "
        "settings from its config.json (CHANGELOG.md lists those with new names)"
    )
    for load in (load_run, load_state, load_variables):
        with pytest.raises(RunError) as raised:
            load(old_run)
        assert str(raised.value) == message
    with pytest.raises(RunError) as raised:
        train(GAME, SMALL, old_run, resume=True, accept_changes=True)
    assert str(raised.value) == message
    assert [path.name for path in old_run.iterdir()] == ["config.json"]


@pytest.mark.parametrize("command", ["train connect2 --resume --folder {}", "evaluate {}", "report {}"])
def test_commands_refuse_a_run_of_azjax_0_1_with_exit_code_1(old_run, capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main(command.format(old_run).split())
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"azjax: {old_run} was written by azjax 0.1.0, whose runs this version cannot load")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "cannot be read: Expecting value"),
        ("[" * 100_000, "cannot be read: it is nested too deeply"),
        ("\N{SUPERSCRIPT TWO}", "cannot be read: Expecting value"),
        ("[]", "is not an object"),
        ("{}", "has no game"),
        ('{"game": "connect2"}', "has no options"),
        ('{"game": "connect2", "options": []}', "has no options"),
        ('{"game": "connect2", "options": {}}', "has no config"),
        ('{"game": "connect2", "options": {}, "config": {}}', "has no hyper of its config"),
        ('{"game": "connect2", "options": {}, "config": {"hyper": {}}, "sources": 3}', "has no sources"),
        ('{"game": "connect2", "options": {}, "config": {"hyper": {}}, "versions": 3}', "has no versions"),
    ],
)
def test_a_config_that_cannot_be_read_is_reported(tmp_path, content, problem):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=rf"is not a run folder: its config\.json {problem}"):
        load_run(tmp_path)


def test_a_config_in_another_encoding_is_reported(tmp_path):
    (tmp_path / "config.json").write_bytes(b'{"game": "\xff"}')
    with pytest.raises(RunError, match=r"its config\.json cannot be read"):
        load_run(tmp_path)


def test_a_package_that_is_not_installed_tells_its_version(monkeypatch):
    def version(package, installed=importlib.metadata.version):
        if package == "azjax":
            raise importlib.metadata.PackageNotFoundError(package)
        return installed(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert describe_run(GAME, SMALL, 1, ALPHAZERO_LOSS)["versions"]["azjax"] == azjax.__version__


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ('"game": "connect2"', '"game": 5', "game must be a name, got 5"),
        ('"width": 16', '"width": 1.5', r"width must be a whole number, got 1\.5"),
        ('"num_simulations": 4', '"num_simulations": 2.5', r"num_simulations must be a whole number, got 2\.5"),
        ('"solver": false', '"solver": 0', "solver must be true or false, got 0"),
        ('"policy": "alphazero"', '"policy": null', "policy must be a text, got None"),
        ('"l2": ', '"l2": [], "x": ', r"l2 must be a number, got \[\]|unexpected keyword"),
    ],
)
def test_a_config_with_a_value_of_another_type_is_reported(tmp_path, was, becomes, message):
    text = json.dumps(describe_run(GAME, SMALL, 1, ALPHAZERO_LOSS))
    assert was in text
    (tmp_path / "config.json").write_text(text.replace(was, becomes))
    with pytest.raises(RunError, match=rf"its config\.json does not describe a run: .*{message}"):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["start_positions", "depth"])
def test_a_config_with_an_unknown_field_is_reported(tmp_path, name):
    text = json.dumps(describe_run(GAME, SMALL, 1, ALPHAZERO_LOSS))
    (tmp_path / "config.json").write_text(text)
    assert load_run(tmp_path) == (GAME, SMALL)
    (tmp_path / "config.json").write_text(text.replace(f'"{name}"', '"other"'))
    with pytest.raises(RunError, match=r"its config\.json does not describe a run: .*other"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("run[1]", r"cannot be a run folder: its name contains \[ \]"),
        ("a\\b", r"cannot be a run folder: its name contains \\"),
        (os.fsdecode(b"a\xff"), "cannot be a run folder: its name is not in UTF-8"),
    ],
    ids=["brackets", "backslash", "bytes"],
)
def test_a_folder_in_which_orbax_cannot_write_is_refused_before_anything_is_made(tmp_path, name, reason):
    with pytest.raises(RunError, match=reason):
        train(GAME, SMALL, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_with_weights_that_are_not_finite_is_refused_for_play(tmp_path):
    folder = train(GAME, SMALL, tmp_path / "run").folder
    step, state = load_state(folder)
    kernel = state.ema["params"]["policy"]["kernel"]
    state.ema["params"]["policy"]["kernel"] = kernel.at[0, 0].set(jnp.nan)
    Checkpoints(folder / "checkpoints").save(step + 1, state)
    message = rf"run: params/policy/kernel of checkpoint {step + 1} holds a weight that is not finite"
    with pytest.raises(RunError, match=message):
        load_variables(folder)
    assert load_variables(folder, step)[0] == step


def test_a_run_is_loaded_with_the_moving_average_of_its_variables(tmp_path):
    folder = train(GAME, SMALL.replace(ema_decay=0.9), tmp_path / "run").folder
    learner = load_state(folder)[1].learner
    loaded, average, current = (
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
        for tree in (load_variables(folder)[1], learner.ema, learner.variables)
    )
    np.testing.assert_array_equal(loaded, average)
    assert (average != current).any()


def _fail(*_):
    raise ZeroDivisionError


def test_a_run_that_never_began_leaves_what_was_there_before(tmp_path):
    """As when code of a user's fails while it is traced."""
    terms = (*ALPHAZERO_LOSS, LossTerm("broken", _fail))
    made, kept = tmp_path / "made", tmp_path / "kept"
    kept.mkdir()
    for folder in (made, kept):
        with pytest.raises(ZeroDivisionError):
            train(make("connect2"), SMALL, folder, loss_terms=terms)
    assert not made.exists()
    assert [path.name for path in kept.iterdir()] == ["lock"]
