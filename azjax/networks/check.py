"""Checks that a network returns what its contract says, without computing anything."""

from typing import Any

import jax
import jax.numpy as jnp

from azjax.core.errors import AzjaxError, InputError
from azjax.core.remember import remember
from azjax.networks.network import GameShape, Network, NetworkOutput, abstract_variables

_BATCH = 3
_OTHER_NAMES = ("observations", "prior_logits", "value")  # in the files of an export


@remember  # an agent is loaded once for each of its levels
def check_network(network: Network, game: GameShape) -> None:
    """Traces `init` and `apply` for `game` and checks the shapes and dtypes of what they return.

    Raises:
      InputError: one of them raises an error, or returns something else than the contract says; the message says what
        was got and what is wanted.
    """
    observations = jax.ShapeDtypeStruct((_BATCH, *game.observation_shape), jnp.float32)
    try:
        variables = abstract_variables(network, game)
    except AzjaxError:
        raise
    except Exception as error:
        raise InputError(f"{network}: init raises {in_one_line(error)}") from error
    _hold(isinstance(variables, dict) and "params" in variables, network, "init", variables, 'a dict with "params"')
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables["params"]):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        _hold(
            leaf.dtype == jnp.float32, network, f"init, the parameter {name},", leaf, "float32, as optimizers need it"
        )
    for train in (False, True):

        def apply(variables: Any, observations: Any, train: bool = train) -> Any:
            return network.apply(variables, observations, train)

        try:
            result = jax.eval_shape(apply, variables, observations)
        except AzjaxError:
            raise
        except Exception as error:
            got = f"float32 {observations.shape}"
            raise InputError(f"{network}: apply raises for observations {got}: {in_one_line(error)}") from error
        is_pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], NetworkOutput)
        _hold(is_pair, network, "apply", result, "a NetworkOutput and the variables")
        output, following = result
        wanted = {"prior_logits": (_BATCH, game.num_actions), "value": (_BATCH,)}
        for name, shape in wanted.items():
            leaf = getattr(output, name)
            is_right = (getattr(leaf, "shape", None), getattr(leaf, "dtype", None)) == (shape, jnp.float32)
            _hold(is_right, network, f"apply, {name} of a batch of {_BATCH},", leaf, f"float32 {shape}")
        is_dict = isinstance(output.auxiliary, dict)
        _hold(is_dict, network, "apply, auxiliary,", output.auxiliary, "a dict of arrays")
        for name, leaf in output.auxiliary.items():
            if name in _OTHER_NAMES:
                raise InputError(f"{network}: the auxiliary output {name!r} has the name of another input or output")
            is_right = getattr(leaf, "shape", ())[:1] == (_BATCH,)
            _hold(is_right, network, f"apply, {name} of a batch of {_BATCH},", leaf, f"a leading axis of {_BATCH}")
        same = _shapes(following) == _shapes(variables)
        _hold(same, network, "apply, the variables,", following, "those of init, with the same shapes and dtypes")


def _hold(condition: bool, network: Network, place: str, got: Any, wanted: str) -> None:
    if not condition:
        raise InputError(f"{network}: {place} returned {_describe(got)}; it must be {wanted}")


def _shapes(variables: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    return {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}


def _describe(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)}"
    return f"{type(value).__name__}({', '.join(map(str, value))})" if isinstance(value, dict) else type(value).__name__


def in_one_line(error: Exception) -> str:
    """The type and the message of an error."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
