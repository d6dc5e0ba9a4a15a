"""Frozen dataclasses that JAX sees as pytrees."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

from azjax.core import display

_T = TypeVar("_T")


def static_field(**options: Any) -> Any:
    """A field that is part of the pytree's structure and not a leaf. `options` are those of `dataclasses.field`."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static_field))
def pytree_dataclass(cls: type[_T]) -> type[_T]:
    """Makes `cls` a frozen dataclass and a pytree, every field a subtree but those made by `static_field`.

    Notebooks show its values as `azjax.core.display` has them drawn.
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
        # Without `__init__`, where tests check shapes: JAX also builds pytrees of shapes, bools and None.
        value = object.__new__(frozen)
        value.__dict__.update(zip(static, aux, strict=True))
        value.__dict__.update(zip(children, subtrees, strict=True))
        return value

    jax.tree_util.register_pytree_with_keys(frozen, flatten_with_keys, unflatten, flatten)
    return frozen


def is_concrete(tree: Any) -> bool:
    """Whether all leaves of a pytree are arrays that hold values: none is traced, deleted or a shape alone."""
    return all(
        isinstance(leaf, np.ndarray | np.generic)
        or (isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and not leaf.is_deleted())
        for leaf in jax.tree.leaves(tree)
    )
