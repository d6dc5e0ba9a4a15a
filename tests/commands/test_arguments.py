"""The words after a command."""

import pytest

from azjax.commands.arguments import _refuse_rules
from azjax.commands.match import MatchOptions
from azjax.core.errors import InputError
from azjax.games.registry import make


def test_an_option_of_the_rules_needs_the_game_and_a_value_of_its_name_does_not():
    game = make("brandub")
    for option in ("--max-plies", "--max_plies", "--king=by_two"):
        with pytest.raises(InputError, match=f"{option.partition('=')[0]} is an option of brandub: add --game brandub"):
            _refuse_rules(game, [option], MatchOptions())
    _refuse_rules(game, ["--records", "history", "--games", "2", "--seed=1"], MatchOptions())
