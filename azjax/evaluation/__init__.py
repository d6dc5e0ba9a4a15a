"""How well a player plays: exactly on solved games, in matches elsewhere."""

from azjax.evaluation.exact import ExactReport, exact_report, expected_outcome, mistakes, tabulate
from azjax.evaluation.matches import MatchResult, Record, play_match
from azjax.evaluation.players import (
    Judgement,
    Player,
    act,
    judge,
    network_player,
    optimal_player,
    random_player,
    search_player,
)
from azjax.evaluation.solver import Solution, perft, solve

__all__ = [
    "ExactReport",
    "Judgement",
    "MatchResult",
    "Player",
    "Record",
    "Solution",
    "act",
    "exact_report",
    "expected_outcome",
    "judge",
    "mistakes",
    "network_player",
    "optimal_player",
    "perft",
    "play_match",
    "random_player",
    "search_player",
    "solve",
    "tabulate",
]
