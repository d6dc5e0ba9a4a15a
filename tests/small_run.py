"""A run of connect2 that takes less than a second, and variants of it."""

from typing import Any

import pytest

from azjax.training import Config

SMALL = Config(
    iterations=4,
    network="mlp",
    width=16,
    depth=1,
    precision="float32",
    num_simulations=4,
    num_games=4,
    steps_per_iteration=4,
    replay_size=64,
    updates_per_iteration=2,
    batch_size=8,
    evaluate_every=2,
    checkpoint_every=2,
)


def with_changes(*slow: dict[str, Any]) -> pytest.MarkDecorator:
    """Parametrizes a test by `changes` of the small run: none and, in the slow suite, each of these."""
    return pytest.mark.parametrize(
        "changes",
        [{}, *(pytest.param(each, marks=pytest.mark.slow) for each in slow)],
        ids=lambda changes: "-".join(changes) or "small",
    )
