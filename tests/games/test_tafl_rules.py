import dataclasses
import json

import jax
import jaxtyping
import numpy as np
import pytest
from brandub_batches import (
    BATCH,
    GAME,
    NOTEBOOK,
    ask,
    fill,
    jitted,
    masks_of,
    random_games,
    replay,
    row,
    same,
    slot_masks,
    stack,
    starts,
    step,
)

import azjax.games
from azjax.games.registry import options_of
from azjax.games.tafl import Tafl, TaflRules
from benchmarks.rules.tafl import (
    DEFAULT,
    SEED000,
    START,
    BrandubRules,
    action_of,
)

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
CASTLE_FOR_ANYONE = [  # a pawn may stand where the king is captured by four, and where pawns are captured against
    {"castle": "anyone", "capture": "trapped"},
    {"castle": "anyone", "king": "by_four"},
    {"castle": "anyone", "king": "by_four", "capture": "trapped"},
]


# Golden files. The longest of their games has 406 plies, so that the limit of 512 does not matter.


@pytest.mark.slow_except("brandub")
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


@pytest.mark.slow_except("brandub")
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
    "a pawn on the castle is trapped against, which is not hostile itself": (
        *({"capture": "trapped", "castle": "anyone"}, "7/t6/3T3/3t3/7/5K1/7 a", "a6-d6"),
        *("7/3t3/7/3t3/7/5K1/7 d", None),
    ),
    "a pawn is not trapped against a friend on the castle": (
        *({"capture": "trapped", "castle": "anyone"}, "7/t6/3T3/3T3/7/5K1/7 a", "a6-d6"),
        *("7/3t3/3T3/3T3/7/5K1/7 d", None),
    ),
    "a defender on the castle saves the king beside it": (
        *({"castle": "anyone"}, "7/7/7/3T3/2tKt2/t6/7 a", "a2-d2"),
        *("7/7/7/3T3/2tKt2/3t3/7 d", None),
    ),
    "a defender on the castle saves a king whom four capture everywhere": (
        *({"castle": "anyone", "king": "by_four"}, "7/7/7/3T3/2tKt2/t6/7 a", "a2-d2"),
        *("7/7/7/3T3/2tKt2/3t3/7 d", None),
    ),
    "an attacker on the castle is one of the four": (
        *({"castle": "anyone"}, "7/7/7/3t3/2tKt2/t6/5T1 a", "a2-d2"),
        *("7/7/7/3t3/2t1t2/3t3/5T1 d", 1),
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
@pytest.mark.slow_except("{'king': 'by_two'}")
@pytest.mark.parametrize(
    "options",
    [
        *OTHER_VALUES,
        *(pytest.param(values, marks=pytest.mark.slow) for values in [*FAMILY_VALUES, *CASTLE_FOR_ANYONE]),
    ],
    ids=str,
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
        ({"history": 0}, ["history", "1..64", "0"]),
        ({"history": 65}, ["history", "1..64", "65"]),
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
