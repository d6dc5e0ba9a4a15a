"""Where training begins: what is resumed, and what is refused before anything changes."""

import dataclasses
import re
import shutil
from types import SimpleNamespace

import pytest
from killing import assert_equal_runs, checkpoint_bits
from small_run import SMALL as FOUR_ITERATIONS

from azjax.core.errors import RunError
from azjax.games.registry import make
from azjax.runs import load_run, load_variables, train
from azjax.runs.beginning import Run, restore_or_begin

SMALL = dataclasses.replace(FOUR_ITERATIONS, iterations=6)

GAME = make("connect2")


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    train(GAME, SMALL, folder)
    return folder


def test_a_run_folder_is_never_overwritten(straight):
    before = checkpoint_bits(straight)
    with pytest.raises(RunError, match="holds a run already: go on with --resume"):
        train(GAME, SMALL, straight)
    assert checkpoint_bits(straight) == before


def test_resuming_a_finished_run_trains_nothing(straight):
    before = (straight / "metrics.jsonl").read_bytes()
    result = train(GAME, SMALL, straight, resume=True)
    assert result.iteration == 6
    assert (straight / "metrics.jsonl").read_bytes() == before


def test_fewer_iterations_than_are_done_are_refused(straight):
    before = {path: path.read_bytes() for path in (straight / "metrics.jsonl", straight / "config.json")}
    with pytest.raises(RunError, match=r"run has done 6 iterations, and 2 are requested$"):
        train(GAME, SMALL.replace(iterations=2), straight, resume=True)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_simulations": 5}, "num_simulations = 4, requested 5"),
        ({"hyper": dataclasses.replace(SMALL.hyper, c_puct=2.0)}, r"c_puct = 1.25, requested 2.0"),
    ],
)
def test_another_configuration_is_refused_naming_the_field(straight, changes, message):
    with pytest.raises(RunError, match=message):
        train(GAME, dataclasses.replace(SMALL, **changes), straight, resume=True)


