"""Players from specs that a user types: a run folder, a packaged agent, or a name such as `random` or `uct:1000`."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

from jaxtyping import PyTree

from azjax.core.errors import InputError
from azjax.core.proposals import did_you_mean
from azjax.core.text import seconds_of, whole_number
from azjax.evaluation import Player, game_of_table, load_table, network_player, optimal_player, policy_player
from azjax.evaluation.engine_protocols import ENGINE_PROTOCOLS
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.matches import Contestant
from azjax.evaluation.openspiel import OPENSPIEL, OpenSpielPlayer
from azjax.evaluation.standard_players import (
    PLAYER_NAMES,
    SEARCH_DEFAULTS,
    SearchOptions,
    is_player_name,
    name_with_options,
    named_player,
)
from azjax.evaluation.tables import ExactLeaves
from azjax.evaluation.timed import TimedPlayer
from azjax.games.arguments import check_is_game
from azjax.games.game import AnyGame
from azjax.packaged import Agent, fetched, game_of_agent, load_agent, packaged, strength_of
from azjax.runs import Checkpoints, load_run, load_variables
from azjax.runs.run_folder import CHECKPOINTS
from azjax.search import AlphaZero, SearchHyper, SearchPolicy, evaluators, make_policy
from azjax.search.kinds import check_kind

LEVELS = ("beginner", "easy", "medium", "hard")
TEMPERATURES = {"beginner": 4.0, "easy": 1.0, "medium": 0.0}
"""Of the draw from the network's policy, by level."""
_PROGRAM_SECONDS = 10.0  # of a move, by default
NUM_SIMULATIONS = 64

_SOLVED = "optimal:"
_FORMS = "; ".join(
    [
        "a run folder (RUN, RUN@best or RUN@ITERATION)",
        f"a packaged agent ({', '.join(packaged())}) or one that `azjax agents fetch` fetched",
        "either with :LEVEL or :SIMULATIONS, in matches also :SECONDS, such as :0.5s",
        "optimal:FILE (of `azjax solve --output FILE`)",
        f"with a game {', '.join(PLAYER_NAMES)}",
        f"in matches an external program by its protocol ({', '.join(f'{name}:COMMAND' for name in ENGINE_PROTOCOLS)})"
        ", or a bot of OpenSpiel (openspiel:mcts:SIMULATIONS, openspiel:minimax:PLIES)",
    ]
)


def stored_agents() -> list[str]:
    """The names of the packaged agents, then of the fetched ones."""
    return [*packaged(), *fetched()]


def is_trained(spec: str) -> bool:
    """Whether the spec names a trained agent, which has all levels."""
    return _is_run(spec) or spec in stored_agents()


def split_level(spec: str) -> tuple[str, str]:
    """The spec of a trained agent, and the level or simulations after its colon; other specs unchanged, and nothing."""
    agent, _, level = spec.rpartition(":")
    return (agent, level) if level and not is_trained(spec) and is_trained(agent) else (spec, "")


def check_level(spec: str) -> None:
    """Raises InputError for a trained agent with something else after the colon than a level or simulations."""
    agent, suffix = split_level(spec)
    if suffix and suffix not in LEVELS:
        _simulations(agent, suffix)


def _simulations(agent: str, suffix: str) -> int:
    """The number after the colon of `agent:suffix`."""
    number = whole_number(suffix)
    if number is None and seconds_of(suffix) is not None:
        raise InputError(f"{agent}:{suffix}: seconds after the colon are for matches; gtp has --seconds")
    if number is None:
        raise InputError(f"{agent}:{suffix}: after the colon comes a number of simulations or {', '.join(LEVELS)}")
    return number


def every_checkpoint(spec: str) -> list[str]:
    """RUN@all as a spec for each checkpoint of the run; any other spec unchanged.

    Raises:
      InputError: the run has no checkpoints.
    """
    folder, _, which = spec.rpartition("@")
    if which != "all" or not Path(folder).is_dir():
        return [spec]
    steps = Checkpoints(Path(folder) / CHECKPOINTS).steps()
    if not steps:
        raise InputError(f"{folder} has no checkpoints")
    return [f"{folder}@{step}" for step in steps]


