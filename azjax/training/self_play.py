"""Self-play: games side by side, each move by a search, a new game in place of one that ended.

Axis letters: `G` games side by side, `T` time steps.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game, random_legal_action
from azjax.networks import Network, Variables
from azjax.search import alphazero_policy, evaluators
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
                raise ValueError(f"start_positions: the game is over in {text!r}")
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


def self_play(
    game: Game, network: Network, config: Config, variables: Variables, hyper: Hyper, key: chex.PRNGKey, states: Any
) -> tuple[Any, Steps]:
    """Advances `states` [G, ...] by T plies. Returns the states then, and the steps [T, G].

    Trees that are reused begin empty: they are no part of a checkpoint.
    """
    evaluator = evaluators.network(network, game)
    start = make_start(game, config)

    def play(carry: tuple, key: chex.PRNGKey) -> tuple[tuple, Steps]:
        states, tree = carry
        search_key, start_key = jax.random.split(key)
        # The tree of a game that ended has another root than the next game: the search begins anew there.
        result = alphazero_policy(
            variables,
            search_key,
            states,
            game=game,
            evaluator=evaluator,
            num_simulations=config.num_simulations,
            c_puct=hyper.c_puct,
            dirichlet_fraction=hyper.dirichlet_fraction,
            dirichlet_alpha=hyper.dirichlet_alpha,
            temperature=hyper.temperature,
            solver=config.solver,
            tree=tree,
        )
        following = jax.vmap(game.step)(states, result.action)
        actions, _ = legal_slots(game, states)
        positions = jax.vmap(game.without_history)(states)
        steps = Steps(positions, to_slots(result.policy, actions), following.rewards[:, 0], following.terminated)
        starts = jax.vmap(start)(jax.random.split(start_key, config.num_games))

        def renew(new: chex.Array, old: chex.Array) -> chex.Array:
            return jnp.where(following.terminated.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        tree = follow(result.tree, result.action, config.num_simulations) if config.reuse_tree else None
        return (jax.tree.map(renew, starts, following), tree), steps

    tree = None
    if config.reuse_tree:
        tree = empty_tree(
            game, evaluator, variables, states, num_simulations=config.num_simulations, solver=config.solver
        )
    (states, _), steps = jax.lax.scan(play, (states, tree), jax.random.split(key, config.steps_per_iteration))
    return states, steps
