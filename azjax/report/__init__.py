"""Reports of runs and measurements: tables for terminals, figures, and the report page of a run."""

from azjax.report.figures import draw_learning_curve, draw_ratings
from azjax.report.page import write_report
from azjax.report.run_report import gather
from azjax.report.sample_games import sample_games
from azjax.report.strength import Strength, measure
from azjax.report.tables import (
    by_ply_table,
    match_table,
    perft_table,
    population_table,
    ratings_table,
    solution_table,
    strength_table,
)

__all__ = [
    "Strength",
    "by_ply_table",
    "draw_learning_curve",
    "draw_ratings",
    "gather",
    "match_table",
    "measure",
    "perft_table",
    "population_table",
    "ratings_table",
    "sample_games",
    "solution_table",
    "strength_table",
    "write_report",
]
