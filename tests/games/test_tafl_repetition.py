"""Repetition, the history of positions, and the limit of plies."""

import functools

import jax
import numpy as np
import pytest
from brandub_batches import (
    BATCH,
    GAME,
    NOTEBOOK,
    QUICK,
    SHUFFLE,
    after,
    ask,
    jitted,
    replay,
    result_of,
    row,
    same,
    stack,
    starts,
    step,
)

import azjax.games
from azjax.games.protocols import earlier_positions, without_history
from benchmarks.rules.tafl import (
    DEFAULT,
    SIZE,
    START,
    action_of,
)


def test_the_start_comes_back_at_ply_4_and_that_is_a_draw():
    assert [result_of(after(GAME, SHUFFLE[:plies])) for plies in range(1, 5)] == [None, None, None, 0]
    assert GAME.to_text(after(GAME, SHUFFLE)) == START


@pytest.mark.parametrize("repetitions", [3, 4])
def test_a_later_occurrence_draws_if_the_rules_say_so(repetitions):
    game = azjax.games.make("brandub", repetitions=repetitions)
    end = 4 * (repetitions - 1)
    assert [result_of(after(game, (SHUFFLE * 3)[:plies])) for plies in (end - 1, end)] == [None, 0]
    # The start is not in the table; of other positions, too, every occurrence counts.
    moves = ["a4-a5", "e4-e5", *SHUFFLE * (repetitions - 1)]
    assert [result_of(after(game, moves[:-1])), result_of(after(game, moves))] == [None, 0]


def test_a_capture_forgets_the_occurrences_before_it():
    game, text = azjax.games.make("brandub", repetitions=3), "7/7/1Tt4/7/3T3/4K1t/7 d"
    shuffle = ["e2-e1", "g2-g3", "e1-e2", "g3-g2"]
    state = after(game, [*shuffle, "d3-d5"], text)
    assert result_of(state) is None
    assert int(earlier_positions(game, state).times(game.position_key(state))) == 1
    assert int(earlier_positions(game, after(game, shuffle, text)).times(game.position_key(after(game, [], text)))) == 2


def test_a_later_position_may_not_come_back_either():
    moves = ["a4-a5", "e4-e5", *SHUFFLE]
    assert result_of(after(GAME, moves[:-1])) is None
    assert result_of(after(GAME, moves)) == 0


def test_the_same_board_with_the_other_side_to_move_is_another_position():
    # The attackers come back in three moves and the defenders in two, and then the other way round.
    first, second = ["d1-c1", "d3-c3", "c1-b1", "c3-d3", "b1-d1"], ["d3-c3", "d1-c1", "c3-b3", "c1-d1", "b3-d3"]
    state = after(GAME, first)
    assert GAME.to_text(state) == START[:-1] + "d"
    assert result_of(state) is None
    assert result_of(after(GAME, [*first, *second[:-1]])) is None
    assert result_of(after(GAME, [*first, *second])) == 0


def test_where_repetition_is_allowed_the_game_goes_on():
    for game in (azjax.games.make("brandub", repetition="never"), NOTEBOOK):
        state = after(game, SHUFFLE * 2)
        assert result_of(state) is None
        assert int(state.ply) == 8
        assert earlier_positions(game, state) is None


@pytest.mark.parametrize(
    ("text", "move", "result"),
    [
        ("7/1Kt4/t6/7/7/7/7 a", "a5-a6", 1),
        ("7/7/7/6t/7/7/2K4 d", "c1-a1", -1),
        ("7/7/1Tt4/7/3T3/4K2/7 d", "d3-d5", -1),
        ("1tT4/7/7/7/7/1T5/3K3 d", "b2-b6", -1),
        ("7/7/1Tt4/7/6T/4K2/7 d", "g3-f3", 0),
    ],
    ids=["king captured", "king escaped", "attackers gone", "no moves", "nothing else"],
)
def test_the_limit_of_plies_comes_after_every_other_result(text, move, result):
    assert result_of(after(azjax.games.make("brandub", max_plies=1, no_moves="loss"), [move], text)) == result


@functools.cache
def random_play():
    """200 random games of the default rules; by name, what was told of each ply [T, BATCH, ...].

    Each game is asked at each ply whether the position of an earlier ply, `asked`, is in its history: `found`.
    """
    rng, games, told = np.random.default_rng(0), np.arange(BATCH), []
    contains = jax.jit(
        jax.vmap(lambda state, key: earlier_positions(GAME, state).contains(key)), compiler_options=QUICK
    )
    states = starts(GAME)
    while True:
        told.append({method: ask(GAME, method, states) for method in ("cells", "position_key")})
        told[-1] |= {"player": np.asarray(states.current_player), "over": np.asarray(states.terminated)}
        asked = np.where(games % 4 == 0, len(told) - 1, rng.integers(0, len(told), BATCH))
        keys = np.array([told[ply]["position_key"][game] for game, ply in enumerate(asked)])
        told[-1] |= {"asked": asked, "found": np.asarray(contains(states, keys))}
        if told[-1]["over"].all():
            return {name: np.stack([ply[name] for ply in told]) for name in told[0]}
        slots, valid = ask(GAME, "legal_slots", states)
        actions = [rng.choice(row[ok]) if ok.any() else -1 for row, ok in zip(slots, valid, strict=True)]
        states = step(GAME, states, actions)


