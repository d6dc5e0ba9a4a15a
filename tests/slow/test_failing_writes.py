"""Runs, sweeps and outputs whose n-th write fails tell it in one line and lose nothing; runs resume to the same bit."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_sweep import write_sweep

from azjax.sweep import JOURNAL, Trials, connect, load_study

TESTS = Path(__file__).parent.parent
COMPILER = shutil.which("cc") or shutil.which("gcc")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="the shim needs Linux and a C compiler"),
]


@pytest.fixture
def failing(tmp_path):
    """The environment of a process whose writes can fail."""
    shim = tmp_path / "shim.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", shim, TESTS / "failing_writes.c", "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(shim)}


def with_failing_writes(failing, script, folder, count, timeout):
    """What a script tells that lets `count` writes fail; nothing went wrong."""
    done = subprocess.run(
        [sys.executable, TESTS / script, folder, str(count)],
        env=failing,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == []
    return told


def test_a_run_whose_writes_fail_ends_with_a_line_and_resumes_to_the_same_bit(failing, tmp_path, tries):
    count = tries(60)
    told = with_failing_writes(failing, "failing_writes.py", tmp_path / "runs", count, timeout=60 + 20 * count)
    assert told["writes"] > 100
    assert told["faults"] > count / 2


def test_outputs_whose_writes_fail_end_with_a_line_and_are_written_again(failing, tmp_path, record_property):
    told = with_failing_writes(failing, "failing_outputs.py", tmp_path / "outputs", 2, timeout=900)
    assert min(told["writes"].values()) > 3
    assert told["faults"] == 2 * 2 * len(told["writes"])
    record_property("tries", told["faults"])


FIRST_WRITES = (1, 5, 30, 150)


def test_a_sweep_whose_writes_fail_is_completed_later(failing, tmp_path, record_property):
    path = write_sweep(tmp_path)
    for number, first in enumerate(FIRST_WRITES):
        folder = tmp_path / f"study_{number}"
        command = [sys.executable, "-m", "azjax", "sweep", path, "--folder", folder]
        last = first if number % 2 else 10**9
        fault = {"FAIL_BELOW": folder, "FAIL_FIRST": first, "FAIL_LAST": last, "FAIL_ERROR": errno.ENOSPC}
        failing_now = {**failing, **{name: str(value) for name, value in fault.items()}}
        failed = subprocess.run(command, env=failing_now, capture_output=True, text=True, timeout=300, check=False)
        assert "Traceback" not in failed.stdout + failed.stderr
        assert failed.returncode == 1, failed.stderr
        assert str(folder) in failed.stderr
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        points = Trials(load_study(path), connect(str(folder / JOURNAL))).points()
        assert [point.state for point in points] == ["complete"] * 3
    record_property("tries", len(FIRST_WRITES))
