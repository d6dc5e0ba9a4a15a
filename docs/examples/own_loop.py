"""A learning loop of your own: Gumbel AlphaZero learns tic-tac-toe."""

import jax
import jax.numpy as jnp
import optax

import azjax
from azjax.evaluation import exact_report, network_player, solve
from azjax.games import random_legal_action
from azjax.networks import make_network

ITERATIONS, GAMES, SIMULATIONS = 40, 128, 16
KEPT, UPDATES, BATCH = 8, 40, 256  # iterations in the replay, optimizer steps of an iteration, positions of a step
game = azjax.make("tictactoe")
network = make_network("mlp", game, width=64, depth=2)
evaluator = azjax.evaluators.network(network, game)
optimizer = optax.adam(3e-3)


def play(variables, key):
    """Whole games of self-play. A fifth of the moves is random, so that many kinds of positions occur."""

    def ply(states, key):
        search_key, random_key, choice_key = jax.random.split(key, 3)
        options = {"game": game, "evaluator": evaluator, "num_simulations": SIMULATIONS}
        result = azjax.gumbel_policy(variables, search_key, states, **options)
        random_keys = jax.random.split(random_key, GAMES)
        at_random = jax.vmap(lambda key, state: random_legal_action(game, key, state))(random_keys, states)
        action = jnp.where(jax.random.bernoulli(choice_key, 0.2, (GAMES,)), at_random, result.action)
        following = jax.vmap(game.step)(states, action)
        observation, legal = jax.vmap(game.observe)(states), jax.vmap(game.legal_action_mask)(states)
        return following, (observation, legal, result.policy, states.current_player, following.rewards)

    start_key, play_key = jax.random.split(key)
    starts = jax.vmap(game.init)(jax.random.split(start_key, GAMES))
    _, (observation, legal, policy, player, rewards) = jax.lax.scan(
        ply, starts, jax.random.split(play_key, game.max_plies)
    )
    results = rewards.sum(axis=0)  # of both players in each game; there are no rewards after the end
    outcome = jnp.where(player == 0, results[:, 0], results[:, 1])
    return {"observation": observation, "legal": legal, "policy": policy, "outcome": outcome}  # [plies, GAMES, ...]


def loss(params, variables, batch):
    """(z - v)^2 - pi . log p of the positions that are not after the end, and the variables with running averages."""
    output, updated = network.apply(variables | {"params": params}, batch["observation"], train=True)
    log_policy = jax.nn.log_softmax(jnp.where(batch["legal"], output.prior_logits, -1e9))
    each = (batch["outcome"] - output.value) ** 2 - (batch["policy"] * log_policy).sum(axis=1)
    return jnp.mean(each, where=batch["legal"].any(axis=1)), updated


@jax.jit
def iterate(variables, optimizer_state, replay, number, key):
    """Games into the replay, then optimizer steps on positions drawn from it."""
    play_key, learn_key = jax.random.split(jax.random.fold_in(key, number))
    replay = jax.tree.map(lambda ring, new: ring.at[number % KEPT].set(new), replay, play(variables, play_key))
    positions = jax.tree.map(lambda ring: ring.reshape(-1, *ring.shape[3:]), replay)
    num_positions = jnp.minimum(number + 1, KEPT) * game.max_plies * GAMES

    def update(learner, key):
        variables, optimizer_state = learner
        drawn = jax.random.randint(key, (BATCH,), 0, num_positions)
        batch = jax.tree.map(lambda leaf: leaf[drawn], positions)
        gradient, updated = jax.grad(loss, has_aux=True)(variables["params"], variables, batch)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (updated | {"params": optax.apply_updates(variables["params"], updates)}, optimizer_state), None

    keys = jax.random.split(learn_key, UPDATES)
    (variables, optimizer_state), _ = jax.lax.scan(update, (variables, optimizer_state), keys)
    return variables, optimizer_state, replay


def mistakes(variables, solution):
    """In how many of all positions the network alone plays a move that loses value."""
    return exact_report(network_player(game, network, variables), solution, jax.random.key(0)).mistakes.count


def main():
    solution, key = solve(game), jax.random.key(0)
    variables = network.init(key, game)
    optimizer_state = optimizer.init(variables["params"])
    replay = jax.tree.map(lambda leaf: jnp.zeros((KEPT, *leaf.shape), leaf.dtype), jax.eval_shape(play, variables, key))
    for number in range(ITERATIONS):
        if number % 10 == 0:
            print(f"{number} iterations: {mistakes(variables, solution):.0f} mistakes")
        variables, optimizer_state, replay = iterate(variables, optimizer_state, replay, number, key)
    print(f"{ITERATIONS} iterations: {mistakes(variables, solution):.0f} mistakes")


if __name__ == "__main__":
    main()
