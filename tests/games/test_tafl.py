import dataclasses
import functools
import json
import random

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import azjax.games
from azjax.core.pytree import replace_fields
from azjax.games.protocols import action_from_text, earlier_positions, legal_texts, without_history
from azjax.games.registry import options_of
from azjax.games.tafl import Tafl, TaflRules
from benchmarks.rules.tafl import (
    DEFAULT,
    SEED000,
    SIZE,
    START,
    BrandubRules,
    action_of,
    move_text,
    squares_of,
)

BATCH = 200  # every batch is filled up to it, so that a method of a game is compiled once
QUICK = {"xla_backend_optimization_level": 0}  # compiling takes most of the time of these tests
NUM_ACTIONS = 1176
GAME = azjax.games.make("brandub")
NOTEBOOK = azjax.games.make("brandub", rules="seed000")
same = np.testing.assert_array_equal
SHUFFLE = ["d1-c1", "d3-c3", "c1-d1", "c3-d3"]  # four quiet moves that lead back to the start
FAMILY_VALUES = [  # those of the games in test_tafl_family.py
    {"king": "by_four"},
    {"king_captures": "unarmed"},
    {"escape": "edge"},
    {"castle": "king"},
    {"castle": "anyone"},
    {"longest_move": 1},
    {"longest_move": 2},
    {"encirclement": "attackers_win"},
]
OTHER_VALUES = [
    {"capture": "trapped"},
    {"king": "by_two"},
    {"castle_hostile": "never"},
    {"attackers_gone": "ignored"},
    {"repetition": "never"},
    {"repetitions": 3},
    {"no_moves": "loss"},
    {"max_plies": 50},
]


@functools.cache
def jitted(game, method):
    return jax.jit(jax.vmap(getattr(game, method)), compiler_options=QUICK)


def ask(game, method, states):
    return jax.device_get(jitted(game, method)(states))


def step(game, states, actions):
    """The states after int [BATCH] actions; a shorter list is filled up with -1, which plays nothing."""
    column = np.full(BATCH, -1, np.int32)
    column[: len(actions)] = actions
    return jitted(game, "step")(states, column)


def stack(states):
    """One batch of the states, over and over."""
    return jax.tree.map(lambda *leaves: fill(np.stack(leaves)), *states)


def fill(leaf):
    """BATCH rows: those of the leaf, over and over."""
    return np.resize(leaf, (BATCH, *leaf.shape[1:]))


def row(states, index):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), states)


def starts(game):
    return stack([game.init(jax.random.key(0))])


def replay(game, states, games):
    """The states before each ply, and the last ones, of games given as lists of actions; -1 is played after an end."""
    yield states
    for ply in range(max(map(len, games))):
        states = step(game, states, [actions[ply] if ply < len(actions) else -1 for actions in games])
        yield states


def after(game, moves, text=START):
    """One state after `moves` such as "d1-c1"."""
    *_, states = replay(game, stack([game.from_text(text)]), [[action_of(move) for move in moves]])
    return row(states, 0)


def masks_of(lists):
    masks = np.zeros((len(lists), NUM_ACTIONS), bool)
    for mask, actions in zip(masks, lists, strict=True):
        mask[actions] = True
    return masks


def slot_masks(slots):
    """bool [n, A] of `legal_slots`; no action may stand in two valid slots."""
    actions, valid = slots
    counts = np.zeros((len(actions), NUM_ACTIONS), int)
    np.add.at(counts, (np.arange(len(actions))[:, None], actions), valid)
    assert counts.max() <= 1
    return counts == 1


def result_of(state):
    """1, 0 or -1 as the attackers see it; None while the game goes on."""
    assert float(state.rewards.sum()) == 0
    return int(state.rewards[0]) if state.terminated else None


# Golden files. The longest of their games has 406 plies, so that the limit of 512 does not matter.


@pytest.mark.parametrize(
    ("game", "name"), [(GAME, "brandub_canonical"), (NOTEBOOK, "brandub_seed000")], ids=["brandub", "seed000"]
)
def test_golden_games_are_reproduced_ply_by_ply(golden, game, name):
    lines = golden(name)
    assert len(lines) == BATCH
    length = np.array([len(line["moves"]) for line in lines])
    for ply, states in enumerate(replay(game, starts(game), [line["moves"] for line in lines])):
        running = ply < length
        masks = ask(game, "legal_action_mask", states)
        same(ask(game, "cells", states), [line["boards"][min(ply, len(line["moves"]))] for line in lines])
        legal = [line["legal"][ply] if ply < len(line["legal"]) else [] for line in lines]
        same(masks, masks_of(legal))
        if ply % 5 == 0:
            same(slot_masks(ask(game, "legal_slots", states)), masks)
        same(states.terminated, ~running)
        same(states.ply, np.minimum(ply, length))
        to_play = [line["to_play"][ply] if ply < len(line["to_play"]) else 1 - line["to_play"][-1] for line in lines]
        same(states.current_player, to_play)
        result = np.where(ply == length, [line["result"] for line in lines], 0)
        same(states.rewards, np.stack([result, -result], axis=1))
    assert ply == length.max()


