"""A worker trains the runs of its points, and stops, fails and goes on as it should."""

import dataclasses
import os
import signal
import sys
import types

import pytest
from small_sweep import write_sweep

import azjax
from azjax.cli import main
from azjax.core.errors import FileError, InputError, LockedError, MemoryInUseError, RunError, SettingsError
from azjax.runs import load_run, load_state, population
from azjax.sweep import JOURNAL, Choices, Mistakes, Stopped, Trials, connect, load_study, work, worker


@pytest.fixture
def trained(monkeypatch):
    """The runs that were trained, as (run folder, iterations); `act` and `measure` replace training and objective."""
    calls = types.SimpleNamespace(
        runs=[], sizes=[], act=lambda folder, config: None, measure=lambda run, seed: float(seed)
    )

    def train_population(game, configs, folders, *, resume):
        assert resume
        results = []
        for config, folder in zip(configs, folders, strict=True):
            calls.runs.append((f"{folder.parent.name}/{folder.name}", config.iterations))
            results.append(types.SimpleNamespace(stopped_by=calls.act(folder, config)))
        calls.sizes.append(len(configs))
        return results

    monkeypatch.setattr(worker, "train_population", train_population)
    monkeypatch.setattr(Mistakes, "prepare", lambda self, game: lambda run, seed: calls.measure(run, seed))
    monkeypatch.setattr(worker, "_POLL_SECONDS", 0.01)
    return calls


def make_trials(folder, *changes):
    return Trials(load_study(write_sweep(folder, *changes)), connect(folder / JOURNAL))


def test_all_seeds_of_a_point_come_to_a_rung_before_any_goes_on(tmp_path, trained):
    trials = make_trials(tmp_path, ("trials = 3", "trials = 1"))
    work(trials, tmp_path)
    # A rung has 128 simulations, an iteration 64.
    seeds = ["trial_00000/seed_0", "trial_00000/seed_1"]
    assert trained.runs == [(seed, iterations) for iterations in (2, 4) for seed in seeds]
    (point,) = trials.points()
    assert (point.state, point.values) == ("complete", [[0.0, 1.0], [0.0, 1.0]])


def test_a_point_whose_settings_cannot_be_trained_fails_and_the_next_one_is_tried(tmp_path, trained):
    def refuse_first(folder, config):
        if folder.parent.name == "trial_00000":
            raise SettingsError("10 updates in a row were skipped")

    trained.act = refuse_first
    trials = make_trials(tmp_path)
    work(trials, tmp_path)
    assert [point.state for point in trials.points()] == ["failed", "complete", "complete"]
    assert trials.points()[0].reason == "10 updates in a row were skipped"


def test_a_measurement_that_is_refused_ends_the_worker_and_releases_its_point(tmp_path, trained):
    """It is no fault of the point: all others would fail alike."""

    def refuse(run, seed):
        raise InputError("9 random plies ended a game 1000 times in a row")

    trained.measure = refuse
    trials = make_trials(tmp_path)
    with pytest.raises(InputError, match="9 random plies"):
        work(trials, tmp_path)
    assert [point.state for point in trials.points()] == ["waiting"]


def test_a_sweep_without_a_complete_trial_ends_with_one_line(tmp_path, trained, capsys):
    def refuse(folder, config):
        raise SettingsError("too large")

    trained.act = refuse
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(write_sweep(tmp_path)), "--folder", str(tmp_path / "study")])
    assert stopped.value.code == 1
    line = "azjax: no trial of small is complete; trial 0 failed: too large\n"
    assert capsys.readouterr().err == line


def test_points_that_differ_in_hyperparameters_alone_are_trained_at_once(tmp_path, trained):
    trials = make_trials(tmp_path)
    work(trials, tmp_path, points_at_once=3)
    assert trained.sizes == [6, 6]
    assert trained.runs[:6] == [(f"trial_0000{point}/seed_{seed}", 2) for point in range(3) for seed in (0, 1)]
    assert [point.state for point in trials.points()] == ["complete"] * 3


def test_a_released_point_is_trained_by_itself(tmp_path, trained):
    trials = make_trials(tmp_path)
    attempt = trials.claim()
    trials.report(attempt, [7.0, 8.0])
    trials.release(attempt)
    work(trials, tmp_path, points_at_once=3)
    assert trained.sizes == [2, 4, 4]
    assert trained.runs[:2] == [("trial_00000/seed_0", 4), ("trial_00000/seed_1", 4)]
    assert [point.state for point in trials.points()] == ["complete"] * 3


def test_points_that_cannot_be_trained_at_once_are_trained_one_by_one(tmp_path, trained):
    def refuse_second(folder, config):
        if folder.parent.name == "trial_00001":
            raise SettingsError("the memory is too small")

    trained.act = refuse_second
    trials = make_trials(tmp_path)
    work(trials, tmp_path, points_at_once=3)
    assert [point.state for point in trials.points()] == ["complete", "failed", "complete"]
    assert trials.points()[1].reason == "the memory is too small"


def test_a_worker_ends_and_releases_its_point_if_others_use_the_memory(tmp_path, trained):
    def refuse(folder, config):
        raise MemoryInUseError("the memory is too small")

    trained.act = refuse
    trials = make_trials(tmp_path)
    with pytest.raises(RunError, match="trial 0: the memory is too small"):
        work(trials, tmp_path)
    assert [point.state for point in trials.points()] == ["waiting"]
    trained.act = lambda folder, config: None
    work(trials, tmp_path)
    assert [point.state for point in trials.points()] == ["complete"] * 3


