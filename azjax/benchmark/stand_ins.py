"""Stand-ins of the search benchmark: for a network, and for a game that does not enumerate its own moves.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray, PyTree, UInt32

from azjax.core.bits import mix
from azjax.core.pytree import replace_fields
from azjax.games.game import AnyGame, Game, State


@dataclasses.dataclass(frozen=True)
class peaked:
    """Logits in 0..8 and values in -1..1, hashed from the position. `params` are not read."""

    game: AnyGame

    def __call__(
        self, params: PyTree, key: PRNGKeyArray, states: State
    ) -> tuple[Float32[Array, "B A"], Float32[Array, "B"]]:
        del params, key
        batch = states.terminated.shape[0]
        leaves = jax.tree.leaves(replace_fields(states, rewards=None))
        words = jnp.concatenate([leaf.reshape(batch, -1).astype(jnp.uint32).T for leaf in leaves])
        # A loop, since the unrolled chain of some twenty words takes XLA a minute to compile inside a search.
        start = jnp.zeros(batch, jnp.uint32)
        position, _ = jax.lax.scan(lambda position, word: (mix(position + word), None), start, words)
        actions = jnp.arange(self.game.num_actions, dtype=jnp.uint32)
        logits = 8 * _unit(mix(position[:, None] + jnp.uint32(0x9E3779B9) * (actions[None] + 1)))
        return logits, 2 * _unit(mix(position)) - 1


def with_generic_compaction(game: AnyGame) -> AnyGame:
    """The same rules with the default `legal_slots` of the contract, for a game that overrides it."""
    fields = {field.name: getattr(game, field.name) for field in dataclasses.fields(game)}  # type: ignore[arg-type]
    return _generic(type(game))(**fields)


@functools.cache
def _generic(rules: type[AnyGame]) -> type[AnyGame]:
    # One class for each class of rules, so that equal games stay equal.
    return type(f"{rules.__name__}WithGenericCompaction", (rules,), {"legal_slots": Game.legal_slots})


def _unit(words: UInt32[Array, "*B"]) -> Float32[Array, "*B"]:
    """The upper 24 bits as a number in 0..1."""
    upper: Float32[Array, "*B"] = (words >> jnp.uint32(8)).astype(jnp.float32)
    return upper / 2**24
