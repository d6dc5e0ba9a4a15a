"""`azjax train GAME`."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from azjax.commands.arguments import check_games, first_word, parse_with_game
from azjax.commands.console import console, say
from azjax.commands.evaluate import EvaluateOptions, print_strength
from azjax.core.errors import FileError, InputError, RunError
from azjax.games.game import AnyGame
from azjax.parallel.peers import check_meeting, joined
from azjax.parallel.sharding import devices_for_members, offer_cpu_devices
from azjax.report import draw_learning_curve, population_table
from azjax.runs import (
    Callback,
    MlFlow,
    TensorBoard,
    WeightsAndBiases,
    members_of,
    train,
    train_population,
)
from azjax.runs.run_folder import CONFIG
from azjax.training import Config, preset

_MOST_DEVICES = 1024


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Trains an agent by self-play, then measures it.

    Attributes:
      folder: the run folder. Default: runs/GAME.
      resume: continue the run in the folder, to the same bit; start it if there is none.
      accept_changes: continue although settings, rules of the game, platform or packages differ from those of the run.
      tensorboard: also log to FOLDER/tensorboard (needs the extra `log`).
      wandb: also log to Weights & Biases (needs the extra `wandb`), whose environment variables hold.
      mlflow: also log to MLflow (needs the extra `mlflow`), whose environment variables hold.
      games: games of each match at the end, an even number. Default: 10,000 if the game can be solved, else 100.
      devices: devices of each process; `all` for every one. One run splits its games, replay and batch over them, a
        population its members. Default: 1; for a population the most that divide it, on CPU one for each core.
      coordinator: HOST:PORT of process 0, where the processes of a run on several machines meet. Goes with `process`
        and `processes`.
      process: the number of this process, from 0.
      processes: the number of processes.
      population: train this many agents at once, which differ in their seeds or in `vary`.
      vary: values that differ between them, such as learning_rate=1e-3,3e-3 seed=0,1,2. Every combination is trained.
      config: settings of the run. The defaults are the game's preset.
    """

    folder: Path | None = None
    resume: bool = False
    accept_changes: bool = False
    tensorboard: bool = False
    wandb: bool = False
    mlflow: bool = False
    games: int | None = None
    devices: int | Literal["all"] | None = None
    coordinator: str | None = None
    process: int | None = None
    processes: int | None = None
    population: int | None = None
    vary: tuple[str, ...] = ()
    config: Annotated[Config, tyro.conf.arg(name="settings", prefix_name=False)] = dataclasses.field(
        default_factory=Config
    )

    def __post_init__(self) -> None:
        if self.games is not None:
            check_games(self.games)
        if isinstance(self.devices, int) and not 1 <= self.devices <= _MOST_DEVICES:
            raise InputError(f"devices must be 1..{_MOST_DEVICES:,}, or all; got {self.devices:,}")
        if self.members is not None and self.meeting is not None:
            raise InputError("a population is trained by one process")
        if self.games is not None and (self.members is not None or self.meeting is not None):
            raise InputError("games is for the matches that one run of one process plays at its end")

    @property
    def loggers(self) -> list[Callback]:
        """The callbacks that were asked for."""
        asked = {TensorBoard: self.tensorboard, WeightsAndBiases: self.wandb, MlFlow: self.mlflow}
        return [logger() for logger, is_asked in asked.items() if is_asked]

    @property
    def members(self) -> list[Config] | None:
        """The configurations of a population; None for one agent."""
        if self.population is None and not self.vary:
            return None
        varying = list(map(_values, self.vary))
        if len(names := [name for name, _ in varying]) > len(set(names)):
            raise InputError(f"vary: each field once, got {', '.join(names)}")
        return members_of(self.config, dict(varying), self.population)

    @property
    def meeting(self) -> tuple[str, int, int] | None:
        """Coordinator, process and processes; None for one process alone."""
        if self.coordinator is None and self.process is None and self.processes is None:
            return None
        if self.coordinator is None or self.process is None or self.processes is None:
            raise InputError("coordinator, process and processes go together")
        check_meeting(self.coordinator, self.process, self.processes)
        return self.coordinator, self.process, self.processes


