"""`azjax match A B ...`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from azjax.agents import LEVELS, is_trained, load_opponent, load_player, split_level
from azjax.commands.arguments import check_games, check_seed, parse_with_players
from azjax.commands.console import console, progress_bar, say
from azjax.core.errors import InputError
from azjax.core.files import check_can_write
from azjax.core.signals import exits_by_signals
from azjax.evaluation import (
    GameRecord,
    MatchResult,
    SequentialTest,
    play_round_robin,
    rate,
    records_of,
    save_games,
)
from azjax.evaluation.engine_protocols import ENGINE_PROTOCOLS
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.matches import Contestant
from azjax.evaluation.pool import Pool
from azjax.evaluation.ratings import pairings_of
from azjax.games.game import AnyGame
from azjax.parallel.sharding import num_cores, offer_cpu_devices
from azjax.report import check_picture, draw_ratings, match_table, ratings_table
from azjax.search.budget import check_seconds
from azjax.search.kinds import check_kind

_MANY_FORFEITS = 0.02  # of the games
_SOME_GAMES = 10  # that are repeated for a reason
_SEARCH = ("policy", "solver", "reuse_tree", "leaves_per_step", "tables")


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """Plays matches between players. Each moves first in half of the games. Three or more players are rated.

    Attributes:
      games: games of each pair of players, an even number.
      opening_plies: random moves at the start of a game. The two games of a pair start with the same ones.
      judge: a player such as brandub:400 or optimal. Openings are drawn again unless its value is -balance..balance.
      balance: see `judge`; 0..1.
      sprt: two differences in Elo, such as 0 50. A match stops when one of them is decided (see
        `azjax.evaluation.SequentialTest`).
      policy: the search of trained agents: `alphazero`, `gumbel` or `uct`. Default: that of the training of a run, and
        `alphazero` for agents that come with azjax and for searches for a time.
      solver: the searches of trained agents prove wins, losses and draws.
      reuse_tree: the searches of trained agents continue in the tree below the moves played.
      leaves_per_step: positions that a search of a trained agent evaluates at once; it divides its simulations. With
        the default a search for a time chooses the number by its seconds.
      tables: exact values for the leaves of their searches: a file of `azjax solve GAME --output FILE`.
      anchor: the player whose rating is 0. Default: the mean of all ratings is 0.
      seconds: for each move, of a program such as gtp:COMMAND (10 by default) and of trained agents without a number of
        simulations, which then search for so long, one position after another. An agent has seconds of its own by its
        name: brandub:0.5s.
      processes: processes of a program, each of which plays a game.
      seed: seed of all random numbers.
      records: save the games to this new file (.jsonl), each batch when it has ended.
      pool: a file of games (.jsonl) that other matches wrote, or a new one. Games that it lacks are played and added to
        it, and all its players are rated.
      plot: draw the ratings to this file.
    """

    games: int = 1000
    opening_plies: int = 0
    judge: str | None = None
    balance: float = 0.3
    sprt: tuple[float, float] | None = None
    policy: str | None = None
    solver: bool = False
    reuse_tree: bool = False
    leaves_per_step: int = 1
    tables: Path | None = None
    anchor: str | None = None
    seconds: float | None = None
    processes: int = 1
    seed: int = 0
    records: Path | None = None
    pool: Path | None = None
    plot: Path | None = None

    def __post_init__(self) -> None:
        check_games(self.games)
        check_seed(self.seed)
        if self.seconds is not None:
            check_seconds(self.seconds)
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, got {self.processes}")
        if self.policy is not None:
            check_kind(self.policy)
        if self.pool is not None and self.sprt is not None:
            raise InputError("sprt is for a match of its own, not for a pool")
        _ = self.sequential_test

    @property
    def sequential_test(self) -> SequentialTest | None:
        return None if self.sprt is None else SequentialTest(*self.sprt)


def match_command(arguments: list[str]) -> None:
    """Plays every two players against each other."""
    offer_cpu_devices(num_cores())  # for searches without a network, which run on one core of each
    options, game, specs = parse_with_players("match", None, MatchOptions(), arguments)
    _check_files(options)
    players = _load_players(options, game, specs)
    pool = None if options.pool is None else Pool(options.pool, game)
    others = {record.opening_plies for record in pool.records} - {options.opening_plies} if pool else ()
    if others:
        plies = " and ".join(f"{number:,}" for number in sorted(others))
        say(
            f"warning: {options.pool} has games after {plies} random plies, and this match begins after "
            f"{options.opening_plies:,}; all of them count alike"
        )
    names = {spec: player.name for spec, player in zip(specs, players, strict=True)}
    rated = [*names.values(), *(pool.players if pool else ())]
    anchor = names.get(options.anchor or "", options.anchor)
    if anchor not in (None, *rated):
        raise InputError(f"unknown anchor {anchor!r}; players: {'; '.join(dict.fromkeys(rated))}")
    if len({*rated}) < 3 and (options.plot is not None or anchor is not None):
        raise InputError("anchor and plot are for the ratings of three players or more")
    judge = None if options.judge is None else load_player(options.judge, game)
    records: list[GameRecord] = []
    num_kept = 0

    def keep(match: MatchResult, since: int) -> None:
        """Saves the games of a batch, before anything that may fail."""
        nonlocal num_kept
        if pool is not None:
            pool.add(match, since)
        if options.records is not None:
            records.extend(records_of(game, match, since))
            save_games(options.records, records)
        num_kept += match.games - since

    try:
        with exits_by_signals(), progress_bar("games") as progress:
            task = progress.add_task("playing", total=None)
            matches = play_round_robin(
                game,
                players,
                options.games,
                jax.random.key(options.seed),
                opening_plies=options.opening_plies,
                judge=judge,
                balance=options.balance,
                sequential_test=options.sequential_test,
                played=pool.games_between if pool else None,
                on_batch=keep,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
    except BaseException:
        files = [str(path) for path in (options.records, options.pool) if path is not None]
        if num_kept and files:
            say(f"{num_kept:,} games that were finished are in {' and '.join(files)}")
        raise
    _print_matches(options, game, matches)
    if options.records is not None and matches:
        say(f"games saved to {options.records}")
    if options.pool is not None:
        pool = Pool(options.pool, game)  # with what other matches added meanwhile
    pairings = [each for each in (pool.pairings() if pool else pairings_of(matches)) if each[2].games]
    counted = {name for *pair, _ in pairings for name in pair}
    if len({*rated}) > 2 and (unrated := sorted({*rated} - counted)):
        say(f"not rated, since none of their games counts: {'; '.join(unrated)}")
    if len(counted) > 2:
        ratings = rate(pairings, anchor=anchor if anchor in counted else None)
        console.print(ratings_table(game, ratings))
        if options.plot is not None:
            draw_ratings(game, ratings, options.plot)
            say(f"drawn to {options.plot}")
    if pool:
        say(f"{options.pool} has {len(pool.records):,} games")


def _load_players(options: MatchOptions, game: AnyGame, specs: Sequence[str]) -> list[Contestant]:
    """The players; refuses options that none of them has."""
    search: dict[str, Any] = {name: getattr(options, name) for name in _SEARCH}
    given = [name for name in _SEARCH if search[name] != getattr(MatchOptions(), name)]
    if given and not any(is_trained(agent) and level not in LEVELS[:-1] for agent, level in map(split_level, specs)):
        raise InputError(f"{', '.join(given)}: for searches of trained agents, and none of the players has one")
    if options.judge is None and options.balance != MatchOptions().balance:
        raise InputError("balance: for openings that a --judge judges, and there is none")
    players = [
        load_opponent(spec, game, seconds=options.seconds, processes=options.processes, seed=options.seed, **search)
        for spec in specs
    ]
    programs = [player for player in players if isinstance(player, ExternalPlayer)]
    if options.processes > 1 and not programs:
        raise InputError("processes: for programs such as gtp:COMMAND, and none of the players is one")
    follow = [is_trained(agent) and level in ("", LEVELS[-1]) for agent, level in map(split_level, specs)]
    if options.seconds is not None and not programs and not any(follow):
        raise InputError(
            "seconds: for programs, and for trained agents without a number of simulations; none of the players is one"
        )
    for player in programs:
        if rules := ENGINE_PROTOCOLS[player.protocol].other_rules(game):
            say(f"other rules: {rules}")
    return players


def _print_matches(options: MatchOptions, game: AnyGame, matches: Sequence[MatchResult]) -> None:
    """The results, and warnings where they say less than they seem to."""
    if matches:
        console.print(match_table(game, matches))
    else:
        say(f"nothing to play: {options.pool} has at least {options.games:,} games of each two players")
    if options.judge is not None:
        say(
            f"openings: {options.opening_plies} random plies, {options.balance:g} or less for a side by {options.judge}"
        )
    for match in matches:
        if options.sprt is not None and match.accepted is None:
            low, high = options.sprt
            say(f"{match.first} against {match.second}: undecided between {low:+g} and {high:+g} Elo")
        if match.games >= _SOME_GAMES and match.num_different <= match.games / 4:
            say(
                f"warning: of the {match.games:,} games of {match.first} against {match.second} "
                f"{match.num_different:,} differ, "
                "so that the intervals are too narrow; --opening-plies makes games differ"
            )
        if match.num_forfeits > _MANY_FORFEITS * match.games:
            say(
                f"warning: {match.num_forfeits:,} of the {match.games:,} games of {match.first} against {match.second} "
                "were forfeited, so that the score says little about strength"
            )


def _check_files(options: MatchOptions) -> None:
    """Raises InputError, before games are played, for files that cannot be written after them."""
    for path in (options.records, options.pool, options.plot):
        if path is not None:
            check_can_write(path)
    if options.records is not None and options.records.is_file() and options.records.stat().st_size:
        raise InputError(f"{options.records} exists: name a new file by --records, or add to its games by --pool")
    if options.records and options.pool and options.records.resolve() == options.pool.resolve():
        raise InputError(
            f"--pool {options.pool} keeps its games itself: name another file by --records, or leave it out"
        )
    if options.plot is not None:
        check_picture(options.plot)
