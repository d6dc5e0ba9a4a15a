import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brandub_batches import (
    BATCH,
    GAME,
    NOTEBOOK,
    NUM_ACTIONS,
    QUICK,
    SHUFFLE,
    after,
    ask,
    jitted,
    random_games,
    result_of,
    row,
    same,
    stack,
    step,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import azjax.games
from azjax.core.pytree import replace_fields
from azjax.games.protocols import action_from_text, legal_texts, without_history
from benchmarks.rules.tafl import (
    DEFAULT,
    SEED000,
    SIZE,
    START,
    action_of,
    move_text,
    squares_of,
)

# Actions.


def test_an_action_that_is_not_legal_changes_nothing():
    actions = [-(2**31), *range(-50, NUM_ACTIONS + 50), 5000, 2**31 - 1]
    positions = [DEFAULT.start(), *(plies[9][0] for plies in random_games(DEFAULT, seed=5, number=4) if len(plies) > 9)]
    positions += [DEFAULT.position(text) for text in ("7/7/7/t6/7/K6/1T5 d", "2t4/7/7/7/7/7/7 d")]
    for position in positions:
        states = stack([GAME.from_text(DEFAULT.text(position))])
        legal = DEFAULT.legal_actions(position)
        for first in range(0, len(actions), BATCH):
            chosen = actions[first : first + BATCH]
            following = jax.device_get(step(GAME, states, chosen))
            kept = np.ones(BATCH, bool)
            boards = (jax.tree.leaves(replace_fields(both, rewards=None)) for both in (states, following))
            for old, new in zip(*boards, strict=True):
                kept &= (old == new).reshape(BATCH, -1).all(axis=1)
            same(kept[: len(chosen)], ~np.isin(chosen, legal))
            assert (following.rewards[kept] == 0).all()


@pytest.mark.parametrize(
    ("text", "move"),
    [
        (START, "d3-c3"),
        (START, "c1-c2"),
        (START, "d1-d2"),
        (START, "d1-d3"),
        (START, "a4-b4"),
        (START, "d1-a1"),
        ("7/7/7/t6/7/7/2K4 a", "a4-d4"),
        ("7/7/7/1K4t/7/7/7 d", "b4-d4"),
        ("3t3/7/7/7/7/7/2KT3 d", "d1-g1"),
    ],
)
def test_moves_that_are_not_legal_are_refused_by_their_own_text(text, move):
    state = GAME.from_text(text)
    assert not GAME.legal_action_mask(state)[action_of(move)]
    with pytest.raises(ValueError, match="not a legal move") as refusal:
        action_from_text(GAME, state, move)
    assert repr(move) in str(refusal.value)
    assert ", ".join(map(move_text, DEFAULT.legal_actions(DEFAULT.position(text)))) in str(refusal.value)


def test_a_castle_is_slid_over_and_a_corner_is_for_the_king():
    rook = GAME.from_text("7/7/7/t6/7/7/2K4 a")
    assert {"a4-c4", "a4-e4", "a4-g4", "a4-a6"} <= set(legal_texts(GAME, rook))
    assert not {"a4-d4", "a4-a7", "a4-a1"} & set(legal_texts(GAME, rook))
    king = GAME.from_text("7/7/7/t6/7/7/2K4 d")
    assert {"c1-c7", "c1-g1", "c1-a1"} <= set(legal_texts(GAME, king))


@pytest.mark.parametrize("text", [START, START[:-1] + "d", "2t4/t2T3/1t4T/2K2t1/7/5T1/3t3 d"])
def test_moves_are_written_from_square_to_square(text):
    state = GAME.from_text(text)
    legal = DEFAULT.legal_actions(DEFAULT.position(text))
    assert legal_texts(GAME, state) == [move_text(action) for action in legal]
    assert action_from_text(GAME, state, move_text(legal[-1])) == legal[-1]
    assert action_from_text(GAME, state, f" {move_text(legal[1]).upper()} ") == legal[1]
    assert action_from_text(GAME, state, str(legal[0])) == legal[0]
    for action in legal:
        assert list(GAME.action_squares(state, action)) == [SIZE * r + c for r, c in squares_of(action)]


def test_action_numbers_are_square_times_24_and_direction_times_6_and_distance():
    state = GAME.from_text("7/7/7/7/2t4/7/3K3 a")
    square = 4 * 7 + 2
    for move, way in (("c3-c2", 0), ("c3-c1", 1), ("c3-c4", 6), ("c3-c7", 9), ("c3-g3", 15), ("c3-a3", 19)):
        assert action_from_text(GAME, state, move) == square * 24 + way


def test_there_is_room_for_96_legal_actions():
    assert GAME.num_actions == NUM_ACTIONS
    assert GAME.max_legal_actions == 96
    text = "1t5/7/4t2/t6/5t1/2t4/3K3 a"
    actions, valid = ask(GAME, "legal_slots", stack([GAME.from_text(text)]))
    assert actions.shape == valid.shape == (BATCH, 96)
    assert actions.dtype == jnp.int32
    assert sorted(actions[0][valid[0]].tolist()) == DEFAULT.legal_actions(DEFAULT.position(text))


def test_draws_over_evenly_spaced_bits_are_exactly_uniform():
    times = 3
    positions = [plies[len(plies) // 2][0] for plies in random_games(DEFAULT, seed=6, number=12)] + [DEFAULT.start()]
    for position in positions:
        legal = DEFAULT.legal_actions(position)
        draws = len(legal) * times
        bits = ((np.arange(draws) + 0.5) * 2**32 / draws).astype(np.uint32)
        states = stack([GAME.from_text(DEFAULT.text(position))])
        drawn = np.concatenate(
            [
                jitted(GAME, "sample_legal_action")(states, np.resize(bits[first : first + BATCH], BATCH))
                for first in range(0, draws, BATCH)
            ]
        )[:draws]
        values, counts = np.unique(drawn, return_counts=True)
        assert values.tolist() == legal
        assert set(counts) == {times}


def test_the_first_and_the_last_bits_draw_legal_actions_and_0_is_drawn_after_the_end():
    states = stack([after(GAME, SHUFFLE), after(GAME, SHUFFLE[:1])])
    bits = np.resize(np.array([0, 0, 2**32 - 1, 2**32 - 1], np.uint32), BATCH)
    drawn = jitted(GAME, "sample_legal_action")(states, bits)
    assert drawn.dtype == jnp.int32
    assert drawn[:4:2].tolist() == [0, 0]
    legal = DEFAULT.legal_actions(DEFAULT.step(DEFAULT.start(), action_of(SHUFFLE[0])))
    first, last = drawn[1:4:2].tolist()
    assert first != last
    assert {first, last} <= set(legal)


# Symmetries.


def images(board):
    """The eight turned and mirrored images of a board [size, size, ...]."""
    turned = [np.rot90(board, turns) for turns in range(4)]
    return [np.ascontiguousarray(image) for image in turned + [np.swapaxes(image, 0, 1) for image in turned]]


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def turn_and_step(game, state, before, action):
    """Plays `before` [2] from a set-up position, and then `action` before and after turning."""
    for move in before:
        state = game.step(state, move)
    state = without_history(game, state)
    turned, permutation = game.symmetries(state)
    return {
        "state": state,
        "permutation": permutation,
        "turned": turned,
        "cells": jax.vmap(game.cells)(turned),
        "observations": jax.vmap(game.observe)(turned),
        "masks": jax.vmap(game.legal_action_mask)(turned),
        "turned, then stepped": jax.vmap(game.step)(turned, permutation[:, action]),
        "stepped, then turned": game.symmetries(game.step(state, action))[0],
    }


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), from_start=st.booleans())
def test_turning_and_then_playing_is_playing_and_then_turning(seed, from_start):
    generator = random.Random(seed)
    position = DEFAULT.start() if from_start else DEFAULT.random_set_up(generator)
    plies = DEFAULT.random_game(generator, position, generator.randrange(3, 40))[-4:-1]
    assume(len(plies) == 3)
    state = GAME.from_text(DEFAULT.text(plies[0][0]))
    moves = np.array([action for _, action in plies], np.int32)
    told = jax.device_get(turn_and_step(GAME, state, moves[:2], moves[2]))

    jax.tree.map(same, told["turned, then stepped"], told["stepped, then turned"])
    jax.tree.map(same, row(told["turned"], 0), told["state"])
    boards = told["cells"].reshape(8, SIZE, SIZE)
    assert boards[0].ravel().tolist() == list(plies[2][0].board)
    for views in (boards, told["observations"]):
        assert sorted(view.tobytes() for view in views) == sorted(image.tobytes() for image in images(views[0]))
    permutation = told["permutation"]
    assert permutation.dtype == np.int32
    assert len(np.unique(permutation, axis=0)) == 8
    same(np.sort(permutation, axis=1), np.tile(np.arange(NUM_ACTIONS), (8, 1)))
    same(np.take_along_axis(told["masks"], permutation, axis=1), np.tile(told["masks"][0], (8, 1)))


# Observations.


def test_the_observation_shows_the_mover_first_and_older_boards_as_he_sees_them():
    moves = ["d1-c1", "d3-c3", "c1-d1"]
    planes = np.asarray(GAME.observe(after(GAME, moves[:2])))
    assert planes.shape == GAME.observation_shape == (7, 7, 13)
    assert planes.dtype == np.float32
    squares = {"c1": (6, 2), "d1": (6, 3), "c3": (4, 2), "d3": (4, 3), "d4": (3, 3)}
    # Newest first: after two moves, after one, the start. Attackers, no king of theirs, defenders, their king.
    for oldness, (attacker, defender) in enumerate([("c1", "c3"), ("c1", "d3"), ("d1", "d3")]):
        own, own_king, other, other_king = np.moveaxis(planes[:, :, 4 * oldness : 4 * oldness + 4], 2, 0)
        assert (own.sum(), own_king.sum(), other.sum(), other_king.sum()) == (8, 0, 4, 1)
        assert own[squares[attacker]] == other[squares[defender]] == other_king[squares["d4"]] == 1
    assert (planes[:, :, 12] == 1).all()

    planes = np.asarray(GAME.observe(after(GAME, moves[:1])))
    own, own_king, other, other_king = np.moveaxis(planes[:, :, :4], 2, 0)
    assert (own.sum(), own_king.sum(), other.sum(), other_king.sum()) == (4, 1, 8, 0)
    assert planes[:, :, 4:8].sum() == 13
    assert planes[:, :, 8:].sum() == 0


# Text.


def test_the_start_is_written_as_rows_from_the_top():
    state = GAME.init(jax.random.key(0))
    assert GAME.to_text(state) == START
    read = GAME.from_text(START)
    assert jax.tree.structure(read) == jax.tree.structure(state)
    for one, other in zip(jax.tree.leaves(read), jax.tree.leaves(state), strict=True):
        assert one.dtype == other.dtype
        same(one, other)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), from_start=st.booleans(), name=st.sampled_from(["brandub", "seed000"]))
