"""Trained agents that come with the package: `NAME.npz`, an archive of `azjax.games`, and its model card `NAME.md`.

`experiments/packaged_agents.py` made them.
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation.archive import game_of_archive, load_archive, save_archive
from azjax.games.game import Game
from azjax.networks import Network, Variables, make_network

FOLDER = Path(__file__).parent
_KIND = "agent"


@dataclasses.dataclass(frozen=True)
class Agent:
    """A trained network and what it was trained for.

    Attributes:
      game: what it plays.
      network: its shape.
      variables: of the network, float32.
      c_puct: weight of exploration in its searches.
    """

    game: Game
    network: Network
    variables: Variables
    c_puct: float


def packaged() -> list[str]:
    """The names of the agents, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def load_agent(name: str) -> Agent:
    """Reads an agent, and checks all of its bytes.

    Raises:
      ValueError: an unknown name, or a damaged file.
    """
    game, manifest, arrays = load_archive(FOLDER / f"{name}.npz", _KIND)
    return Agent(game, make_network(**manifest["network"]), _nested(arrays), manifest["c_puct"])


def game_of_agent(name: str) -> Game:
    """What the agent plays; errors are those of `load_agent`."""
    return game_of_archive(FOLDER / f"{name}.npz", _KIND)


def save_agent(name: str, game: Game, network: dict[str, Any], variables: Variables, c_puct: float) -> Path:
    """Writes an agent to its file, whole or not at all.

    Args:
      name: of the agent.
      game: what it plays.
      network: `name`, `width` and `depth`, as `azjax.networks.make_network` takes them.
      variables: of the network. Matrices and kernels are rounded to bfloat16, as products in that precision do too.
      c_puct: weight of exploration in its searches.

    Returns:
      the file.

    Raises:
      ValueError: a weight that is not finite.
      OSError: it could not be written; what stood there before stays.
    """
    path = FOLDER / f"{name}.npz"
    arrays = {leaf: _packed(leaf, np.asarray(array, np.float32)) for leaf, array in _flat(variables).items()}
    save_archive(path, _KIND, game, {"network": network, "c_puct": c_puct}, arrays)
    return path


def _packed(name: str, array: np.ndarray) -> np.ndarray:
    """In bfloat16 what has two or more axes, nearly all of the bytes: uint8 [2, ...], low bytes and high ones.

    High bytes are much alike, so that apart from the others they are compressed well.
    """
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a weight that is not finite")
    if array.ndim < 2:
        return array
    return np.moveaxis(array.astype(jnp.bfloat16)[..., None].view(np.uint8), -1, 0)


def _unpacked(array: np.ndarray) -> np.ndarray:
    """float32: what `_packed` packed."""
    if array.dtype == np.float32:
        return array
    return np.ascontiguousarray(np.moveaxis(array, 0, -1)).view(jnp.bfloat16)[..., 0].astype(np.float32)


def _flat(variables: Variables, path: str = "") -> dict[str, Any]:
    """Leaves by their path, such as `params/policy/kernel`."""
    leaves: dict[str, Any] = {}
    for name, value in variables.items():
        leaves |= _flat(value, f"{path}{name}/") if isinstance(value, dict) else {f"{path}{name}": value}
    return leaves


def _nested(leaves: dict[str, np.ndarray]) -> Variables:
    """What `_flat` flattened, in single precision."""
    variables: Variables = {"params": {}, "batch_stats": {}}
    for path, leaf in leaves.items():
        *parents, name = path.split("/")
        inner = variables
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = _unpacked(leaf)
    return variables
