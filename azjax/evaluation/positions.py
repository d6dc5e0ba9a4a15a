"""Positions in bulk: packed to words, told apart by key, and found ply by ply.

A position's identity is the bytes of all its leaves but the rewards. Positions are compared by a 64-bit hash of
them (`keys`), and no two that are found may share one, which is checked byte by byte. Axis letters: `B` batch,
`K` slots of the compact table of legal actions, `W` words of a packed state, `n` positions of a ply.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.bitboard import hash_words
from azjax.games.game import Game

HOLE = -1  # in tables by slot: no legal action
_CHILDREN_PER_CALL = 1 << 16
_MERGE_AT = 1 << 20  # rows that wait before they are merged, at least
_REWARD_WORDS = 2


class Layer(NamedTuple):
    """The different positions at one ply, ascending by key: keys uint64 [n], words uint32 [n, W]."""

    keys: np.ndarray
    words: np.ndarray

    @property
    def size(self) -> int:
        """n."""
        return len(self.keys)


class Expansion(NamedTuple):
    """Where the actions of a layer lead, by slot: arrays [n, K].

    Attributes:
      actions: int32; `HOLE` in holes.
      children: int32; place in the next layer, `HOLE` in holes.
      rewards: float32; of the mover, 0 in holes.
    """

    actions: np.ndarray
    children: np.ndarray
    rewards: np.ndarray


def first_layer(game: Game) -> Layer:
    """The start position alone."""
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], game.init(jax.random.key(0)))
    words = jax.jit(pack)(state)
    return Layer(join(*keys(words)), np.asarray(words))


def expand_layer(game: Game, layer: Layer, most: int | None = None) -> tuple[Expansion, Layer]:
    """Plays every action in every position of a layer.

    Args:
      game: the rules.
      layer: n positions, at least 1.
      most: positions of the next layer to give up at; None for no limit.

    Returns:
      Where the actions lead, and the next layer.

    Raises:
      TooManyError: the next layer is larger than `most`.
      RuntimeError: two different positions have one key.
    """
    expansions, child_keys = [], []
    merged = Layer(layer.keys[:0], layer.words[:0])
    waiting: list[Layer] = []
    for size, states in unpacked_batches(game, layer.words):
        actions, valid, rewards, words, *halves = (np.asarray(x)[:size] for x in _expand(game, states))
        child_keys.append(np.where(valid, join(*halves), 0))
        expansions.append((np.where(valid, actions, HOLE), valid, np.where(valid, rewards, 0)))
        waiting.append(_distinct(game, join(*halves)[valid], words[valid]))
        # Merged when as much waits as is merged already, so that the work stays linear but for a logarithm.
        if sum(part.size for part in waiting) > max(merged.size, _MERGE_AT):
            merged, waiting = _merge(game, [merged, *waiting], most), []
    merged = _merge(game, [merged, *waiting], most)
    actions, valid, rewards = (np.concatenate(parts) for parts in zip(*expansions, strict=True))
    children = np.where(valid, np.searchsorted(merged.keys, np.concatenate(child_keys)), HOLE)
    return Expansion(actions, children.astype(np.int32), rewards), merged


class TooManyError(Exception):
    """A layer has grown beyond its limit.

    Attributes:
      count: its positions when the search for more was given up.
    """

    def __init__(self, count: int):
        super().__init__(count)
        self.count = count


def _merge(game: Game, parts: list[Layer], most: int | None) -> Layer:
    merged = _distinct(game, np.concatenate([p.keys for p in parts]), np.concatenate([p.words for p in parts]))
    if most is not None and merged.size > most:
        raise TooManyError(merged.size)
    return merged


def _distinct(game: Game, keys: np.ndarray, words: np.ndarray) -> Layer:
    """The different positions among keys uint64 [n] and words uint32 [n, W]."""
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(words[first[inverse], :-_REWARD_WORDS], words[:, :-_REWARD_WORDS]):
        raise RuntimeError(f"{game.name}: two different positions have the same 64-bit key; the hash must change")
    return Layer(unique, words[first])


def batches(states: Any, size: int) -> Iterator[tuple[int, Any]]:
    """Cuts a batch into pieces of one size, so that one compilation serves; the last state fills up the last piece.

    Yields:
      The number of rows that are not filling, and the piece: NumPy leaves [size, ...].
    """
    for count, rows in _padded_rows(len(states.terminated), size):
        yield count, jax.tree.map(lambda leaf: np.asarray(leaf)[rows], states)


def unpacked_batches(game: Game, words: np.ndarray) -> Iterator[tuple[int, Any]]:
    """`batches` of packed positions uint32 [n, W], unpacked by the piece, so that a layer is held as words alone."""
    for count, rows in _padded_rows(len(words), max(1, _CHILDREN_PER_CALL // game.max_legal_actions)):
        yield count, unpack(game, words[rows])


def _padded_rows(total: int, size: int) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, total, size):
        yield min(size, total - start), np.minimum(np.arange(start, start + size), total - 1)


@functools.partial(jax.jit, static_argnums=0)
def _expand(game: Game, states: Any) -> tuple[chex.Array, ...]:
    """Of B positions: actions, valid, mover's rewards [B, K]; of the children: words [B, K, W], key halves [B, K]."""
    actions, valid = jax.vmap(game.legal_slots)(states)
    children = jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions)
    first_moves = (states.current_player == 0)[:, None]
    rewards = jnp.where(first_moves, children.rewards[..., 0], children.rewards[..., 1])
    words = pack(flatten(children))
    return actions, valid, rewards, *(x.reshape(*valid.shape, *x.shape[1:]) for x in (words, *keys(words)))


