"""`azjax report RUN`."""

import dataclasses

from rich.text import Text

from azjax.commands.arguments import check_games, check_seed, first_word, parse
from azjax.commands.console import console, say
from azjax.report import gather, write_report


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Writes a page about a run, for which its newest checkpoint plays.

    Attributes:
      num_simulations: simulations of each search.
      games: games of each match, an even number. Default: 10,000 if the game can be solved, else 100.
      sample_games: games shown on the page.
      seed: seed of all random numbers.
    """

    num_simulations: int = 100
    games: int | None = None
    sample_games: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        if self.games is not None:
            check_games(self.games)
        check_seed(self.seed)


def report_command(arguments: list[str]) -> None:
    """Writes the page of a run and prints its path."""
    folder, arguments = first_word("report", "RUN", ReportOptions(), arguments)
    options = parse(f"report {folder}", ReportOptions(), arguments)
    with console.status("reading the run") as status:
        report = gather(
            folder,
            num_simulations=options.num_simulations,
            num_games=options.games,
            num_sample_games=options.sample_games,
            seed=options.seed,
            progress=lambda task: status.update(Text(task)),  # names of players are no markup
        )
    say(f"{write_report(report)}")
