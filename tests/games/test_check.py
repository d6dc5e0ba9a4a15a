"""What `check_game` says: what is wrong and where, what the page will lack, and how far it is."""

import dataclasses
import io
import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from rich.console import Console
from rules_alone import RulesAlone

from azjax.commands.check import check_command
from azjax.core.errors import InputError, LawError
from azjax.core.pytree import replace_fields
from azjax.games import ActionGroup, BoardGame, DrawableGame, LaidOutGame, check_game
from azjax.games.mnk import Mnk


def line_of(code):
    """The number of the first line with this code."""
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if code in line)


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


class StartsWithNumbers(Mnk):
    def init(self, key):
        return dataclasses.replace(super().init(key), rewards=[0.0, 0.0])


class StartsWithATuple(Mnk):
    def init(self, key):
        return PlainState(jnp.int32(0), jnp.bool_(False), jnp.zeros(2))


class PlainState(NamedTuple):
    current_player: jax.Array
    terminated: jax.Array
    rewards: jax.Array


class PlayersAreBytes(Mnk):
    def init(self, key):
        return dataclasses.replace(super().init(key), current_player=jnp.int8(0))


class TextHasShortWords(Mnk):
    def from_text(self, text):
        state = super().from_text(text)
        return dataclasses.replace(state, stones=jax.tree.map(lambda leaf: leaf.astype(jnp.uint16), state.stones))


class TextHasANumber(Mnk):
    def from_text(self, text):
        return replace_fields(super().from_text(text), terminated=False)


class PiecesAreOfAnotherGame(Mnk):
    def with_piece(self, state, square, piece):
        return dataclasses.replace(super().with_piece(state, square, piece), game=Mnk(3, 3, 3))


class MoverIsAByte(Mnk):
    def with_mover(self, state, player):
        return dataclasses.replace(state, current_player=jnp.int8(player))


class SquaresAreAList(Mnk):
    def action_squares(self, state, action):
        return [action]


class PliesAreAMethod(Mnk):
    def max_plies(self):
        return 9


class PliesAreAFraction(Mnk):
    max_plies = 9.5


class ShapeIsAList(Mnk):
    @property
    def observation_shape(self):
        return [3, 3, 2]


class BothWin(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=jnp.abs(following.rewards))


class SlotsAreOneArray(Mnk):
    def legal_slots(self, state):
        return super().legal_slots(state)[0]


class SymmetriesAreThree(Mnk):
    def symmetries(self, state):
        return *super().symmetries(state), state


class SymmetriesAreNoStates(Mnk):
    def symmetries(self, state):
        return super().symmetries(state)[::-1]


class ObservationIsNone(Mnk):
    def observe(self, state):
        return None


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            SlotsAreOneArray,
            "legal_slots: it returned int32 [9] instead of a pair; broken law: legal_slots is int32 [K] and bool [K]",
        ),
        (
            SymmetriesAreThree,
            "symmetries: it returned a tuple instead of a pair; broken law: symmetries are states with a leading axis "
            "S, and int32 [S A]",
        ),
        (
            SymmetriesAreNoStates,
            "symmetries: it returned a StonesState instead of int32 [0, 9]; broken law: symmetries are states with a "
            "leading axis S, and int32 [S A]",
        ),
        (
            ObservationIsNone,
            "observe: it returned a NoneType instead of float32 [3, 3, 2]; broken law: observe has observation_shape "
            "and is float32",
        ),
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
        (StartsWithNumbers, "init: init gave 0.0; broken law: every leaf of a state is an array"),
        (
            StartsWithATuple,
            "init: init gave a PlainState; broken law: a state is a frozen dataclass "
            "(azjax.core.pytree.pytree_dataclass)",
        ),
        (PlayersAreBytes, "init: current_player is int8 []; broken law: current_player is int32 []"),
        (
            TextHasShortWords,
            "from_text: leaf stones.0.0 changed from uint32 [] to uint16 []; broken law: from_text keeps every shape "
            "and dtype of the state",
        ),
        (TextHasANumber, "from_text: from_text gave False; broken law: every leaf of a state is an array"),
        (
            PiecesAreOfAnotherGame,
            "with_piece: they changed; broken law: with_piece keeps the static fields of the state",
        ),
        (
            MoverIsAByte,
            "with_mover: leaf current_player changed from int32 [] to int8 []; broken law: with_mover keeps every "
            "shape and dtype of the state",
        ),
        (
            PliesAreAMethod,
            "max_plies: max_plies is a method; it needs @property; broken law: max_plies is a whole number",
        ),
        (PliesAreAFraction, "max_plies: max_plies is 9.5; broken law: max_plies is a whole number"),
        (
            ShapeIsAList,
            "observation_shape: observation_shape is [3, 3, 2]; broken law: observation_shape is a tuple of whole "
            "numbers",
        ),
        (
            StepBranchesOnAnArray,
            "step: raised TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]. "
            f"Choose with jnp.where instead of with if, and, or, not. (test_check.py, line {line_of('if action > 3')})",
        ),
        (
            TextFails,
            rf"to_text: raised KeyError: 'no letter\nfor the stone' (test_check.py, line {line_of('raise KeyError')})",
        ),
    ],
)
def test_the_method_and_the_leaf_that_are_wrong_are_named(broken, message):
    with pytest.raises(LawError) as found:
        check_game(broken(3, 3, 3), num_games=4)
    assert str(found.value) == message
    assert (found.value.__cause__ is not None) == ("raised" in message)


