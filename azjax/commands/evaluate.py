"""`azjax evaluate PLAYER`."""

import dataclasses
from pathlib import Path

import jax

from azjax.agents import NUM_SIMULATIONS, is_trained, load_player
from azjax.commands.arguments import check_games, check_seed, parse_with_players
from azjax.commands.console import console
from azjax.core.errors import InputError
from azjax.evaluation import load_solution
from azjax.games.game import AnyGame
from azjax.report import by_ply_table, measure, strength_table


@dataclasses.dataclass(frozen=True)
class EvaluateOptions:
    """Measures a player: on all positions where the game can be solved, and in matches.

    Attributes:
      games: games of each match, an even number.
      num_simulations: simulations of a trained agent's search.
      solver: the search proves wins, losses and draws.
      reuse_tree: in matches the search continues in the tree below the moves played.
      seed: seed of all random numbers.
      solution: a file of `azjax solve GAME --output FILE`, for a game that takes long to solve.
      epsilon: also report exact scores against best play that makes this share of random moves, such as 0.1 0.5.
      by_ply: also report mistakes by ply.
    """

    games: int = 10_000
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0
    solution: Path | None = None
    epsilon: tuple[float, ...] = ()
    by_ply: bool = False

    def __post_init__(self) -> None:
        check_games(self.games)
        check_seed(self.seed)
        for epsilon in self.epsilon:
            if not 0 <= epsilon <= 1:
                raise InputError(f"epsilon must be 0..1, got {epsilon}")


def evaluate_command(arguments: list[str]) -> None:
    """Measures a player."""
    options, game, (spec,) = parse_with_players("evaluate", 1, EvaluateOptions(), arguments)
    print_strength(spec, game, options)


def print_strength(spec: str, game: AnyGame, options: EvaluateOptions) -> None:
    """Measures a player, a trained one without and with search, and prints the tables."""
    solution = None if options.solution is None else load_solution(options.solution, game)
    levels = ("medium", "hard") if is_trained(spec) else ("hard",)
    players = [
        load_player(
            spec,
            game,
            num_simulations=options.num_simulations,
            level=level,
            solver=options.solver,
            reuse_tree=options.reuse_tree,
        )
        for level in levels
    ]
    with console.status("measuring") as status:
        strengths = measure(
            game,
            players,
            num_games=options.games,
            key=jax.random.key(options.seed),
            solution=solution,
            epsilons=options.epsilon,
            progress=status.update,
        )
    console.print(strength_table(game, strengths))
    if options.by_ply:
        console.print(by_ply_table(game, strengths))
