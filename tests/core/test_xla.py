"""`one_kernel` and `materialize` change how a function is compiled and none of its results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core import xla
from azjax.core.xla import materialize, one_kernel

KEY = jax.random.key(0)
FLOATS = jax.random.normal(KEY, (5, 7))
INTEGERS = jax.random.randint(KEY, (5, 7), -20, 20)
WORDS = jax.random.bits(KEY, (5, 7))
# XLA makes kernels of small loops by itself, but none of those has a border.
ONE_KERNEL = 'inlineable="false",xla_cpu_small_call="true"'
INDEX = jnp.array([2, 0, 4], jnp.int32)


def compiled(function, *operands):
    return jax.jit(one_kernel(function)).lower(*operands).compile()


def is_one_kernel(function, *operands):
    return ONE_KERNEL in compiled(function, *operands).as_text()


def collatz(count):
    def step(carry):
        number, steps = carry
        following = jnp.where(number % 2 == 0, number // 2, 3 * number + 1)
        return jnp.where(number > 1, following, number), steps + (number > 1)

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0] > 1), step, (count, jnp.zeros_like(count)))[1]


FITTING = {
    "arithmetic": (lambda x: x * 2 - jnp.abs(x) / (1 + x**2), FLOATS),
    "exponentials": (lambda x: jnp.exp(jnp.tanh(x)) + jnp.log1p(jnp.abs(x)), FLOATS),
    "powers and roots": (lambda x: jnp.sqrt(jnp.abs(x)) ** 1.5 + jax.lax.rsqrt(1 + x * x), FLOATS),
    "rounding": (lambda x: jnp.floor(x) + jnp.ceil(x) - jnp.round(3 * x), FLOATS),
    "comparisons": (lambda x: jnp.where((x > 0) & (x != 1) | jnp.isnan(x), x, -x), FLOATS),
    "bits of words": (lambda x: jax.lax.population_count(x ^ (x << 3) | (x >> 5)) + jax.lax.clz(~x), WORDS),
    "bits of floats": (lambda x: jax.lax.bitcast_convert_type(x, jnp.int32) & 1023, FLOATS),
    "integer division": (lambda x: x // 3 + x % 7 - jnp.sign(x), INTEGERS),
    "integer reductions": (lambda x: jnp.sum(x, axis=0) + jnp.max(x, axis=0) - jnp.min(x, axis=0), INTEGERS),
    "any and all": (lambda x: jnp.any(x > 10, axis=1) | jnp.all(x > -19, axis=1), INTEGERS),
    "gather": (lambda x: x[INDEX, 1] + x.at[INDEX].get(mode="promise_in_bounds")[:, 3], FLOATS),
    "slices": (lambda x: jax.lax.dynamic_slice(x, (1, 2), (2, 2)).at[0].get() + x[3, :2], FLOATS),
    "update of a slice": (lambda x: jax.lax.dynamic_update_slice(x, x[:1] + 1, (3, 0)), FLOATS),
    "new shapes": (lambda x: jnp.pad(jnp.concatenate([x.T[::-1], x.T], axis=1).reshape(5, 14), 1), FLOATS),
    "stack": (lambda x: jnp.stack([x, x + 1], axis=1) + jnp.arange(7.0)[None, None], FLOATS),
    "branches": (lambda x: jax.lax.cond(x[0, 0] > 0, lambda: x + 1, lambda: x - 1), FLOATS),
    "switch": (lambda x: jax.lax.switch(x[0, 0] % 3, [lambda: x, lambda: x + 1, lambda: x + 2]), INTEGERS),
    "while": (lambda x: collatz(jnp.abs(x) + 1), INTEGERS),
    "scan": (lambda x: jax.lax.scan(lambda total, row: (total + row, total), jnp.zeros(7), x), FLOATS),
    "random bits": (lambda key: jax.random.bits(jax.random.fold_in(key, 3), (9,)), KEY),
    "random floats": (lambda key: jax.random.uniform(jax.random.split(key)[0], (9,)), KEY),
    "materialized values": (lambda x: materialize((x + 1, x * 2))[0] * 3, FLOATS),
    "one kernel within another": (lambda x: one_kernel(lambda x: x * 3 + 1)(x) - x, FLOATS),
    "several results": (lambda x: (x, x + 1, jnp.float32(3)), FLOATS),
    "a table from outside": (lambda x: np.arange(40, dtype=np.int32)[np.newaxis] * 0 + x[0, 0], INTEGERS),
}


@pytest.mark.parametrize("name", FITTING)
def test_a_fitting_function_is_one_kernel_with_the_same_results(name):
    function, operand = FITTING[name]
    kernel = compiled(function, operand)
    assert (ONE_KERNEL in kernel.as_text()) == xla._IS_TRIED
    expected = jax.jit(function)(operand)
    for result, plain in zip(jax.tree.leaves(kernel(operand)), jax.tree.leaves(expected), strict=True):
        assert result.dtype == plain.dtype
        # A compiler may contract a multiplication and an addition in one of the two.
        np.testing.assert_allclose(result, plain, rtol=3e-7, atol=1e-7)


NOT_FITTING = {
    "matrix product": (lambda x: x @ x.T, FLOATS),
    "sort": (lambda x: jnp.sort(x, axis=0), FLOATS),
    "scatter": (lambda x: x.at[INDEX].add(1.0, mode="drop"), FLOATS),
    "sum of floats": (lambda x: jnp.sum(x, axis=0), FLOATS),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=0), FLOATS),
    "argmax": (lambda x: jnp.argmax(x, axis=0), FLOATS),
    "matrix product in a loop": (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y @ x.T @ x, x), FLOATS),
}


@pytest.mark.parametrize("name", NOT_FITTING)
def test_a_function_that_does_not_fit_stays_as_it_is(name):
    function, operand = NOT_FITTING[name]
    assert not is_one_kernel(function, operand)
    np.testing.assert_array_equal(jax.jit(one_kernel(function))(operand), jax.jit(function)(operand))


def test_a_large_lone_result_is_one_kernel():
    many = jnp.arange(1 << 20, dtype=jnp.int32)
    np.testing.assert_array_equal(compiled(lambda x: x * 3 ^ 5, many)(many), np.arange(1 << 20) * 3 ^ 5)


def test_operands_that_are_not_read_do_no_harm():
    def add(read, unread):
        return read["a"] + 1

    assert is_one_kernel(add, {"a": FLOATS, "b": WORDS}, INTEGERS) == xla._IS_TRIED
    result = jax.jit(one_kernel(add))({"a": FLOATS, "b": WORDS}, INTEGERS)
    np.testing.assert_array_equal(result, FLOATS + 1)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1)])
def test_constant_operands_do_no_harm(shape):
    def add(x):
        return one_kernel(lambda x, zeros: (x + zeros, zeros))(x, jnp.zeros(shape))

    np.testing.assert_array_equal(jax.jit(add)(jnp.ones(shape))[0], np.ones(shape))
    np.testing.assert_array_equal(jax.jit(lambda: add(jnp.ones(shape)))()[0], np.ones(shape))


def test_large_functions_and_other_versions_of_jax_get_the_plain_function(monkeypatch):
    large = jax.jit(one_kernel(lambda x: x + 1, size=1 << 16)).lower(FLOATS)
    assert ONE_KERNEL not in large.compile().as_text()
    monkeypatch.setattr(xla, "_IS_TRIED", False)
    assert not is_one_kernel(lambda x: x + 1, FLOATS)


def test_a_function_that_reads_nothing_returns_its_constant():
    np.testing.assert_array_equal(jax.jit(one_kernel(lambda x: jnp.ones(3)))(FLOATS), np.ones(3))


def test_none_and_nested_structures_pass_through():
    def swap(pair, rest=None):
        return {"first": pair[1], "second": pair[0]}, rest

    result, rest = jax.jit(one_kernel(swap))((FLOATS, INTEGERS), rest=None)
    assert rest is None
    np.testing.assert_array_equal(result["second"], FLOATS)
    np.testing.assert_array_equal(result["first"], INTEGERS)


def test_under_vmap_the_results_are_those_of_each_row():
    def write(row, index):
        return jax.lax.dynamic_update_index_in_dim(row, 9.0, index, axis=0)

    index = jnp.array([0, 3, 6, 2, 1], jnp.int32)
    expected = np.stack([write(row, at) for row, at in zip(FLOATS, index, strict=True)])
    np.testing.assert_array_equal(jax.jit(jax.vmap(one_kernel(write)))(FLOATS, index), expected)
    np.testing.assert_array_equal(
        jax.vmap(one_kernel(write), in_axes=(0, None))(FLOATS, index[1])[:, 3], np.full(5, 9.0)
    )


def test_it_works_outside_of_jit_and_in_loops():
    np.testing.assert_array_equal(one_kernel(lambda x: x + 1)(FLOATS), FLOATS + 1)
    add_up = one_kernel(lambda total, row: total + row)
    total = jax.jit(lambda: jax.lax.fori_loop(0, 10, lambda row, total: add_up(total, row), jnp.int32(0)))()
    assert int(total) == 45


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_other_platforms_get_the_plain_function(platform):
    lowered = jax.jit(one_kernel(lambda x: materialize(x + 1) * 2)).trace(FLOATS).lower(lowering_platforms=(platform,))
    text = lowered.as_text()
    assert "small_call" not in text
    assert "inlineable" not in text


def test_materialized_values_are_the_values():
    values = {"a": FLOATS, "b": (INTEGERS, None)}
    for result in (materialize(values), jax.jit(materialize)(values), jax.vmap(materialize)(values)):
        jax.tree.map(np.testing.assert_array_equal, result, values)
    assert materialize(()) == ()