def game_of(spec: str) -> AnyGame | None:
    """The game of a trained agent or of a file of exact values; None for other specs.

    Raises:
      RunError: a folder that is no run's.
      InputError: a file without exact values.
    """
    spec, _ = split_level(spec)
    if _is_run(spec):
        return load_run(_split(spec)[0])[0]
    if spec in stored_agents():
        return game_of_agent(spec)
    return game_of_table(_table_of(spec)) if spec.startswith(_SOLVED) else None


def _table_of(spec: str) -> str:
    """The file of `optimal:FILE`."""
    path = spec.removeprefix(_SOLVED)
    if not path:
        raise InputError(f"{spec} needs a file of `azjax solve --output FILE` after the colon")
    return path


def load_player(
    spec: str,
    game: AnyGame | None = None,
    *,
    num_simulations: int | None = None,
    level: str = "hard",
    solver: bool = False,
    reuse_tree: bool = False,
    leaves_per_step: int = 1,
    policy: str | None = None,
    tables: str | Path | None = None,
    agent: Agent | None = None,
) -> Player:
    """Makes a player.

    Args:
      spec: a run folder (`runs/tictactoe`; a certain checkpoint with `@best` or `@120`, else the newest sound one), or
        the name of a packaged agent (`tictactoe`), either with a level or the simulations of its search after a colon
        (`tictactoe:easy`, `tictactoe:400`), which override the options; `random`; `optimal` (which solves the game
        first); `optimal:FILE` (which reads a solution, or endings); or a search without a network: `uct:1000`, or with
        equal priors `uniform:64`, `rollout:1000`, `random:64`.
      game: the game to play; trained agents and solutions have their own. An agent also plays a game of the same name
        and encoding by other rules.
      num_simulations: of a trained agent's search at level `hard`, the only one that searches; 64 by default.
      level: of a trained agent: `beginner` and `easy` draw from the network's policy at temperatures 4 and 1, `medium`
        plays its best move, `hard` searches.
      solver: the search proves wins, losses and draws (a trained agent's at level `hard`).
      reuse_tree: the search keeps the tree below the moves that are played (a trained agent's at level `hard`).
      leaves_per_step: of a trained agent's search at level `hard`, see `azjax.search.SearchPolicy`.
      policy: of a trained agent at level `hard`: `alphazero`, `gumbel` or `uct`; that of its training if None.
      tables: of a trained agent at level `hard`: a file of exact values for the leaves of its search, see
        `azjax.evaluation.tables`.
      agent: the trained agent of `spec`, where it was read before (`load_trained`).

    Raises:
      InputError: an unknown spec or level, no game, another game than the agent's, or an option of a search that the
        player of this spec does not have.
      RunError: a folder that is no run's, or one without a sound checkpoint.
    """
    check_is_game(game)
    if not isinstance(spec, str):
        raise InputError(f"a player is loaded by its name, a text such as 'tictactoe'; got {spec!r}")
    if policy is not None:
        check_kind(policy)
    search = SearchOptions(
        policy=policy, solver=solver, reuse_tree=reuse_tree, leaves_per_step=leaves_per_step, tables=tables
    )
    given = [option for option, value in search.items() if value != SEARCH_DEFAULTS[option]]  # type: ignore[literal-required]
    spec, suffix = split_level(spec)
    for option in [*given, *["num_simulations"] * (num_simulations is not None)]:
        if option not in ("solver", "reuse_tree") and not is_trained(spec):
            raise InputError(f"{option} is for trained agents; {spec} is not one")
    if suffix in LEVELS:
        level = suffix
    elif suffix:
        num_simulations = _simulations(spec, suffix)
    if level not in LEVELS:
        raise InputError(f"unknown level {level!r}; available: {', '.join(LEVELS)}")
    if given and level != LEVELS[-1]:
        raise InputError(f"{given[0]} is for players that search; {spec}:{level} does not")
    num_simulations = NUM_SIMULATIONS if num_simulations is None else num_simulations
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    if is_trained(spec):
        agent = _for_game(spec, game, agent)
        player = _trained(agent, num_simulations, level, search)
        strength = {} if _is_run(spec) else {"strength": strength_of(spec)}
        return dataclasses.replace(player, about={"agent": spec, **strength})
    if spec.startswith(_SOLVED):
        if solver or reuse_tree:
            raise InputError(f"solver and reuse_tree are for players that search; {spec} does not")
        return optimal_player(load_table(_table_of(spec), game))
    if not is_player_name(spec):
        name = spec.partition(":")[0]
        if is_trained(name):
            after = spec.partition(":")[2]
            raise InputError(f"{name}: after the colon comes a number or {', '.join(LEVELS)}, got {after!r}")
        if name in (*ENGINE_PROTOCOLS, OPENSPIEL):
            raise InputError(f"{spec} plays in matches alone, and there it needs --game GAME")
        if "/" in name:
            raise InputError(f"there is no run folder {name}")
        raise InputError(f"unknown player {spec!r}{did_you_mean(name, stored_agents())}; players: {_FORMS}")
    if game is None:
        raise InputError(f"a player by name needs a game too: add --game GAME to {spec}")
    return named_player(spec, game, solver=solver, reuse_tree=reuse_tree)


