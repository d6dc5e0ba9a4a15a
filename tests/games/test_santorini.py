import functools
import itertools
import json
import pathlib
import random

import chex
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import azjax.games
from azjax.core.pytree import replace_fields
from azjax.evaluation import perft, solve
from azjax.games.protocols import action_from_text, legal_texts
from azjax.games.registry import options_of
from azjax.games.santorini import Santorini
from benchmarks.rules.santorini import SantoriniRules

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SIZES = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2)]
ALL = [*SIZES, (5, 2, True)]
GAMES = 200  # side by side; one shape a size, so that one compilation serves
SETUPS = 48


def rules_of(game):
    return SantoriniRules(game.size, game.workers, game.placement)


def from_texts(game, texts):
    """Read one by one; NumPy leaves [n, ...]."""
    states = jax.device_get([game.from_text(text) for text in texts])
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@functools.partial(jax.jit, static_argnums=0)
def facts(game, states, bits, actions):
    """What the rules say of states [n]."""
    slots, valid = jax.vmap(game.legal_slots)(states)
    return {
        "legal": jax.vmap(game.legal_action_mask)(states),
        "slots": slots,
        "valid": valid,
        "sample": jax.vmap(game.sample_legal_action)(states, bits),
        "planes": jax.vmap(game.observe)(states),
        "after": jax.vmap(game.step)(states, actions),
    }


def facts_in_rows(game, states, bits, actions):
    """`facts`, computed in the number of rows that `played` has, so that one compilation serves."""
    rows = (game.max_plies + 3) * GAMES
    padded = jax.tree.map(lambda leaf: np.resize(leaf, (rows, *leaf.shape[1:])), (states, bits, actions))
    return jax.tree.map(lambda leaf: np.asarray(leaf[: len(bits)]), jax.device_get(facts(game, *padded)))


@functools.partial(jax.jit, static_argnums=0)
def replay(game, actions):
    """All states [T + 1, G, ...] of games given as actions int32 [G, T]; -1 plays nothing."""
    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(0), len(actions)))

    def play(states, column):
        following = jax.vmap(game.step)(states, column)
        return following, following

    _, states = jax.lax.scan(play, starts, actions.T)
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), starts, states)


def played(game, games):
    """States [T + 1, G, ...], facts about them, and the random bits of the sampled actions, of lists of actions."""
    length = game.max_plies + 2
    rows = [games[index % len(games)] for index in range(GAMES)]
    actions = np.array([[*row, *[-1] * (length - len(row))] for row in rows], np.int32)
    states = jax.device_get(replay(game, actions))
    bits = np.random.default_rng(0).integers(0, 2**32, (length + 1, GAMES), dtype=np.uint32)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
    answers = facts_in_rows(game, flat, bits.reshape(-1), np.full(bits.size, -1, np.int32))
    return states, jax.tree.map(lambda leaf: leaf.reshape(*bits.shape, *leaf.shape[1:]), answers), bits


def at(states, index):
    return jax.tree.map(lambda leaf: leaf[index], states)


def check_position(states, index, position):
    """The player, the end and the rewards are those of the plain-Python position."""
    assert (states.current_player[index], states.terminated[index]) == (position.player, position.terminal)
    assert tuple(states.rewards[index].tolist()) == position.rewards


def check_choice(legal, answers, index, bits):
    """The mask, the slots and the sampled action are those of the legal actions."""
    assert np.flatnonzero(answers["legal"][index]).tolist() == legal
    assert answers["slots"][index][answers["valid"][index]].tolist() == legal
    assert answers["sample"][index] == (legal[int(bits[index]) * len(legal) >> 32] if legal else 0)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_all_golden_games_are_reproduced_ply_by_ply(golden, size):
    game, lines = Santorini(*size), golden("public/santorini_{}_{}".format(*size))
    states, answers, bits = played(game, [line["moves"] for line in lines])
    planes = answers["planes"].astype(int).reshape(*bits.shape, -1, 7)
    second = states.current_player[..., None] == 1
    occupied = np.where(second, planes[..., 1] + 2 * planes[..., 0], planes[..., 0] + 2 * planes[..., 1])
    boards = np.concatenate([planes[..., 2:] @ np.arange(5), occupied], axis=-1)
    for index, line in enumerate(lines):
        plies = len(line["moves"])
        assert boards[: plies + 1, index].tolist() == line["boards"]
        assert states.current_player[:plies, index].tolist() == line["to_play"]
        assert states.terminated[:, index].tolist() == [False] * plies + [True] * (len(bits) - plies)
        assert states.rewards[plies, index].tolist() == [line["result"], -line["result"]]
        for ply, legal in enumerate([*line["legal"], []]):
            check_choice(legal, answers, (ply, index), bits)


