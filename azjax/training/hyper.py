"""The numbers of a run that an iteration reads as arrays, and that `jax.vmap` may vary."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from azjax.core.errors import InputError
from azjax.core.field_types import check_field_types
from azjax.core.pytree import pytree_dataclass


@pytree_dataclass
class Hyper:
    """Scalars that an iteration reads as arrays, so that another value costs no compilation.

    Attributes:
      learning_rate: of the optimizer, above 0; see `Config.warmup_updates` and `decay_updates`.
      final_learning_rate: the learning rate after `decay_updates`.
      max_gradient_norm: longer gradients are scaled down to this norm; infinity for no limit.
      l2: weight of the squared parameters in the loss.
      ema_decay: decay of the exponential moving average (EMA) of the weights per optimizer step, below 1; a run is
        evaluated and played with these weights. 0 for the latest weights.
      root_value_fraction: share of the search's value in the value target, 0..1; the rest is the game's result.
      td_lambda: the weight of what came later in the game, 0..1: the result of a position is the lambda-return of the
        search's values and the game's result (Sutton and Barto 2018, "Reinforcement Learning", section 12.1), which
        begins here with the value of the position itself, weighted by 1 - `td_lambda`. 1 for the game's result alone,
        0 for the search's value.
      trace_cut: a move of self-play is exploratory if the search's policy gives it less than this share of the highest
        probability, 0..1. The positions before it have the search's value as their result, and not what came after, as
        in Watkins's Q(lambda) (Sutton and Barto 2018, section 12.10). 0 for none. With it, or with `td_lambda` below 1,
        positions before a proven value have that value as their result.
      c_puct: weight of exploration in the search.
      dirichlet_fraction: share of Dirichlet noise in the priors of the root, 0..1.
      dirichlet_alpha: concentration of that noise; 10 / (number of legal actions) if None.
      forced_playouts: see `alphazero_policy`; none if None.
      full_search_fraction: share of the plies with a full search if there are `fast_simulations`, above 0, to 1.
      restart_fraction: share of the games that begin at positions of the replay, 0..1, if there are
        `restart_candidates`.
      gate_threshold: points a game with which new weights pass the gate, 0..1; see `Config.gate_games`.
      gate_tolerance: the rounds of the gate end when the score falls by more than this from one to the next.
      temperature: self-play draws its moves from visits^(1 / temperature); in the Gumbel search it scales the noise.
      temperature_plies: after this many plies of a game, moves are drawn with `late_temperature`; infinity for never.
      late_temperature: the temperature after `temperature_plies`.
      schedule_iterations: iterations in which `temperature` moves linearly to `final_temperature`, and
        `random_start_plies` to `final_random_start_plies`; then both stay there. 0 for no schedule. See
        `azjax.training.schedules`.
      final_temperature: `temperature` after `schedule_iterations`, which are above 0; unchanged if None.
      final_random_start_plies: `random_start_plies` after `schedule_iterations`, likewise, and below the first ones;
        unchanged if None.
    """

    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    max_gradient_norm: float = math.inf
    l2: float = 1e-4
    ema_decay: float = 0.0
    root_value_fraction: float = 0.0
    td_lambda: float = 1.0
    trace_cut: float = 0.0
    c_puct: float = 1.25
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float | None = None
    forced_playouts: float | None = None
    full_search_fraction: float = 0.25
    restart_fraction: float = 0.5
    gate_threshold: float = 0.55
    gate_tolerance: float = 0.03
    temperature: float = 1.0
    temperature_plies: float = math.inf
    late_temperature: float = 0.0
    schedule_iterations: float = 0.0
    final_temperature: float | None = None
    final_random_start_plies: float | None = None


HYPER_FIELDS = {field.name for field in dataclasses.fields(Hyper)}
"""What may differ within a population, apart from the seed."""


class _Range(NamedTuple):
    """The values of a field of `Hyper`: finite numbers of at least 0, unless it says otherwise."""

    zero: bool = True
    above_one: bool = True
    infinite: bool = False


_RANGES = {
    "learning_rate": _Range(zero=False),
    "max_gradient_norm": _Range(zero=False, infinite=True),
    "ema_decay": _Range(above_one=False),
    "root_value_fraction": _Range(above_one=False),
    "td_lambda": _Range(above_one=False),
    "trace_cut": _Range(above_one=False),
    "dirichlet_fraction": _Range(above_one=False),
    "dirichlet_alpha": _Range(zero=False),
    "restart_fraction": _Range(above_one=False),
    "full_search_fraction": _Range(zero=False, above_one=False),
    "gate_threshold": _Range(above_one=False),
    "temperature": _Range(infinite=True),
    "temperature_plies": _Range(infinite=True),
    "late_temperature": _Range(infinite=True),
}
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def check_scalars(hyper: Hyper) -> None:
    """Checks the types and ranges of plain numbers.

    Raises:
      InputError: one is of another type or out of range.
    """
    check_field_types(Hyper, vars(hyper))
    scalars = {name: scalar for name, scalar in dataclasses.asdict(hyper).items() if scalar is not None}
    for name, scalar in scalars.items():
        allowed = _RANGES.get(name, _Range())
        if not (scalar >= 0 and (math.isfinite(scalar) or allowed.infinite)):
            finite = "" if allowed.infinite else "finite "
            raise InputError(f"{name} must be a {finite}number of at least 0, got {scalar}")
        if _LARGEST_FLOAT32 < scalar < math.inf:
            raise InputError(f"{name} must be at most {_LARGEST_FLOAT32:.2g}, got {scalar}")
        if np.float32(scalar) == 0 and not allowed.zero:
            raise InputError(f"{name} must be above 0 in float32, got {scalar}")
        if scalar > 1 and not allowed.above_one:
            raise InputError(f"{name} must be 0..1, got {scalar}")
    if np.float32(hyper.ema_decay) == 1:
        raise InputError(f"ema_decay must be below 1 in float32, got {hyper.ema_decay}: the average would never change")
    if hyper.final_temperature is not None and math.isinf(hyper.temperature):
        raise InputError("temperature must be finite with a final_temperature, got inf")
