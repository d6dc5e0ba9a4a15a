"""Players that a name tells all of: `random`, `optimal`, and searches without a network such as `uct:1000`."""

from azjax.core.errors import InputError
from azjax.evaluation.players import Player, optimal_player, random_player, search_player, uct_player
from azjax.evaluation.solver import solve
from azjax.games.game import Game
from azjax.search import evaluators

_EVALUATORS = {"uniform": evaluators.uniform, "rollout": evaluators.rollout, "random": evaluators.random}
_SEARCHES = ("uct", *_EVALUATORS)
NAMED = ("random", "optimal", *(f"{name}:SIMULATIONS" for name in _SEARCHES))


def is_named(name: str) -> bool:
    """Whether it is one of these players; the number of simulations may still be none."""
    search, colon, _ = name.partition(":")
    return name in ("random", "optimal") or (bool(colon) and search in _SEARCHES)


def num_simulations_of(name: str) -> int:
    """Simulations of a move of the player of that name; 0 where it does not search.

    Raises:
      ValueError: an unknown name.
    """
    if not is_named(name):
        raise InputError(f"unknown player {name!r}; available: {', '.join(NAMED)}")
    if name in ("random", "optimal"):
        return 0
    count = name.partition(":")[2]
    if not (count.isascii() and count.isdigit() and int(count) > 0):
        raise InputError(f"{name!r}: SIMULATIONS must be a whole number of at least 1, got {count!r}")
    return int(count)


def named_player(name: str, game: Game, *, solver: bool = False, reuse_tree: bool = False) -> Player:
    """Makes a player.

    Args:
      name: `random`, `optimal` (which solves the game first), `uct:1000`, or with equal priors `uniform:64`,
        `rollout:1000`, `random:64`.
      game: what it plays.
      solver: the search proves wins, losses and draws.
      reuse_tree: the search goes on in the tree below the moves that were played.

    Raises:
      ValueError: an unknown name, or an option of a search for a player whose search does not have it.
    """
    num_simulations = num_simulations_of(name)
    if not num_simulations:
        if solver or reuse_tree:
            raise InputError(f"solver and reuse_tree are for players that search; {name} does not")
        return random_player(game) if name == "random" else optimal_player(solve(game))
    search = name.partition(":")[0]
    named = with_options(name, solver=solver, reuse_tree=reuse_tree)
    if search == "uct":
        if reuse_tree:
            raise InputError(f"reuse_tree is for players that search with priors; {name} begins each search anew")
        return uct_player(game, num_simulations=num_simulations, solver=solver, name=named)
    evaluator = _EVALUATORS[search](game)
    return search_player(
        game, evaluator, num_simulations=num_simulations, solver=solver, reuse_tree=reuse_tree, name=named
    )


def with_options(name: str, *, solver: bool, reuse_tree: bool) -> str:
    """The name of a player, with the options of its search."""
    return name + " + solver" * solver + " + reused tree" * reuse_tree
