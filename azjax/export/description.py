"""What a program needs to know of an exported network: its input, its outputs, the actions and the symmetries."""

import hashlib
import inspect
import json
from typing import Any

import jax
import numpy as np

from azjax.core.version import __version__
from azjax.export.positions import evaluation, in_float32
from azjax.games.protocols import action_to_text, legal_actions, without_history
from azjax.games.registry import options_of
from azjax.networks import Network, Variables
from azjax.packaged import Agent

INPUT = "observations"
FILES = "files"
_MEANINGS = {
    "prior_logits": "of all actions, legal or not; a softmax over the legal ones is the policy",
    "value": "expected result for the player to move, from -1 (lost) to 1 (won)",
}


def describe(agent: Agent, name: str) -> dict[str, Any]:
    """The description of an agent, without its files."""
    game = agent.game
    start = without_history(game, game.init(jax.random.key(0)))
    _, permutation = game.symmetries(start)
    about = inspect.getdoc(inspect.getmodule(type(game))) or ""
    description = {
        "azjax": __version__,
        "player": name,
        "game": {
            "name": game.name,
            "options": options_of(game),
            "about": about,
        },
        "network": str(agent.network),
        "variables_sha256": _digest(agent.variables),
        **_precisions(agent.network),
        "input": {
            "name": INPUT,
            "shape": ["batch", *game.observation_shape],
            "dtype": "float32",
            "about": inspect.getdoc(type(game).observe) or "",
        },
        "outputs": _outputs(agent),
        "actions": {
            "count": game.num_actions,
            "at_the_start": {str(action): action_to_text(game, start, action) for action in legal_actions(game, start)},
        },
        "symmetries": {
            "count": len(permutation),
            "about": "action a is action permutation[s][a] of the start position under symmetry s",
            "permutation": np.asarray(permutation).tolist(),
        },
    }
    as_read: dict[str, Any] = json.loads(json.dumps(description))
    return as_read


def describe_file(format: str, content: bytes) -> dict[str, Any]:
    """The entry of one file."""
    return {"format": format, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _digest(variables: Variables) -> str:
    """Tells the variables of two checkpoints apart."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        array = np.asarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _precisions(network: Network) -> dict[str, str]:
    """The precision in the files and in azjax; nothing of a network that does not name its own."""
    precision = getattr(network, "precision", None)
    return {} if precision is None else {"computes_in": "float32", "azjax_computes_in": precision}


def _outputs(agent: Agent) -> list[dict[str, Any]]:
    one = jax.ShapeDtypeStruct((1, *agent.game.observation_shape), np.float32)
    outputs = jax.eval_shape(evaluation(in_float32(agent.network), agent.variables), one)
    return [
        {
            "name": name,
            "shape": ["batch", *array.shape[1:]],
            "dtype": str(array.dtype),
            "about": _MEANINGS.get(name, "an auxiliary output of the network"),
        }
        for name, array in sorted(outputs.items())
    ]
