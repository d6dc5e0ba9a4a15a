import math

import pytest

from azjax.runs.metrics import METRICS, TIMING, MetricsLog, read_rows


def _write(folder, start, iterations):
    log = MetricsLog(folder, start)
    for iteration in iterations:
        log.write(iteration, {"loss": 1 / iteration}, {"seconds": 0.5})
    log.flush()
    log.close()


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


def test_a_number_that_is_not_finite_becomes_null(tmp_path):
    log = MetricsLog(tmp_path, 0)
    log.write(1, {"loss": math.nan}, {"seconds": 1.0})
    log.close()
    assert read_rows(tmp_path / METRICS) == [{"iteration": 1, "loss": None}]


def test_a_missing_file_has_no_rows(tmp_path):
    assert read_rows(tmp_path / "none.jsonl") == []


def test_tensorboard_gets_the_same_numbers(tmp_path):
    pytest.importorskip("tensorboardX")
    log = MetricsLog(tmp_path, 0, tensorboard=True)
    log.write(1, {"loss": 2.0}, {"seconds": 1.0})
    log.close()
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"loss" in events.read_bytes()
