"""Rules in plain Python, one position at a time, and games made for tests and measurements."""

import random
from typing import Any, Protocol


class PlainPosition(Protocol):
    """A position; every module of rules defines its own."""

    @property
    def terminal(self) -> bool: ...


class PlainRules(Protocol):
    """The part of the rules that random play needs."""

    def start(self) -> Any: ...
    def legal_actions(self, position: Any) -> list[int]: ...
    def step(self, position: Any, action: int) -> Any: ...


def play_randomly(rules: PlainRules, plies: int, seed: int) -> int:
    """Plays `plies` random plies and starts a new game after each end. Returns the number of finished games."""
    generator = random.Random(seed)
    start, ended = rules.start(), 0
    position = start
    for _ in range(plies):
        position = rules.step(position, generator.choice(rules.legal_actions(position)))
        if position.terminal:
            position, ended = start, ended + 1
    return ended
