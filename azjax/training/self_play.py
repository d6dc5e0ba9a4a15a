"""Self-play: games side by side, each move by a search, a new game in place of one that ended.

Axis letters: `A` actions, `G` games side by side, `K` slots of legal actions, `P` members of a population, `T` time
steps.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, select_rows
from azjax.evaluation.host_games import position_from_text
from azjax.games.game import AnyGame, Game, State, random_legal_action
from azjax.games.protocols import NumberedGame, is_numbered, without_history
from azjax.networks import Network, Variables
from azjax.parallel.members import MemberNetworks, over_members
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, WHOLE
from azjax.search import SearchResult, Tree
from azjax.search.dynamics import legal_slots, to_slots
from azjax.search.result import root_priors
from azjax.search.reuse import follow
from azjax.training import schedules
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.replay import Steps
from azjax.training.restarts import Restarts, begin_games

_S = TypeVar("_S", bound=State)

_SMALLEST_PRIOR = 1e-9
# These set keys apart from those of other starts.
_EXPLORING = 0x5A3E0E17
_CHOICE = 0x0C401CE5
_SHARE_OF_STARTS = 16  # at most 1/16 of the games begin at once


def make_start(game: Game[_S], config: Config) -> Callable[..., _S]:
    """`start(key, most_plies) -> state`: where a game of self-play begins, as the configuration says; never at an end.

    It begins after up to `most_plies` random plies, int32 [], at most `config.random_start_plies`, the default, or as
    often as `config.exploring_starts` says at any position.

    Raises:
      InputError: a start position that the game refuses, or one where the game is over; exploring starts in a game that
        does not number its positions.
    """
    positions = _start_positions(game, config.start_positions)
    explore = _make_exploring_start(game) if config.exploring_starts else None

    def start(key: PRNGKeyArray, most_plies: Int32[Array, ""] | None = None) -> _S:
        state = begin(key, most_plies)
        if explore is None:
            return state
        explored = explore(jax.random.fold_in(key, _EXPLORING))
        chosen: _S = jax.tree.map(lambda new, old: jnp.where(_explores(config, key), new, old), explored, state)
        return chosen

    def begin(key: PRNGKeyArray, most_plies: Int32[Array, ""] | None = None) -> _S:
        init_key, choice_key, length_key, play_key = jax.random.split(key, 4)
        state = game.init(init_key)
        if positions is not None:
            choice = jax.random.randint(choice_key, (), 0, len(config.start_positions))
            state = jax.tree.map(lambda leaves: leaves[choice], positions)
        most = config.random_start_plies if most_plies is None else most_plies
        num_plies = jax.random.randint(length_key, (), 0, most + 1)

        def play(ply: Int32[Array, ""], state: _S) -> _S:
            action = random_legal_action(game, jax.random.fold_in(play_key, ply), state)
            following = game.step(state, action)
            # A ply that would end the game is left out.
            goes_on = (ply < num_plies) & ~following.terminated
            played: _S = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), following, state)
            return played

        state = jax.lax.fori_loop(0, config.random_start_plies, play, state)
        return dataclasses.replace(state, rewards=jnp.zeros(2, jnp.float32))

    return start


def _explores(config: Config, key: PRNGKeyArray) -> Bool[Array, ""]:
    """Whether the game that starts with this key begins at any position."""
    return jax.random.bernoulli(jax.random.fold_in(key, _CHOICE), config.exploring_starts)


def _make_exploring_start(game: Game[_S]) -> Callable[[PRNGKeyArray], _S]:
    """`explore(key) -> state`: an unfinished position, drawn evenly from the numbers of the game's positions."""
    if not (isinstance(game, NumberedGame) and is_numbered(game)):
        raise InputError(f"exploring_starts: {game.name} does not number its positions by these rules")
    most = np.uint32(min(game.num_position_numbers, 2**32 - 1))

    def draw(carry: tuple[PRNGKeyArray, _S]) -> tuple[PRNGKeyArray, _S]:
        key, number_key = jax.random.split(carry[0])
        number = jax.random.randint(number_key, (), np.uint32(0), most, jnp.uint32)
        return key, game.from_position_number(number)

    def explore(key: PRNGKeyArray) -> _S:
        _, state = jax.lax.while_loop(lambda carry: carry[1].terminated, draw, draw((key, game.init(key))))
        return state

    return explore