@pytest.mark.parametrize("size", ALL, ids=str)
def test_random_games_agree_with_plain_python_rules(size):
    game, generator = Santorini(*size), random.Random(str(size))
    rules = rules_of(game)
    games = [rules.random_game(generator) for _ in range(6)]
    # An action that nobody can play, and play that goes on after the end: both change nothing.
    actions = [[action for _, action in plies[:-1]] for plies in games]
    for plies, sequence in zip(games, actions, strict=True):
        ply = generator.randrange(len(sequence))
        illegal = sorted(set(range(game.num_actions)) - set(rules.legal_actions(plies[ply][0])))
        sequence.insert(ply, generator.choice([*illegal, -7, game.num_actions, 2**31 - 1, -(2**31)]))
        sequence.append(generator.randrange(game.num_actions))
    states, answers, bits = played(game, actions)
    for index, sequence in enumerate(actions):
        position = rules.start()
        for ply, action in enumerate([*sequence, -1]):
            check_position(states, (ply, index), position)
            assert game.to_text(at(states, (ply, index))) == rules.text(position)
            assert answers["planes"][ply, index].tolist() == rules.planes(position)
            check_choice(rules.legal_actions(position), answers, (ply, index), bits)
            position = rules.step(position, action)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_set_up_positions_agree_with_plain_python_rules(size):
    game, generator = Santorini(*size), random.Random(str(size))
    rules = rules_of(game)
    positions = []
    while len(positions) < SETUPS:
        position = rules.random_setup(generator)
        try:
            game.from_text(rules.text(position))
        except ValueError as refusal:
            assert "no last move" in str(refusal)  # noqa: PT017
            continue
        positions.append(position)
    positions *= 4  # to play four actions each
    states = from_texts(game, map(rules.text, positions))
    bits = np.random.default_rng(0).integers(0, 2**32, len(positions), dtype=np.uint32)
    legal = [rules.legal_actions(position) for position in positions]
    actions = np.array([generator.choice(choices or [0]) for choices in legal], np.int32)
    answers = facts_in_rows(game, states, bits, actions)
    for index, position in enumerate(positions):
        check_position(states, index, position)
        check_choice(legal[index], answers, index, bits)
        expected = rules.step(position, int(actions[index]))
        check_position(answers["after"], index, expected)
        assert game.to_text(at(answers["after"], index)) == rules.text(expected)


@pytest.mark.parametrize(
    ("size", "depth"),
    [((2, 1), 12), ((3, 1), 4), ((3, 2), 3), ((4, 1), 3), ((4, 2), 3), ((5, 1), 3), ((5, 2), 3)],
    ids=str,
)
def test_the_number_of_lines_of_play_is_the_known_one(size, depth):
    known = json.loads((GOLDEN / "perft.json").read_text())["santorini_{}_{}".format(*size)]
    assert perft(Santorini(*size), depth) == known[:depth]


def test_there_are_25_24_23_and_22_squares_to_place_workers_on():
    assert perft(Santorini(5, 2, True), 4) == [25, 25 * 24, 25 * 24 * 23, 25 * 24 * 23 * 22]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_most_legal_actions_are_those_of_an_empty_board(size):
    game = Santorini(*size)
    bits = [1 << (row * (game.size + 1) + column) for row in range(game.size) for column in range(game.size)]
    own, other = [], []
    for own_bits in itertools.combinations(bits, game.workers):
        rest = [bit for bit in bits if bit not in own_bits]
        for other_bits in itertools.combinations(rest, game.workers):
            own.append(sum(own_bits))
            other.append(sum(other_bits))
    start = jax.device_get(game.init(jax.random.key(0)))
    states = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(own), *leaf.shape)), start)
    states = replace_fields(states, own=np.array(own, np.uint32), other=np.array(other, np.uint32))
    count = jax.jit(lambda states: jnp.sum(jax.vmap(game.legal_action_mask)(states), axis=1))(states)
    assert int(count.max()) == game.max_legal_actions


# The solved 2x2 game.


def test_all_2047_positions_of_2x2_and_their_values_are_those_of_the_solved_table(golden):
    lines = golden("solved/santorini_2_1")
    game = Santorini(2, 1)
    solution = solve(game)
    found = {}
    for ply, block in solution.blocks():
        for index in range(len(block.rows)):
            text = game.to_text(at(block.states, index))
            legal = block.legal[index]
            order = np.argsort(block.actions[index][legal])
            actions, values = (x[index][legal][order].tolist() for x in (block.actions, block.action_values))
            found[text] = (ply, block.values[index], actions, values)
    assert found == {
        line["state"]: (line["ply"], line["value"], line["legal"], line["action_values"])
        for line in lines
        if line["end"] is None
    }
    known = json.loads((GOLDEN / "counts.json").read_text())["santorini_2_1"]
    summary = solution.summary()
    assert (summary.reachable, summary.terminal) == (known["reachable"], known["terminal"]) == (2047, 736)
    assert summary.longest_game == known["longest_game"] == game.max_plies
    assert summary.value_first_player == known["value_first_player"] == -1


