"""How many positions a second does the learning loop process, compared with a loop of pgx and mctx?

The game is Connect Four with the Gumbel policy, 32 simulations and 256 games side by side; every position is used for
learning once. The rival follows pgx's public AlphaZero example
(https://github.com/sotetsuk/pgx/tree/main/examples/alphazero): jitted self-play with pgx's rules and mctx's
`gumbel_muzero_policy` from the start of new games, value targets for finished games, a shuffle on the host, and jitted
optimizer steps. Both sides use azjax's networks, the same sizes and Adam; with residual networks the rival runs twice,
with azjax's convolutions and with those of Flax. The largest network runs in float32 and in bfloat16. All loops run on
one device, and with their games and batches split over all devices, as `azjax train --devices` does. The rate of the
network alone, on one device and at the same batch, is measured too.

    JAX_NUM_CPU_DEVICES=2 python experiments/self_play_speed.py

It takes about 25 minutes on 2 CPU cores. Writes experiments/results/self_play_speed.json. Axis letters: `T` plies of an
iteration, `G` games, `A` actions.
"""

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import optax
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from rich.console import Console
from study import RESULTS, run_study, write_results

import azjax
from azjax.networks import Resnet
from azjax.runs.compiled_run import compile_run
from azjax.runs.throughput import median_seconds
from azjax.training import Config, Hyper

NETWORKS = (
    ("resnet", 64, 4, "float32"),
    ("resnet", 64, 4, "bfloat16"),
    ("resnet", 16, 1, "float32"),
    ("mlp", 64, 2, "float32"),
)
RIVAL = "pgx + mctx"
RIVAL_WITH_FLAX = "pgx + mctx, convolutions of Flax"
NETWORK_CALLS = 20


