"""Agents as files: an archive `NAME.npz` and a model card `NAME.md`, in the package or in the user's cache."""

import dataclasses
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import platformdirs
from jaxtyping import ArrayLike, Shaped

from azjax.core.errors import InputError
from azjax.evaluation.archive import game_of_archive, load_archive, save_archive
from azjax.games.game import AnyGame
from azjax.networks import Network, Variables, abstract_variables, make_network
from azjax.search import Evaluator, SearchHyper, evaluators

FOLDER = Path(__file__).parent
MAX_UNPACKED_BYTES = 1 << 28
_KIND = "agent"

Stored: TypeAlias = Shaped[np.ndarray, "..."]


@dataclasses.dataclass(frozen=True)
class Agent:
    """A trained network and its game.

    Attributes:
      game: the game that it plays.
      network: without its variables.
      variables: of the network, float32.
      hyper: the numbers of its searches.
      policy: its search, `alphazero` or `gumbel`.
      selection: its rule of selection; see `azjax.search.rules`.
      with_error: its searches count simulations by the errors that the network expects.
      max_num_considered_actions: actions that its searches of Gumbel AlphaZero try at most at the root.
    """

    game: AnyGame
    network: Network
    variables: Variables
    hyper: SearchHyper
    policy: str = "alphazero"
    selection: str = "puct"
    with_error: bool = False
    max_num_considered_actions: int = 16

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates the positions of its searches."""
        return evaluators.network(self.network, self.game, self.with_error)


def packaged() -> list[str]:
    """The names of the packaged agents, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def cache_folder() -> Path:
    """The folder of the agents that were fetched, each in a folder of its name."""
    return platformdirs.user_cache_path("azjax") / "agents"


def fetched() -> list[str]:
    """The names of the agents that were fetched, sorted, without those that the package has too."""
    found = {path.stem for path in cache_folder().glob("*/*.npz") if path.stem == path.parent.name}
    return sorted(found - {*packaged()})


def load_agent(name: str) -> Agent:
    """Reads an agent of the package or of the cache, and checks all of its bytes.

    Raises:
      InputError: an unknown name, or a damaged file.
    """
    return read_agent(_archive(name))


def read_agent(path: Path) -> Agent:
    """Reads the archive of an agent and checks that its variables are those of its network.

    Raises:
      InputError: there is no such file, or it is damaged.
    """
    game, manifest, arrays = load_archive(path, _KIND, lambda game, manifest: MAX_UNPACKED_BYTES)
    try:
        network = make_network(game=game, **manifest["network"])
        agent = Agent(game, network, _nested(arrays), SearchHyper(c_puct=float(manifest["c_puct"])))
        wanted = _shapes(abstract_variables(network, game))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged: its network cannot be made: {error}") from error
    if _shapes(agent.variables) != wanted:
        raise InputError(f"{path} is damaged: its variables are not those of its network")
    for leaf, array in _flat(agent.variables).items():
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {leaf} holds a weight that is not finite")
    return agent


def strength_of(name: str) -> str:
    """The sentence that sums up the strength of an agent: the first of that section of its card.

    Raises:
      InputError: the card cannot be read.
    """
    return _first_sentence(name, "Strength")


def levels_of(name: str) -> str:
    """The points of an agent's levels against each other in a sentence; empty if its card has none.

    Raises:
      InputError: the card cannot be read.
    """
    return _first_sentence(name, "Levels")


def _first_sentence(name: str, section: str) -> str:
    path = _archive(name).with_suffix(".md")
    try:
        card = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return card.partition(f"## {section}\n\n")[2].partition("\n")[0]


def game_of_agent(name: str) -> AnyGame:
    """The game that the agent plays; errors are those of `load_agent`."""
    return game_of_archive(_archive(name), _KIND)


def save_agent(name: str, game: AnyGame, network: dict[str, Any], variables: Variables, c_puct: float) -> Path:
    """Writes an agent to its file in one step, so that the file is never half written.

    It searches with AlphaZero and PUCT, whatever it was trained with.

    Args:
      name: of the agent.
      game: the game that it plays.
      network: the arguments of `azjax.networks.make_network` besides the game.
      variables: of the network. Arrays of two or more axes are rounded to bfloat16.
      c_puct: weight of exploration in its searches.

    Returns:
      the file.

    Raises:
      InputError: a weight that is not finite.
      OSError: the file could not be written; an earlier one is unchanged.
    """
    path = FOLDER / f"{name}.npz"
    arrays = {leaf: _packed(leaf, np.asarray(array, np.float32)) for leaf, array in _flat(variables).items()}
    save_archive(path, _KIND, game, {"network": network, "c_puct": c_puct}, arrays)
    return path


def _archive(name: str) -> Path:
    return cache_folder() / name / f"{name}.npz" if name in fetched() else FOLDER / f"{name}.npz"


def _shapes(variables: Variables) -> dict[str, tuple[int, ...]]:
    return {
        jax.tree_util.keystr(path): tuple(leaf.shape) for path, leaf in jax.tree_util.tree_leaves_with_path(variables)
    }


def _packed(name: str, array: Stored) -> Stored:
    """An array of two or more axes as its low and its high bytes in bfloat16, uint8 [2, ...]; others as they are.

    The high bytes are much alike and compress well on their own.
    """
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a weight that is not finite")
    if array.ndim < 2:
        return array
    return np.moveaxis(array.astype(jnp.bfloat16)[..., None].view(np.uint8), -1, 0)


def _unpacked(array: Stored) -> Stored:
    """The inverse of `_packed`, in float32."""
    if array.dtype == np.float32:
        return array
    unpacked: Stored = np.ascontiguousarray(np.moveaxis(array, 0, -1)).view(jnp.bfloat16)[..., 0].astype(np.float32)
    return unpacked


def _flat(variables: Variables, path: str = "") -> dict[str, ArrayLike]:
    """The leaves by their path, such as `params/policy/kernel`."""
    leaves: dict[str, ArrayLike] = {}
    for name, value in variables.items():
        leaves |= _flat(value, f"{path}{name}/") if isinstance(value, dict) else {f"{path}{name}": value}
    return leaves


def _nested(leaves: dict[str, Stored]) -> Variables:
    """The inverse of `_flat`, in float32."""
    variables: Variables = {"params": {}, "batch_stats": {}}
    for path, leaf in leaves.items():
        *parents, name = path.split("/")
        inner = variables
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = _unpacked(leaf)
    return variables
