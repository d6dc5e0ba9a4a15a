"""Workers as processes: side by side, killed (signal 9), asked to stop, and as jobs of submitit."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_sweep import write_sweep

from azjax.sweep import JOURNAL, Trials, connect, load_study, worker_command
from azjax.sweep.slurm import submit

pytestmark = pytest.mark.slow
TIMEOUT_SECONDS = 400
LEASE = 4.0  # longer than a worker is ever without a turn on a busy machine


def watch(path: Path, folder: Path) -> Trials:
    return Trials(load_study(path), connect(folder / JOURNAL))


def start(path: Path, folder: Path, *options: str) -> subprocess.Popen:
    command = [*worker_command(path, folder, str(folder / JOURNAL), LEASE), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(true, *processes: subprocess.Popen) -> None:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < TIMEOUT_SECONDS
        assert all(process.poll() is None for process in processes), processes[0].communicate()
        time.sleep(0.1)


def ended(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, err
    return out


def rows(folder: Path) -> dict[str, int]:
    """Iterations in the metrics of each run."""
    paths = folder.glob("trial_*/seed_*/metrics.jsonl")
    return {f"{path.parts[-3]}/{path.parts[-2]}": len(path.read_text().splitlines()) for path in paths}


def test_two_workers_take_every_trial_once(tmp_path):
    path, folder = write_sweep(tmp_path, ("trials = 3", "trials = 5")), tmp_path / "study"
    out = ended(start(path, folder, "--workers", "2"))
    assert "5/5 trials" in out
    points = watch(path, folder).points()
    assert [(point.number, point.state) for point in points] == [(number, "complete") for number in range(5)]
    assert rows(folder) == {f"trial_{number:05}/seed_{seed}": 4 for number in range(5) for seed in range(2)}
    logs = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    began_by = {log["worker_id"].rpartition("-")[0] for log in logs if "datetime_complete" in log}
    assert len(began_by) == 2


def test_the_trial_of_a_killed_worker_is_tried_again(tmp_path):
    path, folder = write_sweep(tmp_path, ("simulations = 256", "simulations = 2560")), tmp_path / "study"
    killed = start(path, folder)
    wait_until(lambda: sum(rows(folder).values()), killed)
    killed.kill()
    killed.communicate()
    assert [point.state for point in watch(path, folder).points()] == ["running"]
    ended(start(path, folder))
    trials = watch(path, folder)
    assert [point.state for point in trials.points()] == ["complete"] * 3
    # One attempt more than points, and the runs have all their iterations, each once.
    assert len(trials.optuna_study.trials) == 4
    assert set(rows(folder).values()) == {40}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_saves_releases_the_points_and_ends_with_143(tmp_path, workers):
    path, folder = write_sweep(tmp_path, ("simulations = 256", "simulations = 25600000")), tmp_path / "study"
    process = start(path, folder, "--workers", workers)
    # The point of each worker has two runs, one population.
    wait_until(lambda: len(rows(folder)) == 2 * int(workers) and all(rows(folder).values()), process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, err) == (143, "")
    assert "stopped; the trained agents are saved, and the same command continues" in out
    assert {point.state for point in watch(path, folder).points()} == {"waiting"}
    for run in folder.glob("trial_*/seed_*"):
        done = len((run / "metrics.jsonl").read_text().splitlines())
        assert (run / "checkpoints" / f"{done}.json").exists()


def test_workers_whose_parent_is_killed_stop_and_release_their_points(tmp_path):
    path, folder = write_sweep(tmp_path, ("simulations = 256", "simulations = 25600000")), tmp_path / "study"
    process = start(path, folder, "--workers", "2")
    wait_until(lambda: len(rows(folder)) == 4 and all(rows(folder).values()), process)
    process.kill()
    process.communicate()
    until = time.monotonic() + 5
    while {point.state for point in watch(path, folder).points()} != {"waiting"}:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_failure_of_all_workers_is_reported_in_one_line(tmp_path):
    path = write_sweep(tmp_path, ('game = "connect2"', 'game = "brandub"'), ("replay_size = 64", "replay_size = 9000"))
    process = start(path, tmp_path / "study", "--workers", "2")
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert line.startswith("azjax: a worker ended with code 2: azjax: brandub")
    assert line.endswith("; the same command goes on with the study")


def test_jobs_of_submitit_are_workers(tmp_path):
    """With its executor for this machine, which has no SLURM."""
    path, folder = write_sweep(tmp_path), tmp_path / "study"
    command = worker_command(path, folder, str(folder / JOURNAL), LEASE)
    jobs = submit(command, folder / "slurm", 2, {"timeout_min": 10}, name="small", cluster="local")
    for job in jobs:
        assert "small: best trials" in job.result()
    assert [point.state for point in watch(path, folder).points()] == ["complete"] * 3


def test_a_parameter_that_submitit_does_not_know_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\[slurm\]: .*minutes"):
        submit([sys.executable], tmp_path, 1, {"minutes": 10}, name="small", cluster="local")


def test_without_slurm_the_jobs_are_refused_in_one_line(tmp_path):
    process = start(write_sweep(tmp_path), tmp_path / "study", "--slurm")
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1
    assert "slurm" in err
    assert len(err.splitlines()) == 1