def main(
    num_simulations: int = 32,
    num_games: int = 256,
    plies: int = 8,
    batch_size: int = 512,
    rounds: int = 3,
    output: Path = RESULTS / "self_play_speed.json",
) -> None:
    """Measures both loops and writes the results.

    Args:
      num_simulations: simulations of each search.
      num_games: G, games side by side.
      plies: T, plies of an iteration.
      batch_size: positions of an optimizer step.
      rounds: iterations of each side, in turn; the result is the median.
      output: file of the results.
    """
    console = Console()
    counts = sorted({1, jax.local_device_count()})
    rows = []
    for network, width, depth, precision in NETWORKS:
        config = Config(
            network=network,
            width=width,
            depth=depth,
            precision=precision,
            policy="gumbel",
            num_simulations=num_simulations,
            num_games=num_games,
            steps_per_iteration=plies,
            updates_per_iteration=num_games * plies // batch_size,
            batch_size=batch_size,
            hyper=Hyper(l2=0.0),
        )
        rows += measure(config, counts, rounds)
        for row in rows[-len(counts) :]:
            console.print(row)
    settings = {"num_simulations": num_simulations, "num_games": num_games, "plies": plies, "batch_size": batch_size}
    write_results(output, "self_play_speed.py", {"game": "connect_four", **settings}, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def measure(config: Config, counts: Sequence[int], rounds: int, with_flax: bool = True) -> list[dict[str, Any]]:
    """Measures the loops with one network, a row for each of `counts`, which are numbers of devices.

    `with_flax`: a residual network runs in the rival also with the convolutions of Flax.
    """
    loops: dict[tuple[str, int], Callable[[], Any]] = {}
    for devices in counts:
        loops["azjax", devices] = azjax_loop(config, devices)
        loops[RIVAL, devices] = pgx_loop(config, devices)
        if with_flax and config.network == "resnet":
            of_flax = config.replace(network=FlaxResnet(config.width, config.depth, config.precision))
            loops[RIVAL_WITH_FLAX, devices] = pgx_loop(of_flax, devices)
    for run in loops.values():
        for _ in range(2):
            run()  # compiles
    seconds: dict[tuple[str, int], list[float]] = {side: [] for side in loops}
    for _ in range(rounds):
        for side, run in loops.items():
            began = time.perf_counter()
            run()
            seconds[side].append(time.perf_counter() - began)
    alone, rows = network_rate(config), []
    for devices in counts:
        rates = {
            name: config.num_games * config.steps_per_iteration / statistics.median(times)
            for (name, count), times in seconds.items()
            if count == devices
        }
        rows.append(
            {
                "network": config.network,
                "width": config.width,
                "depth": config.depth,
                "precision": config.precision,
                "devices": devices,
                "positions_per_second": {name: round(rate, 1) for name, rate in rates.items()},
                "ratio": {name: round(rates["azjax"] / rates[name], 2) for name in list(rates)[1:]},
                "network_positions_per_second": round(alone),
            }
        )
    return rows


@dataclasses.dataclass(frozen=True)
class FlaxResnet(Resnet):
    """The same network with the convolutions of Flax, which are XLA's."""

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        module = super().module(rngs)
        for _, layer in nnx.iter_graph(module):
            if isinstance(layer, nnx.Conv):
                layer.conv_general_dilated = jax.lax.conv_general_dilated
        return module


def azjax_loop(config: Config, devices: int) -> Callable[[], Any]:
    """A function that runs one iteration of azjax."""
    compiled_run = compile_run(azjax.make("connect_four"), config.static, devices)
    hyper = jax.tree.map(jnp.float32, config.hyper)
    state = compiled_run.begin(jnp.uint32(0), hyper)
    learns = False

    def run() -> None:
        nonlocal state, learns
        state, metrics = jax.block_until_ready(compiled_run.iterate(state, hyper))
        learns = bool(jnp.isfinite(metrics["loss"]))

    # The replay is empty until the first games end.
    while not learns:
        run()
    return run


class Played(NamedTuple):
    """The data of the rival's self-play, every leaf [T, G, ...]."""

    observation: jax.Array
    weights: jax.Array
    reward: jax.Array
    terminated: jax.Array


def pgx_loop(config: Config, devices: int) -> Callable[[], Any]:
    """A function that runs one iteration of pgx and mctx."""
    state, iterate = pgx_learner("connect_four", config, devices)

    def run() -> None:
        nonlocal state
        state = iterate(state)

    return run


class PgxLearner(NamedTuple):
    """What the rival keeps from iteration to iteration."""

    key: jax.Array
    variables: Any
    optimizer_state: Any


def pgx_learner(env_id: str, config: Config, devices: int = 1) -> tuple[PgxLearner, Callable[[PgxLearner], PgxLearner]]:
    """The untrained rival in a game of pgx, and a function that runs one iteration."""
    import pgx  # the import starts the devices of JAX
    from pgx.experimental import auto_reset

    mesh = Mesh(jax.local_devices()[:devices], ("games",), axis_types=(AxisType.Auto,))
    whole, by_game = PartitionSpec(), PartitionSpec("games")
    env, game = pgx.make(env_id), azjax.make(f"pgx:{env_id}")
    network = config.make_network(game)
    games, plies, games_here = config.num_games, config.steps_per_iteration, config.num_games // devices
    optimizer = optax.adam(config.hyper.learning_rate)

    def evaluate(variables: Any, state: Any) -> tuple[jax.Array, jax.Array]:
        output, _ = network.apply(variables, state.observation.astype(jnp.float32), train=False)
        logits = output.prior_logits
        return jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min), output.value

    def recurrent_fn(variables: Any, key: jax.Array, action: jax.Array, state: Any) -> tuple[Any, Any]:
        del key
        following = jax.vmap(env.step)(state, action)
        logits, value = evaluate(variables, following)
        output = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(following.rewards, state.current_player[:, None], axis=1)[:, 0],
            discount=jnp.where(following.terminated, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(following.terminated, 0.0, value),
        )
        return output, following

    @jax.jit
    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(whole, by_game), out_specs=PartitionSpec(None, "games"), check_vma=False
    )
    def self_play(variables: Any, keys: jax.Array) -> Played:
        def play(state: Any, key: jax.Array) -> tuple[Any, Played]:
            search_key, reset_key = jax.random.split(key)
            logits, value = evaluate(variables, state)
            result = mctx.gumbel_muzero_policy(
                params=variables,
                rng_key=search_key,
                root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
                recurrent_fn=recurrent_fn,
                num_simulations=config.num_simulations,
                invalid_actions=~state.legal_action_mask,
                qtransform=mctx.qtransform_completed_by_mix_value,
            )
            step = jax.vmap(auto_reset(env.step, env.init))
            following = step(state, result.action, jax.random.split(reset_key, games_here))
            reward = jnp.take_along_axis(following.rewards, state.current_player[:, None], axis=1)[:, 0]
            return following, Played(state.observation, result.action_weights, reward, following.terminated)

        start_key, play_key = jax.random.split(keys[0])
        state = jax.vmap(env.init)(jax.random.split(start_key, games_here))
        return jax.lax.scan(play, state, jax.random.split(play_key, plies))[1]

    @jax.jit
    def targets(played: Played) -> tuple[jax.Array, jax.Array]:
        """The value targets [T, G], and bool [T, G]: the game of the target ended."""

        def backward(following: tuple, step: tuple) -> tuple[tuple, tuple]:
            (value, valid), (reward, terminated) = following, step
            here = jnp.where(terminated, reward, reward - value), valid | terminated
            return here, here

        begin = jnp.zeros(games), jnp.zeros(games, bool)
        return jax.lax.scan(backward, begin, (played.reward, played.terminated), reverse=True)[1]

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def learn(variables: Any, optimizer_state: Any, batch: tuple) -> tuple[Any, Any, jax.Array]:
        observation, weights, value_target, valid = batch

        def loss(params: Any) -> tuple[jax.Array, Any]:
            whole = {"params": params, "batch_stats": variables["batch_stats"]}
            output, new = network.apply(whole, observation.astype(jnp.float32), train=True)
            policy_loss = optax.softmax_cross_entropy(output.prior_logits, weights)
            value_loss = optax.l2_loss(output.value, value_target) * valid
            return jnp.mean(policy_loss) + jnp.mean(value_loss), new["batch_stats"]

        (total, batch_stats), gradient = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        params = optax.apply_updates(variables["params"], updates)
        return {"params": params, "batch_stats": batch_stats}, optimizer_state, total

    def iterate(learner: PgxLearner) -> PgxLearner:
        variables, optimizer_state = learner.variables, learner.optimizer_state
        key, play_key, shuffle_key = jax.random.split(learner.key, 3)
        played = self_play(variables, jax.random.split(play_key, devices))
        samples = jax.device_get((played.observation, played.weights, *targets(played)))
        order = jax.device_get(jax.random.permutation(shuffle_key, games * plies))
        samples = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[order], samples)
        for begin in range(0, games * plies, config.batch_size):
            batch = jax.tree.map(lambda leaf: leaf[begin : begin + config.batch_size], samples)
            batch = jax.device_put(batch, NamedSharding(mesh, by_game))
            variables, optimizer_state, _ = learn(variables, optimizer_state, batch)
        return jax.block_until_ready(PgxLearner(key, variables, optimizer_state))

    variables = jax.device_put(network.init(jax.random.key(1), game), NamedSharding(mesh, whole))
    return PgxLearner(jax.random.key(0), variables, optimizer.init(variables["params"])), iterate


def network_rate(config: Config) -> float:
    """Positions per second of the network alone, at the batch size of self-play."""
    game = azjax.make("connect_four")
    network = config.make_network(game)
    variables = network.init(jax.random.key(0), game)
    observations = jnp.zeros((config.num_games, *game.observation_shape), jnp.float32)
    apply = jax.jit(lambda variables, observations: network.apply(variables, observations, train=False)[0])
    return config.num_games / median_seconds(lambda: apply(variables, observations), NETWORK_CALLS)


if __name__ == "__main__":
    run_study(main)