def test_the_text_of_every_reachable_position_of_2x2_is_read_back_with_its_end_and_number(golden):
    lines = golden("solved/santorini_2_1")
    game = Santorini(2, 1)
    states = from_texts(game, [line["state"] for line in lines])
    for index, line in enumerate(lines):
        assert game.to_text(at(states, index)) == line["state"]
    ended = np.array([line["end"] is not None for line in lines])
    assert states.terminated.tolist() == ended.tolist()
    player = np.array([line["ply"] % 2 for line in lines])
    assert states.current_player.tolist() == player.tolist()
    # The side that would be next has lost.
    assert states.rewards[np.arange(len(lines)), player].tolist() == (-ended.astype(int)).tolist()
    assert len(check_numbers(game, states)) == 2047


def test_legal_actions_and_winning_steps_of_3x3_are_those_of_the_solved_sample(golden):
    game, lines = Santorini(3, 1), golden("solved/santorini_3_1_public")
    states = from_texts(game, [line["state"] for line in lines])
    assert not states.terminated.any()
    assert states.current_player.tolist() == [line["ply"] % 2 for line in lines]
    bits = np.random.default_rng(0).integers(0, 2**32, len(lines), dtype=np.uint32)
    answers = facts_in_rows(game, states, bits, np.full(len(lines), -1, np.int32))
    after = jax.device_get(jax.jit(jax.vmap(jax.vmap(game.step, (None, 0))))(states, answers["slots"]))
    for index, line in enumerate(lines):
        assert game.to_text(at(states, index)) == line["state"]
        check_choice(line["legal"], answers, index, bits)
        won = after.rewards[index, : len(line["legal"]), line["ply"] % 2] == 1
        assert won.any() == (line["plies"] == 1)
        assert all(np.array(line["action_values"])[won] == 1)


@pytest.mark.parametrize("size", [(2, 1), (3, 1)], ids=str)
def test_positions_of_random_games_are_told_apart_by_number(golden, size):
    game, lines = Santorini(*size), golden("public/santorini_{}_{}".format(*size))
    states, _, _ = played(game, [line["moves"] for line in lines])
    numbers = check_numbers(game, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states))
    assert len(numbers) == len({tuple(board) for line in lines for board in line["boards"]})


def check_numbers(game, states):
    """The different numbers of states [n, ...], after a check that each stands for its state."""
    numbers = np.asarray(jax.jit(jax.vmap(game.position_number))(states))
    assert numbers.dtype == np.uint32
    assert numbers.max() < game.num_position_numbers
    again = jax.device_get(jax.jit(jax.vmap(game.from_position_number))(numbers))
    assert not again.rewards.any()
    chex.assert_trees_all_equal(replace_fields(again, rewards=states.rewards), states, strict=True)
    return set(numbers.tolist())


def test_positions_are_numbered_where_32_bits_hold_them():
    numbers = [10_000, 158_203_125, 5**9 * 36**2, 0, 0, 0, 0, 0]
    assert [Santorini(*size).num_position_numbers for size in ALL] == numbers
    with pytest.raises(ValueError, match="does not number"):
        Santorini(4, 1).position_number(Santorini(4, 1).init(jax.random.key(0)))


