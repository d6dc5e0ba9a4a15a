"""The hook by which notebooks show pytree dataclasses as pictures. `azjax.render.notebook` sets it."""

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

Renderer: TypeAlias = Callable[[Any], dict[str, str]]
"""`renderer(value)`: representations of the value by MIME type; empty to show its `repr` alone."""

_renderers: list[Renderer] = []


def set_renderer(renderer: Renderer) -> None:
    """From now on `renderer` represents all pytree dataclasses."""
    _renderers[:] = [renderer]


def mimebundle(value: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """The method `_repr_mimebundle_` that IPython calls."""
    del include, exclude
    if not _renderers:
        importlib.import_module("azjax.render")  # sets it; not imported before a notebook asks
    return _renderers[0](value) if _renderers else {}
