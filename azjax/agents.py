"""From what a user types to a player: a run folder, a packaged agent, or a spec such as `random` or `uct:1000`."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from azjax.core.errors import InputError
from azjax.evaluation import Player, game_of_solution, load_solution, network_player, optimal_player, search_player
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.named_players import NAMED, is_named, named_player, with_options
from azjax.evaluation.openspiel import OpenSpielPlayer
from azjax.evaluation.protocols import LANGUAGES
from azjax.evaluation.seats import Contestant
from azjax.games.game import Game
from azjax.packaged import Agent, game_of_agent, load_agent, packaged
from azjax.runs import Checkpoints, load_run, load_variables
from azjax.runs.run_folder import CHECKPOINTS
from azjax.search import Evaluator, evaluators

LEVELS = ("easy", "medium", "hard")
NUM_SIMULATIONS = 64

_SOLVED = "optimal:"
_FORMS = "; ".join(
    [
        "a run folder (RUN, RUN@best or RUN@ITERATION)",
        f"a packaged agent ({', '.join(packaged())})",
        "either with :LEVEL or :SIMULATIONS",
        "optimal:SOLUTION_FILE",
        f"with a game {', '.join(NAMED)}",
        f"in matches a program by its language ({', '.join(f'{name}:COMMAND' for name in LANGUAGES)})"
        ", or a bot of OpenSpiel (openspiel:mcts:SIMULATIONS, openspiel:minimax:PLIES)",
    ]
)


def is_trained(spec: str) -> bool:
    """Whether the spec names a trained agent, which plays at all levels."""
    return _is_run(spec) or spec in packaged()


def split_level(spec: str) -> tuple[str, str]:
    """A trained agent and how it plays, after a colon; any other spec as it is, and nothing."""
    agent, colon, how = spec.rpartition(":")
    return (agent, how) if colon and not is_trained(spec) and is_trained(agent) else (spec, "")


def every_checkpoint(spec: str) -> list[str]:
    """RUN@all as a spec for each checkpoint of the run that is kept; any other spec as it is.

    Raises:
      ValueError: the run has none.
    """
    folder, _, which = spec.rpartition("@")
    if which != "all" or not Path(folder).is_dir():
        return [spec]
    steps = Checkpoints(Path(folder) / CHECKPOINTS).steps()
    if not steps:
        raise InputError(f"{folder} has no checkpoints")
    return [f"{folder}@{step}" for step in steps]


def game_of(spec: str) -> Game | None:
    """The game of a trained agent or a solution; None where the spec tells none.

    Raises:
      RunError: a folder that is not a run's.
      ValueError: a file that is not a solution.
    """
    spec, _ = split_level(spec)
    if _is_run(spec):
        return load_run(_split(spec)[0])[0]
    if spec in packaged():
        return game_of_agent(spec)
    return game_of_solution(spec.removeprefix(_SOLVED)) if spec.startswith(_SOLVED) else None


def load_player(
    spec: str,
    game: Game | None = None,
    *,
    num_simulations: int = NUM_SIMULATIONS,
    level: str = "hard",
    solver: bool = False,
    reuse_tree: bool = False,
) -> Player:
    """Makes a player.

    Args:
      spec: a run folder (`runs/tictactoe`; with `@best` or `@120` a certain checkpoint, else the newest sound one), the
        name of a packaged agent (`tictactoe`), either with a level or the simulations of its search after a colon
        (`tictactoe:easy`, `tictactoe:400`), which goes before the options; `random`, `optimal` (which solves the game
        first), `optimal:FILE` (which reads a solution), or a search without a network: `uct:1000`, or with equal
        priors `uniform:64`, `rollout:1000`, `random:64`.
      game: what it plays; trained agents and a solution know their own.
      num_simulations: of a trained agent's search.
      level: how a trained agent plays: `easy` draws from the network's policy, `medium` takes its best move, `hard`
        searches.
      solver: the search proves wins, losses and draws (of a trained agent: at level `hard`).
      reuse_tree: the search goes on in the tree below the moves that were played (likewise).

    Raises:
      ValueError: an unknown spec or level, no game, another game than the agent's, or an option of a search for a
        player whose search does not have it.
      RunError: a folder that is not a run's, or one without a sound checkpoint.
    """
    spec, how = split_level(spec)
    if how in LEVELS:
        level = how
    elif how:
        if not (how.isascii() and how.isdigit()):
            raise InputError(f"{spec}:{how}: after the colon comes a number of simulations or {', '.join(LEVELS)}")
        num_simulations = int(how)
    if level not in LEVELS:
        raise InputError(f"unknown level {level!r}; available: {', '.join(LEVELS)}")
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    if is_trained(spec):
        return _trained(spec, game, num_simulations, level, solver, reuse_tree)
    if spec.startswith(_SOLVED):
        if solver or reuse_tree:
            raise InputError(f"solver and reuse_tree are for players that search; {spec} does not")
        return optimal_player(load_solution(spec.removeprefix(_SOLVED), game))
    if game is None:
        raise InputError(f"{spec!r} is no trained agent; a player by name needs a game too. Players: {_FORMS}")
    if not is_named(spec):
        raise InputError(f"unknown player {spec!r}; players: {_FORMS}")
    return named_player(spec, game, solver=solver, reuse_tree=reuse_tree)


class Mind(NamedTuple):
    """What a search of a player asks: see `azjax.search.alphazero_policy`."""

    evaluator: Evaluator
    params: Any
    c_puct: float


def load_mind(spec: str, game: Game) -> Mind:
    """The network of a trained agent; random rollouts for every other player.

    Raises:
      ValueError: as `load_player`.
      RunError: as `load_player`.
    """
    spec, _ = split_level(spec)
    if not is_trained(spec):
        return Mind(evaluators.rollout(game), None, 1.25)
    agent = _agent(spec)
    return Mind(evaluators.network(agent.network, agent.game), agent.variables, agent.c_puct)


def load_opponent(spec: str, game: Game | None = None, *, seconds: float = 10.0, processes: int = 1) -> Contestant:
    """Makes a player for matches, named as it was typed.

    Args:
      spec: as for `load_player`, or a program of somebody else's, by the language that it speaks: `gtp:COMMAND`,
        `opentafl:COMMAND`, `line:COMMAND`; or a bot of OpenSpiel's: `openspiel:mcts:1000`, `openspiel:minimax:6`.
      game: what it plays; trained agents and a solution know their own.
      seconds: for each answer of a program.
      processes: of a program, for games side by side.

    Raises:
      ValueError: as `load_player`, or an option out of range.
      RunError: as `load_player`.
    """
    language, colon, command = spec.partition(":")
    if colon and language in LANGUAGES:
        return ExternalPlayer(spec, language, command, seconds, processes)
    if language == "openspiel":
        algorithm, _, number = command.partition(":")
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"{spec!r}: openspiel:mcts:SIMULATIONS or openspiel:minimax:PLIES")
        return OpenSpielPlayer(spec, algorithm, int(number))
    return dataclasses.replace(load_player(spec, game), name=spec)


def _is_run(spec: str) -> bool:
    """Whether the spec names a folder, which beats a packaged agent of its name."""
    folder, _, checkpoint = spec.rpartition("@")
    return Path(spec).is_dir() or (bool(folder) and ":" not in checkpoint and Path(folder).is_dir())


def _trained(spec: str, game: Game | None, num_simulations: int, level: str, solver: bool, reuse_tree: bool) -> Player:
    agent = _agent(spec)
    if game not in (None, agent.game):
        raise InputError(f"{spec} was trained on {agent.game}, asked to play {game}")
    if level == "hard":
        return search_player(
            agent.game,
            evaluators.network(agent.network, agent.game),
            agent.variables,
            num_simulations=num_simulations,
            c_puct=agent.c_puct,
            solver=solver,
            reuse_tree=reuse_tree,
            name=with_options(f"network + {num_simulations} simulations", solver=solver, reuse_tree=reuse_tree),
        )
    return network_player(agent.game, agent.network, agent.variables, temperature=1.0 if level == "easy" else 0.0)


def _agent(spec: str) -> Agent:
    return _of_run(*_split(spec)) if _is_run(spec) else load_agent(spec)


def _of_run(folder: str, step: int | None) -> Agent:
    game, config = load_run(folder)
    return Agent(game, config.make_network(), load_variables(folder, step)[1], config.hyper.c_puct)


def _split(spec: str) -> tuple[str, int | None]:
    """The folder, and the checkpoint asked for."""
    folder, at, checkpoint = spec.rpartition("@")
    if not at or Path(spec).is_dir():
        return spec, None
    if checkpoint == "best":
        return folder, Checkpoints(Path(folder) / CHECKPOINTS).best_step()
    if not (checkpoint.isascii() and checkpoint.isdigit()):
        raise InputError(f"{spec!r}: after @ comes best or an iteration, got {checkpoint!r}")
    return folder, int(checkpoint)
