import math
import warnings

import pytest

from azjax.runs import Update
from azjax.runs.divergence import DivergenceWarning
from azjax.runs.metrics import METRICS
from azjax.training import Config


def _told(folder, losses, begins_after=0):
    """The warnings of a run with these losses."""
    watch = DivergenceWarning()
    watch.begin(folder, Config(), begins_after)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, loss in enumerate(losses, start=begins_after + 1):
            watch(Update(folder, number, 100, {"loss": loss}, {}, lambda: None))
    return [str(each.message) for each in caught]


def test_a_loss_a_hundred_times_its_first_is_told_once(tmp_path):
    (message,) = _told(tmp_path, [math.nan, 2.5, 3.0, 251.0, 300.0, 1e6])
    told = "the loss is 251 at iteration 4, more than 100 times the first one, 2.5; a lower learning_rate may help"
    assert message == f"{tmp_path}: {told}"


@pytest.mark.parametrize("losses", [[2.5, 249.0, 1.0], [math.nan] * 3, [2.5, math.inf], [0.0, 1e-6]])
def test_other_losses_are_not_told(tmp_path, losses):
    assert _told(tmp_path, losses) == []


def test_a_resumed_run_compares_with_the_first_loss_of_its_metrics(tmp_path):
    (tmp_path / METRICS).write_text('{"iteration": 1, "loss": null}\n{"iteration": 2, "loss": 0.5}\n')
    (message,) = _told(tmp_path, [60.0], begins_after=2)
    assert "the loss is 60 at iteration 3, more than 100 times the first one, 0.5" in message
