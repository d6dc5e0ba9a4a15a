"""What a run looks like: tables and pictures."""

from azjax.report.learning_curve import draw_learning_curve
from azjax.report.matches import draw_ratings, match_table, ratings_table
from azjax.report.page import write_report
from azjax.report.population import population_table
from azjax.report.run_report import gather
from azjax.report.solution import perft_table, solution_table
from azjax.report.strength import Strength, by_ply_table, measure, strength_table

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
    "solution_table",
    "strength_table",
    "write_report",
]
