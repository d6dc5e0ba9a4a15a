"""The study of faults: that its tests exist, and what it makes of their reports."""

import ast

import pytest
from studies import ROOT, load_study, result_of

from azjax.core.errors import InputError

survival = load_study("survival")

TESTS = """\
import pytest

def test_often(record_property):
    record_property("tries", 40)

@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_once(number):
    assert number < 3

def test_never():
    pytest.skip("there is no database")
"""


@pytest.mark.parametrize("fault", survival.FAULTS, ids=lambda fault: fault.name)
def test_every_test_of_a_fault_exists(fault):
    for name in fault.tests:
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text())
        assert not function or function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


@pytest.mark.slow
def test_tries_and_failures_are_counted(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    fault = survival.Fault("a fault", "nothing", ("test_some.py",))
    row = survival.try_fault(fault, 2, tmp_path)
    assert (row["tries"], row["failed"], row["skipped"], row["factor"]) == (43, 1, 1, 2)
    assert row["failures"] == ["test_once[3]"]


def test_a_factor_below_one_is_refused(tmp_path):
    with pytest.raises(InputError, match="factor must be at least 1, got 0"):
        survival.main(factor=0, output=tmp_path / "results.json")


def test_the_committed_results_are_of_these_faults_and_none_failed():
    faults = {fault.name: fault for fault in survival.FAULTS}
    rows = result_of("survival")["rows"]
    assert rows
    for row in rows:
        assert row["tests"] == list(faults[row["fault"]].tests)
        assert not row["failed"], row
        assert not row["skipped"], row
