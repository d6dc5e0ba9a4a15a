"""Programs of StableHLO as data, and the page's interpreter of them, against JAX."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from node import needs_node, run_programs

from azjax.core.errors import InputError
from azjax.export.program import to_program
from azjax.games.registry import make
from azjax.training import Config

RNG = np.random.default_rng(0)


def integers(*shape, low=-50, high=50, dtype=np.int32):
    return RNG.integers(low, high, shape).astype(dtype)


def words(*shape):
    return RNG.integers(0, 2**32, shape, dtype=np.uint32)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def loop(count, table):
    def body(carry):
        place, found = carry
        return place + 1, found.at[place % 3].add(found[(place + 1) % 3])

    return lax.while_loop(lambda carry: carry[0] < count, body, (jnp.int32(0), table))


def convolution(images, kernel, strides=(1, 1), padding="SAME", groups=1, order=("NHWC", "HWIO", "NHWC")):
    return lax.conv_general_dilated(
        images, kernel, strides, padding, dimension_numbers=order, feature_group_count=groups
    )


EXACT = {
    "arithmetic of integers": (
        lambda x, y: (x + y, x - y, x * y, x // y, x % y, lax.div(x, y), lax.rem(x, y)),
        integers(9),
        integers(9, low=1),
    ),
    "division by zero": (lambda x, y: (lax.div(x, y), lax.rem(x, y)), np.int32([7, -7]), np.int32([0, 0])),
    "overflow": (lambda x, y: (x * y, x + y, -x), np.int32([2**31 - 1, -(2**31)]), np.int32([2**31 - 1, -1])),
    "words": (lambda x, y: (x * y, x + y, x - y, x & y, x | y, x ^ y, ~x, x // y, x % y), words(9), words(9)),
    "shifts": (
        lambda x, y: (x << y, x >> y, lax.shift_right_arithmetic(x.view(jnp.int32), y.view(jnp.int32))),
        words(8),
        np.uint32([0, 1, 5, 31, 32, 33, 200, 7]),
    ),
    "counts of bits": (lambda x: lax.population_count(x), words(9)),
    "bits of numbers": (
        lambda x: (x.view(jnp.uint32), (x.view(jnp.uint32) + 1).view(jnp.float32), x.view(jnp.uint32).view(jnp.uint8)),
        floats(5),
    ),
    "truth": (
        lambda x, y: (x & y, x | y, x ^ y, ~x, x + y, jnp.any(x), jnp.all(y), jnp.sum(x)),
        integers(9, low=0, high=2, dtype=bool),
        integers(9, low=0, high=2, dtype=bool),
    ),
    "comparisons": (
        lambda x, y: (x < y, x <= y, x == y, x != y, x > y, x >= y),
        np.float32([0, 1, np.nan, -0.0]),
        np.float32([1, 1, np.nan, 0]),
    ),
    "conversions": (
        lambda x, y: (
            x.astype(jnp.int32),
            y.astype(jnp.float32),
            y.astype(bool),
            y.astype(jnp.uint32),
            y.astype(jnp.int8),
        ),
        floats(6) * 9,
        integers(6),
    ),
    "arithmetic of floats": (
        lambda x, y: (
            x + y,
            x - y,
            x * y,
            x / y,
            -x,
            abs(x),
            jnp.sign(x),
            jnp.sqrt(abs(x)),
            jnp.floor(x),
            jnp.maximum(x, y),
        ),
        floats(7),
        floats(7),
    ),
    "next floats": (lambda x, y: jnp.nextafter(x, y), np.float32([0, 0, 1, 1, -1, 3]), np.float32([1, -1, 2, 0, 0, 3])),
    "choices": (
        lambda x, y: (
            jnp.where(x > 0, x, y),
            jnp.where(x[0] > 0, x, y),
            jnp.clip(x, -3, 8),
            lax.clamp(y.min(), x, y.max()),
        ),
        integers(8),
        integers(8),
    ),
    "shapes": (
        lambda x: (
            x.T,
            x[None],
            x.reshape(2, -1),
            jnp.flip(x, 1),
            x[1:, ::2],
            jnp.broadcast_to(x, (2, 4, 6)),
            jnp.concatenate([x, x[:2]]),
            jnp.stack([x, x], 1),
        ),
        integers(4, 6),
    ),
    "padding": (
        lambda x: (jnp.pad(x, 2, constant_values=7), lax.pad(x, jnp.int32(-1), [(1, 0, 2), (-1, 2, 0)])),
        integers(3, 4),
    ),
    "counting": (lambda: (jnp.arange(7), lax.broadcasted_iota(jnp.int32, (2, 3, 4), 1))),
    "an empty array": (lambda x: jnp.concatenate([x, jnp.zeros((0, 3), jnp.int32)]), integers(2, 3)),
    "slices that move": (
        lambda x, i, j: (lax.dynamic_slice(x, (i, j), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2] * 2, (j, i))),
        integers(4, 5),
        np.int32(3),
        np.int32(-2),
    ),
    "gathers": (
        lambda x, i: (
            x[i],
            x[:, i % 3],
            x[i % 4, i % 5],
            jnp.take(x, i, axis=0, mode="clip"),
            x.at[i].get(mode="fill", fill_value=9),
            jnp.take_along_axis(x, i[:4, None] % 5, 1),
        ),
        integers(4, 5),
        np.int32([0, 3, -1, 9, 2]),
    ),
    "scatters": (
        lambda x, i: (
            x.at[i].set(7),
            x.at[i].add(1),
            x.at[i % 4, i % 5].multiply(3),
            x.at[:, i % 3].max(20),
            x.at[i].min(-20),
            x.at[i, 1].set(i, mode="drop"),
        ),
        integers(4, 5),
        np.int32([0, 3, -1, 9, 3]),
    ),
    "gathers by row": (
        jax.vmap(lambda x, i: (x[i], x.at[i].add(1), lax.dynamic_slice(x, (i,), (2,)))),
        integers(4, 6),
        np.int32([0, 5, -1, 9]),
    ),
    "reductions": (
        lambda x: (
            x.sum(0),
            x.sum(),
            x.max(1),
            x.min((0, 1)),
            x.prod(1),
            jnp.argmax(x, 1),
            jnp.argmin(x),
            jnp.cumsum(x, 1),
            jnp.any(x > 40, 0),
        ),
        integers(3, 5),
    ),
    "loops": (loop, np.int32(7), integers(3)),
    "counted loops": (lambda x: lax.fori_loop(0, 5, lambda i, s: s * 3 + i, x), np.int32(2)),
    "scans": (lambda x: lax.scan(lambda s, y: (s + y, s * y), jnp.int32(1), x), integers(5)),
    "branches": (
        lambda i, x: lax.switch(i, [lambda y: y + 1, lambda y: y * 2, lambda y: x - y], x[::-1]),
        np.int32(2),
        integers(4),
    ),
    "branches out of range": (
        lambda i, x: lax.switch(i, [lambda y: y + 1, lambda y: y * 2], x),
        np.int32(-5),
        integers(4),
    ),
    "random numbers": (
        lambda key: (
            jax.random.bits(jax.random.wrap_key_data(key), (3,)),
            jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key), 3)),
        ),
        words(2),
    ),
}
ROUNDED = {
    "functions": (
        lambda x: (
            jnp.exp(x),
            jnp.log(abs(x)),
            jnp.tanh(x),
            jax.nn.sigmoid(x),
            jnp.log1p(abs(x)),
            lax.rsqrt(abs(x)),
            abs(x) ** x,
            jax.nn.softmax(x),
        ),
        floats(8),
    ),
    "products": (
        lambda x, y, z: (x @ y, y.T @ x.T, jnp.einsum("ij,kj->ik", x, z), jnp.vdot(x, z)),
        floats(3, 5),
        floats(5, 4),
        floats(3, 5),
    ),
    "products by row": (
        lambda x, y: (jnp.einsum("bij,bjk->bik", x, y), jnp.einsum("bij,bkj->bki", x, y.mT)),
        floats(2, 3, 5),
        floats(2, 5, 4),
    ),
    "convolutions": (
        lambda x, y, z: (
            convolution(x, y),
            convolution(x, y, strides=(2, 1), padding="VALID"),
            convolution(x, z, groups=3),
            convolution(x, y, order=("NHWC", "HWIO", "NCHW")),
        ),
        floats(2, 5, 6, 3),
        floats(3, 2, 3, 4),
        floats(2, 3, 1, 6),
    ),
    "sums": (lambda x: (x.sum(0), x.mean(), x.std(1), jnp.cumsum(x, 0)), floats(6, 9)),
}


def as_bits(array):
    array = np.asarray(array)
    return (array.view(np.uint32) if array.dtype == np.float32 else array).ravel().astype(np.int64).tolist()


def outputs(function, *arguments):
    """Those of JAX, and those of the interpreter with the same dtypes."""
    program = json.loads(json.dumps(to_program(function, *arguments)))
    # As the page's programs: without partitionable random numbers.
    with jax.threefry_partitionable(False):
        wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
    ((found,),) = run_programs(
        [{"program": program, "fixed": 0, "inputs": [list(map(as_bits, jax.tree.leaves(arguments)))]}]
    )
    shaped = []
    for bits, array in zip(found, wanted, strict=True):
        flat = np.array(bits, np.int64)
        read = flat.astype(np.uint32).view(np.float32) if array.dtype == np.float32 else flat.astype(array.dtype)
        shaped.append(read.reshape(array.shape))
    return wanted, shaped


@needs_node
@pytest.mark.parametrize("name", EXACT)
def test_the_interpreter_computes_what_jax_does(name):
    wanted, found = outputs(*EXACT[name]) if isinstance(EXACT[name], tuple) else outputs(EXACT[name])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@needs_node
@pytest.mark.parametrize("name", ROUNDED)
def test_the_interpreter_computes_what_jax_does_up_to_rounding(name):
    for ours, theirs in zip(*reversed(outputs(*ROUNDED[name])), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)


@needs_node
def test_what_depends_on_fixed_inputs_alone_is_kept_between_calls_and_nothing_else():
    def product(matrix, vector):
        return (matrix * 2 + matrix.T).T @ vector

    matrix, vectors = integers(3, 3).astype(np.float32), floats(2, 3)
    calls = [[as_bits(matrix), as_bits(vector)] for vector in vectors]
    program = to_program(product, matrix, vectors[0])
    (found,) = run_programs([{"program": program, "fixed": 1, "inputs": calls}])
    for (bits,), vector in zip(found, vectors, strict=True):
        np.testing.assert_allclose(np.array(bits, np.uint32).view(np.float32), product(matrix, vector), rtol=1e-6)


def test_equal_constants_are_written_once_and_a_repeated_element_as_one():
    sevens = np.full(5, 7, np.int32)
    program = to_program(
        lambda x: x * sevens + sevens.copy() + np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32)
    )
    known = [(program["types"][value], list(elements)) for value, elements in program["constants"]]
    assert known == [(("i32", [5]), [7]), (("i32", [5]), [0, 1, 2, 3, 4])]


def test_a_branch_that_is_known_is_chosen_when_the_program_is_written():
    program = to_program(lambda x: lax.platform_dependent(x, cpu=lambda y: y + 1, default=lambda y: y * 2), np.int32(1))
    assert [operation["op"] for operation in program["operations"]] == ["add"]


def test_a_program_names_the_operation_that_it_cannot_have():
    with pytest.raises(InputError, match=r"a program cannot have the operation stablehlo\.sort"):
        to_program(jnp.sort, floats(4))


def test_a_program_has_no_dilated_convolution():
    def dilated(images):
        return lax.conv_general_dilated(
            images, floats(3, 3, 1, 1), (1, 1), "SAME", rhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    with pytest.raises(InputError, match="a program cannot have a convolution with dilations"):
        to_program(dilated, floats(1, 5, 5, 1))


def test_a_program_has_no_values_of_types_that_browsers_lack():
    with pytest.raises(InputError, match="a program cannot have values of bf16, only f32, i32"):
        to_program(lambda x: x.astype(jnp.bfloat16) * 2, floats(3))


def test_a_function_that_reads_its_arrays_in_python_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"it cannot be a program of arrays: .*array") as refusal:
        to_program(lambda x: np.asarray(x) + 1, np.int32(1))
    assert "\n" not in str(refusal.value)


@needs_node
@pytest.mark.parametrize("name", ["mlp", "equivariant_mlp", "resnet", "se_resnet", "board", "axial"])
def test_each_network_computes_in_the_interpreter_what_it_does_in_jax(name):
    game = make("connect_four")
    network = Config(network=name, width=16, depth=2).make_network(game)
    variables = network.init(jax.random.key(0), game)

    def evaluate(state):
        output, _ = network.apply(variables, game.observe(state)[None], train=False)
        return output.prior_logits, output.value

    state = game.from_text("44536")
    for ours, theirs in zip(*reversed(outputs(evaluate, state)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@needs_node
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tictactoe", {}),
        ("hex", {"size": 4, "swap": True}),
        ("othello", {"size": 4}),
        ("santorini", {"size": 3, "workers": 1}),
    ],
)
def test_rules_are_played_to_the_end_as_in_python(name, options):
    game, key = make(name, **options), jax.random.key(0)
    step = jax.jit(game.step)

    def after(state, action):
        following = step(state, action)
        return following, game.legal_action_mask(following), game.observe(following)

    states, calls, wanted = [game.init(key)], [], []
    while not states[-1].terminated:
        action = np.int32(RNG.choice(np.flatnonzero(game.legal_action_mask(states[-1]))))
        calls.append([as_bits(leaf) for leaf in jax.tree.leaves((states[-1], action))])
        result = after(states[-1], action)
        wanted.append([as_bits(leaf) for leaf in jax.tree.leaves(result)])
        states.append(result[0])
    program = to_program(after, states[0], np.int32(0))
    (found,) = run_programs([{"program": program, "fixed": 0, "inputs": calls}])
    assert found == wanted