def test_a_trial_whose_worker_was_killed_after_its_last_rung_is_finished(tmp_path, trained):
    trials = make_trials(tmp_path, ("trials = 3", "trials = 1"))
    attempt = trials.claim()
    for _ in range(trials.study.budget.rungs):
        trials.report(attempt, [7.0, 8.0])
    trials.release(attempt)
    work(trials, tmp_path)
    assert trained.runs == []
    assert trials.points()[0].state == "complete"


def test_points_with_different_numbers_of_iterations_are_trained_one_by_one(tmp_path, trained):
    study = load_study(write_sweep(tmp_path))
    study = dataclasses.replace(
        study,
        base=study.base.replace(fast_simulations=1),
        search={"full_search_fraction": Choices([0.25, 0.75])},
        sampler="grid",
        trials=2,
    )
    work(Trials(study, connect(tmp_path / JOURNAL)), tmp_path, points_at_once=2)
    assert set(trained.sizes) == {2}


def test_points_whose_shapes_differ_are_trained_one_by_one(tmp_path, trained):
    study = load_study(write_sweep(tmp_path))
    study = dataclasses.replace(study, search={"width": Choices([8, 16])})
    work(Trials(study, connect(tmp_path / JOURNAL)), tmp_path, points_at_once=3)
    assert set(trained.sizes) == {2}


def test_a_full_disk_ends_the_worker_and_releases_its_point(tmp_path, trained):
    def full(folder, config):
        raise FileError(f"{folder}: No space left on device")

    trained.act = full
    trials = make_trials(tmp_path)
    with pytest.raises(FileError, match="No space left"):
        work(trials, tmp_path)
    assert [point.state for point in trials.points()] == ["waiting"]


def test_a_point_whose_folder_is_locked_waits_for_the_other_process(tmp_path, trained):
    def locked_at_first(folder, config):
        if len(trained.runs) <= 2:
            raise LockedError(f"{folder}: another process trains there")

    trained.act = locked_at_first
    trials = make_trials(tmp_path, ("trials = 3", "trials = 1"), ("seeds = 2", "seeds = 1"))
    with pytest.warns(UserWarning, match=r"seed_0: another process trains there; waiting for its end") as warned:
        work(trials, tmp_path)
    assert len(warned) == 1
    assert [iterations for _, iterations in trained.runs] == [2, 2, 2, 4]
    assert len(trials._attempts()) == 1
    assert [point.state for point in trials.points()] == ["complete"]


def test_a_released_point_continues_after_its_last_rung(tmp_path, trained):
    trials = make_trials(tmp_path, ("trials = 3", "trials = 1"))
    attempt = trials.claim()
    trials.report(attempt, [7.0, 8.0])
    trials.release(attempt)
    work(trials, tmp_path)
    assert [iterations for _, iterations in trained.runs] == [4, 4]
    assert trials.points()[0].values == [[7.0, 8.0], [0.0, 1.0]]


@pytest.mark.parametrize("when", ["train", "last iteration", "measure"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
def test_a_signal_at_any_time_stops_the_worker_and_releases_its_point(tmp_path, trained, when, number):
    stop = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM

    def listen(folder, config):
        """As the loop of `train`, which does not notice a signal in the last iteration."""
        if when == "measure":
            return None
        before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
        os.kill(os.getpid(), number)
        for each, handler in before.items():
            signal.signal(each, handler)
        return stop if when == "train" else None

    def measure(run, seed):
        os.kill(os.getpid(), number)
        return 0.0

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)]
    trained.act = listen
    if when == "measure":
        trained.measure = measure
    trials = make_trials(tmp_path, ("seeds = 2", "seeds = 1"))
    with pytest.raises(Stopped) as stopped:
        work(trials, tmp_path)
    assert stopped.value.signal == stop
    assert [point.state for point in trials.points()] == ["waiting"]
    assert len(trained.runs) == 1
    assert handlers == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)]


def test_a_point_that_another_worker_has_finished_is_left_alone(tmp_path, trained):
    trials = make_trials(tmp_path, ("trials = 3", "trials = 1"))
    other = make_trials(tmp_path, ("trials = 3", "trials = 1\n"))

    def take_over(folder, config):
        if len(trained.runs) > 1:
            return
        other.claim()
        other._leases = {0: (other._latest()[0].user_attrs.get("lease", 0), -1e9)}
        attempt = other.claim()
        other.report(attempt, [5.0, 5.0])
        other.report(attempt, [5.0, 5.0])
        other.finish(attempt)

    trained.act = take_over
    work(trials, tmp_path)
    assert trials.points()[0].values == [[5.0, 5.0], [5.0, 5.0]]


def test_a_sweep_through_the_command_line_trains_ordinary_runs(tmp_path, capsys):
    changes = [("trials = 3", "trials = 1"), ("seeds = 2", "seeds = 1")]
    path, folder = write_sweep(tmp_path, *changes), tmp_path / "found"
    compiled = population.compile_population.cache_info().misses
    main(["sweep", str(path), "--folder", str(folder)])
    # One program trains both rungs.
    assert population.compile_population.cache_info().misses == compiled + 1
    text = capsys.readouterr().out
    assert "1/1 trials" in text
    assert "small: best trials" in text
    run = folder / "trial_00000" / "seed_0"
    game, config = load_run(run)
    assert (game.name, config.iterations, config.seed, config.width) == ("connect2", 4, 0, 16)
    assert load_state(run)[0] == 4
    # Again, there is nothing to do; and it may be shown.
    main(["sweep", str(path), "--folder", str(folder)])
    main(["sweep", "show", str(path), "--folder", str(folder)])
    assert capsys.readouterr().out.strip().endswith(f"page: {folder}/sweep.html")


def test_without_optuna_the_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.delattr(azjax, "sweep")
    for name in [name for name in sys.modules if name.startswith("azjax.sweep")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(tmp_path / "study.toml")])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "azjax: a sweep needs optuna: pip install 'azjax[sweep]'\n"
