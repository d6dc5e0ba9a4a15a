"""draw_network.py: a perceptron with an auxiliary output."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import optax
from flax import nnx

import azjax
from azjax.networks import NetworkOutput, NnxNetwork, register
from azjax.training import ALPHAZERO_LOSS, LossTerm


@register("draw_mlp")
@dataclasses.dataclass(frozen=True)
class DrawMlp(NnxNetwork):
    width: int = 64
    depth: int = 2

    def module(self, rngs):
        return DrawMlpModule(self, rngs)


class DrawMlpModule(nnx.Module):
    def __init__(self, config, rngs):
        sizes = [math.prod(config.observation_shape), *[config.width] * config.depth]
        layers = itertools.pairwise(sizes)
        self.hidden = nnx.List([nnx.Linear(inputs, outputs, rngs=rngs) for inputs, outputs in layers])
        self.moves = nnx.Linear(config.width, config.num_actions, rngs=rngs)
        self.result = nnx.Linear(config.width, 2, rngs=rngs)

    def __call__(self, observations, train):
        features = observations.reshape(len(observations), -1)
        for layer in self.hidden:
            features = jax.nn.relu(layer(features))
        value, draw = self.result(features).T
        return NetworkOutput(self.moves(features), jnp.tanh(value), {"draw": draw})


def draw_loss(output, targets, params, hyper):
    """Cross-entropy between the logit `draw` and whether the game was drawn."""
    drawn = (targets.outcome == 0).astype(jnp.float32)
    loss = targets.mean(optax.sigmoid_binary_cross_entropy(output.auxiliary["draw"], drawn))
    return 0.1 * loss, {"draw_loss": loss}


LOSS_TERMS = (*ALPHAZERO_LOSS, LossTerm("draw", draw_loss, auxiliary=("draw",)))


def main(folder="runs/draw"):
    game = azjax.make("tictactoe")
    config = azjax.preset(game).replace(network="draw_mlp", width=64, depth=2)
    azjax.train(game, config, folder, loss_terms=LOSS_TERMS)


if __name__ == "__main__":
    main()