def train_command(arguments: list[str]) -> None:
    """Trains one agent or a population."""
    name, arguments = first_word("train", "GAME", TrainOptions(), arguments)
    options, game = parse_with_game("train", name, lambda game: TrainOptions(config=preset(game)), arguments)
    _refuse_unread(options.config, preset(game))
    _refuse_two_values(options, preset(game))
    folder = Path("runs") / name if options.folder is None else options.folder
    if isinstance(options.devices, int):
        offer_cpu_devices(options.devices)
    if options.members is None:
        _train_one(game, options, folder)
    else:
        _train_population(game, options, options.members, folder)


def _refuse_unread(config: Config, defaults: Config) -> None:
    """Refuses a setting that has no effect on training, such as the width of a network that has none.

    That of the preset may have lost its effect by another setting.
    """
    given, usual = ({**vars(each), **vars(each.hyper)} for each in (config, defaults))
    for name, why in config.unread.items():
        if given[name] != usual[name]:
            raise InputError(f"{name} has no effect on training with {why}")


def _refuse_two_values(options: TrainOptions, defaults: Config) -> None:
    """Refuses an option whose values `vary` names too."""
    given, usual = ({**vars(each), **vars(each.hyper)} for each in (options.config, defaults))
    for name, _ in map(_values, options.vary):
        if given[name] != usual[name]:
            raise InputError(f"vary names values of {name}, and --{name.replace('_', '-')} another: leave out one")


def _train_one(game: AnyGame, options: TrainOptions, folder: Path) -> None:
    with contextlib.nullcontext() if options.meeting is None else joined(*options.meeting):
        result = train(
            game,
            options.config,
            folder,
            resume=options.resume,
            accept_changes=options.accept_changes,
            console=console if not options.process else None,
            devices=options.devices or 1,
            callbacks=options.loggers,
        )
    if options.process:  # process 0 reports
        sys.exit(128 + result.stopped_by if result.stopped_by else 0)
    if result.stopped_by is not None:
        _draw(folder)
        _exit_stopped(result.iteration, result.stopped_by)
    trained = f"{folder} is trained to iteration {result.iteration:,}"
    if options.meeting is None:
        say(f"{trained}, and is measured now")
        print_strength(str(folder), game, EvaluateOptions(games=options.games))
    else:
        say(f"{trained}; azjax evaluate {folder} measures it")
    _draw(folder)


def _train_population(game: AnyGame, options: TrainOptions, members: list[Config], folder: Path) -> None:
    if (folder / CONFIG).exists():
        raise RunError(f"{folder} holds a run: name another folder for the population with --folder")
    results = train_population(
        game,
        members,
        [folder / f"member_{number:02}" for number in range(len(members))],
        resume=options.resume,
        accept_changes=options.accept_changes,
        console=console,
        devices=options.devices or devices_for_members(len(members)),
        callbacks=options.loggers,
    )
    console.print(population_table(members, [result.folder for result in results]))
    with contextlib.suppress(InputError, FileError):  # Matplotlib is an extra, and the runs are saved
        for result in results:
            draw_learning_curve(result.folder)
    if results[0].stopped_by is not None:
        _exit_stopped(results[0].iteration, results[0].stopped_by)
    say(f"each member is a run: azjax evaluate {results[0].folder} measures the first")


def _exit_stopped(iteration: int, signal: int) -> None:
    say(f"stopped at iteration {iteration} and saved; the same command with --resume continues")
    sys.exit(128 + signal)


def _draw(folder: Path) -> None:
    try:
        say(f"learning curve: {draw_learning_curve(folder)}")
    except (InputError, FileError) as error:  # Matplotlib is an extra, and the run is saved
        say(f"no learning curve: {error}")


def _values(text: str) -> tuple[str, list[float | int]]:
    """The field and the values of `FIELD=VALUE,VALUE`."""
    name, _, values = text.partition("=")
    try:
        return name, [int(value) if name == "seed" else float(value) for value in values.split(",")]
    except ValueError:
        number = "WHOLE_NUMBER" if name == "seed" else "NUMBER"
        raise InputError(f"vary must be {name or 'FIELD'}={number},{number}..., got {text!r}") from None
