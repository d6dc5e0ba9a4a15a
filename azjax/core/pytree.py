"""Frozen dataclasses that JAX treats as pytrees, and operations on pytrees."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from azjax.core import display

_T = TypeVar("_T")


def static_field(**options: Any) -> Any:
    """A field that is part of the pytree's structure and not a leaf. `options` are those of `dataclasses.field`."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static_field))
def pytree_dataclass(cls: type[_T]) -> type[_T]:
    """Makes `cls` a frozen dataclass and a pytree. Every field is a subtree, except those made by `static_field`.

    Notebooks show its values as `azjax.core.display` has them rendered.
    """
    frozen = dataclasses.dataclass(frozen=True)(cls)
    frozen._repr_mimebundle_ = display.mimebundle  # type: ignore[attr-defined]
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    static = tuple(field.name for field in fields if field.metadata.get("static"))
    children = tuple(field.name for field in fields if not field.metadata.get("static"))
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in children)

    def flatten(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        content = value.__dict__
        return tuple(content[name] for name in children), tuple(content[name] for name in static)

    def flatten_with_keys(value: Any) -> tuple[Any, tuple[Any, ...]]:
        subtrees, aux = flatten(value)
        return tuple(zip(keys, subtrees, strict=True)), aux

    def unflatten(aux: tuple[Any, ...], subtrees: Any) -> _T:
        # Without `__init__`, whose types the tests check: JAX also builds pytrees of shapes, bools and None.
        value = object.__new__(frozen)
        value.__dict__.update(zip(static, aux, strict=True))
        value.__dict__.update(zip(children, subtrees, strict=True))
        return value

    jax.tree_util.register_pytree_with_keys(frozen, flatten_with_keys, unflatten, flatten)
    return frozen


def replace_fields(value: _T, /, **changes: Any) -> _T:
    """`dataclasses.replace` for a pytree dataclass whose leaves need not have the types of its fields.

    Such as NumPy arrays on the host, or None for a leaf that is left out.

    Raises:
      TypeError: the class has no field of that name.
    """
    replaced = object.__new__(type(value))
    content = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
    if unknown := changes.keys() - content.keys():
        raise TypeError(f"{type(value).__name__} has no field {', '.join(sorted(unknown))}")
    replaced.__dict__.update(content | changes)
    return replaced


def is_concrete(tree: Any) -> bool:
    """Whether every leaf is an array that holds values: not traced, not deleted, not a shape alone."""
    return all(
        isinstance(leaf, np.ndarray | np.generic)
        or (isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and not leaf.is_deleted())
        for leaf in jax.tree.leaves(tree)
    )


def select_rows(mask: Bool[Array, "B"], on_true: _T, on_false: _T) -> _T:
    """Row b of every leaf [B, ...] from `on_true` where `mask[b]` holds, from `on_false` elsewhere."""

    def select(new: Array, old: Array) -> Array:
        return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    selected: _T = jax.tree.map(select, on_true, on_false)
    return selected
