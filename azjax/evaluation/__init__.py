"""Measuring players: exactly on solved games, in matches elsewhere."""

from azjax.evaluation.device_match import DeviceMatch, make_device_match
from azjax.evaluation.exact import ExactReport, exact_report, expected_outcome, mistakes
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.game_record import GameRecord, iterate_games, load_games, records_of, save_games
from azjax.evaluation.match_result import MatchResult, Record
from azjax.evaluation.matches import play_match, play_round_robin
from azjax.evaluation.move_counts import perft
from azjax.evaluation.player_tables import tabulate
from azjax.evaluation.players import (
    MoveChoice,
    Player,
    RememberingPolicy,
    SearchingPolicy,
    TimedPolicy,
    act,
    choose,
    observe,
    search,
    start_memory,
)
from azjax.evaluation.pool import Pool
from azjax.evaluation.proof import Proof, prove
from azjax.evaluation.ratings import Ratings, pairings_of, rate
from azjax.evaluation.retrograde import save_endings, solve_endings
from azjax.evaluation.searching_players import (
    for_one_position,
    for_seconds,
    policy_player,
    search_player,
    uct_player,
    with_simulations,
)
from azjax.evaluation.sequential import SequentialTest
from azjax.evaluation.solution import Solution
from azjax.evaluation.solution_file import check_can_save, load_solution, save_solution
from azjax.evaluation.solver import solve
from azjax.evaluation.standard_players import (
    named_player,
    network_player,
    optimal_player,
    player_facts,
    random_player,
)
from azjax.evaluation.tables import game_of_table, load_table
from azjax.evaluation.timed import TimedPlayer

__all__ = [
    "DeviceMatch",
    "ExactReport",
    "ExternalPlayer",
    "GameRecord",
    "MatchResult",
    "MoveChoice",
    "Player",
    "Pool",
    "Proof",
    "Ratings",
    "Record",
    "RememberingPolicy",
    "SearchingPolicy",
    "SequentialTest",
    "Solution",
    "TimedPlayer",
    "TimedPolicy",
    "act",
    "check_can_save",
    "choose",
    "exact_report",
    "expected_outcome",
    "for_one_position",
    "for_seconds",
    "game_of_table",
    "iterate_games",
    "load_games",
    "load_solution",
    "load_table",
    "make_device_match",
    "mistakes",
    "named_player",
    "network_player",
    "observe",
    "optimal_player",
    "pairings_of",
    "perft",
    "play_match",
    "play_round_robin",
    "player_facts",
    "policy_player",
    "prove",
    "random_player",
    "rate",
    "records_of",
    "save_endings",
    "save_games",
    "save_solution",
    "search",
    "search_player",
    "solve",
    "solve_endings",
    "start_memory",
    "tabulate",
    "uct_player",
    "with_simulations",
]