def test_text_is_read_back_and_the_result_with_it(seed, from_start, name):
    game, rules = {"brandub": (GAME, DEFAULT), "seed000": (NOTEBOOK, SEED000)}[name]
    generator = random.Random(seed)
    plies = rules.random_game(generator, None if from_start else rules.random_set_up(generator), plies=100)
    last = plies[-1][0]
    for position in (last, generator.choice(plies)[0]):
        text = rules.text(position)
        state = game.from_text(text)
        assert game.to_text(state) == text
        assert tuple(np.asarray(game.cells(state)).tolist()) == position.board
        assert int(state.current_player) == position.player
        assert int(state.ply) == 0
        alone = rules.set_up(position.board, position.player)
        assert bool(state.terminated) == alone.terminal
        assert tuple(state.rewards.tolist()) == alone.rewards
        if position.reason not in ("repetition", "max_plies"):
            assert alone.terminal == position.terminal


ROWS = START[:-2].split("/")


def rows(changes):
    """The start with other rows, by number from the top, the attackers to move."""
    return "/".join(changes.get(number, row) for number, row in enumerate(ROWS, start=1)) + " a"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("", ["side to move", "a or d"]),
        (START[:-2], ["side to move", "a or d"]),
        (START[:-1], ["side to move", "a or d"]),
        (START[:-1] + "w", ["side to move", "a or d", "'w'"]),
        (START[:-1] + "A", ["side to move", "a or d", "'A'"]),
        (START + " ", ["side to move", "a or d", "'a '"]),
        ("/".join(ROWS[:-1]) + " a", ["7 rows", "got 6"]),
        ("/".join([*ROWS, "7"]) + " a", ["7 rows", "got 8"]),
        (rows({1: "3t2"}), ["row 1", "6 squares", "7"]),
        (rows({5: "3T4"}), ["row 5", "8 squares", "7"]),
        (rows({7: ""}), ["row 7", "0 squares", "7"]),
        (rows({2: "3x3"}), ["character 6", "'x'", "t, T, K"]),
        (rows({1: "30t3"}), ["character 2", "'0'", "t, T, K"]),
        (rows({4: "ttTkTtt"}), ["character 16", "'k'", "t, T, K"]),
        (rows({1: "1t1t3"}), ["9 attackers", "at most 8"]),
        (rows({6: "2Tt3"}), ["5 defenders", "at most 4"]),
        (rows({6: "2Kt3"}), ["2 kings", "at most 1"]),
        (rows({1: "t6"}), ["t", "a7", "corner"]),
        (rows({3: "7", 7: "6T", 1: "7"}), ["T", "g1", "corner"]),
        ("7/7/3K3/3t3/7/7/7 d", ["t", "d4", "castle"]),
        ("7/7/3K3/3T3/7/t6/7 d", ["T", "d4", "castle"]),
        (rows({4: "ttT1Ttt"}), ["no king", "d is to move"]),
        ("K6/7/7/7/7/7/3t3 d", ["king on a corner", "a is to move"]),
        ("7/7/7/3K3/7/7/3T3 d", ["no attackers", "a is to move"]),
        ("7/7/7/7/7/7/3T3 d", ["neither king nor attackers"]),
    ],
)
def test_bad_text_is_refused_with_the_reason(text, reasons):
    with pytest.raises(ValueError, match="brandub: ") as refusal:
        GAME.from_text(text)
    for reason in reasons:
        assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("7/2t1t2/7/7/7/7/7 a", 1),  # the king moved to d6
        ("7/2t1t2/7/7/7/7/7 d", 1),
        ("7/2T1T2/7/7/3K3/7/7 d", None),  # the last attacker moved to d6
    ],
)
def test_where_trapped_pieces_are_removed_a_side_may_have_lost_its_own(text, result):
    state = NOTEBOOK.from_text(text)
    assert NOTEBOOK.to_text(state) == text
    assert result_of(state) == result


