"""How many positions a second does the whole loop play and learn from, beside a loop of pgx and mctx?

Connect Four, Gumbel, 32 simulations, 256 games side by side, every position learned from once. The rival is written
as pgx's public AlphaZero example does it (https://github.com/sotetsuk/pgx/tree/main/examples/alphazero): a jitted
self-play of pgx's rules and mctx's `gumbel_muzero_policy` from the start of new games, value targets where a game
ended, a shuffle on the host, jitted optimizer steps. Both sides use the same networks of ours, the same sizes and
Adam. The rate of the network alone, at the same batch, tells how much of the time it is.

    python experiments/self_play_speed.py

About 6 minutes on 2 CPU cores. Writes experiments/results/self_play_speed.json. Axis letters: `T` plies of an
iteration, `G` games, `A` actions.
"""

import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx
import optax
import pgx
import tyro
from pgx.experimental import auto_reset
from rich.console import Console
from study import RESULTS, write_results

import azjax
from azjax.training import Config, Hyper, init, make_iteration

NETWORKS = (("resnet", 64, 4), ("resnet", 16, 1), ("mlp", 64, 2))


def main(
    num_simulations: int = 32,
    num_games: int = 256,
    plies: int = 8,
    batch_size: int = 512,
    rounds: int = 3,
    output: Path = RESULTS / "self_play_speed.json",
) -> None:
    """Measures and writes.

    Args:
      num_simulations: of each search.
      num_games: G.
      plies: T.
      batch_size: positions of an optimizer step.
      rounds: iterations of each side, in turn; their median counts.
      output: the results.
    """
    console = Console()
    rows = []
    for network, width, depth in NETWORKS:
        config = Config(
            network=network,
            width=width,
            depth=depth,
            policy="gumbel",
            num_simulations=num_simulations,
            num_games=num_games,
            steps_per_iteration=plies,
            updates_per_iteration=num_games * plies // batch_size,
            batch_size=batch_size,
            hyper=Hyper(l2=0.0),
        )
        sides = {"azjax": azjax_loop(config), "pgx + mctx": pgx_loop(config)}
        for run in sides.values():
            run()  # compiles; the games of our side then are at many plies
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, run in sides.items():
                began = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - began)
        rates = {name: num_games * plies / statistics.median(times) for name, times in seconds.items()}
        alone = network_rate(config)
        row = {
            "network": network,
            "width": width,
            "depth": depth,
            "positions_per_second": {name: round(rate, 1) for name, rate in rates.items()},
            "ratio": round(rates["azjax"] / rates["pgx + mctx"], 2),
            "network_positions_per_second": round(alone),
            "network_share": {name: round(rate * (num_simulations + 1) / alone, 3) for name, rate in rates.items()},
        }
        console.print(row)
        rows.append(row)
    settings = {"num_simulations": num_simulations, "num_games": num_games, "plies": plies, "batch_size": batch_size}
    write_results(output, "self_play_speed.py", {"game": "connect_four", **settings}, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def azjax_loop(config: Config) -> Callable[[], Any]:
    """An iteration of ours, a call."""
    game = azjax.make("connect_four")
    hyper = jax.tree.map(jnp.float32, config.hyper)
    iterate = jax.jit(make_iteration(game, config), donate_argnums=0)
    state = jax.jit(lambda hyper: init(game, config, 0, hyper))(hyper)

    learns = False

    def run() -> None:
        nonlocal state, learns
        state, metrics = jax.block_until_ready(iterate(state, hyper))
        learns = bool(jnp.isfinite(metrics["loss"]))

    # Until the first games end there is nothing to learn from.
    while not learns:
        run()
    return run


class Played(NamedTuple):
    """What self-play of the rival keeps, every leaf [T, G, ...]."""

    observation: chex.Array
    weights: chex.Array
    reward: chex.Array
    terminated: chex.Array


def pgx_loop(config: Config) -> Callable[[], Any]:
    """An iteration of pgx and mctx, a call."""
    env, game = pgx.make("connect_four"), azjax.make("pgx:connect_four")
    network = config.make_network(game)
    games, plies = config.num_games, config.steps_per_iteration
    optimizer = optax.adam(config.hyper.learning_rate)

    def judge(variables: Any, state: Any) -> tuple[chex.Array, chex.Array]:
        output, _ = network.apply(variables, state.observation.astype(jnp.float32), train=False)
        logits = output.prior_logits
        return jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min), output.value

    def recurrent_fn(variables: Any, key: chex.PRNGKey, action: chex.Array, state: Any) -> tuple[Any, Any]:
        del key
        following = jax.vmap(env.step)(state, action)
        logits, value = judge(variables, following)
        output = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(following.rewards, state.current_player[:, None], axis=1)[:, 0],
            discount=jnp.where(following.terminated, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(following.terminated, 0.0, value),
        )
        return output, following

    @jax.jit
    def self_play(variables: Any, key: chex.PRNGKey) -> Played:
        def play(state: Any, key: chex.PRNGKey) -> tuple[Any, Played]:
            search_key, reset_key = jax.random.split(key)
            logits, value = judge(variables, state)
            found = mctx.gumbel_muzero_policy(
                params=variables,
                rng_key=search_key,
                root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
                recurrent_fn=recurrent_fn,
                num_simulations=config.num_simulations,
                invalid_actions=~state.legal_action_mask,
                qtransform=mctx.qtransform_completed_by_mix_value,
            )
            step = jax.vmap(auto_reset(env.step, env.init))
            following = step(state, found.action, jax.random.split(reset_key, games))
            reward = jnp.take_along_axis(following.rewards, state.current_player[:, None], axis=1)[:, 0]
            return following, Played(state.observation, found.action_weights, reward, following.terminated)

        start_key, play_key = jax.random.split(key)
        state = jax.vmap(env.init)(jax.random.split(start_key, games))
        return jax.lax.scan(play, state, jax.random.split(play_key, plies))[1]

    @jax.jit
    def targets(played: Played) -> tuple[chex.Array, chex.Array]:
        """The value targets, and which of them are known, [T, G]."""

        def back(following: tuple, step: tuple) -> tuple[tuple, tuple]:
            (value, known), (reward, terminated) = following, step
            here = jnp.where(terminated, reward, reward - value), known | terminated
            return here, here

        begin = jnp.zeros(games), jnp.zeros(games, bool)
        return jax.lax.scan(back, begin, (played.reward, played.terminated), reverse=True)[1]

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def learn(variables: Any, optimizer_state: Any, batch: tuple) -> tuple[Any, Any, chex.Array]:
        observation, weights, value_target, known = batch

        def loss(params: Any) -> tuple[chex.Array, Any]:
            whole = {"params": params, "batch_stats": variables["batch_stats"]}
            output, new = network.apply(whole, observation.astype(jnp.float32), train=True)
            policy_loss = optax.softmax_cross_entropy(output.prior_logits, weights)
            value_loss = optax.l2_loss(output.value, value_target) * known
            return jnp.mean(policy_loss) + jnp.mean(value_loss), new["batch_stats"]

        (total, batch_stats), gradient = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        params = optax.apply_updates(variables["params"], updates)
        return {"params": params, "batch_stats": batch_stats}, optimizer_state, total

    key, variables = jax.random.key(0), network.init(jax.random.key(1), game)
    optimizer_state = optimizer.init(variables["params"])

    def run() -> None:
        nonlocal key, variables, optimizer_state
        key, play_key, shuffle_key = jax.random.split(key, 3)
        played = self_play(variables, play_key)
        samples = jax.device_get((played.observation, played.weights, *targets(played)))
        order = jax.device_get(jax.random.permutation(shuffle_key, games * plies))
        samples = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[order], samples)
        for begin in range(0, games * plies, config.batch_size):
            batch = jax.tree.map(lambda leaf: leaf[begin : begin + config.batch_size], samples)
            variables, optimizer_state, total = learn(variables, optimizer_state, batch)
        jax.block_until_ready(total)

    return run


def network_rate(config: Config) -> float:
    """Positions a second of the network alone, at the batch of self-play."""
    game = azjax.make("connect_four")
    network = config.make_network(game)
    variables = network.init(jax.random.key(0), game)
    observations = jnp.zeros((config.num_games, *game.observation_shape), jnp.float32)
    apply = jax.jit(lambda variables, observations: network.apply(variables, observations, train=False)[0])
    jax.block_until_ready(apply(variables, observations))
    seconds = []
    while len(seconds) < 10 or sum(seconds) < 1:
        began = time.perf_counter()
        jax.block_until_ready(apply(variables, observations))
        seconds.append(time.perf_counter() - began)
    return config.num_games / statistics.median(seconds)


if __name__ == "__main__":
    tyro.cli(main)
