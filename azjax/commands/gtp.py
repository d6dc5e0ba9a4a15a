"""`azjax gtp PLAYER`."""

import dataclasses
import io
import math
import sys
from collections.abc import Callable
from typing import Literal

from azjax.agents import LEVELS, check_for_a_time, check_level, is_trained, load_search_spec, split_level
from azjax.commands.arguments import AgentOptions, parse_with_players, split_simulations
from azjax.core.errors import InputError
from azjax.core.text import whole_number
from azjax.evaluation.searching_players import keeping_trees, several_leaves
from azjax.evaluation.standard_players import num_simulations_of
from azjax.games.game import AnyGame
from azjax.play.analysis import MAX_QUERY, AnalysisEngine
from azjax.play.gtp import GtpEngine
from azjax.play.lines import Engine, read_lines, serve
from azjax.play.ongoing_game import OngoingGame
from azjax.play.opentafl import OpenTaflEngine
from azjax.play.search_pool import MAX_SIMULATIONS, SearchPool


@dataclasses.dataclass(frozen=True)
class GtpOptions(AgentOptions):
    """Runs an agent as an engine on standard input and output.

    Attributes:
      protocol: gtp; opentafl for tafl; or json, which analyzes many positions at once.
      reuse_tree: a search continues in the tree below the moves played.
      seconds: search so long for each move without a clock, in place of the simulations. With json, the longest search
        of a position whose query names no time.
    """

    protocol: Literal["gtp", "opentafl", "json"] = "gtp"
    reuse_tree: bool = True
    seconds: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protocol != "json" and self.seconds is not None and self.num_simulations is not None:
            raise InputError("num_simulations and seconds are two limits of a search: leave out one")
        if self.protocol == "json" and (self.policy or self.seed):
            raise InputError("json goes without --policy and --seed: its searches are AlphaZero's, without draws")
        if self.protocol == "json" and not self.reuse_tree:
            raise InputError("--no-reuse-tree is for games; json searches each position from an empty tree")


def gtp_command(arguments: list[str]) -> None:
    """Answers commands on standard input until the end."""
    options, game, (spec,) = parse_with_players("gtp", 1, GtpOptions(), arguments)
    # Bytes that are no text must not end the conversation.
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if options.protocol == "json":
        _analyze(spec, game, options)
        return
    if options.seconds is not None:
        check_for_a_time(spec, options.policy)
        if whole_number(split_level(spec)[1]) is not None:
            raise InputError(f"{spec} names its simulations, and seconds is another limit of a search: leave out one")
    (player,) = options.players(spec, game, LEVELS[-1:]).values()
    player = dataclasses.replace(keeping_trees(player) if options.reuse_tree else player, name=spec)
    ongoing = OngoingGame(game, player, seed=options.seed, seconds=options.seconds)
    engines: dict[str, Callable[[OngoingGame], Engine]] = {"gtp": GtpEngine, "opentafl": OpenTaflEngine}
    serve(engines[options.protocol](ongoing), read_lines(sys.stdin), sys.stdout)


def _analyze(spec: str, game: AnyGame, options: GtpOptions) -> None:
    spec, options = split_simulations(spec, options)
    agent, level = split_level(spec)
    if level in LEVELS[:-1]:
        raise InputError(f"{spec}: json goes without a level that does not search")
    check_level(spec)
    if not is_trained(agent):
        if options.num_simulations is not None:
            raise InputError(f"num_simulations is for trained agents; {spec} is not one")
        if not spec.startswith("uct:"):
            raise InputError(f"json is for trained agents and uct:SIMULATIONS; {spec} is neither")
        options = dataclasses.replace(options, num_simulations=num_simulations_of(spec))
    search = load_search_spec(spec, game, options.tables)
    policy = several_leaves(search.policy, options.simulations)
    limit = max(MAX_SIMULATIONS, options.simulations)
    pool = SearchPool(policy, search.params, search.hyper, max_simulations=limit)
    seconds = math.inf if options.seconds is None else options.seconds
    name = agent if is_trained(agent) else "random rollouts"
    engine = AnalysisEngine(name, pool, num_simulations=options.simulations, seconds=seconds)
    pool.start()
    try:
        engine.serve(read_lines(sys.stdin, MAX_QUERY), sys.stdout)
    finally:
        pool.close()
