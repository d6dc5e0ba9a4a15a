"""`azjax play PLAYER`."""

import dataclasses
import itertools
import shlex
from pathlib import Path
from typing import Literal

from rich.progress import track

from azjax.agents import LEVELS, check_level, is_trained, load_player, load_search_spec, split_level
from azjax.commands.arguments import AgentOptions, parse_with_players, split_simulations
from azjax.commands.console import console
from azjax.core.errors import InputError
from azjax.evaluation import iterate_games
from azjax.evaluation.searching_players import keeping_trees, several_leaves
from azjax.evaluation.standard_players import player_facts, search_in_words
from azjax.games.game import AnyGame
from azjax.packaged import levels_of
from azjax.play.book import Book
from azjax.play.exhibition import export_page
from azjax.play.search_pool import SearchPool
from azjax.play.session import PlaySession
from azjax.play.terminal import play_in_terminal
from azjax.runs.ladder_games import ladder_games


@dataclasses.dataclass(frozen=True)
class PlayOptions(AgentOptions):
    """Plays against an agent, in the terminal or on a page.

    Attributes:
      web: serve a page for the browser, where everything else is chosen (needs the extra `play`).
      export: write the page to this new folder instead, for any web server: the agent then plays in the browser.
      host: address of the page. At 127.0.0.1 only this machine reaches it.
      port: port of the page; 0 for any free one.
      book: a file of games, as `azjax match --records` writes it, or a run, for the games of its ladder: the page shows
        which moves were played in a position, and how these games ended.
      reuse_tree: in the terminal a search continues in the tree below the moves played.
      level: beginner and easy draw from the network's policy, at temperatures 4 and 1, medium takes its best move, hard
        searches. Default: asked.
      start: who moves first. Default: asked.
    """

    web: bool = False
    export: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    book: Path | None = None
    reuse_tree: bool = True
    level: Literal["beginner", "easy", "medium", "hard"] | None = None
    start: Literal["me", "agent"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.port < 2**16:
            raise InputError(f"port must be 0..65535, got {self.port}")

        usual = (PlayOptions.host, PlayOptions.port)
        if (self.host, self.port) != usual and not self.web:
            raise InputError("--host and --port are for the page: add --web")
        if self.book is not None and not self.web:
            raise InputError("--book is for the page: add --web")
        if self.web and self.export is not None:
            raise InputError("--web and --export are two ways to show the page: choose one")
        on_page = self.web or self.export is not None
        if on_page and (self.level or self.start or self.policy or self.seed):
            raise InputError(
                "a page goes without --level, --start, --policy and --seed: level and start are chosen on it, its "
                "searches are AlphaZero's, and its draws differ from game to game"
            )
        if on_page and not self.reuse_tree:
            raise InputError("--no-reuse-tree is for the terminal; a page searches each position from an empty tree")


def play_command(arguments: list[str]) -> None:
    """Plays games in the terminal, or serves the page."""
    options, game, (spec,) = parse_with_players("play", 1, PlayOptions(), arguments)
    on_page, typed = options.web or options.export is not None, spec
    spec, options = split_simulations(spec, options)
    if spec != typed and not on_page:
        options = dataclasses.replace(options, level=options.level or "hard")
    agent, level = split_level(spec)
    check_level(spec)
    if level and (options.level or on_page):
        where = "--level" if options.level else "the page"
        raise InputError(f"{spec}: the level is chosen by {where}; name {agent} or {agent}:SIMULATIONS")
    if options.level is not None and not is_trained(spec):
        raise InputError(f"level is for trained agents; {spec} has only one")
    if options.level is not None:
        options.check_level(f"{spec}:{options.level}")
    if options.web:
        _serve_page(spec, game, options)
        return
    if options.export is not None:
        _export_page(spec, game, options.export, options)
        return
    players = options.players(spec, game, LEVELS if is_trained(spec) else LEVELS[-1:])
    if options.reuse_tree:
        players = {level: keeping_trees(player) for level, player in players.items()}
    play_in_terminal(
        game,
        players,
        console=console,
        level=options.level,
        human_seat=None if options.start is None else ("me", "agent").index(options.start),
        seed=options.seed,
    )


def _serve_page(spec: str, game: AnyGame, options: PlayOptions) -> None:
    try:
        from azjax.play.server import serve
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'azjax[play]'") from error
    search = load_search_spec(spec, game, options.tables)
    players = options.players(spec, game, LEVELS if is_trained(spec) else LEVELS[-1:])
    facts = player_facts(players[LEVELS[-1]])
    exact = players[LEVELS[-1]] if split_level(spec)[0].partition(":")[0] == "optimal" else search.exact
    if is_trained(spec):
        del players[LEVELS[-1]]  # the page runs its own searches
        facts["search"] = search_in_words(search.policy, options.simulations)
    serve(
        game,
        spec,
        search._replace(policy=several_leaves(search.policy, options.simulations)),
        players,
        facts=_shown(spec, facts),
        book=None if options.book is None else _read_book(options.book, game),
        exact=exact,
        num_simulations=options.simulations,
        host=options.host,
        port=options.port,
        console=console,
    )


def _export_page(spec: str, game: AnyGame, folder: Path, options: PlayOptions) -> None:
    if not is_trained(spec):
        raise InputError(f"--export is for trained agents; {spec} is not one")
    search = load_search_spec(spec, game, options.tables)
    facts = player_facts(load_player(spec, game))
    facts["search"] = search_in_words(search.policy, options.simulations)
    pool = SearchPool(search.policy, search.params, search.hyper)
    session = PlaySession(game, spec, pool, {}, None, options.simulations, _shown(spec, facts))
    with console.status("writing the page") as status:
        for part in export_page(session, search, folder):
            status.update(f"writing {part}")
    quoted = shlex.quote(str(folder))
    console.print(
        f"written to {folder}; any web server shows it, such as: python -m http.server --directory {quoted}",
        soft_wrap=True,
    )


def _read_book(path: Path, game: AnyGame) -> Book:
    files = [path]
    if path.is_dir() and not (files := ladder_games(path)):
        raise InputError(f"{path} holds no games of a ladder: a run with --ladder-every keeps them")
    records = itertools.chain.from_iterable(iterate_games(file, game) for file in files)
    lines = sum(file.read_bytes().count(b"\n") for file in files if file.is_file())
    book = Book(game, track(records, "reading the book", total=lines, console=console, transient=True))
    if not book.games:
        raise InputError(f"{path} holds no finished game")
    return book


def _shown(spec: str, facts: dict[str, str]) -> dict[str, str]:
    """The facts that the page shows: of the network the first line, its kind, and the last, its size."""
    shown: dict[str, str] = {label: facts[label] for label in ("agent", "strength", "search") if label in facts}
    name, _ = split_level(spec)
    if "strength" in facts and (levels := levels_of(name)):
        shown["levels"] = levels
    lines = facts.get("network", "").splitlines()
    return shown | ({"network": f"{lines[0]}, {lines[-1].strip()}"} if lines else {})