def _start_positions(game: Game[_S], texts: tuple[str, ...]) -> _S | None:
    """The positions with a leading axis, or None if there are none."""
    if not texts:
        return None
    # Text is read on the host, also when this is called under a trace.
    with jax.ensure_compile_time_eval():
        states = [position_from_text(game, text) for text in texts]
        for text, state in zip(texts, states, strict=True):
            if bool(state.terminated):
                raise InputError(f"start_positions: the game is over in {text!r}")
        stacked: _S = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    return stacked


@pytree_dataclass
class Games:
    """The running games of self-play.

    Attributes:
      states: every leaf [G, ...].
      plies: how many were played in each game since it began.
      limit: the plies after which it is truncated; None where it is the same for all.
    """

    states: State
    plies: Int32[Array, "G"]
    limit: Int32[Array, "G"] | None = None


def new_games(game: AnyGame, config: Config, key: PRNGKeyArray) -> Games:
    """Games at their starts."""
    keys = jax.random.split(key, config.num_games)
    states = jax.vmap(make_start(game, config))(keys)
    return Games(states, jnp.zeros(config.num_games, jnp.int32), _limits(game, config, keys))


def _limits(game: AnyGame, config: Config, keys: Key[Array, "G"]) -> Int32[Array, "G"] | None:
    """The plies after which the games that start with these keys are truncated."""
    if not config.exploring_plies:
        return None
    longest = config.longest_game(game)
    explore = jax.vmap(functools.partial(_explores, config))(keys)
    return jnp.where(explore, min(config.exploring_plies, longest), longest)


class SearchedPly(NamedTuple):
    """The results of the searches of one ply; see `SearchResult`.

    proven: the value is the true one.
    full: they were full searches.
    surprise: the divergence of the policy from the prior, in nats; None if it is not used.
    tree: the tree below the move; None where trees are not reused.
    """

    action: Int32[Array, "G"]
    policy: Float32[Array, "G A"]
    value: Float32[Array, "G"]
    proven: Bool[Array, "G"]
    full: Bool[Array, ""]
    surprise: Float32[Array, "G"] | None
    tree: Tree | None


def make_search(game: AnyGame, network: Network, config: Config) -> Callable[..., SearchedPly]:
    """`search(variables, hyper, iteration, full, keys, states, temperature, tree)`: the searches of one ply.

    The keys are [G]. `iteration`, int32 [], is read where there are `first_simulations`, and `full`, bool [], where
    there are `fast_simulations`.
    """
    policy = config.make_policy(game, network)

    def search(
        variables: Variables,
        hyper: Hyper,
        iteration: Int32[Array, "..."],
        full: Bool[Array, ""],
        keys: Key[Array, "G"],
        states: State,
        temperature: Float32[Array, "G"],
        tree: Tree | None,
    ) -> SearchedPly:
        def search_with(num_simulations: int, full: bool) -> SearchedPly:
            own = dataclasses.replace(policy, num_simulations=num_simulations)
            numbers = config.search_hyper(hyper, temperature, full)
            result: SearchResult = own(variables, keys, states, hyper=numbers, explore=True, tree=tree)
            proven = result.bounds[:, 0] == result.bounds[:, 1]
            kept = follow(result.tree, result.action, config.num_simulations) if config.reuse_tree else None
            surprised = surprise(game, states, result) if config.surprise_weighting else None
            return SearchedPly(result.action, result.policy, result.value, proven, jnp.bool_(full), surprised, kept)

        result: SearchedPly
        if config.fast_simulations:
            result = jax.lax.cond(
                full,
                lambda: search_with(config.num_simulations, True),
                lambda: search_with(config.fast_simulations, False),
            )
        elif config.first_simulations:
            counts = schedules.simulation_counts(config)
            # An index beyond the last one means the last one.
            result = jax.lax.switch(
                iteration // config.doubling_iterations,
                [functools.partial(search_with, count, True) for count in counts],
            )
        else:
            result = search_with(config.num_simulations, True)
        return result

    return search