@pytest.mark.parametrize(
    ("game", "rules", "name"),
    [(GAME, DEFAULT, "brandub_positions_canonical"), (NOTEBOOK, SEED000, "brandub_positions_seed000")],
    ids=["brandub", "seed000"],
)
def test_golden_moves_from_set_up_positions_are_reproduced(golden, game, rules, name):
    lines = golden(name)[::8]  # reading text takes time
    rows, masks = slice(len(lines)), masks_of([line["legal"] for line in lines])
    states = stack([game.from_text(rules.text(rules.set_up(line["board"], line["to_play"]))) for line in lines])
    same(ask(game, "cells", states)[rows], [line["board"] for line in lines])
    same(states.current_player[rows], [line["to_play"] for line in lines])
    same(ask(game, "legal_action_mask", states)[rows], masks)
    same(slot_masks(ask(game, "legal_slots", states))[rows], masks)
    following = step(game, states, [line["action"] for line in lines])
    same(ask(game, "cells", following)[rows], [line["board_after"] for line in lines])
    same(following.terminated[rows], [line["result"] is not None for line in lines])
    same(following.rewards[rows, 0], [line["result"] or 0 for line in lines])


@pytest.mark.parametrize(
    ("game", "name"), [(GAME, "brandub_canonical"), (NOTEBOOK, "brandub_seed000")], ids=["brandub", "seed000"]
)
def test_the_number_of_lines_of_play_is_the_known_one(request, game, name):
    known = json.loads((request.config.rootpath / "tests/golden/perft.json").read_text())[name]
    layer = row(starts(game), slice(1))
    parents, actions = np.nonzero(in_batches(game, "legal_action_mask", layer))
    counts = [len(actions)]
    for _ in range(2):
        rows = jax.tree.map(lambda leaf: np.asarray(leaf)[parents], layer)
        layer = in_batches(game, "step", rows, actions.astype(np.int32))
        parents, actions = np.nonzero(in_batches(game, "legal_action_mask", layer))
        counts.append(len(actions))
    assert counts == known[:3]


