"""Whether two games have the same rules, found by playing them."""

import functools
import hashlib
from typing import Any

import jax
import numpy as np

from azjax.games.game import Game

_GAMES, _PLIES = 32, 64


@functools.lru_cache
def rules_fingerprint(game: Game) -> str:
    """16 hexadecimal digits that change with the rules of a game, and stay while only its code does.

    They are of the SHA-256 of all positions, legal actions, observations and rewards of 32 x 64 plies of random
    play, and of the symmetries of the last positions. A rule that matters in none of these is not seen.
    """
    digest = hashlib.sha256()
    # This stream is frozen in NumPy, unlike those of `default_rng`.
    bits = np.random.RandomState(0).randint(0, 2**32, (_PLIES, _GAMES), np.uint32)
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.device_get(_play(game, bits))):
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


@functools.partial(jax.jit, static_argnums=0)
def _play(game: Game, bits: jax.Array) -> Any:
    keys = jax.random.split(jax.random.key(0), _GAMES)

    def play(states: Any, bits: jax.Array) -> tuple[Any, Any]:
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        following = jax.vmap(game.step)(states, actions)
        seen = jax.vmap(lambda state: (without_history(game, state), game.legal_action_mask(state), game.observe(state)))
        return jax.vmap(functools.partial(next_game, game))(keys, following), seen(following)

    last, seen = jax.lax.scan(play, jax.vmap(game.init)(keys), bits)
    return seen, jax.vmap(lambda state: game.symmetries(without_history(game, state)))(last)