def flatten(states: Any) -> Any:
    """Merges the two leading axes of every leaf."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)


def pack(states: Any) -> chex.Array:
    """uint32 [B, W]: the bytes of every leaf; the rewards, which are no part of the position, in the last words."""
    batch = states.terminated.shape[0]

    def to_bytes(leaf: chex.Array) -> chex.Array:
        leaf = leaf.astype(jnp.uint8) if leaf.dtype == jnp.bool_ else leaf
        return jax.lax.bitcast_convert_type(leaf, jnp.uint8).reshape(batch, -1)

    leaves = jax.tree.leaves(dataclasses.replace(states, rewards=None))
    position = jnp.concatenate([to_bytes(jnp.asarray(leaf)) for leaf in leaves], axis=1)
    position = jnp.pad(position, ((0, 0), (0, -position.shape[1] % 4)))
    words = jax.lax.bitcast_convert_type(position.reshape(batch, -1, 4), jnp.uint32)
    return jnp.concatenate([words, jax.lax.bitcast_convert_type(jnp.asarray(states.rewards), jnp.uint32)], axis=1)


def unpack(game: Game, words: np.ndarray) -> Any:
    """The states of `game`, NumPy leaves [B, ...], of which `pack` made these words uint32 [B, W]."""
    leaves, tree = jax.tree.flatten(dataclasses.replace(_state_shape(game), rewards=None))
    position = np.ascontiguousarray(words[:, :-_REWARD_WORDS]).view(np.uint8)
    arrays, start = [], 0
    for leaf in leaves:
        stop = start + leaf.size * leaf.dtype.itemsize
        array = np.ascontiguousarray(position[:, start:stop]).view(leaf.dtype)
        arrays.append(array.reshape(len(words), *leaf.shape))
        start = stop
    rewards = np.ascontiguousarray(words[:, -_REWARD_WORDS:]).view(np.float32)
    return dataclasses.replace(jax.tree.unflatten(tree, arrays), rewards=rewards)


@functools.cache
def _state_shape(game: Game) -> Any:
    return jax.eval_shape(game.init, jax.random.key(0))


def keys(words: chex.Array) -> tuple[chex.Array, chex.Array]:
    """The identity of positions: high and low half, uint32 [B] each, of a 64-bit hash of the words of `pack`.

    Games that number their positions are solved by `numbered` and need none.
    """
    return hash_words(words[:, :-_REWARD_WORDS].T)


def join(high: Any, low: Any) -> np.ndarray:
    """uint64 keys from their halves."""
    return (np.asarray(high).astype(np.uint64) << np.uint64(32)) | np.asarray(low)
