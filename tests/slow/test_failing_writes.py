"""Runs and commands whose n-th write fails tell it in one line and lose nothing; runs resume to the same bit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
COMPILER = shutil.which("cc") or shutil.which("gcc")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="the shim needs Linux and a C compiler"),
]


def with_failing_writes(script, tmp_path, count, timeout):
    """What a script tells that lets `count` writes fail; nothing went wrong."""
    shim = tmp_path / "shim.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", shim, TESTS / "failing_writes.c", "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, TESTS / script, tmp_path / "outputs", str(count)],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == []
    return told


def test_a_run_whose_writes_fail_ends_with_a_line_and_resumes_to_the_same_bit(tmp_path, tries):
    count = tries(60)
    told = with_failing_writes("failing_writes.py", tmp_path, count, timeout=60 + 20 * count)
    assert told["writes"] > 100
    assert told["faults"] > count / 2


def test_outputs_whose_writes_fail_end_with_a_line_and_are_written_again(tmp_path, record_property):
    told = with_failing_writes("failing_outputs.py", tmp_path, 2, timeout=900)
    assert min(told["writes"].values()) > 3
    assert told["faults"] == 2 * 2 * len(told["writes"])
    record_property("tries", told["faults"])
