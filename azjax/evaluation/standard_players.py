"""The players of the package that do not search: random, optimal, the network alone; and players by name.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.core.text import whole_number
from azjax.evaluation.players import MoveChoice, Player
from azjax.evaluation.retrograde import EndingSolution
from azjax.evaluation.searching_players import network_of, search_of, search_player, uct_player
from azjax.evaluation.solution import BestMoves, Solution
from azjax.evaluation.solver import solve
from azjax.games.game import AnyGame, Game, State
from azjax.networks import Network, Variables, summarize
from azjax.search import Evaluator, SearchPolicy, evaluators
from azjax.search.policy import check_num_simulations

_EVALUATORS: dict[str, Callable[[AnyGame], Evaluator]] = {
    "uniform": evaluators.uniform,
    "rollout": evaluators.rollout,
    "random": evaluators.random,
}
_SEARCHES = ("uct", *_EVALUATORS)
PLAYER_NAMES = ("random", "optimal", *(f"{name}:SIMULATIONS" for name in _SEARCHES))
"""The forms of the names that `named_player` takes."""


def random_player(game: AnyGame) -> Player:
    """Moves uniformly at random; it has no value estimates."""
    return Player("random", _Random(game))


@dataclasses.dataclass(frozen=True)
class _Random:
    game: AnyGame

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        del params, key
        uniform = _uniform(jax.vmap(self.game.legal_action_mask)(states))
        return MoveChoice(uniform, jnp.full(states.terminated.shape, jnp.nan), uniform)


def optimal_player(solution: Solution | EndingSolution) -> Player:
    """Moves uniformly among the best moves of a solved game or of solved endings, with exact values.

    In other positions it moves at random, without a value.
    """
    return Player("optimal", _Optimal(solution.game), solution.best_moves())


@dataclasses.dataclass(frozen=True)
class _Optimal:
    game: AnyGame

    def __call__(self, params: BestMoves, key: PRNGKeyArray, states: State) -> MoveChoice:
        at_random, no_value, _ = _Random(self.game)(None, key, states)
        known, values, actions, best = params.best_moves(self.game, states)
        batch = jnp.arange(len(known))[:, None]
        among_best = jnp.zeros_like(at_random).at[batch, actions].add(_uniform(best))
        probabilities = jnp.where(known[:, None], among_best, at_random)
        return MoveChoice(probabilities, jnp.where(known, values, no_value), probabilities)


def network_player(game: AnyGame, network: Network, variables: Variables, *, temperature: float = 0.0) -> Player:
    """The network alone, without search.

    Args:
      game: the game.
      network: see `azjax.networks`.
      variables: of the network.
      temperature: 0 takes the legal action with the largest prior (the lowest action on ties), 1 draws from the
        prior, infinity draws uniformly.

    Raises:
      InputError: a negative temperature.
    """
    if not temperature >= 0:
        raise InputError(f"temperature must be 0 or more, got {temperature}")
    return Player("network", _Network(game, network, temperature), variables)


@dataclasses.dataclass(frozen=True)
class _Network:
    game: AnyGame
    network: Network
    temperature: float

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        del key
        output, _ = self.network.apply(params, jax.vmap(self.game.observe)(states), train=False)
        legal = jax.vmap(self.game.legal_action_mask)(states)
        policy = _softmax(output.prior_logits, legal)
        if self.temperature == 0:
            best = jnp.argmax(jnp.where(legal, output.prior_logits, -jnp.inf), axis=1)
            probabilities = jnp.where(legal, jax.nn.one_hot(best, self.game.num_actions), 0.0)
        else:
            probabilities = _softmax(output.prior_logits / self.temperature, legal)
        return MoveChoice(probabilities, output.value, policy)


def player_facts(player: Player) -> dict[str, str]:
    """What people should know of a player of the package, by label: its game, search and network, if it has them."""
    policy = player.policy
    search = search_of(player)
    network: object = policy.network if isinstance(policy, _Network) else None
    told = {"player": player.name, **player.about}
    if search is not None:
        told["search"] = search_in_words(search, search.num_simulations)
        network = network_of(search)
    game = getattr(search or policy, "game", None)
    if isinstance(game, Game):
        told["game"] = f"{game.name}: {game}"
        if isinstance(network, Network):
            told["network"] = summarize(network, game)
    return told


def search_in_words(policy: SearchPolicy, num_simulations: int) -> str:
    """The kind of a search and its simulations."""
    return f"{type(policy).__name__}, {num_simulations:,} simulations"


def is_player_name(name: str) -> bool:
    """Whether the name has one of the forms `PLAYER_NAMES`; its number of simulations is not checked."""
    search, colon, _ = name.partition(":")
    return name in ("random", "optimal") or (bool(colon) and search in _SEARCHES)


def num_simulations_of(name: str) -> int:
    """Simulations per move of the player of that name; 0 for a player that does not search.

    Raises:
      InputError: an unknown name.
    """
    if not is_player_name(name):
        raise InputError(f"unknown player {name!r}; available: {', '.join(PLAYER_NAMES)}")
    if name in ("random", "optimal"):
        return 0
    count = name.partition(":")[2]
    number = whole_number(count)
    if not number:
        raise InputError(f"{name!r}: SIMULATIONS must be a whole number of at least 1, got {count!r}")
    check_num_simulations(number)
    return number


def named_player(name: str, game: AnyGame, *, solver: bool = False, reuse_tree: bool = False) -> Player:
    """Makes a player without parameters.

    Args:
      name: `random`, `optimal` (which solves the game first), `uct:1000`, or with equal priors `uniform:64`,
        `rollout:1000`, `random:64`.
      game: the game to play.
      solver: the search proves wins, losses and draws.
      reuse_tree: the search keeps the tree below the moves that are played.

    Raises:
      InputError: an unknown name, or a search option that the player does not have.
    """
    num_simulations = num_simulations_of(name)
    if not num_simulations:
        if solver or reuse_tree:
            raise InputError(f"solver and reuse_tree are for players that search; {name} does not")
        return random_player(game) if name == "random" else optimal_player(solve(game))
    kind = name.partition(":")[0]
    options: dict[str, Any] = {"num_simulations": num_simulations, "solver": solver, "reuse_tree": reuse_tree}
    options["name"] = name_with_options(name, solver=solver, reuse_tree=reuse_tree)
    if kind == "uct":
        return uct_player(game, **options)
    return search_player(game, _EVALUATORS[kind](game), **options)


class SearchOptions(TypedDict, total=False):
    """Options of a player's search, see `azjax.load_player`."""

    policy: str | None
    solver: bool
    reuse_tree: bool
    leaves_per_step: int
    tables: str | Path | None


SEARCH_DEFAULTS = SearchOptions(policy=None, solver=False, reuse_tree=False, leaves_per_step=1, tables=None)


def name_with_options(name: str, **search: Unpack[SearchOptions]) -> str:
    """The name of a player, with those options of its search that are not the default."""
    search = SEARCH_DEFAULTS | search
    options = [search["policy"], "solver" * search["solver"], "reused tree" * search["reuse_tree"]]
    options.append(f"{search['leaves_per_step']} leaves a step" * (search["leaves_per_step"] > 1))
    options.append(None if search["tables"] is None else f"tables {Path(search['tables']).name}")
    return " + ".join([name, *filter(None, options)])


def _softmax(logits: Float32[Array, "B A"], legal: Bool[Array, "B A"]) -> Float32[Array, "B A"]:
    """Over the legal actions; zero after the end."""
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, logits, -jnp.inf), axis=1), 0.0)


def _uniform(mask: Bool[Array, "B K"]) -> Float32[Array, "B K"]:
    """Equal weights where the mask is set, zero elsewhere."""
    return mask / jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1).astype(jnp.float32)
