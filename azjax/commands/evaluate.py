"""`azjax evaluate PLAYER`."""

import dataclasses
from pathlib import Path

import jax
from rich.text import Text

from azjax.agents import LEVELS, is_trained
from azjax.commands.arguments import AgentOptions, check_games, parse_with_players
from azjax.commands.console import console
from azjax.core.errors import InputError
from azjax.evaluation import Solution, load_solution
from azjax.games.game import AnyGame
from azjax.parallel.sharding import num_cores, offer_cpu_devices
from azjax.report import by_ply_table, measure, strength_table, try_solve


@dataclasses.dataclass(frozen=True)
class EvaluateOptions(AgentOptions):
    """Measures a player: on all positions where the game can be solved, and in matches.

    Attributes:
      reuse_tree: in matches the search continues in the tree below the moves played.
      games: games of each match, an even number. Default: 10,000 if the game can be solved, else 100.
      solution: a file of `azjax solve GAME --output FILE`, for a game that takes long to solve.
      epsilon: also report exact scores against best play that makes this share of random moves, such as 0.1 0.5.
      by_ply: also report mistakes by ply.
    """

    reuse_tree: bool = False
    games: int | None = None
    solution: Path | None = None
    epsilon: tuple[float, ...] = ()
    by_ply: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.games is not None:
            check_games(self.games)
        for epsilon in self.epsilon:
            if not 0 <= epsilon <= 1:
                raise InputError(f"--epsilon must be 0..1, got {epsilon}")

    @property
    def of_searches(self) -> tuple[str, ...]:
        return (*super().of_searches, "reuse_tree")


def evaluate_command(arguments: list[str]) -> None:
    """Measures a player."""
    offer_cpu_devices(num_cores())  # for searches without a network, which run on one core of each
    options, game, (spec,) = parse_with_players("evaluate", 1, EvaluateOptions(), arguments)
    print_strength(spec, game, options)


def print_strength(spec: str, game: AnyGame, options: EvaluateOptions) -> None:
    """Measures a player, a trained one without and with search, and prints the tables."""
    solution: Solution | None = None if options.solution is None else load_solution(options.solution, game)
    if solution is None and (options.by_ply or options.epsilon):
        solution = try_solve(game)
        if solution is None:
            raise InputError(f"--by-ply and --epsilon need the values of all positions, and {game.name} was not solved")
    players = options.players(spec, game, LEVELS[-2:] if is_trained(spec) else LEVELS[-1:])
    with console.status("measuring") as status:
        strengths = measure(
            game,
            list(players.values()),
            num_games=options.games,
            key=jax.random.key(options.seed),
            solution=solution,
            epsilons=options.epsilon,
            progress=lambda task: status.update(Text(task)),  # names of players are no markup
        )
    console.print(strength_table(game, strengths))
    if options.by_ply:
        console.print(by_ply_table(game, strengths))
