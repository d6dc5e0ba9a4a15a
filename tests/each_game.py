"""The registered games as parameters of a test; those of one family all but one in the slow suite."""

import pytest

from azjax.games.registry import available

_ALIKE = {"ard_ri", "tablut", "tawlbwrdd", "hnefatafl"}  # to brandub


def each_game() -> pytest.MarkDecorator:
    """Parametrizes a test by the `name` of each registered game."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in _ALIKE)) for name in available()]
    )
