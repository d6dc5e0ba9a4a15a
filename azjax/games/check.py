"""`check_game`: tests the laws of a game on positions of random games, and says what the page will lack."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from azjax.core.errors import InputError, LawError
from azjax.core.source import source_name
from azjax.core.whole_numbers import whole
from azjax.games.fact_laws import check_facts, check_types
from azjax.games.game import AnyGame, Game, S, random_legal_action
from azjax.games.host_laws import check_on_host
from azjax.games.laws import LAWS, hold, in_method, state_at
from azjax.games.pictures import has_picture
from azjax.games.protocols import BoardGame, CellGame, DrawableGame, EditableGame, TextGame
from azjax.games.registry import make

_ROUNDING = 1e-6  # of the sum of a game's rewards
_MOST_GAMES = 65_536


@dataclasses.dataclass(frozen=True)
class CheckedGame:
    """A game that keeps every law. `str` makes a summary for people.

    Attributes:
      name: of the game.
      games: random games that were played.
      positions: in these games.
      plies: of the longest of them, at most `Game.max_plies`.
      legal_actions: most legal actions of a position, at most `Game.max_legal_actions`.
      lacks: what the page of `azjax play --web` will lack, each with what adds it.
    """

    name: str
    games: int
    positions: int
    plies: int
    legal_actions: int
    lacks: tuple[str, ...]

    def __str__(self) -> str:
        counts = f"{self.positions:,} positions of {self.games} random games, up to {self.plies} plies"
        lines = [f"{self.name} keeps every law ({counts} and {self.legal_actions} legal actions)"]
        lines.append("on the page there will be" if self.lacks else "the page will lack nothing")
        return "\n".join([*lines, *(f"- {lack}" for lack in self.lacks)])


def check_game(game: AnyGame, *, num_games: int = 32, seed: int = 0, console: Console | None = None) -> CheckedGame:
    """Plays random games and tests every law of `azjax.games.Game` on their positions.

    The laws of the protocols in `azjax.games.protocols` are tested for those that the game fulfills.

    Args:
      game: the game to test.
      num_games: random games, played side by side; 1..65,536.
      seed: of the random play.
      console: shows the progress if it is a terminal. Default: standard output.

    Returns:
      what was tested, and what the page will lack.

    Raises:
      InputError: a class in place of a game, or a number of games out of range.
      LawError: a law is broken, or a method of the game raised an error, which is then the cause. The message names the
        method, the law, and the leaf or the position. A `LawError` is an `AssertionError`.
    """
    if isinstance(game, type):
        raise InputError(f"check_game needs a game, such as {game.__name__}(), and got the class {game.__name__}")
    games = whole(num_games)
    if games is None or games < 1:
        raise InputError(f"games must be at least 1, got {num_games!r}")
    if games > _MOST_GAMES:
        raise InputError(f"games must be at most {_MOST_GAMES:,}, whose positions are all kept, got {games}")
    with _progress(Console() if console is None else console) as progress:
        with _stage(progress, "methods", "methods") as advance:
            check_facts(game)
            check_types(game, advance)
        with _stage(progress, "random games", "positions") as advance:
            states, plies, paid = _random_positions(game, games, seed, advance)
        with _stage(progress, "laws", "laws", len(LAWS)) as advance:
            for law in LAWS:
                law(game, states, jax.random.key(seed))
                advance(1)
            most, law_of_games = np.abs(paid).max(), "the rewards of a whole game are together in -1..1"
            hold(most <= 1 + _ROUNDING, "step", law_of_games, found=f"a random game paid {most:g} in all")
        with _stage(progress, "text, squares and pictures", "positions") as advance:
            check_on_host(game, states, np.random.default_rng(seed), advance)
    masks = jax.jit(jax.vmap(game.legal_action_mask))(states)
    return CheckedGame(
        name=game.name,
        games=games,
        positions=len(states.terminated),
        plies=plies,
        legal_actions=int(masks.sum(axis=1).max()),
        lacks=tuple(_lacks(game, state_at(states, 0))),
    )


def make_checked(name: str, /, **options: Any) -> AnyGame:
    """`azjax.make`, which traces each method of a game from outside the package once.

    What commands would otherwise stumble over, with a traceback, is then told in one line. `check_game` tests more.

    Raises:
      InputError: as `azjax.make`.
      LawError: a number of the game, its start, or the type of what a method returns breaks a law.
    """
    game = make(name, **options)
    if not source_name(game).startswith("azjax."):
        try:
            check_facts(game)
            check_types(game)
            start = game.init(jax.random.key(0))
            count, law = int(game.legal_action_mask(start).sum()), "no position has more than max_legal_actions"
            hold(
                count <= game.max_legal_actions, "max_legal_actions", law, found=f"the start has {count} legal actions"
            )
        except LawError as error:
            raise LawError(f"{name}: {error}") from error
    return game


def _random_positions(
    game: Game[S], num_games: int, seed: int, advance: Callable[[int], None]
) -> tuple[S, int, Float64[np.ndarray, "G"]]:
    """All positions [B, ...] of random games, the finished ones once each, and the plies of the longest game.

    The last are the rewards of player 0 in each game, added up.
    """
    init_key, play_key = jax.random.split(jax.random.key(seed))

    @jax.jit
    def play_ply(key: jax.Array, states: S) -> S:
        actions = jax.vmap(functools.partial(random_legal_action, game))(jax.random.split(key, num_games), states)
        return jax.vmap(game.step)(states, actions)

    # On the host, where a new shape costs no compilation.
    states = jax.device_get(jax.jit(jax.vmap(game.init))(jax.random.split(init_key, num_games)))
    seen, paid = [states], np.zeros(num_games)
    while not states.terminated.all() and len(seen) <= game.max_plies:
        following = jax.device_get(play_ply(jax.random.fold_in(play_key, len(seen)), states))
        running = ~states.terminated
        seen.append(jax.tree.map(lambda leaf: leaf[running], following))
        states, paid = following, paid + np.where(running, np.asarray(following.rewards)[:, 0], 0.0)
        advance(int(running.sum()))
    unfinished = int(np.argmin(states.terminated))
    law = f"a game ends within max_plies = {game.max_plies}"
    hold(states.terminated.all(), "max_plies", law, at=state_at(states, unfinished))

    positions: S = jax.tree.map(lambda *leaves: np.concatenate(leaves), *seen)
    return positions, len(seen) - 1, paid


def _lacks(game: AnyGame, state: S) -> Iterator[str]:
    """What the page will lack, and what adds it."""
    drawn = has_picture(game)
    if not drawn:
        yield "no picture: add DrawableGame.svg"
    if not isinstance(game, BoardGame):
        yield "no clicking: add BoardGame.action_squares"
    elif not drawn:
        yield "no clicking: it needs a picture"
    elif isinstance(game, DrawableGame):
        with in_method("svg"):
            picture = game.svg(state)
        if "data-columns=" not in picture or "data-rows=" not in picture:
            yield "no clicking: the picture needs data-rows and data-columns, as azjax.render.drawing.Sheet writes them"
    if not isinstance(game, TextGame):
        yield "no names of moves, no positions as text: add TextGame"
    if not isinstance(game, EditableGame):
        yield "no placing of pieces: add EditableGame"
    elif not isinstance(game, CellGame):
        yield "no page without Python: add CellGame"


class _Rate(ProgressColumn):
    """How many units are done, and how many a second."""

    def render(self, task: Task) -> Text:
        rate = "" if task.speed is None else f", {task.speed:,.0f} a second"
        return Text(f"{task.completed:,.0f} {task.fields['unit']}{rate}")


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), _Rate())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextlib.contextmanager
def _stage(
    progress: Progress, description: str, unit: str, total: int | None = None
) -> Iterator[Callable[[int], None]]:
    """Shows a line while a stage of the test runs; the given function adds to the units that are done."""
    task = progress.add_task(description, total=total, unit=unit)
    yield functools.partial(progress.advance, task)
    progress.refresh()
    progress.remove_task(task)