def test_the_board_is_drawn_with_its_coordinates():
    lines = GAME.draw(GAME.from_text("3t3/7/2T4/7/7/5K1/7 a")).splitlines()
    assert [line.split() for line in lines] == [
        ["7", "x", ".", ".", "t", ".", ".", "x"],
        ["6", *"......."],
        ["5", *"..T...."],
        ["4", *"...x..."],
        ["3", *"......."],
        ["2", *".....K."],
        ["1", "x", *".....", "x"],
        [*"abcdefg"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_pieces_are_placed_one_by_one_on_an_empty_board():
    """A position of the golden games, built by hand."""
    names = GAME.piece_names
    state = GAME.init(jax.random.key(0))
    for square in range(SIZE * SIZE):
        state = GAME.with_piece(state, square, names.index("nothing"))
    assert GAME.to_text(state) == "7/7/7/7/7/7/7 a"
    with pytest.raises(ValueError, match="has neither king nor attackers"):
        GAME.from_text(GAME.to_text(state))
    for square, name in ((3, "attacker"), (24, "king"), (45, "defender")):
        state = GAME.with_piece(state, square, names.index(name))
    assert GAME.to_text(state) == "3t3/7/7/3K3/7/7/3T3 a"
    same(GAME.legal_action_mask(state), GAME.legal_action_mask(GAME.from_text("3t3/7/7/3K3/7/7/3T3 a")))


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("7/7/3t3/7/7/7/7 d", "the king is captured"),
        ("K6/7/3t3/7/7/7/7 a", "the king escapes"),
        ("7/7/7/3K3/7/7/7 a", "the attackers are gone"),
        ("1t5/tKt4/1t5/7/7/7/7 d", "the defenders cannot move"),
    ],
)
def test_how_a_game_ended_is_told(text, ending):
    state = GAME.from_text(text)
    assert state.terminated
    assert GAME.ending(state) == ending


def test_a_repetition_and_the_last_ply_are_told():
    state = GAME.init(jax.random.key(0))
    for move in ("d1-c1", "d3-c3", "c1-d1", "c3-d3"):
        state = GAME.step(state, action_from_text(GAME, state, move))
    assert state.terminated
    assert GAME.ending(state) == "repetition"
    short = azjax.games.make("brandub", max_plies=1)
    state = short.init(jax.random.key(0))
    assert short.ending(short.step(state, action_from_text(short, state, "d1-c1"))) == "the limit of plies"
