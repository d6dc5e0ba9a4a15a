"""How well a player plays: exactly on solved games, in matches elsewhere."""

from azjax.evaluation.exact import ExactReport, exact_report, expected_outcome, mistakes, tabulate
from azjax.evaluation.matches import MatchResult, Record, play_match
from azjax.evaluation.players import (
    Judgement,
    Player,
    RememberingPolicy,
    act,
    judge,
    network_player,
    observe,
    optimal_player,
    random_player,
    search_player,
    start_memory,
    uct_player,
)
from azjax.evaluation.solution import Solution
from azjax.evaluation.solution_file import check_can_save, game_of_solution, load_solution, save_solution
from azjax.evaluation.solver import perft, solve

__all__ = [
    "ExactReport",
    "Judgement",
    "MatchResult",
    "Player",
    "Record",
    "RememberingPolicy",
    "Solution",
    "act",
    "check_can_save",
    "exact_report",
    "expected_outcome",
    "game_of_solution",
    "judge",
    "load_solution",
    "mistakes",
    "network_player",
    "observe",
    "optimal_player",
    "perft",
    "play_match",
    "random_player",
    "save_solution",
    "search_player",
    "solve",
    "start_memory",
    "tabulate",
    "uct_player",
]