def trace(ply: SearchedPly, hyper: Hyper) -> Float32[Array, "G"]:
    """`Steps.trace`: `hyper.td_lambda`, and 0 at exploratory moves (`hyper.trace_cut`) and at proven values.

    With `td_lambda` 1 and `trace_cut` 0 it is 1 everywhere: results alone count, also where a value is proven.
    """
    chosen = jnp.take_along_axis(ply.policy, ply.action[:, None], axis=1)[:, 0]
    is_exploratory = chosen < hyper.trace_cut * jnp.max(ply.policy, axis=1)
    shares: Array = jnp.where(is_exploratory | (ply.proven & values_count(hyper)), 0.0, hyper.td_lambda)
    return shares


def values_count(hyper: Hyper) -> Bool[Array, "*G"]:
    """Whether values of searches count in the results of positions."""
    counts: Array = (jnp.asarray(hyper.trace_cut) > 0) | (jnp.asarray(hyper.td_lambda) < 1)
    return counts


def policy_of_slots(game: AnyGame, states: State, policy: Float32[Array, "G A"]) -> Float32[Array, "G K"]:
    """A policy over the slots of `Game.legal_slots`, zero in holes."""
    actions, valid = legal_slots(game, states)
    return jnp.where(valid, to_slots(policy, actions), 0.0)


def surprise(game: AnyGame, states: State, result: SearchResult) -> Float32[Array, "G"]:
    """KL(policy || prior) at the roots, in nats: how much the search changed. The prior has the noise of the search."""
    policy, prior = policy_of_slots(game, states, result.policy), root_priors(result.tree)
    relative = jnp.where(policy > 0, policy / jnp.maximum(prior, _SMALLEST_PRIOR), 1.0)
    return jnp.sum(policy * jnp.log(relative), axis=1)


def self_play(
    game: AnyGame,
    network: Network,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    iteration: Int32[Array, ""],
    key: PRNGKeyArray,
    games: Games,
    restarts: Restarts | None = None,
    mesh: Mesh | None = None,
) -> tuple[Games, Steps]:
    """Advances G games by T plies, after `iteration` iterations. Returns the games after them, and the steps [T, G].

    A game that ends at step t is followed by one that begins as `restarts` say at t, or else by `make_start`. Reused
    trees start empty, since they are not in a checkpoint. With a `mesh` each device plays its own games, with the
    random numbers that they have on one device.
    """
    coin_key, games_key = jax.random.split(key)
    # One draw for all games, since both branches would run under `vmap`. The games are at different plies anyway.
    full = jax.random.bernoulli(coin_key, hyper.full_search_fraction, (config.steps_per_iteration,))
    keys = jax.random.split(games_key, config.num_games)
    play: Callable[..., tuple[Games, Steps]] = functools.partial(_play, game, network, config)
    if mesh is not None:
        split = WHOLE, WHOLE, WHOLE, WHOLE, BY_GAME, BY_GAME, BY_COLUMN
        # The compiler alone would gather the trees, which are flat arrays.
        play = jax.shard_map(play, mesh=mesh, in_specs=split, out_specs=(BY_GAME, BY_COLUMN), check_vma=False)
    else:
        play = over_members(play, functools.partial(_play_members, game, network, config))
    return play(variables, hyper, iteration, full, keys, games, restarts)


def _play_members(
    game: AnyGame,
    network: Network,
    config: Config,
    count: int,
    variables: Variables,
    hyper: Hyper,
    iteration: Int32[Array, "P"],
    full: Bool[Array, "P T"],
    keys: Key[Array, "P G"],
    games: Games,
    restarts: Restarts | None,
) -> tuple[Games, Steps] | None:
    """`_play` of P members as one large batch of games. All operands and results have leading axes [P].

    Under `jax.vmap` the trees would be read and written member by member, in loops that copy all of them.

    Returns:
      None where members may differ in a value that is not read by game.
    """
    if config.fast_simulations or config.first_simulations or hyper.forced_playouts is not None:
        return None

    def merged(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])

    hyper, iteration = jax.tree.map(lambda scalar: jnp.repeat(scalar, config.num_games), (hyper, iteration))
    keys, games = jax.tree.map(merged, (keys, games))
    restarts = jax.tree.map(lambda leaf: jax.vmap(merged, 1)(leaf), restarts)  # [P, T, G, ...] to [T, P * G, ...]
    # Without fast searches every ply has a full one.
    networks = MemberNetworks(network, count)
    games, steps = _play(game, networks, config, variables, hyper, iteration, full[0], keys, games, restarts)
    games = jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), games)
    steps = jax.tree.map(lambda leaf: jnp.moveaxis(leaf.reshape(len(leaf), count, -1, *leaf.shape[2:]), 1, 0), steps)
    return games, steps


