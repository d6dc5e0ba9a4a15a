"""Runs: the loop around the jitted iteration, with run folders, checkpoints, metrics and memory checks."""

from azjax.runs.callback import Callback, Update
from azjax.runs.checkpoint import Checkpoints
from azjax.runs.loggers import MlFlow, TensorBoard, WeightsAndBiases
from azjax.runs.loop import TrainResult, train
from azjax.runs.population import members_of, train_population
from azjax.runs.run_folder import load_run, load_state, load_variables
from azjax.runs.throughput import Throughput, measure_throughput

__all__ = [
    "Callback",
    "Checkpoints",
    "MlFlow",
    "TensorBoard",
    "Throughput",
    "TrainResult",
    "Update",
    "WeightsAndBiases",
    "load_run",
    "load_state",
    "load_variables",
    "measure_throughput",
    "members_of",
    "train",
    "train_population",
]
