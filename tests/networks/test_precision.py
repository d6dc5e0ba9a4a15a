"""float32 is what it always was; bfloat16 stays close to it and keeps float32 variables and results."""

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.networks import Resnet, SeResnet, make_network

SIZES = {
    "mlp": (16, 2),
    "equivariant_mlp": (16, 2),
    "resnet": (8, 1),
    "se_resnet": (8, 1),
    "board": (8, 1),
    "axial": (8, 1),
}


def _make(name, precision, game):
    width, depth = SIZES[name]
    return make_network(name, game, width=width, depth=depth, precision=precision)


@pytest.fixture(scope="module")
def game():
    return make("tictactoe")


@pytest.fixture(scope="module")
def observations(game):
    return jax.random.bernoulli(jax.random.key(1), 0.5, (8, *game.observation_shape)).astype(jnp.float32)


@pytest.fixture(scope="module")
def trained(game, observations):
    """`trained(name, precision)`: the variables before, and what a batch in training gives; made once each."""
    made = {}

    def run(name, precision):
        if (name, precision) not in made:
            network = _make(name, precision, game)
            variables = network.init(jax.random.key(0), game)
            results = jax.jit(lambda variables: network.apply(variables, observations, train=True))(variables)
            made[name, precision] = variables, results
        return made[name, precision]

    return run


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", SIZES)
def test_variables_logits_and_value_are_float32_in_either_precision(trained, name, precision):
    variables, (output, new_variables) = trained(name, precision)
    assert {leaf.dtype for leaf in jax.tree.leaves(variables)} == {jnp.dtype("float32")}
    assert {leaf.dtype for leaf in jax.tree.leaves(new_variables)} == {jnp.dtype("float32")}
    assert output.prior_logits.dtype == output.value.dtype == jnp.float32


@pytest.mark.parametrize("name", SIZES)
def test_bfloat16_starts_with_the_same_variables_and_gives_nearly_the_same_output(trained, name):
    variables, (output, new_variables) = trained(name, "float32")
    variables_16, (output_16, new_variables_16) = trained(name, "bfloat16")
    jax.tree.map(np.testing.assert_array_equal, variables_16, variables)
    # A bfloat16 number is right to 1 part in 256, and every layer rounds again. Logits are of size 1.
    np.testing.assert_allclose(output_16.prior_logits, output.prior_logits, atol=0.05)
    np.testing.assert_allclose(output_16.value, output.value, atol=0.05)
    stats_16, stats = (new["batch_stats"] for new in (new_variables_16, new_variables))
    jax.tree.map(lambda near, exact: np.testing.assert_allclose(near, exact, atol=0.01), stats_16, stats)
    assert not np.array_equal(output_16.prior_logits, output.prior_logits)


@pytest.mark.parametrize("name", SIZES)
def test_bfloat16_products_are_all_but_the_last_layer_of_the_value(game, observations, name):
    network = _make(name, "bfloat16", game)
    variables = jax.eval_shape(lambda: network.init(jax.random.key(0), game))
    traced = jax.jit(lambda variables: network.apply(variables, observations, train=False)[0]).trace(variables)
    products = [
        {variable.aval.dtype.name for variable in equation.invars}
        for equation in equations(traced.jaxpr.jaxpr)
        if equation.primitive.name in ("dot_general", "conv_general_dilated")
    ]
    assert products[-1] == {"float32"}
    assert all(product == {"bfloat16"} for product in products[:-1])


def equations(jaxpr):
    """Of a program and what it calls, in order."""
    for equation in jaxpr.eqns:
        yield equation
        for called in jax.extend.core.jaxprs_in_params(equation.params):
            yield from equations(called)


def test_the_running_averages_gain_what_bfloat16_cannot_hold():
    # Of ones with a momentum of 0.9, ten times: 1 - 0.9 ** 10. bfloat16 steps there by 1/256.
    class Board:
        observation_shape = (1, 1, 1)
        num_actions = 1

    network = Resnet(width=1, depth=1, precision="bfloat16").for_game(Board())
    variables = network.init(jax.random.key(0), Board())
    variables["params"]["stem"]["conv"]["kernel"] = jnp.ones((3, 3, 1, 1))
    step = jax.jit(lambda variables: network.apply(variables, jnp.ones((2, 1, 1, 1)), train=True)[1])
    for _ in range(10):
        variables = step(variables)
    np.testing.assert_allclose(variables["batch_stats"]["stem"]["norm"]["mean"], 1 - 0.9**10, rtol=1e-6)


# Of the code before networks had a precision, on jax 0.10.2: logits of the second row, values of the first two.
BEFORE = {
    "mlp": (
        [0.3030691, 0.01465132, -0.28681195, -0.20957266, 0.65640044, 0.06376395, 0.21148893, -0.00332969, 0.4060459],
        [-0.16919664, -0.41138616],
    ),
    "resnet": (
        [1.3391477, -0.5535485, 0.91157895, -0.6624281, 1.3313869, 3.2244296, -0.00813025, -0.42319933, -1.1074319],
        [0.15556736, 0.6141994],
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_float32_gives_the_output_that_it_gave_before_there_was_a_choice(trained, name):
    _, (output, _) = trained(name, "float32")
    # The same bits where these were written; another processor may add in another order.
    np.testing.assert_allclose(output.prior_logits[1], BEFORE[name][0], atol=1e-5)
    np.testing.assert_allclose(output.value[:2], BEFORE[name][1], atol=1e-5)


def test_an_unknown_precision_names_the_allowed_ones(game):
    with pytest.raises(ValueError, match=r"unknown precision 'float16'; available: float32, bfloat16"):
        make_network("resnet", game, width=8, depth=1, precision="float16")


def test_the_precision_is_part_of_the_network(game):
    half = SeResnet(8, 1, "bfloat16").for_game(game)
    assert make_network("se_resnet", game, width=8, depth=1, precision="bfloat16") == half
    assert half != SeResnet(8, 1).for_game(game)
