"""The laws of text, squares, pieces and pictures, tested on the host position by position. `check_game` calls them."""

import contextlib
import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.games.fact_laws import hold_arrays, hold_types
from azjax.games.game import AnyGame, State
from azjax.games.laws import hold, in_method, state_at
from azjax.games.protocols import (
    BoardGame,
    CellGame,
    DrawableGame,
    EditableGame,
    TextGame,
    action_from_text,
    legal_actions,
)

_STATES, _FEW_STATES = 40, 4


def check_on_host(game: AnyGame, states: State, rng: np.random.Generator, advance: Callable[[int], None]) -> None:
    """The laws of `TextGame`, `BoardGame`, `EditableGame` and `DrawableGame` on some of the states [B, ...]."""
    num_states = len(states.terminated)
    for number, index in enumerate(rng.choice(num_states, min(_STATES, num_states), replace=False)):
        state = state_at(states, index)
        actions = legal_actions(game, state)
        if number < _FEW_STATES:
            with in_method("legal_action_mask"):
                same = legal_actions(game, jax.tree.map(np.asarray, state)) == actions
            hold(same, "legal_action_mask", "legal_action_mask takes leaves of NumPy", at=state)
        if isinstance(game, TextGame):
            _check_text(game, state, rng.permutation(actions)[:3].tolist())
        if isinstance(game, BoardGame):
            _check_squares(game, state, actions)
        if isinstance(game, EditableGame) and isinstance(game, TextGame):
            _check_editing(game, state, rng)
        if isinstance(game, CellGame):
            _check_cells(game, state, actions)
        if isinstance(game, DrawableGame) and number < _FEW_STATES:
            _check_picture(game, state)
        advance(1)
    if isinstance(game, TextGame):
        _check_examples(game)


def _check_examples(game: Any) -> None:
    for text, _ in game.examples():
        with in_method("from_text"):
            same = game.to_text(game.from_text(text)) == text
        hold(same, "examples", "from_text reads the examples", at=text)


def _check_text(game: Any, state: State, actions: list[int]) -> None:
    with in_method("to_text"):
        text = game.to_text(state)
    with in_method("from_text"):
        again = game.from_text(text)
    _hold_state("from_text", state, again)
    with in_method("to_text"):
        same_text = game.to_text(again) == text
    hold(same_text, "from_text", "to_text(from_text(text)) == text", at=text)
    # A draw may follow from what the text does not have, such as a repetition.
    decided = bool(again.terminated) or bool(np.any(np.asarray(state.rewards) != 0))
    same_end = not decided or bool(again.terminated) == bool(state.terminated)
    hold(same_end, "from_text", "from_text finds the end", at=text)
    same_result = not (decided and bool(state.terminated)) or np.array_equal(again.rewards, state.rewards)
    hold(same_result, "from_text", "from_text finds the result", at=text)
    same_player = bool(again.terminated) or int(again.current_player) == int(state.current_player)
    hold(same_player, "from_text", "from_text finds the player to move", at=text)
    with in_method("draw"):
        game.draw(state)
    for action in actions:
        with in_method("action_to_text"):
            move = game.action_to_text(state, action)
            read_back = action_from_text(game, state, move)
        hold(read_back == action, "action_to_text", "a move's text is read back", at=f"{text} {move}")


def _hold_state(method: str, state: State, made: State) -> None:
    """A state made on the host goes where `state` goes, such as into a compiled search."""
    hold_arrays(method, made)
    hold_types(method, state, made)


def _check_squares(game: Any, state: State, actions: list[int]) -> None:
    with in_method("action_squares"):
        squares = [game.action_squares(state, action) for action in actions]
    for clicks in squares:
        hold(isinstance(clicks, tuple), "action_squares", "the squares are a tuple", found=f"it returned {clicks!r}")
    on_board = all(0 <= square < math.prod(game.observation_shape[:2]) for clicks in squares for square in clicks)
    hold(on_board, "action_squares", "action_squares are on the board", at=(state, squares))
    different = len({*squares}) == len(actions)
    hold(different, "action_squares", "no two legal actions have the same squares", at=(state, squares))


def _check_editing(game: Any, state: State, rng: np.random.Generator) -> None:
    square = int(rng.integers(math.prod(game.observation_shape[:2])))
    piece = int(rng.integers(len(game.piece_names)))
    with in_method("with_piece"):
        once = game.with_piece(state, square, piece)
        twice = game.with_piece(once, square, piece)
        same = game.to_text(once) == game.to_text(twice)
    hold(same, "with_piece", "placing a piece twice is the same as once", at=(state, square, piece))
    _hold_state("with_piece", state, once)


def _check_cells(game: Any, state: State, actions: list[int]) -> None:
    with in_method("cells"):
        cells = np.asarray(jax.jit(game.cells)(state))
    hold(cells.shape == (math.prod(game.observation_shape[:2]),), "cells", "cells are those of the board", at=state)
    with in_method("squares_of_actions"):
        squares = np.asarray(jax.jit(game.squares_of_actions)(state))
    found = [tuple(square for square in squares[action].tolist() if square >= 0) for action in actions]
    wanted = [tuple(game.action_squares(state, action)) for action in actions]
    law = "squares_of_actions has the action_squares of every legal action"
    hold(found == wanted, "squares_of_actions", law, at=(state, wanted), found=str(found))
    with in_method("with_piece"):
        placed = [game.with_piece(state, 0, piece) for piece in range(len(game.piece_names))]
        shown = {int(np.asarray(jax.jit(game.cells)(each))[0]) for each in placed}
    hold(len(shown) > 1, "with_piece", "with_piece changes cells", at=state)
    with in_method("with_mover"):
        other = game.with_mover(state, 1 - int(state.current_player))
        same = np.array_equal(jax.jit(game.cells)(other), cells)
    hold(same, "with_mover", "with_mover changes no cells", at=state)
    _hold_state("with_mover", state, other)
    rules: Any = game if isinstance(game, TextGame) else None
    if rules is not None:
        with contextlib.suppress(InputError):  # not a possible position
            read = rules.from_text(rules.to_text(other))
            same = np.array_equal(jax.jit(game.cells)(read), cells)
            hold(same, "with_mover", "the text of with_mover has the same cells", at=state)


def _check_picture(game: Any, state: State) -> None:
    legal = np.asarray(game.legal_action_mask(state))
    policy = legal / max(legal.sum(), 1)
    with in_method("svg"):
        pictures = game.svg(state), game.svg(state, policy=policy, last_action=int(legal.argmax()))
    for picture in pictures:
        try:
            ElementTree.fromstring(picture)
        except ElementTree.ParseError as error:
            hold(False, "svg", "svg is well-formed XML", found=str(error), at=state)