class PaysEachPly(RulesAlone):
    def step(self, state, action):
        following = super().step(state, action)
        is_legal = self.legal_action_mask(state)[jnp.clip(action, 0, 8)] & (action == jnp.clip(action, 0, 8))
        paid = jnp.where(is_legal, jnp.array([0.75, -0.75]), 0.0)
        return replace_fields(following, rewards=jnp.clip(following.rewards * 0.1 + paid, -1, 1))


def test_what_a_whole_game_pays_is_a_result():
    with pytest.raises(
        LawError, match=r"paid .* in all; broken law: the rewards of a whole game are together in -1\.\.1"
    ):
        check_game(PaysEachPly(), num_games=4)


def test_the_squares_of_an_action_are_a_tuple():
    message = r"^action_squares: it returned \[\d\]; broken law: the squares are a tuple$"
    with pytest.raises(LawError, match=message):
        check_game(SquaresAreAList(3, 3, 3), num_games=1)


@pytest.mark.parametrize("games", [0, -1, True])
def test_a_check_without_games_is_refused(games):
    with pytest.raises(InputError, match=f"^games must be at least 1, got {games}$"):
        check_game(RulesAlone(), num_games=games)


def test_a_check_of_more_games_than_fit_is_refused():
    with pytest.raises(InputError, match=r"^games must be at most 65,536, whose positions are all kept, got 10{20}$"):
        check_game(RulesAlone(), num_games=10**20)


@pytest.mark.usefixtures("types_unchecked")
def test_a_class_in_place_of_a_game_is_refused():
    with pytest.raises(InputError, match=r"check_game needs a game, such as Mnk\(\), and got the class Mnk"):
        check_game(Mnk)


def test_a_broken_law_is_told_with_its_method_and_a_position():
    with pytest.raises(LawError, match=r"^step: broken law: rewards are finite and zero-sum; at StonesState\("):
        check_game(BothWin(3, 3, 3), num_games=4)


class Drawn(RulesAlone, DrawableGame, BoardGame):
    """Tic-tac-toe with a picture that has no squares."""

    def svg(self, state, *, policy=None, last_action=None):
        return "<svg/>"

    def action_squares(self, state, action):
        return (action,)


def test_a_picture_is_drawn_with_a_policy_and_the_last_action_too():
    class Plain(Drawn):
        def svg(self, state):
            return "<svg/>"

    with pytest.raises(LawError, match=r"^svg: raised TypeError: .*unexpected keyword argument 'policy'"):
        check_game(Plain(), num_games=1)


def test_a_game_with_a_field_that_has_no_hash_is_told():
    @dataclasses.dataclass(frozen=True)
    class Weighted(RulesAlone):
        weights: list = dataclasses.field(default_factory=list)

    with pytest.raises(LawError, match=r"^__hash__: raised TypeError: unhashable type: 'list'"):
        check_game(Weighted(), num_games=1)


def console(is_terminal):
    return Console(file=io.StringIO(), force_terminal=is_terminal)


def test_what_the_page_will_lack_is_told_with_what_adds_it_and_files_show_no_progress():
    no_terminal = console(False)
    assert check_game(RulesAlone(), num_games=4, console=no_terminal).lacks == (
        "no picture: add DrawableGame.svg",
        "no clicking: add BoardGame.action_squares",
        "no names of moves, no positions as text: add TextGame",
        "no placing of pieces: add EditableGame",
    )
    assert no_terminal.file.getvalue() == ""


def test_a_picture_without_squares_is_not_clicked_and_a_terminal_shows_progress_with_its_rate():
    terminal = console(True)
    lacks = check_game(Drawn(), num_games=4, console=terminal).lacks
    assert lacks[0].startswith("no clicking: the picture needs data-rows and data-columns")
    assert len(lacks) == 3
    assert re.search(r"random games .*positions", terminal.file.getvalue())
    assert re.search(r"[\d,]+ positions, [\d,]+ a second", terminal.file.getvalue())


@pytest.mark.slow
def test_the_command_prints_what_was_tested(capsys):
    """Every game of Connect-2 has 3 or 4 plies, and its start has 4 legal actions."""
    check_command(["connect2", "--games", "8"])
    summary = r"connect2 keeps every law \((\d+) positions of 8 random games, up to (\d) plies and 4 legal actions\)"
    positions, plies = re.fullmatch(summary + "\nthe page will lack nothing\n", capsys.readouterr().out).groups()
    assert 8 * 4 <= int(positions) <= 8 * 5
    assert plies in "34"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([ActionGroup("square", 1), ActionGroup("board", 1)], "its groups have 10 actions, and num_actions is 9"),
        ([ActionGroup("square", 1, actions=(0, 1, 2, 3, 4, 5, 6, 7, 7))], "its groups have action 7 2 times"),
        ([ActionGroup("square", 1, actions=(0, 1)), ActionGroup("board", 7)], "'square' has 9 actions, and .* are 2"),
        ([ActionGroup("piece", 9, num_pieces=1, piece_plane=2)], "piece_plane is 2, and an observation has 2 planes"),
    ],
)
def test_a_layout_of_other_actions_or_planes_is_refused(groups, message):
    class Laid(Mnk, LaidOutGame):
        action_layout = tuple(groups)

    with pytest.raises(LawError, match=f"^action_layout: .*{message}"):
        check_game(Laid(3, 3, 3), num_games=1, console=console(False))