def load_trained(spec: str) -> Agent:
    """The agent in a run folder (also RUN@best, RUN@ITERATION) or a packaged agent, without a level.

    Raises:
      InputError: neither of these, or a damaged file.
      RunError: a folder that is no run's, or one without a sound checkpoint.
    """
    if not is_trained(spec):
        names = ", ".join(stored_agents())
        raise InputError(f"{spec!r} is no trained agent, such as a run folder, RUN@best, or one of {names}")
    if not _is_run(spec):
        return load_agent(spec)
    folder, step = _split(spec)
    game, config = load_run(folder)
    variables = load_variables(folder, step)[1]
    hyper = SearchHyper(
        c_puct=config.hyper.c_puct, value_scale=config.value_scale, rescale_values=config.rescale_values
    )
    return Agent(
        game,
        config.make_network(game),
        variables,
        hyper,
        policy=config.policy,
        selection=config.selection,
        with_error=config.uncertainty_weighting,
        max_num_considered_actions=config.max_num_considered_actions,
    )


class SearchSpec(NamedTuple):
    """A search that belongs to a player.

    Attributes:
      policy: the search.
      params: what its evaluator reads.
      hyper: its numbers.
      exact: the optimal player of its table of values, if it has one.
    """

    policy: SearchPolicy
    params: PyTree
    hyper: SearchHyper
    exact: Player | None = None


def _with_tables(search: SearchSpec, path: str | Path) -> SearchSpec:
    """The search with the exact values of a file for its leaves.

    Raises:
      InputError: the file is missing or damaged, or belongs to other rules.
    """
    policy = search.policy
    exact = optimal_player(load_table(path, policy.game))
    evaluator = ExactLeaves(policy.evaluator, policy.game)
    return SearchSpec(
        dataclasses.replace(policy, evaluator=evaluator), (search.params, exact.params), search.hyper, exact
    )


def load_search_spec(spec: str, game: AnyGame, tables: str | Path | None = None) -> SearchSpec:
    """A search with the network of a trained agent, or with random rollouts for every other player.

    It is AlphaZero's, which can go on step by step, also for an agent of Gumbel AlphaZero.

    Args:
      spec: as for `load_player`.
      game: the game to search.
      tables: a file of exact values for the leaves.

    Raises:
      InputError, RunError: as `load_player`.
    """
    spec, _ = split_level(spec)
    if not is_trained(spec):
        search = SearchSpec(AlphaZero(game, evaluators.rollout(game), NUM_SIMULATIONS), None, SearchHyper())
    else:
        agent = _for_game(spec, game)
        policy = make_policy("alphazero", agent.game, agent.evaluator, NUM_SIMULATIONS, selection=agent.selection)
        search = SearchSpec(policy, agent.variables, agent.hyper)
    return search if tables is None else _with_tables(search, tables)


