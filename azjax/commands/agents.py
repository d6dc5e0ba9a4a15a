"""`azjax agents` and `azjax agents fetch SOURCE --sha256 HEX`."""

import dataclasses

import tyro
from rich import box
from rich.table import Table

from azjax.agents import stored_agents
from azjax.commands.arguments import first_word, parse
from azjax.commands.console import console, say
from azjax.core.errors import InputError
from azjax.packaged import cache_folder, fetch_agent, game_of_agent, packaged, strength_of


@dataclasses.dataclass(frozen=True)
class AgentsOptions:
    """Lists the agents that come with azjax and those that were fetched; `azjax agents fetch SOURCE` fetches one."""


@dataclasses.dataclass(frozen=True)
class FetchOptions:
    """Fetches an agent from a folder (FOLDER/NAME) or over https (https://HOST/FOLDER/NAME) into the user's cache.

    Attributes:
      sha256: of NAME.npz followed by NAME.md, as `cat NAME.npz NAME.md | sha256sum` prints it.
    """

    sha256: str = tyro.MISSING


def agents_command(arguments: list[str]) -> None:
    """Lists the agents, or fetches one."""
    if not arguments or arguments[0].startswith("-"):
        parse("agents", AgentsOptions(), arguments)
        _list()
        return
    if arguments[0] != "fetch":
        raise InputError(f"azjax agents {arguments[0]}: unknown; available: fetch")
    source, arguments = first_word("agents fetch", "SOURCE", FetchOptions(), arguments[1:])
    options = parse(f"agents fetch {source}", FetchOptions(), arguments)
    folder = fetch_agent(source, options.sha256)
    say(f"{folder.name} is in {folder}; `azjax play {folder.name}` plays against it")


def _list() -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("agent", "game", "strength", "from"):
        table.add_column(column)
    for name in stored_agents():
        try:
            game, strength = game_of_agent(name).name, strength_of(name)
        except InputError as error:
            game, strength = "", str(error)
        table.add_row(name, game, strength, "azjax" if name in packaged() else "the cache")
    console.print(table)
    say(f"the cache is {cache_folder()}")
