"""Self-play: games side by side, each move by a search, a new game in place of one that ended.

Axis letters: `G` games side by side, `T` time steps, `P` members of a population.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game, random_legal_action
from azjax.games.protocols import without_history
from azjax.networks import Network, Variables
from azjax.parallel.members import over_members
from azjax.parallel.network_members import Members
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, WHOLE
from azjax.search import Tree, alphazero_policy, evaluators, gumbel_policy
from azjax.search.dynamics import legal_slots, to_slots
from azjax.search.tree_memory import empty_tree, follow
from azjax.training.config import Config, Hyper
from azjax.training.replay import Steps


def make_start(game: Game, config: Config) -> Callable[[chex.PRNGKey], Any]:
    """`start(key) -> state`: where a game of self-play begins, as the configuration asks; never at an end.

    Raises:
      ValueError: a start position that the game refuses, or one where the game is over.
    """
    # Text is read on the host, also when this is called under a trace.
    with jax.ensure_compile_time_eval():
        given = [game.from_text(text) for text in config.start_positions]
        for text, state in zip(config.start_positions, given, strict=True):
            if bool(state.terminated):
                raise InputError(f"start_positions: the game is over in {text!r}")
        given_states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *given) if given else None

    def start(key: chex.PRNGKey) -> Any:
        init_key, choice_key, length_key, play_key = jax.random.split(key, 4)
        state = game.init(init_key)
        if given_states is not None:
            choice = jax.random.randint(choice_key, (), 0, len(given))
            state = jax.tree.map(lambda leaves: leaves[choice], given_states)
        num_plies = jax.random.randint(length_key, (), 0, config.random_start_plies + 1)

        def play(ply: chex.Array, state: Any) -> Any:
            action = random_legal_action(game, jax.random.fold_in(play_key, ply), state)
            following = game.step(state, action)
            # A random game that would end stops one ply short.
            goes_on = (ply < num_plies) & ~following.terminated
            return jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), following, state)

        state = jax.lax.fori_loop(0, config.random_start_plies, play, state)
        return dataclasses.replace(state, rewards=jnp.zeros(2, jnp.float32))

    return start


@pytree_dataclass
class Games:
    """The running games of self-play.

    states: every leaf [G, ...].
    plies: int32 [G]; played in each game since it began.
    """

    states: Any
    plies: chex.Array


def new_games(game: Game, config: Config, key: chex.PRNGKey) -> Games:
    """Games that begin."""
    states = jax.vmap(make_start(game, config))(jax.random.split(key, config.num_games))
    return Games(states, jnp.zeros(config.num_games, jnp.int32))


class Searched(NamedTuple):
    """What searches from G positions found; see `SearchResult`.

    proven: bool [G]; the value is the true one.
    full: bool []; they were full searches.
    tree: to go on with; None where trees are not reused.
    """

    action: chex.Array
    policy: chex.Array
    value: chex.Array
    proven: chex.Array
    full: chex.Array
    tree: Tree | None


def make_search(game: Game, network: Network | Members, config: Config) -> Callable[..., Searched]:
    """`search(variables, hyper, full, keys, states, temperature, tree) -> Searched`: the searches of one ply, keys [G].

    `full`, bool [], is read where there are `fast_simulations`.
    """
    evaluator = evaluators.network(network, game)

    def search(
        variables: Variables,
        hyper: Hyper,
        full: chex.Array,
        keys: chex.PRNGKey,
        states: Any,
        temperature: chex.Array,
        tree: Tree | None,
    ) -> Searched:
        def search_with(num_simulations: int, full: bool) -> Searched:
            options: dict[str, Any] = {"game": game, "evaluator": evaluator, "num_simulations": num_simulations}
            if config.policy == "gumbel":
                considered = config.max_num_considered_actions
                scale = temperature if full else 0.0
                options |= {"max_num_considered_actions": considered, "gumbel_scale": scale, "solver": config.solver}
                result = gumbel_policy(variables, keys, states, **options)
            else:
                options |= {"c_puct": hyper.c_puct, "temperature": temperature, "solver": config.solver, "tree": tree}
                if full:
                    noise = {"dirichlet_fraction": hyper.dirichlet_fraction, "dirichlet_alpha": hyper.dirichlet_alpha}
                    options |= noise
                # A tree that is handed on needs the same rule of selection in both.
                if hyper.forced_playouts is not None:
                    options["forced_playouts"] = hyper.forced_playouts if full else 0.0
                result = alphazero_policy(variables, keys, states, **options)
            proven = result.bounds[:, 0] == result.bounds[:, 1]
            kept = follow(result.tree, result.action, config.num_simulations) if config.reuse_tree else None
            return Searched(result.action, result.policy, result.value, proven, jnp.bool_(full), kept)

        if not config.fast_simulations:
            return search_with(config.num_simulations, True)
        return jax.lax.cond(
            full, lambda: search_with(config.num_simulations, True), lambda: search_with(config.fast_simulations, False)
        )

    return search


def self_play(
    game: Game,
    network: Network,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    key: chex.PRNGKey,
    games: Games,
    mesh: Mesh | None = None,
) -> tuple[Games, Steps]:
    """Advances G games by T plies. Returns the games then, and the steps [T, G].

    Trees that are reused begin empty: they are no part of a checkpoint. With a `mesh` each device plays its own games,
    which draw what they draw on one.
    """
    coin_key, games_key = jax.random.split(key)
    # One draw for all games: under `vmap` both branches would run. They are at different plies of their games.
    full = jax.random.bernoulli(coin_key, hyper.full_search_fraction, (config.steps_per_iteration,))
    keys = jax.random.split(games_key, config.num_games)
    play: Callable[..., tuple[Games, Steps]] = functools.partial(_play, game, network, config)
    if mesh is not None:
        split = WHOLE, WHOLE, WHOLE, BY_GAME, BY_GAME
        # Left to the compiler, the trees, which are runs of numbers, would be gathered.
        play = jax.shard_map(play, mesh=mesh, in_specs=split, out_specs=(BY_GAME, BY_COLUMN), check_vma=False)
    else:
        play = over_members(play, functools.partial(_play_members, game, network, config))
    return play(variables, hyper, full, keys, games)


def _play_members(
    game: Game,
    network: Network,
    config: Config,
    count: int,
    variables: Variables,
    hyper: Hyper,
    full: chex.Array,
    keys: chex.PRNGKey,
    games: Games,
) -> tuple[Games, Steps] | None:
    """`_play` of P members, all operands with leading axes [P], as that of one large batch of games.

    Under `jax.vmap` the trees would be read and written member by member, in loops that carry copies of them all.

    Returns:
      None where not all that may differ between them is read by game.
    """
    if config.fast_simulations or hyper.forced_playouts is not None:
        return None

    def merged(leaf: chex.Array) -> chex.Array:
        return leaf.reshape(-1, *leaf.shape[2:])

    hyper = jax.tree.map(lambda scalar: jnp.repeat(scalar, config.num_games), hyper)
    keys, games = jax.tree.map(merged, (keys, games))
    # Every ply has a full search, since there is no other.
    games, steps = _play(game, Members(network, count), config, variables, hyper, full[0], keys, games)
    games = jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), games)
    steps = jax.tree.map(lambda leaf: jnp.moveaxis(leaf.reshape(len(leaf), count, -1, *leaf.shape[2:]), 1, 0), steps)
    return games, steps


def _play(
    game: Game,
    network: Network | Members,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    full: chex.Array,
    keys: chex.PRNGKey,
    games: Games,
) -> tuple[Games, Steps]:
    """`self_play` of any of the games: `full` bool [T], which plies have a full search; `keys` [G], one a game."""
    search, start = make_search(game, network, config), make_start(game, config)
    longest = config.longest_game(game)

    def play(carry: tuple, step: tuple[chex.Array, chex.Array]) -> tuple[tuple, Steps]:
        (games, tree), (number, full) = carry, step
        search_keys, start_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number)), out_axes=1)(
            keys
        )
        temperature = jnp.where(games.plies < hyper.temperature_plies, hyper.temperature, hyper.late_temperature)
        # The tree of a game that ended has another root than the next game: the search begins anew there.
        found = search(variables, hyper, full, search_keys, games.states, temperature, tree)
        following = jax.vmap(game.step)(games.states, found.action)
        first_player = games.states.current_player == 0
        plies = games.plies + 1
        ended = following.terminated | (plies >= longest)
        cut = ended & ~following.terminated
        # What a game that is cut would have come to.
        value = jnp.where(first_player, found.value, -found.value)
        actions, _ = legal_slots(game, games.states)
        steps = Steps(
            states=jax.vmap(functools.partial(without_history, game))(games.states),
            policy=to_slots(found.policy, actions),
            reward=jnp.where(cut, value, following.rewards[:, 0]),
            ended=ended,
            cut=cut,
            value=found.value,
            proven=found.proven,
            learned=jnp.broadcast_to(found.full, ended.shape),
        )
        starts = jax.vmap(start)(start_keys)

        def renew(new: chex.Array, old: chex.Array) -> chex.Array:
            return jnp.where(ended.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        games = Games(jax.tree.map(renew, starts, following), jnp.where(ended, 0, plies))
        return (games, found.tree), steps

    tree = None
    if config.reuse_tree:
        tree = empty_tree(
            game,
            evaluators.network(network, game),
            variables,
            games.states,
            num_simulations=config.num_simulations,
            solver=config.solver,
            forced_playouts=hyper.forced_playouts,
        )
    (games, _), steps = jax.lax.scan(play, (games, tree), (jnp.arange(len(full), dtype=jnp.int32), full))
    return games, steps
