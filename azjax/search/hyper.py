"""The numbers of a search. Axis letters: see `tree.py`."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float32, Real, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search.draws import Number

_LARGEST = float(jnp.finfo(jnp.float32).max)  # type: ignore[no-untyped-call]
_RANGES = {
    **dict.fromkeys(("c_puct", "forced_playouts", "gumbel_scale", "exploration"), (0.0, _LARGEST)),
    **dict.fromkeys(("maxvisit_init", "value_scale"), (0.0, _LARGEST)),
    "first_play_urgency": (-_LARGEST, _LARGEST),
    "dirichlet_fraction": (0.0, 1.0),
    "dirichlet_alpha": (float(jnp.finfo(jnp.float32).tiny), _LARGEST),  # type: ignore[no-untyped-call]
    "temperature": (0.0, float("inf")),
}

_OPTIONAL = ("forced_playouts", "dirichlet_alpha")

BY_STATE = ("c_puct", "dirichlet_fraction", "dirichlet_alpha", "temperature", "gumbel_scale")
"""The numbers of `SearchHyper` that may differ from state to state."""


@pytree_dataclass
class SearchHyper:
    """The numbers of a search, traced, so that another value costs no compilation; each policy reads its own.

    A `Number` may be one for all states or [B], one for each (`BY_STATE`). Raises InputError for a plain number out of
    range; arrays are not looked at.

    c_puct: weight of exploration in PUCT.
    first_play_urgency: the value of an action without visits in PUCT, seen by the player to move.
    forced_playouts: each visited action of the root gets at least sqrt(forced_playouts * prior * visits of all) visits,
      and `SearchResult.policy` leaves out those that were forced (Wu 2019, section 3.2, where it is 2); None for none.
    dirichlet_fraction: share of the noise in the root's priors, 0..1.
    dirichlet_alpha: concentration of the noise over the legal actions; 10 / (their number) if None.
    temperature: AlphaZero's action is drawn from visits^(1 / temperature): 0 takes the most visited (the first in
      `legal_slots` on ties), infinity draws uniformly from the legal actions.
    gumbel_scale: of the noise in the root's logits of Gumbel AlphaZero.
    exploration: c in UCB1's mean + c sqrt(ln N / n).
    maxvisit_init: c_visit of Gumbel AlphaZero.
    value_scale: c_scale of Gumbel AlphaZero.
    rescale_values: stretch the completed Q of a node to 0..1, as mctx does.
    """

    c_puct: Number = 1.25
    first_play_urgency: Real[ArrayLike, ""] = 0.0
    forced_playouts: Real[ArrayLike, ""] | None = None
    dirichlet_fraction: Number = 0.25
    dirichlet_alpha: Number | None = None
    temperature: Number = 1.0
    gumbel_scale: Number = 1.0
    exploration: Real[ArrayLike, ""] = 2**0.5
    maxvisit_init: Real[ArrayLike, ""] = 50.0
    value_scale: Real[ArrayLike, ""] = 0.1
    rescale_values: Shaped[ArrayLike, ""] = True

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            number = getattr(self, name)
            if isinstance(number, str) or (number is None and name not in _OPTIONAL):
                raise InputError(f"{name} must be a number, got {number!r}")
            if isinstance(number, int | float) and not low <= number <= high:
                raise InputError(f"{name} must be {low:g}..{high:g}, got {number}")
        if self.rescale_values is None or isinstance(self.rescale_values, str):
            raise InputError(f"rescale_values must be True or False, got {self.rescale_values!r}")


def traced(number: Shaped[ArrayLike, "..."]) -> Float32[Array, "..."]:
    """A float32 array of a number."""
    return jnp.asarray(number, jnp.float32)
