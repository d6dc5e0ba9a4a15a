"""How well a player plays: exactly on solved games, in matches elsewhere."""

from azjax.evaluation.exact import ExactReport, exact_report, expected_outcome, mistakes, tabulate
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.game_record import GameRecord, load_games, records_of, save_games
from azjax.evaluation.matches import MatchResult, Record, play_match, play_round_robin
from azjax.evaluation.players import (
    Judgement,
    Player,
    RememberingPolicy,
    SearchingPolicy,
    TimedPolicy,
    act,
    judge,
    network_player,
    observe,
    optimal_player,
    random_player,
    search,
    search_player,
    start_memory,
    uct_player,
    with_simulations,
)
from azjax.evaluation.ratings import Ratings, rate
from azjax.evaluation.sequential import SequentialTest
from azjax.evaluation.solution import Solution
from azjax.evaluation.solution_file import check_can_save, game_of_solution, load_solution, save_solution
from azjax.evaluation.solver import perft, solve

__all__ = [
    "ExactReport",
    "ExternalPlayer",
    "GameRecord",
    "Judgement",
    "MatchResult",
    "Player",
    "Ratings",
    "Record",
    "RememberingPolicy",
    "SearchingPolicy",
    "SequentialTest",
    "Solution",
    "TimedPolicy",
    "act",
    "check_can_save",
    "exact_report",
    "expected_outcome",
    "game_of_solution",
    "judge",
    "load_games",
    "load_solution",
    "mistakes",
    "network_player",
    "observe",
    "optimal_player",
    "perft",
    "play_match",
    "play_round_robin",
    "random_player",
    "rate",
    "records_of",
    "save_games",
    "save_solution",
    "search",
    "search_player",
    "solve",
    "start_memory",
    "tabulate",
    "uct_player",
    "with_simulations",
]
