"""The words after a command."""

import inspect
import re
from typing import Literal

import pytest
from refusals import refused_without_a_file

from azjax import preset
from azjax.agents import LEVELS, load_trained
from azjax.cli import main
from azjax.commands.arguments import AgentOptions, _refuse_rules, parse_with_game, split_simulations
from azjax.commands.check import CheckOptions
from azjax.commands.match import MatchOptions
from azjax.commands.play import PlayOptions
from azjax.core.errors import InputError
from azjax.games import registry
from azjax.games.registry import available, make


def test_an_option_of_the_rules_needs_the_game_and_a_value_of_its_name_does_not():
    game = make("brandub")
    for option in ("--max-plies", "--max_plies", "--king=by_two"):
        with pytest.raises(InputError, match=f"{option.partition('=')[0]} is an option of brandub: add --game brandub"):
            _refuse_rules(game, [option], MatchOptions())
    _refuse_rules(game, ["--records", "history", "--games", "2", "--seed=1"], MatchOptions())


def test_the_simulations_of_a_player_become_those_of_the_options():
    options = PlayOptions()
    assert split_simulations("tictactoe:200", options) == ("tictactoe", PlayOptions(num_simulations=200))
    for spec in ("tictactoe", "tictactoe:easy", "uct:200"):
        assert split_simulations(spec, options) == (spec, options)
    with pytest.raises(InputError, match="num_simulations must be at least 1, got 0"):
        split_simulations("tictactoe:0", options)


@pytest.mark.parametrize("name", available())
def test_help_says_of_each_option_of_a_game_what_it_is_and_its_default(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["check", name, "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split()).partition("game options")[2]
    described = (inspect.getdoc(registry.factory(name)) or "").partition("Args:\n")[2]
    first_lines = dict(re.findall(r"^  (\w+): (.+)$", described, re.MULTILINE))
    options = inspect.signature(registry.factory(name)).parameters
    assert first_lines.keys() == options.keys()
    for option, line in first_lines.items():
        about = shown.partition(f" --{option.replace('_', '-')}")[2]
        assert re.search(r"\(default: (.*?)\)", about[about.index(line) :])[1] == str(options[option].default)


def test_help_of_a_member_of_a_family_is_that_of_the_family(capsys, monkeypatch):
    def family(member, rows: int = 3):
        """A family.

        Args:
          rows: of the board.
        """
        return make("mnk", rows=rows)

    monkeypatch.setattr(registry.GAMES, "_entries", {**registry.GAMES._entries, "family:": family})
    with pytest.raises(SystemExit, match="0"):
        main(["check", "family:one", "--help"])
    shown = capsys.readouterr().out
    assert "A family." in shown
    assert "of the board. (default: 3)" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 3}, "wide: its option width is one of azjax train too: give it another name"),
        ({"learning_rate": 3}, "wide: its option learning_rate is one of azjax train too: give it another name"),
        ({"heaps": [3]}, "wide: the default of its option heaps must be a number, a text or a tuple"),
    ],
)
def test_an_option_of_a_game_with_a_bad_name_or_default_is_refused(options, message, monkeypatch):
    def wide(**options):
        return make("tictactoe")

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=type(value))
        for name, value in options.items()
    ]
    wide.__signature__ = inspect.Signature(parameters)
    monkeypatch.setattr(registry.GAMES, "_entries", {**registry.GAMES._entries, "wide": wide})
    with pytest.raises(InputError, match=message):
        parse_with_game("train", "wide", preset, [])


def test_types_of_options_that_are_written_as_texts_are_read_in_their_module(monkeypatch):
    def written(kind: "Literal['flat', 'round']" = "flat", rows: "int" = 3):
        return make("mnk", rows=rows)

    monkeypatch.setattr(registry.GAMES, "_entries", {**registry.GAMES._entries, "written": written})
    _, game = parse_with_game("check", "written", lambda _: CheckOptions(), ["--kind", "round", "--rows", "4"])
    assert game.rows == 4
    with pytest.raises(InputError, match=r"invalid choice 'square' for argument '--kind'; available: flat, round"):
        parse_with_game("check", "written", lambda _: CheckOptions(), ["--kind", "square"])
    written.__annotations__["rows"] = "Unknown"
    with pytest.raises(InputError, match=r"^written: the types of its options cannot be read: name 'Unknown' is not"):
        parse_with_game("check", "written", lambda _: CheckOptions(), [])


def test_a_trained_agent_is_read_once_for_all_of_its_levels(monkeypatch):
    agent = load_trained("tictactoe")
    monkeypatch.setattr("azjax.agents.load_trained", None)
    monkeypatch.setattr("azjax.commands.arguments.load_trained", {"tictactoe": agent}.__getitem__)
    players = AgentOptions().players("tictactoe", agent.game, LEVELS)
    assert list(players) == list(LEVELS)
    assert {player.about["agent"] for player in players.values()} == {"tictactoe"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            ([*command, *option], f"{option[0][2:].replace('-', '_')} is for players that search; connect2:easy does")
            for command in (
                ["play", "connect2", "--level", "easy"],
                ["play", "connect2:easy"],
                ["gtp", "connect2:easy"],
                ["evaluate", "connect2:easy"],
            )
            for option in (["--num-simulations", "400"], ["--solver"], ["--tables", "t.npz"])
        ),
    ],
)
def test_a_level_that_does_not_search_refuses_options_of_a_search(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)