def _play(
    game: AnyGame,
    network: Network,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    iteration: Int32[Array, ""] | Int32[Array, "G"],
    full: Bool[Array, "T"],
    keys: Key[Array, "G"],
    games: Games,
    restarts: Restarts | None,
) -> tuple[Games, Steps]:
    """`self_play` of some of the games: `full` says which plies have a full search, and `keys` [G] are of the games."""
    search, start = make_search(game, network, config), make_start(game, config)
    longest, early_temperature = config.longest_game(game), schedules.temperature(hyper, iteration)
    most_plies = schedules.random_start_plies(config, hyper, jnp.broadcast_to(iteration, keys.shape))

    def play(carry: tuple[Games, Tree | None], step: tuple[Array, Array, Restarts | None]) -> tuple[Any, Steps]:
        (games, tree), (number, full, restart) = carry, step
        search_keys, start_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number)), out_axes=1)(
            keys
        )
        is_early = games.plies.astype(jnp.float32) < hyper.temperature_plies
        temperature = jnp.where(is_early, early_temperature, hyper.late_temperature)
        # The tree of a game that ended has another root than the next game, and so the search starts a new one there.
        result = search(variables, hyper, iteration, full, search_keys, games.states, temperature, tree)
        following = jax.vmap(game.step)(games.states, result.action)
        first_player = games.states.current_player == 0
        plies = games.plies + 1
        ended = following.terminated | (plies >= (longest if games.limit is None else games.limit))
        truncated = ended & ~following.terminated
        first_value = jnp.where(first_player, result.value, -result.value)
        steps = Steps(
            states=jax.vmap(functools.partial(without_history, game))(games.states),
            policy=policy_of_slots(game, games.states, result.policy),
            reward=jnp.where(truncated, first_value, following.rewards[:, 0]),
            ended=ended,
            truncated=truncated,
            value=result.value,
            proven=result.proven,
            learned=jnp.broadcast_to(result.full, ended.shape),
            trace=trace(result, hyper),
            surprise=result.surprise,
        )
        limits, begins = _limits(game, config, start_keys), ended
        if restart is not None:
            following = select_rows(ended & restart.chosen, begin_games(game, restart.states), following)
            limits, begins = (
                None if limits is None else jnp.where(restart.chosen, longest, limits),
                ~restart.chosen & ended,
            )
        if limits is not None and games.limit is not None:
            limits = jnp.where(ended, limits, games.limit)
        states = _with_starts(start, start_keys, most_plies, begins, following)
        games = Games(states, jnp.where(ended, 0, plies), limits)
        return (games, result.tree), steps

    tree = None
    if config.reuse_tree:
        policy = config.make_policy(game, network)
        tree = policy.empty_tree(variables, games.states, config.search_hyper(hyper, hyper.temperature))
    numbers = jnp.arange(len(full), dtype=jnp.int32)
    (games, _), steps = jax.lax.scan(play, (games, tree), (numbers, full, restarts))
    return games, steps


def _with_starts(
    start: Callable[..., State],
    keys: Key[Array, "G"],
    most_plies: Int32[Array, "G"] | None,
    begins: Bool[Array, "G"],
    states: State,
) -> State:
    """`states` [G] with a new start where a game `begins`.

    Few games end at once, and random plies take their time: starts are made for a few games at a time.
    """
    count = len(begins)
    width = -(-count // _SHARE_OF_STARTS)

    def make_some(carry: tuple[Array, State]) -> tuple[Array, State]:
        waiting, states = carry
        (rows,) = jnp.nonzero(waiting, size=width, fill_value=count)
        at = jnp.minimum(rows, count - 1)
        begun = jax.vmap(start)(keys[at], None if most_plies is None else most_plies[at])
        states = jax.tree.map(lambda leaf, new: leaf.at[rows].set(new, mode="drop"), states, begun)
        return waiting.at[rows].set(False, mode="drop"), states

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), make_some, (begins, states))[1]
