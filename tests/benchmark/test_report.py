import importlib.metadata
import io
import json
import os

import jax
import pytest
from rich.console import Console

from azjax.benchmark.report import machine, machine_with_load, print_load, write_report


def test_a_machine_is_told_with_the_versions_of_what_is_installed():
    on = machine(("jax", "no-such-package"))
    assert on["versions"] == {"jax": importlib.metadata.version("jax")}
    assert on["device"].startswith(jax.default_backend())
    assert on["cpu"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not bind processes to cores")
def test_the_cores_are_those_that_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert machine()["cores"] == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine()["cores"] == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 5.0, 9.0))
    assert machine_with_load(("jax",)) == machine(("jax",)) | {"load_average": 1.23}


@pytest.mark.parametrize(
    ("load", "told"), [(0.0, ""), (0.5, ""), (0.51, "the machine was not idle: load average 0.51\n")]
)
def test_a_load_is_told_where_numbers_suffer(load, told):
    screen = io.StringIO()
    print_load({"machine": {"load_average": load}}, Console(file=screen))
    assert screen.getvalue() == told


def test_a_report_is_written_with_its_folder_and_read_back(tmp_path):
    report, path, screen = {"rows": [{"ratio": 1.5}]}, tmp_path / "results" / "some.json", io.StringIO()
    write_report(report, path)
    assert json.loads(path.read_text()) == report
    write_report({}, path, Console(file=screen, width=10))
    assert (path.read_text(), screen.getvalue()) == ("{}\n", f"written to {path}\n")
