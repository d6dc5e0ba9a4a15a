"""Every registered game keeps the laws of the contract, and `check_game` finds each law that is broken."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from each_game import each_game

import azjax.games
from azjax.games import check_game
from azjax.games.mnk import Mnk
from azjax.games.santorini import Santorini
from azjax.games.tafl import Tafl, TaflRules
from benchmarks.rules.table_game import TableGame


@pytest.mark.slow_except("santorini")
@each_game()
def test_a_registered_game_keeps_every_law(name):
    check_game(azjax.games.make(name))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(5, 4, 4), pytest.param((15, 15, 5), marks=pytest.mark.slow)], ids=str)
def test_mnk_of_other_sizes_keeps_every_law(size):
    check_game(Mnk(*size), num_games=6)


# The other sizes, and Brandub by other rules, are in tests/slow.
@pytest.mark.slow
@pytest.mark.parametrize("size", [pytest.param((3, 2), marks=pytest.mark.slow), (5, 2, True)], ids=str)
def test_santorini_of_other_sizes_keeps_every_law(size):
    check_game(Santorini(*size), num_games=4)


class SmallRewards(TableGame):
    """Those of six plies add up to less than 1."""

    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=following.rewards / 8)


def test_a_game_without_text_where_a_player_may_move_twice_keeps_every_law():
    check_game(SmallRewards(seed=0, width=8, depth=6, actions=10, slots=6))


def _occupied(state):
    (first,), (second,) = state.stones
    return first | second


class OccupiedCellIsLegal(Mnk):
    max_plies = 1000

    def legal_action_mask(self, state):
        return super().legal_action_mask(state) | ((jnp.arange(9) == 4) & ~state.terminated)


class LegalAfterTheEnd(Mnk):
    def legal_action_mask(self, state):
        return super().legal_action_mask(dataclasses.replace(state, terminated=jnp.bool_(False)))


class BothWin(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=jnp.abs(following.rewards))


class WinsCountFive(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=5 * following.rewards)


class IllegalActionPasses(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        unchanged = (_occupied(following) == _occupied(state)) & ~state.terminated
        player = jnp.where(unchanged, 1 - state.current_player, following.current_player)
        return dataclasses.replace(following, current_player=player)


class PlayGoesOnAfterTheEnd(Mnk):
    def step(self, state, action):
        following = super().step(dataclasses.replace(state, terminated=jnp.bool_(False)), action)
        return dataclasses.replace(following, terminated=state.terminated | following.terminated)


class RewardsAreRepeatedAfterTheEnd(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=jnp.where(state.terminated, state.rewards, following.rewards))


class PermutationIsItsInverse(Mnk):
    def symmetries(self, state):
        states, permutation = super().symmetries(state)
        return states, jnp.argsort(permutation, axis=1)


class SwappedColoursAreASymmetry(Mnk):
    def symmetries(self, state):
        swapped = dataclasses.replace(state, stones=state.stones[::-1])
        states = jax.tree.map(lambda *leaves: jnp.stack(leaves), state, swapped)
        return states, jnp.tile(jnp.arange(9), (2, 1))


class TextIsReadBackwards(Mnk):
    def from_text(self, text):
        return super().from_text(text[::-1])


class TextForgetsTheResult(Mnk):
    def from_text(self, text):
        return dataclasses.replace(super().from_text(text), terminated=jnp.bool_(False))


class MovesAreWrittenByColumnAlone(Mnk):
    def action_to_text(self, state, action):
        return super().action_to_text(state, action)[0]


class TooFewSlots(Mnk):
    max_legal_actions = 8


class TooFewPlies(Mnk):
    max_plies = 8


class ObservationIsNan(Mnk):
    def observe(self, state):
        return jnp.where(state.terminated, jnp.nan, super().observe(state))


class ObservationIsOfAnotherShape(Mnk):
    def observe(self, state):
        return super().observe(state).reshape(-1)


class SlotsMissALegalActionOfTheStart(Mnk):
    def legal_slots(self, state):
        actions, valid = super().legal_slots(state)
        return actions, valid & ((actions != 4) | (_occupied(state) != 0))


class SlotsAreOutOfPlace(Mnk):
    def legal_slots(self, state):
        actions, valid = super().legal_slots(state)
        return actions[::-1], valid[::-1]


class DrawsTheCentreAfterTheEnd(Mnk):
    def sample_legal_action(self, state, bits):
        return jnp.where(state.terminated, 4, super().sample_legal_action(state, bits))


class SecondPlayerStarts(Mnk):
    def init(self, key):
        return dataclasses.replace(super().init(key), current_player=jnp.int32(1))


class StartIsWeaklyTyped(Mnk):
    """jit traces `step` again when its strongly typed result is fed back."""

    def init(self, key):
        return dataclasses.replace(super().init(key), current_player=jnp.where(True, 0, 1))

    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, current_player=following.current_player.astype(jnp.int32))


class TextForgetsTheWinner(Mnk):
    def from_text(self, text):
        return dataclasses.replace(super().from_text(text), rewards=jnp.zeros(2))


class RewardsChangeTheirType(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.int32) if leaf.dtype == jnp.float32 else leaf, following)


class SquaresAreOffTheBoard(Mnk):
    def action_squares(self, state, action):
        return (int(action) + 9,)


class EveryMoveIsTheSameClick(Mnk):
    def action_squares(self, state, action):
        return (0,)


class PiecesAreToggled(Mnk):
    def with_piece(self, state, square, piece):
        return super().with_piece(state, square, 0 if self.owners(state).flat[square] else 1)


class ActionsHaveOtherSquares(Mnk):
    def squares_of_actions(self, state):
        return super().squares_of_actions(state)[::-1]


class CellsLackARow(Mnk):
    def cells(self, state):
        return super().cells(state)[3:]

    def owners(self, state):
        return np.array(super().cells(state)).reshape(self.rows, self.columns)


class ExamplesAreNoPositions(Mnk):
    def examples(self):
        return (("XXXXXXXXX", "Too many."),)


class AStoneComesWithTheMover(Mnk):
    def with_mover(self, state, player):
        return self.with_piece(super().with_mover(state, player), 0, 1)


class TextSwapsTheSidesWithTheMover(Mnk):
    def to_text(self, state):
        text = super().to_text(state)
        others = text.count("X") - text.count("O") != state.current_player
        return text.translate(str.maketrans("XO", "OX")) if others else text


class PictureIsNotClosed(Mnk):
    def svg(self, state, *, policy=None, last_action=None):
        return "<svg>"


def slow_case(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        slow_case(OccupiedCellIsLegal, "a legal action changes the position"),
        (LegalAfterTheEnd, "no action is legal after the end"),
        (BothWin, "rewards are finite and zero-sum"),
        (WinsCountFive, r"rewards are in -1\.\.1"),
        (IllegalActionPasses, "an illegal action leaves the position as it is"),
        (PlayGoesOnAfterTheEnd, "any action after the end changes nothing"),
        (RewardsAreRepeatedAfterTheEnd, "any action after the end changes nothing"),
        (PermutationIsItsInverse, "the mask goes with the symmetry"),
        (SwappedColoursAreASymmetry, "permute, then step = step, then permute"),
        slow_case(TextIsReadBackwards, r"to_text\(from_text\(text\)\) == text"),
        (TextForgetsTheResult, "from_text finds the end"),
        slow_case(MovesAreWrittenByColumnAlone, "a move's text is read back"),
        (TooFewSlots, "no position has more than max_legal_actions"),
        (TooFewPlies, "a game ends within max_plies = 8"),
        (ObservationIsNan, "observations are finite"),
        (ObservationIsOfAnotherShape, "observe has observation_shape"),
        (SlotsMissALegalActionOfTheStart, "the valid slots are exactly the legal actions"),
        (SlotsAreOutOfPlace, "where K == A, slot a is action a"),
        (DrawsTheCentreAfterTheEnd, "sample_legal_action draws a legal action"),
        (SecondPlayerStarts, "player 0 moves first"),
        (StartIsWeaklyTyped, "step is traced once when its own result is fed back"),
        slow_case(TextForgetsTheWinner, "from_text finds the result"),
        (RewardsChangeTheirType, "step keeps every shape and dtype"),
        slow_case(SquaresAreOffTheBoard, "action_squares are on the board"),
        slow_case(EveryMoveIsTheSameClick, "no two legal actions have the same squares"),
        (PiecesAreToggled, "placing a piece twice is the same as once"),
        slow_case(ActionsHaveOtherSquares, "squares_of_actions has the action_squares of every legal action"),
        slow_case(ExamplesAreNoPositions, "9 X and 0 O"),
        slow_case(AStoneComesWithTheMover, "with_mover changes no cells"),
        slow_case(TextSwapsTheSidesWithTheMover, "the text of with_mover has the same cells"),
        slow_case(CellsLackARow, "cells are those of the board"),
        (PictureIsNotClosed, "svg is well-formed XML"),
    ],
)
def test_a_broken_law_is_named(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_game(broken(3, 3, 3), num_games=16)


class PositionNumbersAreShifted(Santorini):
    def position_number(self, state):
        return super().position_number(state) + jnp.uint32(self.num_squares)


class EveryPositionHasOccurred(Tafl):
    def step(self, state, action):
        following = super().step(state, action)
        repeated = (following.ply > state.ply) & (following.past is not None)
        return dataclasses.replace(following, terminated=following.terminated | repeated)


class KeyDependsOnTheHistory(Tafl):
    def position_key(self, state):
        return super().position_key(state) + jnp.uint32(state.past is None)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (PositionNumbersAreShifted(2, 1), r"from_position_number\(position_number\(state\)\) is state"),
        pytest.param(
            EveryPositionHasOccurred(TaflRules(max_plies=20)),
            "step with history = step without it",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            KeyDependsOnTheHistory(TaflRules(max_plies=20)),
            "position_key does not depend on the history",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_law_of_a_protocol_is_named(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_game(broken, num_games=4)