def in_batches(game, method, states, *others):
    """`ask` for any number of states."""
    number = len(states.terminated)
    found = []
    for first in range(0, number, BATCH):
        rows = jax.tree.map(lambda leaf: fill(leaf[first : first + BATCH]), (states, *others))
        found.append(jax.device_get(jitted(game, method)(*rows)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *found)


# Rules by hand, and random games by plain-Python rules.

BY_HAND = {  # options, position, move, the position after it, and the result for the attackers, None to go on
    "a pawn between the mover and its friend is captured": (
        *({}, "7/7/t6/1T5/1t5/7/4K2 a", "a5-b5"),
        *("7/7/1t5/7/1t5/7/4K2 d", None),
    ),
    "a pawn between the mover and an empty corner is captured": (
        *({}, "1T5/7/2t4/7/7/4K2/3t3 a", "c5-c7"),
        *("2t4/7/7/7/7/4K2/3t3 d", None),
    ),
    "one move captures three, one of them against the empty castle": (
        *({}, "3t3/1tT1Tt1/3T3/7/7/7/4K2 a", "d7-d6"),
        *("7/1t1t1t1/7/7/7/7/4K2 d", None),
    ),
    "a castle that is never hostile saves the pawn beside it": (
        *({"castle_hostile": "never"}, "3t3/1tT1Tt1/3T3/7/7/7/4K2 a", "d7-d6"),
        *("7/1t1t1t1/3T3/7/7/7/4K2 d", None),
    ),
    "the castle under its king is not hostile to his pawns": (
        *({}, "3t3/7/3T3/3K3/7/7/7 a", "d7-d6"),
        *("7/3t3/3T3/3K3/7/7/7 d", None),
    ),
    "a pawn is captured between the mover and the king on the castle": (
        *({}, "3T3/7/3t3/t2K3/7/7/7 d", "d7-d6"),
        *("7/3T3/7/t2K3/7/7/7 a", None),
    ),
    "the king captures as a pawn does and slides over the empty castle": (
        *({}, "7/1Tt4/7/6t/7/3K3/7 d", "d2-d6"),
        *("7/1T1K3/7/6t/7/7/7 a", None),
    ),
    "a pawn that moves between two enemies stays": (
        *({}, "7/1T1T3/7/2t4/7/4K2/3t3 a", "c4-c6"),
        *("7/1TtT3/7/7/7/4K2/3t3 d", None),
    ),
    "a pawn that moves between two enemies is removed where trapped pieces are": (
        *({"capture": "trapped"}, "7/1T1T3/7/2t4/7/4K2/3t3 a", "c4-c6"),
        *("7/1T1T3/7/7/7/4K2/3t3 d", None),
    ),
    "a pawn that moves between two enemies captures": (
        *({}, "2t4/1T1T3/2T4/2t4/7/4K2/3t3 a", "c7-c6"),
        *("7/1TtT3/7/2t4/7/4K2/3t3 d", None),
    ),
    "a trapped mover is removed before the pawn that it would trap": (
        *({"capture": "trapped"}, "2t4/1T1T3/2T4/2t4/7/4K2/3t3 a", "c7-c6"),
        *("7/1T1T3/2T4/2t4/7/4K2/3t3 d", None),
    ),
    "a move beside a friend that stands trapped removes the friend": (
        *({"capture": "trapped"}, "7/1tTt3/7/7/2T4/4K2/7 d", "c3-c5"),
        *("7/1t1t3/2T4/7/7/4K2/7 a", None),
    ),
    "three do not capture the king on the castle": (
        *({}, "7/7/7/2tKt2/7/7/3t3 a", "d1-d3"),
        *("7/7/7/2tKt2/3t3/7/7 d", None),
    ),
    "four capture the king on the castle": (
        *({}, "7/7/3t3/2tKt2/7/7/3t3 a", "d1-d3"),
        *("7/7/3t3/2t1t2/3t3/7/7 d", 1),
    ),
    "two capture the king on the castle where two are enough": (
        *({"king": "by_two"}, "7/7/2t4/3Kt2/7/7/7 a", "c5-c4"),
        *("7/7/7/2t1t2/7/7/7 d", 1),
    ),
    "two do not capture the king beside the castle": (
        *({}, "7/7/3Kt2/7/7/2t4/7 a", "c2-c5"),
        *("7/7/2tKt2/7/7/7/7 d", None),
    ),
    "three capture the king beside the castle": (
        *({}, "3t3/7/2tKt2/7/7/7/7 a", "d7-d6"),
        *("7/3t3/2t1t2/7/7/7/7 d", 1),
    ),
    "one captures the king against the empty castle where two are enough": (
        *({"king": "by_two"}, "3t3/7/3K3/7/7/7/7 a", "d7-d6"),
        *("7/3t3/7/7/7/7/7 d", 1),
    ),
    "three capture the king beside a castle that is never hostile": (
        *({"castle_hostile": "never"}, "3t3/7/2tKt2/7/7/7/7 a", "d7-d6"),
        *("7/3t3/2t1t2/7/7/7/7 d", 1),
    ),
    "two capture the king elsewhere": (
        *({}, "7/1Kt4/t6/7/7/7/7 a", "a5-a6"),
        *("7/t1t4/7/7/7/7/7 d", 1),
    ),
    "one captures the king against an empty corner": (
        *({}, "1K5/7/2t4/7/7/7/7 a", "c5-c7"),
        *("2t4/7/7/7/7/7/7 d", 1),
    ),
    "the edge is not hostile": (
        *({}, "3K3/7/3t3/7/7/7/7 a", "d5-d6"),
        *("3K3/3t3/7/7/7/7/7 d", None),
    ),
    "a king that moves between two attackers stays": (
        *({}, "7/2t1t2/7/7/3K3/7/7 d", "d3-d6"),
        *("7/2tKt2/7/7/7/7/7 a", None),
    ),
    "a king that moves between two attackers is captured where trapped pieces are": (
        *({"capture": "trapped"}, "7/2t1t2/7/7/3K3/7/7 d", "d3-d6"),
        *("7/2t1t2/7/7/7/7/7 a", 1),
    ),
    "the king on a corner wins": (
        *({}, "7/7/7/6t/7/7/2K4 d", "c1-a1"),
        *("7/7/7/6t/7/7/K6 a", -1),
    ),
    "without attackers the defenders win": (
        *({}, "7/7/1Tt4/7/3T3/4K2/7 d", "d3-d5"),
        *("7/7/1T1T3/7/7/4K2/7 a", -1),
    ),
    "where that is ignored, attackers without a piece have no move, and it is a draw": (
        *({"attackers_gone": "ignored"}, "7/7/1Tt4/7/3T3/4K2/7 d", "d3-d5"),
        *("7/7/1T1T3/7/7/4K2/7 a", 0),
    ),
    "attackers without a piece have lost before they are stuck": (
        *({"no_moves": "loss"}, "7/7/1Tt4/7/3T3/4K2/7 d", "d3-d5"),
        *("7/7/1T1T3/7/7/4K2/7 a", -1),
    ),
    "attackers without a move draw": (
        *({}, "1tT4/7/7/7/7/1T5/3K3 d", "b2-b6"),
        *("1tT4/1T5/7/7/7/7/3K3 a", 0),
    ),
    "attackers without a move lose where that is the rule": (
        *({"no_moves": "loss"}, "1tT4/7/7/7/7/1T5/3K3 d", "b2-b6"),
        *("1tT4/1T5/7/7/7/7/3K3 a", -1),
    ),
    "defenders without a move draw": (
        *({}, "3t3/7/7/2tKt2/2tTt2/3t3/7 a", "d7-d5"),
        *("7/7/3t3/2tKt2/2tTt2/3t3/7 d", 0),
    ),
    "defenders without a move lose where that is the rule": (
        *({"no_moves": "loss"}, "3t3/7/7/2tKt2/2tTt2/3t3/7 a", "d7-d5"),
        *("7/7/3t3/2tKt2/2tTt2/3t3/7 d", 1),
    ),
}


@pytest.mark.parametrize(("options", "text", "move", "text_after", "result"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand_and_by_plain_python_rules(options, text, move, text_after, result):
    rules = BrandubRules(**options)
    before = rules.position(text)
    assert action_of(move) in rules.legal_actions(before)
    position = rules.step(before, action_of(move))
    assert rules.text(position) == text_after
    assert (position.rewards[0] if position.terminal else None) == result


def games_by_hand(rules, options):
    """The lines of `BY_HAND` with those options, as games (position, action)."""
    games = []
    for own_options, text, move, _, _ in BY_HAND.values():
        if own_options == options:
            before = rules.position(text)
            games.append([(before, action_of(move)), (rules.step(before, action_of(move)), -1)])
    return games


def random_games(rules, seed, number=30, plies=100):
    """Games (position, action), a third of them from set-up positions with few or many pieces."""
    generator = random.Random(seed)
    return [
        rules.random_game(generator, None if index % 3 else rules.random_set_up(generator), plies)
        for index in range(number)
    ]


def check_agreement(game, rules, games, methods=("cells",)):
    """Plays `games` of the plain-Python `rules` with `game`; what a state tells must agree."""
    first = [plies[0][0] for plies in games]
    texts = {rules.text(position): game.from_text(rules.text(position)) for position in first}
    before = stack([texts[rules.text(position)] for position in first])
    moves = [[action for _, action in plies[:-1]] for plies in games]
    for ply, states in enumerate(replay(game, before, moves)):
        positions = [plies[min(ply, len(plies) - 1)][0] for plies in games]
        rewards = [
            position.rewards if ply < len(plies) else (0, 0) for position, plies in zip(positions, games, strict=True)
        ]
        expected = {
            "terminated": [position.terminal for position in positions],
            "current_player": [position.player for position in positions],
            "ply": [position.ply for position in positions],
            "rewards": rewards,
            "cells": [position.board for position in positions],
        }
        if "legal_action_mask" in methods:
            expected["legal_action_mask"] = masks_of([rules.legal_actions(position) for position in positions])
        if "observe" in methods:
            expected["observe"] = [rules.planes(position, game.history) for position in positions]
        for name, values in expected.items():
            found = ask(game, name, states) if name in methods else np.asarray(getattr(states, name))
            differ = (found[: len(games)] != np.array(values)).reshape(len(games), -1).any(axis=1)
            for index in np.flatnonzero(differ):
                near = [rules.text(position) for position, _ in games[index][max(ply - 1, 0) : ply + 1]]
                raise AssertionError(f"{name} at ply {ply} of game {index}: {near}: {found[index]}, {values[index]}")


# The games with a limit of 50 plies are drawn exactly there.
@pytest.mark.parametrize(
    "options", [*OTHER_VALUES, *(pytest.param(values, marks=pytest.mark.slow) for values in FAMILY_VALUES)], ids=str
)
def test_each_other_value_of_a_rule_agrees_with_plain_python_rules(options):
    rules = BrandubRules(**options)
    games = games_by_hand(rules, options) + random_games(rules, seed=str(options))
    check_agreement(azjax.games.make("brandub", **options), rules, games)


def test_all_other_values_together_agree_with_plain_python_rules():
    options = {field: value for changed in FAMILY_VALUES + OTHER_VALUES for field, value in changed.items()}
    rules = BrandubRules(**options)
    check_agreement(azjax.games.make("brandub", **options), rules, random_games(rules, seed=1))


@pytest.mark.parametrize(("game", "rules"), [(GAME, DEFAULT), (NOTEBOOK, SEED000)], ids=["brandub", "seed000"])
def test_named_rules_agree_with_plain_python_rules(game, rules):
    check_agreement(game, rules, random_games(rules, seed=2), ("cells", "legal_action_mask"))


def test_the_rules_by_hand_are_those_of_the_game():
    check_agreement(GAME, DEFAULT, games_by_hand(DEFAULT, {}), ("cells", "legal_action_mask"))


@pytest.mark.parametrize("history", [1, 2, 3])
def test_observations_hold_as_many_boards_as_asked_for(history):
    game = azjax.games.make("brandub", history=history)
    assert game.observation_shape == (7, 7, 4 * history + 1)
    check_agreement(game, DEFAULT, random_games(DEFAULT, seed=3, number=9, plies=20), ("cells", "observe"))


def test_the_named_rules_are_those_of_the_table():
    assert GAME.rules == TaflRules(
        capture="active",
        king="by_castle",
        king_captures="armed",
        escape="corners",
        castle="nobody",
        castle_hostile="when_empty",
        longest_move=25,
        encirclement="ignored",
        attackers_gone="defenders_win",
        repetition="draw",
        repetitions=2,
        no_moves="draw",
        max_plies=512,
    )
    assert NOTEBOOK.rules == dataclasses.replace(
        GAME.rules, capture="trapped", attackers_gone="ignored", repetition="never"
    )
    assert isinstance(GAME, Tafl)
    assert GAME.history == 3
    for plain, rules in ((DEFAULT, GAME.rules), (SEED000, NOTEBOOK.rules)):
        assert dataclasses.asdict(plain) == {**dataclasses.asdict(rules), "start_text": START}


@pytest.mark.parametrize("options", [*FAMILY_VALUES, *OTHER_VALUES, {"history": 1}], ids=str)
def test_an_option_changes_its_rule_alone_and_the_options_make_the_game_again(options):
    for name in ("brandub", "seed000"):
        named, game = (azjax.games.make("brandub", rules=name, **given) for given in ({}, options))
        rules = {field: value for field, value in options.items() if field != "history"}
        assert game.rules == dataclasses.replace(named.rules, **rules)
        assert game.history == options.get("history", 3)
        told = json.loads(json.dumps(options_of(game)))
        assert azjax.games.make("brandub", **told) == game
    assert azjax.games.make("brandub", **options) != GAME


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"rules": "tablut"}, ["rules", "brandub, seed000", "'tablut'"]),
        ({"capture": "custodial"}, ["capture", "active, trapped", "'custodial'"]),
        ({"king": "strong"}, ["king", "by_castle, by_four, by_two", "'strong'"]),
        ({"castle_hostile": "seed000"}, ["castle_hostile", "when_empty, never", "'seed000'"]),
        ({"attackers_gone": "draw"}, ["attackers_gone", "defenders_win, ignored", "'draw'"]),
        ({"repetition": "loss"}, ["repetition", "draw, never", "'loss'"]),
        ({"repetitions": 1}, ["repetitions", "2..4", "1"]),
        ({"repetitions": 5}, ["repetitions", "2..4", "5"]),
        ({"no_moves": "win"}, ["no_moves", "draw, loss", "'win'"]),
        ({"max_plies": 0}, ["max_plies", "1..65535", "0"]),
        ({"max_plies": 65536}, ["max_plies", "1..65535", "65536"]),
        ({"history": 0}, ["history", "at least 1", "0"]),
        ({"size": 9}, ["brandub has no option 'size'", "rules, history, capture"]),
    ],
    ids=str,
)
def test_an_option_out_of_its_range_is_refused_with_the_choices(options, reasons, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users, who check no types at run time
    with pytest.raises(ValueError, match=reasons[0]) as refusal:
        azjax.games.make("brandub", **options)
    for reason in reasons:
        assert reason in str(refusal.value)


# Repetition and the limit of plies.


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
