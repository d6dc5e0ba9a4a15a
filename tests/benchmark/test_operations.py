"""Operations are counted by the loops in which they run."""

import jax
import jax.numpy as jnp

from azjax.benchmark.operations import operations_by_loop


def counts_of(outer_sines, inner_sines):
    """Of a loop of additions with so many sines, and a loop within it with others."""

    def sines(count, x):
        for _ in range(count):
            x = jnp.sin(x)
        return x

    def inner(_, x):
        return sines(inner_sines, x)

    def outer(_, x):
        return jax.lax.fori_loop(0, 3, inner, sines(outer_sines, x))

    def program(x):
        # A smaller loop before it is not counted.
        x = jax.lax.fori_loop(0, 3, lambda _, x: jnp.cos(x), x)
        return sines(5, jax.lax.fori_loop(0, 3, outer, x))

    return operations_by_loop(jax.jit(program).trace(jnp.zeros(2)))


def test_each_operation_is_counted_at_its_level():
    outer, inner = counts_of(1, 1)
    assert counts_of(3, 1) == [outer + 2, inner]
    assert counts_of(1, 4) == [outer, inner + 3]
    assert counts_of(5, 2) == [outer + 4, inner + 1]


def test_calls_and_branches_are_counted_where_they_run():
    @jax.jit
    def double(x):
        return x + x

    def program(call):
        def step(_, x):
            x = jax.lax.cond(x[0] > 0, jnp.cos, jnp.sin, x)
            return double(x) if call else x

        return operations_by_loop(jax.jit(lambda x: jax.lax.fori_loop(0, 3, step, x)).trace(jnp.zeros(2)))

    (with_call,), (without,) = program(True), program(False)
    assert with_call == without + 1


def test_a_program_without_loops_has_none():
    assert operations_by_loop(jax.jit(jnp.sin).trace(jnp.zeros(2))) == []
