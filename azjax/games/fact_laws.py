"""The laws of a game's numbers, its start, and the types of what its methods return. `check_game` calls them.

Axis letters: `A` actions, `K` slots, `S` symmetries.
"""

import collections
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.whole_numbers import whole
from azjax.games.game import AnyGame, State
from azjax.games.laws import hold, in_method, leaves_by_name
from azjax.games.protocols import LaidOutGame, actions_in_groups
from azjax.games.registry import available, make, options_of

_REQUIRED = {"current_player": "int32 []", "terminated": "bool []", "rewards": "float32 [2]"}


def check_facts(game: AnyGame) -> None:
    """The laws of the numbers of a game, and of its start."""
    hold(copy.deepcopy(game) == game, "__eq__", "a game equals its copy")
    with in_method("__hash__"):
        hashes = hash(copy.deepcopy(game)), hash(game)
    hold(hashes[0] == hashes[1], "__hash__", "equal games have one hash")
    facts = {}
    for name in ("name", "num_actions", "max_legal_actions", "max_plies", "observation_shape"):
        with in_method(name):
            facts[name] = getattr(game, name)
    hold(isinstance(game.name, str) and bool(game.name), "name", "name is a string", found=f"name is {game.name!r}")
    for name in ("num_actions", "max_legal_actions", "max_plies"):
        _hold_fact(whole(facts[name]) is not None, name, f"{name} is a whole number", facts[name])
        hold(facts[name] >= 1, name, f"{name} is at least 1", found=f"{name} is {facts[name]}")
    shape = facts["observation_shape"]
    is_shape = isinstance(shape, tuple) and all(whole(size) is not None for size in shape)
    _hold_fact(is_shape, "observation_shape", "observation_shape is a tuple of whole numbers", shape)
    if game.name in available():
        with in_method("azjax.make"):
            again = make(game.name, **options_of(game))
        same = type(again) is not type(game) or again == game
        hold(same, "azjax.make", "make(name, **options_of(game)) == game", found=f"it made {again}")
    found = f"max_legal_actions is {game.max_legal_actions} and num_actions {game.num_actions}"
    in_order = game.max_legal_actions <= game.num_actions
    hold(in_order, "max_legal_actions", "max_legal_actions <= num_actions", found=found)
    if isinstance(game, LaidOutGame):
        with in_method("action_layout"):
            layout, (rows, columns, planes) = game.action_layout, game.observation_shape
            actions = actions_in_groups(layout, rows, columns)
            highest = max(group.piece_plane for group in layout)
        for group in layout:
            wanted, given = group.num_actions(rows, columns), len(group.actions)
            found = f"a group of place {group.place!r} has {wanted} actions, and its numbers are {given}"
            hold(given in (0, wanted), "action_layout", "a group has a number for each action", found=found)
        found = f"its groups have {len(actions)} actions, and num_actions is {game.num_actions}"
        hold(len(actions) == game.num_actions, "action_layout", "its groups have all actions", found=found)
        counts = collections.Counter(actions)
        for action in range(game.num_actions):
            found = f"its groups have action {action} {counts[action]} times"
            hold(counts[action] == 1, "action_layout", "its groups have each action once", found=found)
        found = f"piece_plane is {highest}, and an observation has {planes} planes"
        hold(highest < planes, "action_layout", "piece_plane is a plane of the observation", found=found)
    with in_method("init"):
        start, again = (game.init(jax.random.key(0)) for _ in range(2))
    hold(isinstance(start, State), "init", "a state has current_player, terminated and rewards", at=start)
    law = "a state is a frozen dataclass (azjax.core.pytree.pytree_dataclass)"
    hold(dataclasses.is_dataclass(start), "init", law, found=f"init gave a {type(start).__name__}")
    hold_arrays("init", start)
    for name, required in _REQUIRED.items():
        kind = _type(getattr(start, name))
        hold(kind == required, "init", f"{name} is {required}", found=f"{name} is {kind}")
    hold(int(start.current_player) == 0, "init", "player 0 moves first", at=start)
    hold(not bool(start.terminated), "init", "the start is not the end", at=start)
    hold(bool(jnp.all(start.rewards == 0)), "init", "the start has no rewards", at=start)
    same = jax.tree.all(jax.tree.map(np.array_equal, start, again))
    hold(same, "init", "the same key starts the same game", at=start)


def _hold_fact(holds: bool, name: str, law: str, fact: Any) -> None:
    hint = "; it needs @property" if callable(fact) else ""
    hold(holds, name, law, found=f"{name} is {'a method' if callable(fact) else repr(fact)}{hint}")


