"""`azjax report RUN` and `azjax report GAMES.jsonl`."""

import dataclasses
import os
import re
from pathlib import Path

from rich.text import Text

from azjax.agents import is_trained, load_player, split_level
from azjax.commands.arguments import check_games, check_seed, first_word, parse
from azjax.commands.console import console, progress_bar, say
from azjax.core.errors import InputError
from azjax.core.files import check_can_write
from azjax.core.text import whole_number
from azjax.evaluation import load_games
from azjax.report import gather, judge_lost_games, write_losses, write_report
from azjax.report.templates import needs_report_packages

_GAMES = ".jsonl"
_JUDGE_SIMULATIONS, _TIMES_LONGER = 1600, 4


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Writes a page about a run, for which its newest checkpoint plays, or about the lost games of a file.

    A file of games is one that `azjax match --records` or `--pool` wrote, with the ending .jsonl; `azjax report
    GAMES.jsonl --help` tells its options.

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
        if self.sample_games < 1:
            raise InputError(f"sample_games must be at least 1, got {self.sample_games}")


@dataclasses.dataclass(frozen=True)
class LossesOptions:
    """Writes a page about the games that a player lost: how, when its value turned, and by which moves.

    Attributes:
      player: its name in the file. Default: the first player of the first game.
      judge: a player that searches, such as brandub:1600, which values every position of the lost games. Default: the
        player with 1,600 simulations, if it is a trained agent.
      games: lost games that are judged at most.
      positions: positions shown at most.
      output: the page. Default: the file of games with the ending .html.
      seed: seed of all random numbers.
    """

    player: str | None = None
    judge: str | None = None
    games: int = 50
    positions: int = 10
    output: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name in ("games", "positions"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")


def report_command(arguments: list[str]) -> None:
    """Writes the page of a run or of lost games and prints its path."""
    path, arguments = first_word("report", "RUN", ReportOptions(), arguments)
    if Path(path).is_file() or (Path(path).suffix == _GAMES and not Path(path).is_dir()):
        _report_losses(Path(path), parse(f"report {path}", LossesOptions(), arguments))
    else:
        _report_run(path, parse(f"report {path}", ReportOptions(), arguments))


def _report_run(folder: str, options: ReportOptions) -> None:
    needs_report_packages()
    if not os.path.exists(folder):
        told = "; a report is of a whole run, without @" if "@" in str(folder) else ""
        raise InputError(f"there is no run folder {folder}{told}")
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise InputError(
            f"{folder} is read-only: copy the run elsewhere for a report, which is written into its folder"
        )
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


def _report_losses(file: Path, options: LossesOptions) -> None:
    output = options.output or file.with_suffix(".html")
    if output.absolute() == file.absolute():
        raise InputError(f"{file} has the games: name another file for the page by --output")
    check_can_write(output)
    needs_report_packages()
    records = load_games(file)
    if not records:
        raise InputError(f"{file} has no games")
    names = dict.fromkeys(name for record in records for name in record.players)
    player = options.player or records[0].players[0]
    if player not in names:
        raise InputError(f"{player} played no game of {file}; players: {', '.join(names)}")
    judge_name = options.judge or _longer_search(player)
    judge = dataclasses.replace(load_player(judge_name, records[0].game), name=judge_name)
    with progress_bar("positions") as progress:
        task = progress.add_task("judging", total=None)
        report = judge_lost_games(
            records,
            player,
            judge,
            num_games=options.games,
            seed=options.seed,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    write_losses(report, output, num_positions=options.positions)
    say(f"{output}")


def _longer_search(player: str) -> str:
    """The trained agent of a player's name in a file of games, with many simulations."""
    # Without the options of a search and the seconds of a move.
    agent, level = split_level(re.split(r" \+ |, ", player)[0])
    if not is_trained(agent):
        raise InputError(f"{player} is no trained agent: name a judge that searches, such as --judge uct:10000")
    return f"{agent}:{max(_JUDGE_SIMULATIONS, _TIMES_LONGER * (whole_number(level) or 0))}"