def test_all_changes_are_named_and_can_be_accepted(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    before = (folder / "config.json").read_bytes()
    changed = SMALL.replace(solver=True, c_puct=2.0)
    message = r"was made with solver = False, requested True; c_puct = 1\.25, requested 2\.0"
    with pytest.raises(RunError, match=message + r"; nothing was changed; --accept-changes goes on"):
        train(GAME, changed, folder, resume=True)
    assert (folder / "config.json").read_bytes() == before
    with pytest.warns(UserWarning, match=message + "; going on with the requested values"):
        train(GAME, changed, folder, resume=True, accept_changes=True)
    assert load_run(folder) == (GAME, changed)


def test_changes_of_shape_cannot_be_accepted(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    before = (folder / "config.json").read_bytes()
    with pytest.raises(RunError, match=r"\['bias'\] was saved as float32 \[.*16\], expected float32 \[.*8\]"):
        train(GAME, SMALL.replace(width=8), folder, resume=True, accept_changes=True)
    assert (folder / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("field", "was"), [("jax", "0.0.1"), ("azjax", "0.0.1"), ("platform", "abacus"), ("game_rules", "0123456789abcdef")]
)
def test_other_packages_platform_or_rules_are_refused_naming_both(straight, tmp_path, field, was):
    folder = shutil.copytree(straight, tmp_path / "run")
    config = folder / "config.json"
    config.write_text(re.sub(rf'"{field}": ".*?"', f'"{field}": "{was}"', config.read_text()))
    with pytest.raises(RunError, match=rf"was made with {field} = {was}, requested \w.*; nothing was changed"):
        train(GAME, SMALL, folder, resume=True)
    with pytest.warns(UserWarning, match=rf"was made with {field} = {was}, requested \w.*; going on"):
        assert train(GAME, SMALL, folder, resume=True, accept_changes=True).iteration == 6


def test_another_game_is_refused_naming_it(straight):
    config = dataclasses.replace(SMALL, replay_size=128)
    with pytest.raises(RunError, match="game = connect2, requested tictactoe"):
        train(make("tictactoe"), config, straight, resume=True)


def test_a_configuration_that_does_not_fit_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="replay_size must be at least"):
        train(GAME, dataclasses.replace(SMALL, replay_size=16), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_a_run_is_refused_and_kept(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match=r"is not a run folder: there is no config\.json"):
        train(GAME, SMALL, tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_run_folder_gives_back_game_config_and_network(straight):
    assert load_run(straight) == (GAME, SMALL)
    step, variables = load_variables(straight)
    assert step == 6
    assert variables["params"]["policy"]["kernel"].shape == (16, 4)


def test_a_damaged_newest_checkpoint_is_named_and_the_run_continues_from_the_one_before(straight, tmp_path):
    folder = tmp_path / "run"
    train(GAME, SMALL, folder)
    (folder / "checkpoints" / "6" / "_CHECKPOINT_METADATA").write_text("damaged")
    with pytest.warns(UserWarning, match="checkpoint 6 is damaged"):
        train(GAME, SMALL, folder, resume=True)
    assert_equal_runs(folder, straight)


def test_a_run_that_has_lost_its_checkpoints_is_refused_and_keeps_its_metrics(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    for manifest in (folder / "checkpoints").glob("*.json"):
        manifest.unlink()
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(RunError, match="has metrics and no checkpoint"):
        train(GAME, SMALL, folder, resume=True)
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_run_that_ended_before_a_checkpoint_was_due_and_has_lost_its_last_is_refused(tmp_path):
    short = dataclasses.replace(SMALL, iterations=2, checkpoint_every=100)
    train(GAME, short, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(RunError, match="has metrics and no checkpoint"):
        train(GAME, short, tmp_path / "run", resume=True)


def test_a_run_that_was_killed_while_it_wrote_its_only_checkpoint_begins_again(tmp_path):
    short = dataclasses.replace(SMALL, iterations=2, checkpoint_every=100)
    for name in ("run", "whole"):
        train(GAME, short, tmp_path / name)
    (tmp_path / "run" / "checkpoints" / "2.json").unlink()
    with pytest.warns(UserWarning, match="it begins again|the run begins at its start") as told:
        train(GAME, short, tmp_path / "run", resume=True)
    assert len(told) == 2
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")


def test_a_run_without_a_checkpoint_says_that_it_begins_again(straight, tmp_path):
    train(GAME, dataclasses.replace(SMALL, iterations=1), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.warns(UserWarning, match="has 1 rows of metrics and no checkpoint: it begins again"):
        train(GAME, SMALL, tmp_path / "run", resume=True)
    assert_equal_runs(tmp_path / "run", straight)


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.usefixtures("types_unchecked")
def test_a_new_member_of_a_population_that_goes_on_is_refused(straight, tmp_path, missing):
    folders = [tmp_path / f"member_{index}" for index in range(3)]
    for index, folder in enumerate(folders):
        if index != missing:
            shutil.copytree(straight, folder)
    runs = [Run(SMALL, folder, None) for folder in folders]
    begun = folders[1 if missing == 0 else 0]
    with pytest.raises(RunError, match=f"{folders[missing]} has no checkpoint and {begun} has: a population goes on"):
        restore_or_begin(runs, None, None, None)


@pytest.mark.usefixtures("types_unchecked")
def test_a_population_that_was_killed_between_its_first_saves_begins_again(straight, tmp_path):
    folders = [shutil.copytree(straight, tmp_path / f"member_{index}") for index in range(2)]
    shutil.rmtree(folders[1] / "checkpoints")
    for folder in folders:
        first, *_ = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
        (folder / "metrics.jsonl").write_text(first)
    program = SimpleNamespace(begin=lambda seeds, hyper: (seeds, hyper))
    with pytest.warns(UserWarning, match="member_1 has 1 rows of metrics and no checkpoint: it begins again"):
        begun = restore_or_begin([Run(SMALL, folder, None) for folder in folders], program, "seeds", "hyper")
    assert begun == (0, ("seeds", "hyper"))