def test_numbers_that_no_unfinished_position_has_give_a_finished_one():
    game, rng = Santorini(2, 1), np.random.default_rng(0)
    numbers = rng.choice(game.num_position_numbers, 300, replace=False)
    states = jax.device_get(jax.jit(jax.vmap(game.from_position_number))(numbers.astype(np.uint32)))
    running = []
    for number in numbers.tolist():
        heights, own, other = np.base_repr(number // 16, 5).zfill(4), number // 4 % 4, number % 4
        text = heights + f"{own // 2}{own % 2}" + f"{other // 2}{other % 2}"
        try:
            running.append(not game.from_text(text).terminated)
        except ValueError:  # on a dome, on the same square, or won before
            running.append(False)
    assert 30 < sum(running) < 150
    assert (~states.terminated).tolist() == running
    assert not states.rewards.any()


# Starts and options.


@pytest.mark.parametrize(
    ("size", "start"),
    [
        ((2, 1), "00000011"),
        ((3, 1), "0000000000022"),
        ((3, 2), "00000000000022022"),
        ((4, 1), "00000000000000000033"),
        ((4, 2), "000000000000000000033033"),
        ((5, 1), "00000000000000000000000001133"),
        ((5, 2), "000000000000000000000000011133133"),
        ((5, 2, True), "0000000000000000000000000--------"),
    ],
    ids=str,
)
def test_the_start_is_the_known_one(size, start):
    game = Santorini(*size)
    assert game.to_text(game.init(jax.random.key(0))) == start
    assert azjax.games.make("santorini", **options_of(game)) == game


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, r"size must be 2\.\.5, got 1"),
        ({"size": 6}, r"size must be 2\.\.5, got 6"),
        ({"size": 3.0}, r"size must be 2\.\.5, got 3\.0"),
        ({"workers": 0}, r"workers must be 1\.\.2, got 0"),
        ({"size": 5, "workers": 3}, r"workers must be 1\.\.2, got 3"),
        ({"size": 2, "workers": 2}, "workers must be 1 on 2x2, got 2"),
        ({"size": 5, "workers": 2, "placement": 1}, "placement must be True or False, got 1"),
        (
            {"size": 4, "workers": 2, "placement": True},
            "placement needs size 5 and workers 2, got size 4 and workers 2",
        ),
        ({"size": 5, "placement": True}, "placement needs size 5 and workers 2, got size 5 and workers 1"),
    ],
)
def test_sizes_without_rules_are_refused(options, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users, who check no types at run time
    with pytest.raises(ValueError, match=f"^santorini: {message}$"):
        azjax.games.make("santorini", **options)


def test_3x3_with_one_worker_is_the_default():
    assert azjax.games.make("santorini") == Santorini(3, 1, False)


# Single facts.


def play(game, text, move):
    state = game.from_text(text)
    return game.step(state, jnp.int32(action_from_text(game, state, move)))


def test_stepping_onto_height_3_wins_with_every_build():
    game = Santorini(3, 1)
    state = game.from_text("230000000" + "00" + "22")
    wins = [move for move in legal_texts(game, state) if move.startswith("a3-b3")]
    assert wins == ["a3-b3^a3", "a3-b3^c3", "a3-b3^a2", "a3-b3^b2", "a3-b3^c2"]
    for move in wins:
        after = game.step(state, jnp.int32(action_from_text(game, state, move)))
        assert after.terminated
        assert after.rewards.tolist() == [-1, 1]
        assert game.ending(after) == "Purple climbs to the top"


def test_climbing_two_levels_onto_a_dome_or_an_occupied_square_is_illegal():
    game = Santorini(3, 1)
    state = game.from_text("020" + "400" + "000" + "00" + "11")
    assert {move[:5] for move in legal_texts(game, game.from_text("010" + "400" + "000" + "00" + "11"))} == {"a3-b3"}
    assert state.terminated
    assert state.rewards.tolist() == [-1, 1]
    assert game.ending(state) == "Orange cannot move"


def test_the_square_just_left_can_be_built_on_and_a_fourth_level_is_a_dome():
    game = Santorini(2, 1)
    after = play(game, "0003" + "00" + "01", "a2-a1^a2")
    assert game.to_text(after) == "1003" + "01" + "10"
    after = play(game, "0003" + "00" + "01", "a2-a1^b1")
    assert game.to_text(after) == "0004" + "01" + "10"


def test_workers_change_numbers_when_they_pass_each_other():
    game = Santorini(3, 2)
    state = game.from_text("000000000" + "0001" + "2122")
    # The worker on a3 moves behind the one on b3; number 0 is then b3.
    after = game.step(state, jnp.int32(action_from_text(game, state, "a3-a2^a3")))
    assert game.to_text(after) == "100000000" + "2122" + "0110"


def test_a_player_places_both_workers_before_the_other_does():
    game = Santorini(5, 2, True)
    state, players = game.init(jax.random.key(0)), []
    for move in ("c3", "a5", "e1", "e5"):
        players.append(int(state.current_player))
        state = game.step(state, jnp.int32(action_from_text(game, state, move)))
    assert players == [0, 0, 1, 1]
    assert int(state.current_player) == 0
    assert game.to_text(state) == "0" * 25 + "0022" + "0444"


@pytest.mark.parametrize("size", [(2, 1), (3, 2), (5, 2), (5, 2, True)], ids=str)
def test_evenly_spaced_bits_draw_every_legal_action_equally_often(size):
    game = Santorini(*size)
    state = game.init(jax.random.key(0))
    legal = np.flatnonzero(game.legal_action_mask(state))
    draws = 64 * len(legal)
    bits = ((2 * np.arange(draws, dtype=np.uint64) + 1) * 2**31 // draws).astype(np.uint32)
    sample = jax.jit(jax.vmap(game.sample_legal_action, (None, 0)))(state, bits)
    actions, counts = np.unique(sample, return_counts=True)
    assert actions.tolist() == legal.tolist()
    assert set(counts.tolist()) == {64}
