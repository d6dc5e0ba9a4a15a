"""The hook by which notebooks show pytree dataclasses as pictures. `azjax.render.notebook` sets it."""

from collections.abc import Callable
from typing import Any

Renderer = Callable[[Any], dict[str, str]]
"""`renderer(value)`: what a notebook may show of the value, by MIME type; empty for its plain representation."""

_renderers: list[Renderer] = []


def set_renderer(renderer: Renderer) -> None:
    """Shows all pytree dataclasses by `renderer` from now on."""
    _renderers[:] = [renderer]


def mimebundle(value: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """What IPython asks of a value (`_repr_mimebundle_`)."""
    del include, exclude
    return _renderers[0](value) if _renderers else {}
