"""The larger games of tafl, and Ard Ri: lines by hand, plain-Python rules, and counts.

Axis letters: `T` plies one after the other, `G` games side by side.
"""

import dataclasses
import functools
import random
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from studies import page

from azjax.evaluation import perft
from azjax.games.protocols import action_from_text
from azjax.games.registry import make, options_of
from azjax.games.tafl import RULES, STARTS
from benchmarks.rules.tafl import BrandubRules

NAMES = ["ard_ri", "tablut", "tawlbwrdd", "hnefatafl"]
GAMES, PLIES = 24, 60


def plain_rules(game):
    return BrandubRules(**dataclasses.asdict(game.rules), start_text=f"{STARTS[game.name]} a")


@functools.cache
def jitted_step(game):
    return jax.jit(game.step, compiler_options={"xla_backend_optimization_level": 0})


@pytest.mark.slow_except("ard_ri-{}", "tablut-{}")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in NAMES),
        pytest.param("tablut", {"king_captures": "unarmed"}, marks=pytest.mark.slow),
        pytest.param("tablut", {"encirclement": "attackers_win", "castle": "king"}, marks=pytest.mark.slow),
        pytest.param("hnefatafl", {"king": "by_castle", "longest_move": 4}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_random_games_agree_with_plain_python_rules(name, options):
    game, generator = make(name, **options), random.Random(0)
    rules = plain_rules(game)
    # A third from positions with few or many pieces.
    games = [
        rules.random_game(generator, None if number % 3 else rules.random_set_up(generator), PLIES)
        for number in range(GAMES)
    ]
    starts = [game.from_text(rules.text(plies[0][0])) for plies in games]
    actions = np.full((PLIES + 1, GAMES), -1, np.int32)
    for number, plies in enumerate(games):
        actions[: len(plies), number] = [action for _, action in plies]

    def play(states, chosen):
        bits = jnp.arange(GAMES, dtype=jnp.uint32) << 27
        told = {
            "cells": jax.vmap(game.cells)(states),
            "mask": jax.vmap(game.legal_action_mask)(states),
            "slots": jax.vmap(game.legal_slots)(states)[1].sum(axis=1),
            "drawn": jax.vmap(game.sample_legal_action)(states, bits),
            "player": states.current_player,
            "terminated": states.terminated,
            "rewards": states.rewards,
        }
        return jax.vmap(game.step)(states, chosen), told

    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    told = jax.device_get(jax.jit(lambda states: jax.lax.scan(play, states, actions)[1])(states))
    for number, plies in enumerate(games):
        for ply, (position, _) in enumerate(plies):
            ours, legal = {key: value[ply, number] for key, value in told.items()}, rules.legal_actions(position)
            assert tuple(ours["cells"]) == position.board
            assert np.flatnonzero(ours["mask"]).tolist() == legal
            assert ours["slots"] == len(legal)
            assert ours["drawn"] in (legal or [0])
            assert (ours["player"], ours["terminated"]) == (position.player, position.terminal)
            assert tuple(ours["rewards"]) == position.rewards
        last = plies[-1][0]
        assert game.to_text(game.from_text(rules.text(last))) == rules.text(last)


BY_HAND = {  # game, position, move, the position after it, and the result for the attackers, None to go on
    "where pieces step, a king beside an edge is out in one": (
        *("ard_ri", "7/1K5/7/7/7/7/3t3 d", "b6-a6"),
        *("7/K6/7/7/7/7/3t3 a", -1),
    ),
    "two do not capture a king that four must": (
        *("ard_ri", "7/1tK4/3t3/7/7/7/7 a", "d5-d6"),
        *("7/1tKt3/7/7/7/7/7 d", None),
    ),
    "four capture him": (
        *("ard_ri", "2t4/1tK4/2tt3/7/7/7/7 a", "d5-d6"),
        *("2t4/1t1t3/2t4/7/7/7/7 d", 1),
    ),
    "a castle to which he may return is no fourth": (
        *("ard_ri", "7/3t3/2tK3/4t2/7/7/7 a", "e4-e5"),
        *("7/3t3/2tKt2/7/7/7/7 d", None),
    ),
    "he returns to the castle": (
        *("ard_ri", "7/7/3K3/7/7/7/3t3 d", "d5-d4"),
        *("7/7/7/3K3/7/7/3t3 a", None),
    ),
    "three capture the king beside the castle": (
        *("tablut", "9/9/4t4/3tK4/5t3/9/9/9/9 a", "f5-f6"),
        *("9/9/4t4/3t1t3/9/9/9/9/9 d", 1),
    ),
    "two capture him elsewhere": (
        *("tablut", "9/9/1tK6/3t5/9/9/9/9/9 a", "d6-d7"),
        *("9/9/1t1t5/9/9/9/9/9/9 d", 1),
    ),
    "where he escapes to the edge, pawns enter corners, which capture nothing": (
        *("tablut", "1T7/2t6/9/9/2K6/9/9/9/t8 a", "a1-a9"),
        *("tT7/2t6/9/9/2K6/9/9/9/9 d", None),
    ),
    "an attacker on a corner closes a line as elsewhere": (
        *("tablut", "tT7/2t6/9/9/2K6/9/9/9/9 a", "c8-c9"),
        *("t1t6/9/9/9/2K6/9/9/9/9 d", None),
    ),
    "where no square is special, all stop in the middle, and an empty one closes nothing": (
        *("tawlbwrdd", "11/11/11/11/11/2T8/5T5/4K6/11/11/5t5 d", "c6-f6"),
        *("11/11/11/11/11/5T5/5T5/4K6/11/11/5t5 a", None),
    ),
    "two capture the king in the middle": (
        *("tawlbwrdd", "11/11/11/11/11/4tK5/6t4/11/11/11/11 a", "g5-g6"),
        *("11/11/11/11/11/4t1t4/11/11/11/11/11 d", 1),
    ),
    "three and the castle capture a king that four must": (
        *("hnefatafl", "11/11/11/5t5/4tK5/6t4/11/11/11/11/11 a", "g6-g7"),
        *("11/11/11/5t5/4t1t4/11/11/11/11/11/11 d", 1),
    ),
    "the edge is no fourth": (
        *("hnefatafl", "4tK5/5t5/6t4/11/11/11/11/11/11/11/1T9 a", "g9-g11"),
        *("4tKt4/5t5/11/11/11/11/11/11/11/11/1T9 d", None),
    ),
    "attackers who cut all defenders off the edge win": (
        *("hnefatafl", "11/11/4ttt4/3tKT5/4ttt4/11/7t3/11/11/11/11 a", "h5-h8"),
        *("11/11/4ttt4/3tKT1t3/4ttt4/11/11/11/11/11/11 d", 1),
    ),
    "a defender outside the ring goes on": (
        *("hnefatafl", "1T9/11/4ttt4/3tKT5/4ttt4/11/7t3/11/11/11/11 a", "h5-h8"),
        *("1T9/11/4ttt4/3tKT1t3/4ttt4/11/11/11/11/11/11 d", None),
    ),
    "attackers without a move lose": (
        *("hnefatafl", "1tT8/11/11/11/11/11/11/11/11/1T9/5K5 d", "b2-b10"),
        *("1tT8/1T9/11/11/11/11/11/11/11/11/5K5 a", -1),
    ),
}


@pytest.mark.parametrize(("name", "text", "move", "text_after", "result"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand_and_by_plain_python_rules(name, text, move, text_after, result):
    game = make(name)
    rules, state = plain_rules(game), game.from_text(text)
    action = action_from_text(game, state, move)
    following = jitted_step(game)(state, jnp.int32(action))
    assert game.to_text(following) == text_after
    assert bool(following.terminated) == (result is not None)
    assert following.rewards.tolist() == [result or 0, -(result or 0)]
    plain = rules.step(rules.position(text), action)
    assert (rules.text(plain), plain.rewards[0] if plain.terminal else None) == (text_after, result)
    if result is not None:
        read = game.from_text(text_after)
        assert (bool(read.terminated), read.rewards.tolist()) == (True, following.rewards.tolist())


def test_a_king_that_does_not_capture_neither_begins_nor_closes_a_capture():
    for captures in ("armed", "unarmed"):
        game = make("tablut", king_captures=captures)
        for text, move, taken in (
            ("9/1T7/1t7/9/9/1K7/9/9/4t4 d", "b4-b6", "9/1T7/9/1K7/9/9/9/9/4t4 a"),  # the king moves
            ("9/1K7/1t7/9/9/1T7/9/9/4t4 d", "b4-b6", "9/1K7/9/1T7/9/9/9/9/4t4 a"),  # he stands
        ):
            state = game.from_text(text)
            following = jitted_step(game)(state, jnp.int32(action_from_text(game, state, move)))
            assert (game.to_text(following) == taken) == (captures == "armed")


@pytest.mark.slow_except("ard_ri-known0")
@pytest.mark.parametrize(("name", "known"), [("ard_ri", [24, 184]), ("tablut", [80, 4400])])
def test_lines_of_play_are_counted_as_by_plain_python_rules(name, known):
    game = make(name)
    rules = plain_rules(game)
    following = [rules.step(rules.start(), action) for action in rules.legal_actions(rules.start())]
    assert [len(following), sum(len(rules.legal_actions(position)) for position in following)] == known
    assert perft(game, 2) == known


def counts_of_page(name):
    """The counts of lines of play that the page tells."""
    line = re.search(rf"^\| `{name}` \| ([\d, |]+)$", page("tafl"), re.MULTILINE)
    return [int(count.replace(",", "")) for count in line[1].split("|") if count.strip()]


@pytest.mark.slow_except("ard_ri-3", "tablut-2", "tawlbwrdd-2", "hnefatafl-2")
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *(("ard_ri", 3), ("ard_ri", 5), ("tablut", 2), ("tablut", 4)),
        *(("tawlbwrdd", 2), ("tawlbwrdd", 3), ("hnefatafl", 2), ("hnefatafl", 3)),
    ],
)
def test_lines_of_play_are_counted_as_the_page_says(name, depth):
    known = counts_of_page(name)
    assert len(known) >= depth
    assert perft(make(name), depth) == known[:depth]


@pytest.mark.parametrize("name", NAMES)
def test_the_start_is_written_as_rows_and_the_options_make_the_game_again(name):
    game = make(name)
    assert game.to_text(game.init(jax.random.key(0))) == f"{STARTS[name]} a"
    assert game.rules == RULES[name]
    assert options_of(game) == {"history": 3}
    changed = make(name, repetitions=4, history=1)
    assert options_of(changed) == {"history": 1, "repetitions": 4}
    assert make(name, **options_of(changed)) == changed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("11/11/11/11/11/5t5/11/11/11/11/5K5 a", "t stands on f6 in .*, and the king alone may stand on the castle"),
        ("t10/11/11/11/11/11/11/11/11/11/5K5 a", "t stands on a11 in .*, and the king alone may stand on the corner"),
        ("12/11/11/11/11/11/11/11/11/11/5K5 a", "row 1 of .* has 12 squares instead of 11"),
        ("100/11/11/11/11/11/11/11/11/11/5K5 a", r"character 1 of .* is '100'; allowed: t, T, K and 1\.\.11"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=f"hnefatafl: .*{reason}"):
        make("hnefatafl").from_text(text)


def test_where_he_escapes_to_the_edge_a_king_there_has_won():
    with pytest.raises(ValueError, match="has the king on the edge, so the defenders moved last"):
        make("tablut").from_text("4K4/9/9/9/9/9/9/9/4t4 d")


def test_how_a_game_ended_is_told():
    game = make("hnefatafl")
    assert game.ending(game.from_text("11/11/4ttt4/3tKT1t3/4ttt4/11/11/11/11/11/11 d")) == "the defenders are encircled"
    game = make("tablut")
    assert game.ending(game.from_text("4K4/9/9/9/9/9/9/9/4t4 a")) == "the king escapes"


def test_rules_that_differ_in_options_without_an_effect_are_equal():
    assert make("brandub", longest_move=6) == make("brandub") != make("brandub", longest_move=5)
    assert make("hnefatafl", repetition="never") == make("hnefatafl", repetition="never", repetitions=4)


def test_an_option_out_of_its_range_is_refused():
    with pytest.raises(ValueError, match=r"longest_move must be 1\.\.25, got 0"):
        make("tablut", longest_move=0)
    with pytest.raises(ValueError, match="tablut has no option 'rules'; its options: history, capture"):
        make("tablut", rules="seed000")


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("brandub", {}, "the defenders by bringing him to a corner."),
        (
            "brandub",
            {},
            "The king is captured by four attackers on the castle, by three beside it, and by two elsewhere.",
        ),
        ("brandub", {}, "When a side cannot move, the game is a draw."),
        ("brandub", {"rules": "seed000"}, "A pawn between two enemies is captured, also when it moved there itself."),
        ("brandub", {"longest_move": 3}, "Pieces move up to 3 free squares in a straight line."),
        ("brandub", {"king_captures": "unarmed"}, "The king takes no part in captures."),
        ("brandub", {"repetitions": 3}, "A position that occurs a third time is a draw."),
        ("ard_ri", {}, "Pieces move to the next square up, down, left or right, if it is free."),
        ("tablut", {}, "The empty castle counts as an enemy."),
        ("tawlbwrdd", {}, "The king is captured as a pawn is."),
        ("hnefatafl", {}, "The attackers win, too, when no path is left from the defenders to the edge."),
        ("hnefatafl", {}, "A side that cannot move loses."),
        ("hnefatafl", {}, "The king is captured by enemies on all four sides, so never on the edge."),
        ("brandub", {"max_plies": 99}, "After 99 plies the game is a draw."),
        (
            "tablut",
            {"castle": "anyone"},
            "Anyone may stop on the square in the middle, the castle, from which the king",
        ),
        ("tablut", {"castle": "anyone"}, "The empty castle counts as an enemy."),
    ],
)
def test_the_rules_are_told_with_their_options(name, options, sentence):
    assert sentence in make(name, **options).how_to_play()
