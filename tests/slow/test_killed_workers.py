"""Workers of a sweep that are killed (signal 9) at random, on a journal file and on PostgreSQL."""

import functools
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from killing import assert_equal_runs
from optuna.storages._cached_storage import _CachedStorage
from small_sweep import write_sweep

from azjax.core.errors import FileError
from azjax.runs import load_run, train_population
from azjax.sweep import JOURNAL, Trials, connect, database_errors, load_study, storage, worker_command

pytestmark = pytest.mark.slow
TIMEOUT_SECONDS = 600
LEASE = 4.0  # longer than a worker is ever without a turn on a busy machine
WORKERS, KILLS = 2, 5


@pytest.fixture
def journal(tmp_path) -> str:
    return str(tmp_path / JOURNAL)


@pytest.fixture
def postgresql(server) -> str:
    """The address of a database whose server begins and ends with the test."""
    return server.address


class _Server(NamedTuple):
    address: str
    stop: Callable[[], None]
    start: Callable[[], None]


@pytest.fixture
def server() -> Iterator[_Server]:
    """A server of PostgreSQL that begins and ends with the test."""
    pytest.importorskip("psycopg")
    initdb = shutil.which("initdb") or next(iter(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
    if initdb is None:
        pytest.skip("needs PostgreSQL (Debian: apt install postgresql)")
    binaries = Path(initdb).resolve().parent
    home = Path(tempfile.mkdtemp(prefix="azjax-postgresql-"))  # pytest's own folders are closed to other users
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(home, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(binaries / program), "-D", str(home / "data"), *arguments]
        # The server keeps its output open.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, cwd=home)

    try:
        run("initdb", "--auth", "trust", "--username", "azjax")
        start = functools.partial(run, "pg_ctl", "--wait", "-o", f"-h 127.0.0.1 -p {port} -k {home}", "start")
        start()
        try:
            address = f"postgresql+psycopg://azjax@127.0.0.1:{port}/postgres"
            yield _Server(address, functools.partial(run, "pg_ctl", "--mode", "fast", "stop"), start)
        finally:
            run("pg_ctl", "--mode", "immediate", "stop")
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize("kind", ["journal", "postgresql"])
def test_two_workers_killed_five_times_each_complete_every_trial_once(tmp_path, request, kind, record_property):
    record_property("tries", WORKERS * KILLS)
    storage = request.getfixturevalue(kind)
    path = write_sweep(tmp_path, ("trials = 3", "trials = 20"), ("simulations = 256", "simulations = 2560"))
    study, folder = load_study(path), tmp_path / "study"
    command = worker_command(path, folder, storage, LEASE)
    at_work: list[int] = []

    def kill_again_and_again(number: int) -> None:
        rng = random.Random(number)
        for _ in range(KILLS):
            worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            rows_before, began = _rows(folder), time.monotonic()
            while _rows(folder) == rows_before and worker.poll() is None and time.monotonic() - began < TIMEOUT_SECONDS:
                time.sleep(0.05)
            time.sleep(rng.uniform(0, 3))
            worker.kill()
            _, err = worker.communicate()
            assert worker.returncode in (-9, 0), err
            at_work.append(worker.returncode)

    with ThreadPoolExecutor(WORKERS) as killers:
        list(killers.map(kill_again_and_again, range(WORKERS)))
    assert at_work == [-9] * WORKERS * KILLS

    last = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(WORKERS)]
    for worker in last:
        _, err = worker.communicate(timeout=TIMEOUT_SECONDS)
        assert worker.returncode == 0, err

    opened = connect(storage)
    trials = Trials(study, opened)
    points, attempts = trials.points(), trials.optuna_study.trials
    if isinstance(opened, _CachedStorage):  # of a database
        opened.remove_session()
        opened._backend.engine.dispose()
    assert len(points) == study.trials
    # Only points killed twice have failed.
    reasons = {point.reason for point in points if point.state == "failed"}
    assert reasons <= {"its worker was killed 2 times"}
    complete = [point for point in points if point.state == "complete"]
    assert len(complete) >= study.trials - WORKERS * KILLS // 2
    assert {point.state for point in points} <= {"complete", "failed"}
    # One worker has finished each point, and no attempt is running.
    ended = [attempt.state.name for attempt in attempts]
    assert ended.count("COMPLETE") == len(complete)
    assert set(ended) <= {"COMPLETE", "FAIL"}
    # The runs of points that were retried equal runs without a kill to the bit.
    retried = {attempt.user_attrs["point"] for attempt in attempts if "point" in attempt.user_attrs}
    retried &= {point.number for point in complete}
    assert retried
    for number in retried:
        for seed in range(study.seeds):
            run = folder / f"trial_{number:05}" / f"seed_{seed}"
            _, config = load_run(run)
            straight = tmp_path / "straight" / run.parent.name / run.name
            rungs = study.budget.rungs
            for rung in range(1, rungs + 1):
                upto = config.replace(iterations=config.iterations * rung // rungs)
                train_population(study.game, [upto], [straight], resume=True)
            assert_equal_runs(run, straight)


def test_a_sweep_goes_on_when_its_database_restarts(tmp_path, server, record_property):
    record_property("tries", 3)
    path = write_sweep(tmp_path, ("trials = 3", "trials = 6"), ("simulations = 256", "simulations = 10240"))
    study, folder, restarts = load_study(path), tmp_path / "study", 0
    command = [*worker_command(path, folder, server.address, LEASE), "--workers", "2"]
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while restarts < 3 and sweep.poll() is None:
        before, began = _rows(folder), time.monotonic()
        while _rows(folder) < before + 100 and sweep.poll() is None and time.monotonic() - began < TIMEOUT_SECONDS:
            time.sleep(0.05)
        server.stop()
        time.sleep(2)
        server.start()
        restarts += 1
    _, err = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert restarts == 3
    assert "Traceback" not in err
    # A worker may be stopped in the middle of an operation. Then the other goes on, or the same command does.
    if sweep.returncode:
        assert sweep.returncode == 1
        assert "the database of the sweep failed" in err
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    points = Trials(study, opened := connect(server.address)).points()
    opened.remove_session()
    opened._backend.engine.dispose()
    assert [(point.number, point.state) for point in points] == [(number, "complete") for number in range(6)]


def test_a_database_that_stays_away_is_told_in_one_line(tmp_path, server, monkeypatch):
    monkeypatch.setattr(storage, "_RESTART_SECONDS", 1.0)
    study = load_study(write_sweep(tmp_path))
    opened = connect(server.address)
    trials = Trials(study, opened)
    server.stop()
    try:
        with (
            pytest.raises(FileError, match=r"the database of the sweep failed: connection .*refused"),
            database_errors(),
        ):
            trials.points()
    finally:
        server.start()
        opened.remove_session()
        opened._backend.engine.dispose()


def _rows(folder: Path) -> int:
    """Iterations in the metrics of all runs."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("trial_*/seed_*/metrics.jsonl"))
