"""Positions in bulk: packed into words, identified by a key, and found ply by ply.

A position's identity is all of its leaves but the rewards. Positions are compared by a 64-bit hash (`keys`); that no
two different positions share one is checked word by word. Axis letters: `B` batch, `K` slots of the compact table of
legal actions, `W` words of a packed state.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, Int32, PyTree, Shaped, UInt32, UInt64

from azjax.core.bits import hash_words
from azjax.core.packing import Packing
from azjax.evaluation.host_games import only_start
from azjax.games.game import AnyGame, Game, S, State, reward_of_mover

HOLE = -1  # in tables by slot: no legal action
_CHILDREN_PER_CALL = 1 << 16
_MERGE_AT = 1 << 20  # rows that wait before they are merged, at least
_REWARD_WORDS = 2


class Layer(NamedTuple):
    """The different positions at one ply, packed, in ascending order of their keys."""

    keys: UInt64[np.ndarray, "B"]
    words: UInt32[np.ndarray, "B W"]

    @property
    def size(self) -> int:
        """B."""
        return len(self.keys)


class Expansion(NamedTuple):
    """Where the actions of a layer lead, by slot.

    Attributes:
      actions: `HOLE` in holes.
      children: index in the next layer, `HOLE` in holes.
      rewards: of the mover, 0 in holes.
    """

    actions: Int32[np.ndarray, "B K"]
    children: Int32[np.ndarray, "B K"]
    rewards: Float32[np.ndarray, "B K"]


class TooManyError(Exception):
    """A layer has grown beyond its limit.

    Attributes:
      count: its positions when the search for more was given up.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def first_layer(game: AnyGame) -> Layer:
    """The start position alone.

    Raises:
      InputError: the game draws its start.
    """
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], only_start(game))
    words = jax.jit(pack)(state)
    return Layer(join(*keys(words)), np.asarray(words))


def expand_layer(game: AnyGame, layer: Layer, limit: int | None = None) -> tuple[Expansion, Layer]:
    """Plays every action in every position of a layer.

    Args:
      game: the rules.
      layer: at least one position.
      limit: positions of the next layer, at most; None for no limit.

    Returns:
      Where the actions lead, and the next layer.

    Raises:
      TooManyError: the next layer is larger than the limit.
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
            merged, waiting = _merge(game, [merged, *waiting], limit), []
    merged = _merge(game, [merged, *waiting], limit)
    actions, valid, rewards = (np.concatenate(parts) for parts in zip(*expansions, strict=True))
    children = np.where(valid, np.searchsorted(merged.keys, np.concatenate(child_keys)), HOLE)
    return Expansion(actions, children.astype(np.int32), rewards), merged


def _merge(game: AnyGame, parts: list[Layer], limit: int | None) -> Layer:
    merged = _distinct(game, np.concatenate([p.keys for p in parts]), np.concatenate([p.words for p in parts]))
    if limit is not None and merged.size > limit:
        raise TooManyError(merged.size)
    return merged


def _distinct(game: AnyGame, keys: UInt64[np.ndarray, "B"], words: UInt32[np.ndarray, "B W"]) -> Layer:
    """The different positions among these."""
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(words[first[inverse], :-_REWARD_WORDS], words[:, :-_REWARD_WORDS]):
        raise RuntimeError(f"{game.name}: two different positions have the same 64-bit key; the hash must change")
    return Layer(unique, words[first])


def batches(states: S, size: int) -> Iterator[tuple[int, S]]:
    """Splits states into batches of one size, so that one compilation serves; the last state pads the last batch.

    Yields:
      The number of rows that are no padding, and the batch: every leaf [size, ...].
    """
    for count, rows in _padded_rows(len(states.terminated), size):
        yield count, jax.tree.map(lambda leaf, rows=rows: np.asarray(leaf)[rows], states)


def unpacked_batches(game: Game[S], words: UInt32[np.ndarray, "n W"]) -> Iterator[tuple[int, S]]:
    """`batches` of packed states, unpacked batch by batch, so that a layer is kept packed."""
    for count, rows in _padded_rows(len(words), max(1, _CHILDREN_PER_CALL // game.max_legal_actions)):
        yield count, unpack(game, words[rows])


def _padded_rows(total: int, size: int) -> Iterator[tuple[int, Int[np.ndarray, "B"]]]:
    for start in range(0, total, size):
        yield min(size, total - start), np.minimum(np.arange(start, start + size), total - 1)


@functools.partial(jax.jit, static_argnums=0)
def _expand(game: AnyGame, states: State) -> tuple[Array, ...]:
    """[B, K]: actions, valid, the mover's rewards; of the children: words [B, K, W] and the halves of their keys."""
    actions, valid = jax.vmap(game.legal_slots)(states)
    children = jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions)
    words = pack(flatten(children))
    packed, high, low = (x.reshape(*valid.shape, *x.shape[1:]) for x in (words, *keys(words)))
    return actions, valid, reward_of_mover(states, children), packed, high, low


def flatten(states: S) -> S:
    """Merges the two leading axes of every leaf."""
    flat: S = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
    return flat


def pack(states: State) -> UInt32[Array, "B W"]:
    """The words of all leaves; the rewards, which are no part of the position, come last."""
    leaves, _ = _rewards_last(jax.tree.map(jnp.asarray, states))
    return Packing.of(leaves).pack(leaves)


def unpack(game: Game[S], words: UInt32[np.ndarray, "B W"], like: S | None = None) -> S:
    """The states that `pack` made these words of. They are `like` that one, such as one without history."""
    example = jax.eval_shape(game.init, jax.random.key(0)) if like is None else like
    leaves, order = _rewards_last(example)
    unpacked = _unpack(Packing.of_state(leaves), words)
    states: S = jax.tree.unflatten(jax.tree.structure(example), [unpacked[index] for index in np.argsort(order)])
    return states


_unpack = jax.jit(Packing.unpack, static_argnums=0)


def _rewards_last(states: State) -> tuple[list[PyTree], list[int]]:
    """The leaves, the rewards last, and the former index of each."""
    leaves = jax.tree.leaves(states)
    order = sorted(range(len(leaves)), key=lambda index: leaves[index] is states.rewards)
    return [leaves[index] for index in order], order


def keys(words: UInt32[Array, "B W"]) -> tuple[UInt32[Array, "B"], UInt32[Array, "B"]]:
    """The high and the low half of the 64-bit hash that identifies packed positions."""
    return hash_words(words[:, :-_REWARD_WORDS].T)


def join(high: Shaped[Array | np.ndarray, "*B"], low: Shaped[Array | np.ndarray, "*B"]) -> UInt64[np.ndarray, "*B"]:
    """Keys from their halves."""
    joined: np.ndarray = (np.asarray(high).astype(np.uint64) << np.uint64(32)) | np.asarray(low)
    return joined
