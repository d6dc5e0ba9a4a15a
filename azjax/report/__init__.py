"""Reports of runs and measurements: tables for terminals, figures, and the pages of a run and of lost games."""

from azjax.report.figures import check_picture, draw_learning_curve, draw_ratings
from azjax.report.intervals import elo_errors, elo_interval
from azjax.report.losses_page import write_losses
from azjax.report.lost_games import judge_lost_games
from azjax.report.page import write_report
from azjax.report.run_report import gather
from azjax.report.sample_games import sample_games
from azjax.report.strength import Strength, measure, try_solve
from azjax.report.tables import (
    by_ply_table,
    endings_table,
    match_table,
    perft_table,
    population_table,
    proof_table,
    ratings_table,
    solution_table,
    strength_table,
)

__all__ = [
    "Strength",
    "by_ply_table",
    "check_picture",
    "draw_learning_curve",
    "draw_ratings",
    "elo_errors",
    "elo_interval",
    "endings_table",
    "gather",
    "judge_lost_games",
    "match_table",
    "measure",
    "perft_table",
    "population_table",
    "proof_table",
    "ratings_table",
    "sample_games",
    "solution_table",
    "strength_table",
    "try_solve",
    "write_losses",
    "write_report",
]