def load_opponent(
    spec: str,
    game: AnyGame | None = None,
    *,
    seconds: float | None = None,
    processes: int = 1,
    seed: int = 0,
    **search: Unpack[SearchOptions],
) -> Contestant:
    """Makes a player for matches. Its name is its spec, with those options of its search that are not the default.

    Args:
      spec: as for `load_player`, and a trained agent also with the seconds of its search (`brandub:0.5s`); or an
        external program by its protocol: `gtp:COMMAND`, `opentafl:COMMAND`,
        `santorini:COMMAND`, `line:COMMAND`; or a bot of OpenSpiel: `openspiel:mcts:1000`, `openspiel:minimax:6`.
      game: the game to play; trained agents and solutions have their own.
      seconds: for each move: of a program, 10 by default, and of a trained agent at level `hard` without a number of
        simulations or seconds of its own, which then searches for so long.
      processes: of a program, for games side by side.
      seed: of a bot of OpenSpiel.
      **search: `policy`, `solver`, `reuse_tree`, `leaves_per_step` and `tables` of a trained agent, as for
        `load_player`; other players ignore them.

    Raises:
      InputError: as `load_player`, an option out of range, or Gumbel's search with `seconds`.
      RunError: as `load_player`.
    """
    kind, colon, command = spec.partition(":")
    if colon and kind in ENGINE_PROTOCOLS:
        allowed = _PROGRAM_SECONDS if seconds is None else seconds
        name = spec if allowed == _PROGRAM_SECONDS else f"{spec}, {allowed:g} s"
        return ExternalPlayer(name, kind, command, allowed, processes)
    if kind == OPENSPIEL:
        algorithm, _, text = command.partition(":")
        number = whole_number(text)
        if number is None:
            raise InputError(f"{spec!r}: openspiel:mcts:SIMULATIONS or openspiel:minimax:PLIES")
        return OpenSpielPlayer(spec, algorithm, number, seed)
    agent, level = split_level(spec)
    if not is_trained(agent) or level in LEVELS[:-1]:
        return dataclasses.replace(load_player(spec, game), name=spec)
    own_seconds = seconds_of(level)
    if own_seconds is not None:
        spec, level, seconds = agent, "", own_seconds
    name = name_with_options(spec, **search)
    if seconds is None or level not in ("", "hard"):
        return dataclasses.replace(load_player(spec, game, **search), name=name)
    check_for_a_time(spec, search.get("policy"))
    # The number of simulations is not used; `leaves_per_step` has to divide it.
    player = load_player(spec, game, num_simulations=search.get("leaves_per_step", 1), **search)
    return TimedPlayer(f"{name}, {seconds:g} s", player, seconds)


def check_for_a_time(spec: str, policy: str | None) -> None:
    """Refuses the policy that a search cannot have for a time."""
    if policy == "gumbel":
        raise InputError(f"{spec}: a search for a time goes without Gumbel's policy")


def _is_run(spec: str) -> bool:
    """Whether the spec names a folder, which takes precedence over a packaged agent of the same name."""
    folder, _, checkpoint = spec.rpartition("@")
    # Not `Path.is_dir`, which raises for a name that is too long.
    return os.path.isdir(spec) or (bool(folder) and ":" not in checkpoint and os.path.isdir(folder))


def _trained(agent: Agent, num_simulations: int, level: str, search: SearchOptions) -> Player:
    if level != "hard":
        return network_player(agent.game, agent.network, agent.variables, temperature=TEMPERATURES[level])
    kind = search["policy"] or agent.policy
    selection = agent.selection if kind == "alphazero" else "puct"
    options: dict[str, Any] = {"selection": selection}
    options |= {"solver": search["solver"], "leaves_per_step": search["leaves_per_step"]}
    if kind == "gumbel":
        options["max_num_considered_actions"] = agent.max_num_considered_actions
    policy = make_policy(kind, agent.game, agent.evaluator, num_simulations, **options)
    made = SearchSpec(policy, agent.variables, agent.hyper)
    made = made if search["tables"] is None else _with_tables(made, search["tables"])
    return policy_player(
        made.policy,
        made.params,
        hyper=made.hyper,
        reuse_tree=search["reuse_tree"],
        name=name_with_options(f"network + {num_simulations} simulations", **search),
    )


def _for_game(spec: str, game: AnyGame | None, agent: Agent | None = None) -> Agent:
    """The trained agent, to play `game`, which may have other rules but has its encoding; its own game if None."""
    agent = load_trained(spec) if agent is None else agent
    if game is None:
        return agent
    own, wanted = ((rules.name, rules.observation_shape, rules.num_actions) for rules in (agent.game, game))
    if own != wanted:
        raise InputError(f"{spec} was trained on {agent.game} and cannot play {game}")
    return dataclasses.replace(agent, game=game)


def _split(spec: str) -> tuple[str, int | Literal["best"] | None]:
    """The folder, and the checkpoint as for `load_state`."""
    folder, at, checkpoint = spec.rpartition("@")
    if not at or Path(spec).is_dir():
        return spec, None
    if checkpoint == "best":
        return folder, "best"
    step = whole_number(checkpoint)
    if step is None:
        raise InputError(f"{spec!r}: after @ comes best or an iteration, got {checkpoint!r}")
    return folder, step
