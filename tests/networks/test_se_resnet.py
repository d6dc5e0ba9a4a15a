"""The parts of `se_resnet` against their formulas, and what reaches across the board."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.games.game import Game
from azjax.networks import Resnet, SeResnet, make_network, summarize
from azjax.networks.layers import GlobalPoolingConv, global_pool
from azjax.networks.se_resnet import SqueezeExcitation


class Board(Game):
    """A game of 6 rows, 5 columns, 2 planes and 3 actions, without rules."""

    observation_shape = (6, 5, 2)
    num_actions = 3


Board.__abstractmethods__ = frozenset()


NETWORK = SeResnet(width=8, depth=1).for_game(Board)
RESNET = Resnet(width=8, depth=1).for_game(Board)
# One stone on each square in turn, row by row, then none.
BOARDS = np.append(np.eye(30), np.zeros((1, 30)), axis=0).reshape(31, 6, 5, 1) * np.float32([1, 0])
SQUARES, EMPTY = slice(30), slice(30, 31)


@pytest.fixture(scope="module")
def evaluate():
    """`evaluate(variables, network)`: prior logits and value of `BOARDS`."""

    def outputs(variables, network):
        output, _ = network.apply(variables, jnp.asarray(BOARDS), train=False)
        return output.prior_logits, output.value

    return jax.jit(outputs, static_argnames="network")


def positive_variables(network):
    """Variables above zero, so that no ReLU hides a stone, and a policy that reads square (0, 0) alone."""
    shapes = jax.eval_shape(lambda: network.init(jax.random.key(0), Board()))
    draw = np.random.default_rng(0)
    variables = jax.tree.map(lambda leaf: draw.uniform(0.02, 0.1, leaf.shape).astype(np.float32), shapes)
    # Two policy planes a square, row by row.
    variables["params"]["policy"]["kernel"][2:] = 0
    return variables


CROSSINGS = {
    "the block's pooling": lambda params: params["block_0"]["first"]["pooled_bias"],
    "squeeze-and-excitation": lambda params: params["block_0"]["excitation"]["excite"],
    "the policy's pooling": lambda params: params["policy_conv"]["pooled_bias"],
}


def without(variables, crossings):
    for crossing in crossings:
        CROSSINGS[crossing](variables["params"])["kernel"][:] = 0
    return variables


def visible(output):
    """Whether a stone on the square changes the output: booleans [6, 5]."""
    changed = np.asarray(output[SQUARES] != output[EMPTY])
    return changed.reshape(6, 5, -1).all(axis=-1)


# The squares that three 3x3 convolutions reach from the corner.
NEIGHBOURHOOD = np.outer(np.arange(6) <= 3, np.arange(5) <= 3)


def test_a_block_of_the_resnet_sees_three_squares_far(evaluate):
    np.testing.assert_array_equal(visible(evaluate(positive_variables(RESNET), RESNET)[0]), NEIGHBOURHOOD)


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_each_crossing_alone_lets_a_corner_see_the_whole_board(evaluate, crossing):
    variables = without(positive_variables(NETWORK), CROSSINGS.keys() - {crossing})
    assert visible(evaluate(variables, NETWORK)[0]).all()


def test_without_the_three_crossings_a_corner_sees_three_squares_far(evaluate):
    variables = without(positive_variables(NETWORK), CROSSINGS)
    np.testing.assert_array_equal(visible(evaluate(variables, NETWORK)[0]), NEIGHBOURHOOD)


def test_the_value_sees_every_square_without_them(evaluate):
    assert visible(evaluate(without(positive_variables(NETWORK), CROSSINGS), NETWORK)[1]).all()


def test_global_pooling_is_the_mean_and_the_maximum_of_each_channel():
    planes = jnp.array([[[[1.0, -4], [2, -3]], [[6, -2], [3, -1]]]])
    np.testing.assert_array_equal(global_pool(planes), [[3, -2.5, 6, -1]])


def test_the_pooled_channels_bias_the_others():
    module = GlobalPoolingConv(2, 1, 1, 1, jnp.float32, nnx.Rngs(0))
    module.conv.conv.kernel[...] = jnp.eye(2)[None, None]
    module.pooled_bias.kernel[...] = jnp.array([[10.0], [100]])
    # Channel 0 is pooled: after its ReLU 0, 1, 2, 1, of mean 1 and maximum 2. Channel 1 is biased by 10 + 200.
    planes = jnp.array([[[[-5.0, 0], [1, 1]], [[2, -300], [1, -3]]]])
    expected = np.array([[[[210.0], [211]], [[0], [207]]]])
    # Fresh running averages divide by the root of 1 + 1e-5.
    np.testing.assert_allclose(module(planes, train=False), expected, rtol=1e-4)


def test_squeeze_and_excitation_is_one_scale_and_one_bias_for_each_channel_of_each_board():
    module = SqueezeExcitation(4, 2, jnp.float32, nnx.Rngs(0))
    planes = np.asarray(jax.random.normal(jax.random.key(1), (3, 6, 5, 4)), np.float64)
    kernels = [np.asarray(layer.kernel[...], np.float64) for layer in (module.squeeze, module.excite)]
    excitation = np.maximum(planes.mean((1, 2)) @ kernels[0], 0) @ kernels[1]
    scale, bias = 1 / (1 + np.exp(-excitation[:, :4])), excitation[:, 4:]
    excited = module(jnp.asarray(planes, jnp.float32))
    np.testing.assert_allclose(excited, scale[:, None, None] * planes + bias[:, None, None], atol=1e-5)


def test_squeeze_and_excitation_does_not_know_the_squares():
    module = SqueezeExcitation(4, 2, jnp.float32, nnx.Rngs(0))
    planes = jax.random.normal(jax.random.key(1), (1, 30, 1, 4))
    order = np.random.default_rng(0).permutation(30)
    np.testing.assert_allclose(module(planes[:, order]), module(planes)[:, order], atol=1e-6)


def test_the_summary_counts_the_parameters():
    parameters = (
        (9 * 2 * 8 + 2 * 8)  # stem: 3x3, 2 planes to 8, scale and bias of the normalization
        + (9 * 8 * 8 + 2 * 8)  # block, first: to 6 channels and 2 pooled ones
        + 4 * 6  # their means and maxima bias the 6
        + (9 * 6 * 8 + 2 * 8)  # block, second
        + (8 * 2 + 2)  # squeeze
        + (2 * 16 + 16)  # excite: 8 scales and 8 biases
        + (8 * 4 + 2 * 4)  # policy: 1x1, to 2 planes and 2 pooled ones
        + 4 * 2
        + (60 * 3 + 3)  # 30 squares of 2 planes to 3 actions
        + (8 * 2 + 2 * 2)  # value: 1x1, to 2 planes, both pooled
        + (4 * 8 + 8)  # hidden
        + (8 + 1)
    )
    summary = summarize(NETWORK, Board())
    assert parameters == 1590
    assert summary.startswith("SeResnet(width=8, depth=1, precision='float32')\n")
    assert summary.endswith("  1,590 parameters")


def test_a_loss_moves_every_parameter():
    variables = positive_variables(NETWORK)
    variables["params"]["policy"]["kernel"][:] = 0.1
    observations = jnp.asarray(np.random.default_rng(1).normal(size=(4, 6, 5, 2)), jnp.float32)

    def loss(params, batch_stats):
        variables = {"params": params, "batch_stats": batch_stats}
        output, _ = NETWORK.apply(variables, observations, train=True)
        return jnp.sum(output.prior_logits**2) + jnp.sum(output.value**2)

    gradient = jax.jit(jax.grad(loss))(variables["params"], variables["batch_stats"])
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        assert np.any(leaf), path


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_lowers_for_accelerators(platform, precision):
    network = make_network("se_resnet", Board(), width=8, depth=1, precision=precision)
    variables = jax.eval_shape(lambda: network.init(jax.random.key(0), Board()))
    traced = jax.jit(lambda variables: network.apply(variables, jnp.asarray(BOARDS), train=True)).trace(variables)
    assert "f64" not in traced.lower(lowering_platforms=(platform,)).as_text()


def test_it_needs_a_board_and_a_channel_beside_the_pooled_one():
    class Flat:
        observation_shape = (4,)
        num_actions = 2

    with pytest.raises(
        ValueError, match=r"se_resnet needs observations .* got shape \(4,\); --network mlp takes any shape"
    ):
        SeResnet().init(jax.random.key(0), Flat())
    with pytest.raises(ValueError, match="se_resnet needs a width of at least 2, got 1"):
        make_network("se_resnet", Board(), width=1, depth=1)