def hold_arrays(method: str, state: Any) -> None:
    """Raises LawError unless every leaf of the state that a method gave is an array."""
    for leaf in jax.tree.leaves(state):
        found = f"{method} gave {leaf!r}"
        hold(isinstance(leaf, jax.Array | np.ndarray), method, "every leaf of a state is an array", found=found)


def hold_types(method: str, before: Any, after: Any) -> None:
    """Raises LawError unless the state that a method gave has all leaves of the one before, of the same types."""
    law = f"{method} keeps every shape and dtype of the state"
    old, new = leaves_by_name(before), leaves_by_name(after)
    hold(old.keys() == new.keys(), method, law, found=f"the leaves changed from {', '.join(old)} to {', '.join(new)}")
    for name, leaf in old.items():
        same = (leaf.shape, leaf.dtype) == (new[name].shape, new[name].dtype)
        hold(same, method, law, found=f"leaf {name} changed from {_type(leaf)} to {_type(new[name])}")
    structures = (jax.tree.structure(before), jax.tree.structure(after))
    hold(len({*structures}) == 1, method, f"{method} keeps the static fields of the state", found="they changed")


def check_types(game: AnyGame, advance: Callable[[int], object] = lambda count: None) -> None:
    """The shapes and dtypes of what each method returns, by tracing it once."""

    def traced(name: str, *arguments: Any) -> Any:
        with in_method(name):
            result = jax.eval_shape(getattr(game, name), *arguments)
        advance(1)
        return result

    def returns(name: str, result: Any, shape: tuple[int, ...], dtype: Any, law: str) -> None:
        found = f"it returned {_type(result)} instead of {_type(jax.ShapeDtypeStruct(shape, dtype))}"
        is_array = isinstance(result, jax.ShapeDtypeStruct)
        hold(is_array and (result.shape, result.dtype) == (shape, dtype), name, law, found=found)

    def pair(name: str, result: Any, law: str) -> tuple[Any, Any]:
        is_pair = isinstance(result, tuple) and len(result) == 2
        hold(is_pair, name, law, found=f"it returned {_type(result)} instead of a pair")
        return result  # type: ignore[no-any-return]

    actions, slots = game.num_actions, game.max_legal_actions
    start = traced("init", jax.eval_shape(lambda: jax.random.key(0)))
    for name, leaf in leaves_by_name(start).items():
        law = "step is traced once when its own result is fed back"
        found = f"leaf {name} has a weak type; give it one of its own, as jnp.int32(0) has"
        hold(not leaf.weak_type, "init", law, found=found)
    mask = traced("legal_action_mask", start)
    returns("legal_action_mask", mask, (actions,), bool, "legal_action_mask is bool [A]")
    _check_step_types(start, traced("step", start, jax.ShapeDtypeStruct((), jnp.int32)))
    law = "legal_slots is int32 [K] and bool [K]"
    action, valid = pair("legal_slots", traced("legal_slots", start), law)
    returns("legal_slots", action, (slots,), jnp.int32, law)
    returns("legal_slots", valid, (slots,), bool, law)
    drawn = traced("sample_legal_action", start, jax.ShapeDtypeStruct((), jnp.uint32))
    returns("sample_legal_action", drawn, (), jnp.int32, "sample_legal_action is int32 []")
    observation, law = traced("observe", start), "observe has observation_shape and is float32"
    returns("observe", observation, game.observation_shape, jnp.float32, law)
    law = "symmetries are states with a leading axis S, and int32 [S A]"
    states, permutation = pair("symmetries", traced("symmetries", start), law)
    count = (*getattr(permutation, "shape", ()), 0)[0]
    returns("symmetries", permutation, (count, actions), jnp.int32, law)
    found = f"its states are {_type(states)}"
    hold(type(states) is type(start), "symmetries", law, found=found)
    for (name, leaf), image in zip(leaves_by_name(start).items(), leaves_by_name(states).values(), strict=True):
        found = (
            f"leaf {name} is {_type(image)} instead of {_type(jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype))}"
        )
        hold((image.shape, image.dtype) == ((count, *leaf.shape), leaf.dtype), "symmetries", law, found=found)


def _check_step_types(before: Any, after: Any) -> None:
    hold_types("step", before, after)
    for name, leaf in leaves_by_name(after).items():
        law = "step is traced once when its own result is fed back"
        found = f"leaf {name} has a weak type after it: give it one, as by `.astype(jnp.float32)`"
        hold(not leaf.weak_type, "step", law, found=found)


def _type(leaf: Any) -> str:
    """Such as `int32 [25]`; the type of what is no array."""
    if not hasattr(leaf, "dtype"):
        return f"a {type(leaf).__name__}"
    return f"{leaf.dtype} [{', '.join(map(str, leaf.shape))}]"
