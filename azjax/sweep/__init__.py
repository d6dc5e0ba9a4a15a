"""Sweeps: a search for the best settings, whose trials are ordinary runs."""

from azjax.report.intervals import Interval
from azjax.sweep.objective import Elo, Mistakes, Objective, Score
from azjax.sweep.page import write_page
from azjax.sweep.points import Point
from azjax.sweep.pool import end_with_parent, run_sweep, worker_command
from azjax.sweep.storage import JOURNAL, connect, database_errors
from azjax.sweep.study import Budget, Choices, Range, Study
from azjax.sweep.study_file import load_study
from azjax.sweep.summary import best_first, failures, points_table
from azjax.sweep.trials import LEASE_SECONDS, Attempt, LeaseExpired, Trials
from azjax.sweep.worker import Stopped, work

__all__ = [
    "JOURNAL",
    "LEASE_SECONDS",
    "Attempt",
    "Budget",
    "Choices",
    "Elo",
    "Interval",
    "LeaseExpired",
    "Mistakes",
    "Objective",
    "Point",
    "Range",
    "Score",
    "Stopped",
    "Study",
    "Trials",
    "best_first",
    "connect",
    "database_errors",
    "end_with_parent",
    "failures",
    "load_study",
    "points_table",
    "run_sweep",
    "work",
    "worker_command",
    "write_page",
]
