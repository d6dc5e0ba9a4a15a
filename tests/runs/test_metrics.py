import math
from pathlib import Path

import pytest

from azjax.runs import Update
from azjax.runs.metrics import METRICS, TIMING, MetricsLog, read_rows
from azjax.training import Config


def update(folder: Path, iteration: int, loss: float) -> Update:
    return Update(folder, iteration, 9, {"loss": loss}, {"seconds": 0.5}, lambda: None)


def _write(folder, start, iterations):
    log = MetricsLog()
    log.begin(folder, Config(), start)
    for iteration in iterations:
        log(update(folder, iteration, 1 / iteration))
    log.save()
    log.end()


def test_rows_after_the_checkpoint_are_dropped_on_resume(tmp_path):
    _write(tmp_path, 0, range(1, 6))
    straight = (tmp_path / METRICS).read_bytes()
    _write(tmp_path, 3, range(4, 6))
    assert (tmp_path / METRICS).read_bytes() == straight
    assert [row["iteration"] for row in read_rows(tmp_path / TIMING)] == [1, 2, 3, 4, 5]


def test_an_incomplete_row_is_dropped(tmp_path):
    _write(tmp_path, 0, range(1, 4))
    path = tmp_path / METRICS
    path.write_bytes(path.read_bytes()[:-5])
    assert [row["iteration"] for row in read_rows(path)] == [1, 2]
    _write(tmp_path, 2, [3])
    assert [row["iteration"] for row in read_rows(path)] == [1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [b'{"iteration": 4, "loss": "\xff"}', b"[" * 100_000, b'{"iteration": 4.5}', b'{"iteration": 1e999}', b"[4]"],
)
def test_rows_end_at_one_that_cannot_be_read(tmp_path, line):
    _write(tmp_path, 0, range(1, 4))
    path = tmp_path / METRICS
    path.write_bytes(path.read_bytes() + line + b"\n" + b'{"iteration": 5}\n')
    assert [row["iteration"] for row in read_rows(path)] == [1, 2, 3]


def test_a_row_is_in_the_file_as_soon_as_its_iteration_is_done(tmp_path):
    log = MetricsLog()
    log.begin(tmp_path, Config(), 0)
    log(update(tmp_path, 1, math.nan))
    assert read_rows(tmp_path / METRICS) == [{"iteration": 1, "loss": None}]  # what is not finite becomes null
    assert read_rows(tmp_path / TIMING) == [{"iteration": 1, "seconds": 0.5}]
    log.end()


def test_a_missing_file_has_no_rows(tmp_path):
    assert read_rows(tmp_path / "none.jsonl") == []
