"""Runs whose n-th write fails tell it in one line, lose nothing, and resume to the same bit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="the shim needs Linux and a C compiler")
def test_a_run_whose_writes_fail_ends_with_a_line_and_resumes_to_the_same_bit(tmp_path, tries):
    shim, folder = tmp_path / "shim.so", tmp_path / "runs"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", shim, TESTS / "failing_writes.c", "-ldl"], check=True)
    count = tries(60)
    done = subprocess.run(
        [sys.executable, TESTS / "failing_writes.py", folder, str(count)],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        timeout=60 + 20 * count,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == []
    assert told["writes"] > 100
    assert told["faults"] > count / 2
