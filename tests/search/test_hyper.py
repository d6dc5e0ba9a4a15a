"""The numbers of a search: what is refused, and what is left to the caller."""

import jax
import jax.numpy as jnp
import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.search import SearchHyper, alphazero_policy, evaluators, gumbel_policy, uct_policy

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *[(name, NAN) for name in ("c_puct", "first_play_urgency", "temperature", "value_scale", "exploration")],
        *[("c_puct", INFINITY), ("c_puct", -1.0), ("gumbel_scale", 10**400), ("temperature", -0.1)],
        *[
            ("dirichlet_fraction", 1.5),
            ("dirichlet_alpha", 0.0),
            ("forced_playouts", -2),
            ("maxvisit_init", -1),
            *[("c_puct", "1"), ("temperature", None), ("rescale_values", "no")],
        ],
    ],
)
def test_a_number_out_of_range_and_a_text_are_refused_by_name(name, number):
    with pytest.raises(InputError, match=f"{name} must be .*, got "):
        SearchHyper(**{name: number})


def test_the_functions_refuse_them_too():
    game = make("tictactoe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1))
    options = {"game": game, "evaluator": evaluators.uniform(game), "num_simulations": 4}
    numbers = {alphazero_policy: "temperature", gumbel_policy: "gumbel_scale", uct_policy: "exploration"}
    for search, name in numbers.items():
        with pytest.raises(InputError, match=f"{name} must be .*, got -1"):
            search(None, jax.random.key(0), states, **options, **{name: -1.0})


def test_what_has_no_end_or_no_value_is_taken_where_it_means_something():
    hyper = SearchHyper(
        temperature=INFINITY, dirichlet_alpha=None, forced_playouts=None, first_play_urgency=-1, c_puct=0
    )
    assert hyper.temperature == INFINITY


def test_arrays_are_not_looked_at_so_that_they_can_be_traced():
    hyper = jax.jit(lambda number: SearchHyper(c_puct=number, temperature=jnp.full(3, number)))(jnp.float32(NAN))
    assert jnp.isnan(hyper.c_puct)
    assert hyper.temperature.shape == (3,)
