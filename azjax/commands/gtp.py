"""`azjax gtp PLAYER`."""

import dataclasses
import io
import sys
from collections.abc import Callable
from typing import Literal

from azjax.agents import LEVELS
from azjax.commands.arguments import AgentOptions, parse_with_players
from azjax.play.gtp import GtpEngine
from azjax.play.lines import Engine, read_lines, serve
from azjax.play.ongoing_game import OngoingGame
from azjax.play.opentafl import OpenTaflEngine


@dataclasses.dataclass(frozen=True)
class GtpOptions(AgentOptions):
    """Runs an agent as an engine of the Go Text Protocol or of OpenTafl's, on standard input and output.

    Attributes:
      protocol: gtp, or opentafl for tafl.
      seconds: search so long for each move without a clock, in place of the simulations.
    """

    protocol: Literal["gtp", "opentafl"] = "gtp"
    seconds: float | None = None


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
