"""`azjax play PLAYER` for people, and `azjax gtp PLAYER` for programs."""

import dataclasses
import io
import sys
from collections.abc import Callable
from typing import Literal

from azjax.agents import LEVELS, is_trained, load_search_spec
from azjax.commands.arguments import AgentOptions, parse_with_players
from azjax.commands.console import console
from azjax.core.errors import InputError
from azjax.evaluation.standard_players import several_leaves
from azjax.games.game import AnyGame
from azjax.play.gtp import GtpEngine
from azjax.play.lines import Engine, read_lines, serve
from azjax.play.ongoing_game import OngoingGame
from azjax.play.opentafl import OpenTaflEngine
from azjax.play.terminal import play_in_terminal


@dataclasses.dataclass(frozen=True)
class PlayOptions(AgentOptions):
    """Plays against an agent, in the terminal or on a page.

    Attributes:
      web: serve a page for the browser, where everything else is chosen (needs the extra `play`).
      host: address of the page. At 127.0.0.1 only this machine reaches it.
      port: port of the page; 0 for any free one.
      level: easy draws from the network's policy, medium takes its best move, hard searches. Default: asked.
      start: who moves first. Default: asked.
    """

    web: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    level: Literal["easy", "medium", "hard"] | None = None
    start: Literal["me", "agent"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.port < 2**16:
            raise InputError(f"port must be 0..65535, got {self.port}")
        if self.web and (self.level or self.start or self.reuse_tree):
            raise InputError(
                "--web goes without --level, --start and --reuse-tree: level and start are chosen on the page, "
                "and its searches start from an empty tree"
            )


@dataclasses.dataclass(frozen=True)
class GtpOptions(AgentOptions):
    """Runs an agent as an engine of the Go Text Protocol or of OpenTafl's, on standard input and output.

    Attributes:
      protocol: gtp, or opentafl for brandub.
      seconds: search so long for each move without a clock, in place of the simulations.
    """

    protocol: Literal["gtp", "opentafl"] = "gtp"
    seconds: float | None = None


def play_command(arguments: list[str]) -> None:
    """Plays games in the terminal, or serves the page."""
    options, game, (spec,) = parse_with_players("play", 1, PlayOptions(), arguments)
    if options.level is not None and not is_trained(spec):
        raise InputError(f"level is for trained agents; {spec} has but one")
    if options.web:
        _serve_page(spec, game, options)
        return
    play_in_terminal(
        game,
        options.players(spec, game, LEVELS if is_trained(spec) else LEVELS[-1:]),
        console=console,
        level=options.level,
        human_seat=None if options.start is None else ("me", "agent").index(options.start),
        seed=options.seed,
    )


def gtp_command(arguments: list[str]) -> None:
    """Answers commands on standard input until the end."""
    options, game, (spec,) = parse_with_players("gtp", 1, GtpOptions(), arguments)
    (player,) = options.players(spec, game, LEVELS[-1:]).values()
    player = dataclasses.replace(player, name=spec)
    ongoing = OngoingGame(game, player, seed=options.seed, seconds=options.seconds)
    engines: dict[str, Callable[[OngoingGame], Engine]] = {"gtp": GtpEngine, "opentafl": OpenTaflEngine}
    # Bytes that are no text must not end the conversation.
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    serve(engines[options.protocol](ongoing), read_lines(sys.stdin), sys.stdout)


def _serve_page(spec: str, game: AnyGame, options: PlayOptions) -> None:
    try:
        from azjax.play.server import serve as serve_page
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'azjax[play]'") from error
    search = load_search_spec(spec, game)
    serve_page(
        game,
        spec,
        search._replace(policy=several_leaves(search.policy, options.num_simulations)),
        options.players(spec, game, LEVELS[:-1] if is_trained(spec) else LEVELS[-1:]),
        num_simulations=options.num_simulations,
        host=options.host,
        port=options.port,
        console=console,
    )
