"""`azjax check GAME`."""

import dataclasses

from azjax.commands.arguments import check_seed, first_word, parse_with_game
from azjax.commands.console import console, say
from azjax.games import check_game, make


@dataclasses.dataclass(frozen=True)
class CheckOptions:
    """Tests every law of a game on positions of random games, and says what the page will lack.

    Attributes:
      games: random games, played side by side.
      seed: seed of the random games.
    """

    games: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)


def check_command(arguments: list[str]) -> None:
    """Tests a game."""
    name, arguments = first_word("check", "GAME", CheckOptions(), arguments)
    options, game = parse_with_game("check", name, lambda _: CheckOptions(), arguments, make)
    say(str(check_game(game, num_games=options.games, seed=options.seed, console=console)))
