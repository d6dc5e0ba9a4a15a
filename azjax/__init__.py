"""azjax: vectorised research on AlphaZero-style learning, in JAX."""

import importlib
from typing import TYPE_CHECKING, Any

from azjax.core.version import __version__ as __version__

if TYPE_CHECKING:
    from azjax.agents import load_player
    from azjax.games import available, make, register
    from azjax.render import show
    from azjax.runs import train
    from azjax.search import alphazero_policy, evaluators, gumbel_policy, uct_policy
    from azjax.training import Config, Hyper, preset

__all__ = [
    "Config",
    "Hyper",
    "alphazero_policy",
    "available",
    "evaluators",
    "gumbel_policy",
    "load_player",
    "make",
    "preset",
    "register",
    "show",
    "train",
    "uct_policy",
]

# Names are imported when they are first used: the command line answers without JAX where it can.
_MODULES = {
    "azjax.agents": ("load_player",),
    "azjax.games": ("available", "make", "register"),
    "azjax.render": ("show",),
    "azjax.runs": ("train",),
    "azjax.search": ("alphazero_policy", "evaluators", "gumbel_policy", "uct_policy"),
    "azjax.training": ("Config", "Hyper", "preset"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_PACKAGES = (
    "agents",
    "core",
    "evaluation",
    "games",
    "networks",
    "parallel",
    "play",
    "render",
    "report",
    "runs",
    "search",
    "training",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"azjax.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'azjax' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
