"""Trained agents that come with the package, and those that a user fetches.

`experiments/packaged_agents.py` makes the agents of the package.
"""

from azjax.packaged.archive import (
    Agent,
    cache_folder,
    fetched,
    game_of_agent,
    levels_of,
    load_agent,
    packaged,
    save_agent,
    strength_of,
)
from azjax.packaged.fetch import fetch_agent

__all__ = [
    "Agent",
    "cache_folder",
    "fetch_agent",
    "fetched",
    "game_of_agent",
    "levels_of",
    "load_agent",
    "packaged",
    "save_agent",
    "strength_of",
]