def test_the_history_holds_the_positions_since_the_last_capture():
    told = random_play()
    pieces = (told["cells"] != 0).sum(axis=2)
    since_capture = np.take_along_axis(pieces, told["asked"], axis=0) == pieces
    running = ~told["over"]
    same(told["found"][running], since_capture[running])
    assert (np.bincount(since_capture[running]) > 4_000).all()


def test_keys_tell_all_positions_of_200_games_apart_and_use_all_their_bits():
    told = random_play()
    keys = told["position_key"]
    boards = np.concatenate([told["cells"], told["player"][..., None]], axis=2).reshape(-1, SIZE**2 + 1).astype(np.int8)
    assert keys.dtype == np.uint32
    keys = keys.reshape(-1, 2)
    _, first, place = np.unique(boards, axis=0, return_index=True, return_inverse=True)
    same(keys, keys[first][place.reshape(-1)])
    assert len(np.unique(keys, axis=0)) == len(first) > 10_000
    bits = np.unpackbits(np.ascontiguousarray(keys[first]).view(np.uint8), axis=1)
    assert (abs(bits.mean(axis=0) - 0.5) < 0.05).all()
    # Each half alone is 32 random bits: n^2 / 2^33 pairs are expected to share it.
    for half in keys[first].T:
        assert len(first) - len(np.unique(half)) <= 4 + 4 * len(first) ** 2 / 2**33


def key_of(state):
    return np.asarray(GAME.position_key(state)).tolist()


def test_equal_positions_have_one_key_whatever_led_to_them():
    states = [
        after(GAME, ["d1-c1", "d3-c3", "a4-a5", "c3-b3"]),
        after(GAME, ["a4-a5", "d3-c3", "d1-c1", "c3-b3"]),
        after(GAME, ["a4-a6", "d3-b3", "a6-a5", "b3-a3", "d1-c1", "a3-b3"]),
    ]
    states.append(GAME.from_text(GAME.to_text(states[0])))
    states.append(without_history(GAME, states[0]))
    assert len({GAME.to_text(state) for state in states}) == 1
    assert all(key_of(state) == key_of(states[0]) for state in states)


def test_the_key_tells_the_side_to_move():
    attackers, defenders = (GAME.from_text(START[:-1] + side) for side in "ad")
    assert key_of(attackers) != key_of(defenders)


def test_a_repeated_position_is_a_draw():
    state = after(GAME, SHUFFLE[:3])
    over = GAME.repeated(state)
    assert result_of(over) == 0
    assert GAME.to_text(over) == GAME.to_text(state)
    assert not np.asarray(GAME.legal_action_mask(over)).any()


def test_without_its_history_a_game_takes_the_same_way_and_repeats_itself(golden):
    games = [line["moves"] for line in golden("brandub_canonical") if line["reason"] == "repetition"]
    games = [moves for moves in games if len(moves) < 80]
    assert len(games) == 25
    bare = jitted(GAME, "without_history")(starts(GAME))
    assert earlier_positions(GAME, row(bare, 0)) is None
    length = np.array([len(moves) for moves in games])
    both = zip(replay(GAME, starts(GAME), games), replay(GAME, bare, games), strict=True)
    for ply, (states, bare) in enumerate(both):
        same(ask(GAME, "cells", bare), ask(GAME, "cells", states))
        same(ask(GAME, "observe", bare), ask(GAME, "observe", states))
        same(ask(GAME, "position_key", bare), ask(GAME, "position_key", states))
        assert not bare.terminated[: len(games)].any()
        same(states.terminated[: len(games)], ply >= length)


def test_a_position_without_history_is_small():
    with_history, without = (
        sum(leaf.nbytes for leaf in jax.tree.leaves(state))
        for state in (GAME.init(jax.random.key(0)), without_history(GAME, GAME.init(jax.random.key(0))))
    )
    assert with_history > 2 * 4 * 512
    assert without < 200


def test_the_next_game_starts_with_an_empty_history():
    over = step(GAME, stack([after(GAME, SHUFFLE[:3]), after(GAME, SHUFFLE[:2])]), [action_of(SHUFFLE[3])])
    keys = jax.random.split(jax.random.key(1), BATCH)
    states = jax.jit(jax.vmap(GAME.next_game), compiler_options=QUICK)(keys, over)
    assert not states.terminated.any()
    assert GAME.to_text(row(states, 0)) == START
    same(states.ply[:2], [0, 2])
    same(states.rewards[:2], 0)
    same(ask(GAME, "observe", states)[0], DEFAULT.planes(DEFAULT.start()))
    games = [[action_of(move) for move in moves] for moves in (SHUFFLE, SHUFFLE[2:])]
    over = np.stack([following.terminated[:2] for following in replay(GAME, states, games)], axis=1)
    assert over.tolist() == [[False, False, False, False, True], [False, False, True, True, True]]
