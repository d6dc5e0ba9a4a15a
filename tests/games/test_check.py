"""What `check_game` says: what is wrong and where, what the page will lack, and how far it is."""

import dataclasses
import io

import jax
import jax.numpy as jnp
import pytest
from rich.console import Console
from rules_alone import RulesAlone

import azjax
from azjax.commands.check import CheckOptions, check_command
from azjax.core.errors import LawError
from azjax.games import BoardGame, DrawableGame, check_game
from azjax.games.mnk import Mnk


class BoardBecomesLonger(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, stones=jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), following.stones))


class PlayerIsWeaklyTyped(Mnk):
    def init(self, key):
        return dataclasses.replace(super().init(key), current_player=jnp.where(True, 0, 1))


class MaskIsOfIntegers(Mnk):
    def legal_action_mask(self, state):
        return super().legal_action_mask(state).astype(jnp.int32)


class StepBranchesOnAnArray(Mnk):
    def step(self, state, action):
        return super().step(state, action) if action > 3 else state


class TextFails(Mnk):
    def to_text(self, state):
        raise KeyError("no letter\nfor the stone")


class BothWin(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=jnp.abs(following.rewards))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            BoardBecomesLonger,
            "step: leaf stones.0.0 changed from uint32 [] to uint32 [2]; broken law: step keeps every shape and dtype "
            "of the state",
        ),
        (
            PlayerIsWeaklyTyped,
            "init: leaf current_player has a weak type; give it one of its own, as jnp.int32(0) has; broken law: step "
            "is traced once when its own result is fed back",
        ),
        (
            MaskIsOfIntegers,
            "legal_action_mask: it returned int32 [9] instead of bool [9]; broken law: legal_action_mask is bool [A]",
        ),
        (
            StepBranchesOnAnArray,
            "step: raised TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
        ),
        (TextFails, r"to_text: raised KeyError: 'no letter\nfor the stone'"),
    ],
)
def test_the_method_and_the_leaf_that_are_wrong_are_named(broken, message):
    with pytest.raises(LawError) as found:
        check_game(broken(3, 3, 3), num_games=4)
    assert str(found.value) == message
    assert (found.value.__cause__ is not None) == ("raised" in message)


def test_a_broken_law_is_told_with_its_method_and_a_position():
    with pytest.raises(LawError, match=r"^step: broken law: rewards are finite and zero-sum; at MnkState\("):
        check_game(BothWin(3, 3, 3), num_games=4)


class Drawn(RulesAlone, DrawableGame, BoardGame):
    """Tic-tac-toe with a picture that has no squares."""

    def svg(self, state, *, policy=None, last_action=None):
        return "<svg/>"

    def action_squares(self, state, action):
        return (action,)


def test_what_the_page_will_lack_is_told_with_what_adds_it():
    assert check_game(RulesAlone(), num_games=4).lacks == (
        "no picture: add DrawableGame.svg",
        "no clicking: add BoardGame.action_squares",
        "no names of moves, no positions as text: add TextGame",
        "no placing of pieces: add EditableGame",
    )
    drawn = check_game(Drawn(), num_games=4).lacks
    assert drawn[0].startswith("no clicking: the picture needs data-rows and data-columns")
    assert len(drawn) == 3


def test_a_summary_counts_what_was_tested():
    """Every game of Connect-2 has 2 to 4 plies, and its start has 4 legal actions."""
    checked = check_game(azjax.make("connect2"), num_games=8)
    assert (checked.name, checked.games, checked.legal_actions, checked.lacks) == ("connect2", 8, 4, ())
    assert 8 * 3 <= checked.positions <= 8 * 5
    assert checked.plies in (3, 4)
    counts = f"{checked.positions} positions of 8 random games, up to {checked.plies} plies and 4 legal actions"
    assert str(checked) == f"connect2 keeps every law ({counts})\nthe page will lack nothing"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_is_shown_in_a_terminal_only(is_terminal):
    shown = io.StringIO()
    check_game(RulesAlone(), num_games=4, console=Console(file=shown, force_terminal=is_terminal))
    assert ("positions, " in shown.getvalue() and "a second" in shown.getvalue()) == is_terminal
    assert bool(shown.getvalue()) == is_terminal


def test_the_command_prints_the_summary(capsys):
    check_command(["connect2", "--games", "2"])
    assert capsys.readouterr().out == str(check_game(azjax.make("connect2"), num_games=2)) + "\n"
    with pytest.raises(ValueError, match="games must be at least 1, got 0"):
        CheckOptions(games=0)
