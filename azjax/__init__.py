"""azjax: vectorised research on AlphaZero-style learning, in JAX."""

__version__ = "0.2.0"

from azjax.agents import load_player
from azjax.games import available, make
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
    "show",
    "train",
    "uct_policy",
]
