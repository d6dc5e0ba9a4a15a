import functools
import json
import pathlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import azjax.games
from azjax.games.game import Game
from azjax.games.mnk import Mnk
from azjax.games.protocols import action_from_text
from benchmarks.rules.mnk import MnkRules

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SIZES = [(3, 3, 3), (4, 1, 2), (1, 5, 3), (7, 4, 3), (4, 4, 3), (6, 6, 4), (15, 15, 5), (26, 2, 5), (2, 2, 1)]
TICTACTOE = azjax.games.make("tictactoe")
CONNECT2 = azjax.games.make("connect2")
KEY_SEED = 0


@functools.cache
def jitted(game, method):
    return jax.jit(jax.vmap(getattr(game, method)))


@functools.partial(jax.jit, static_argnums=0)
def replay(game, actions):
    """All states [T + 1, G, ...] of games given as actions int32 [G, T]; -1 plays nothing."""
    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(KEY_SEED), len(actions)))

    def play(states, column):
        following = jax.vmap(game.step)(states, column)
        return following, following

    _, states = jax.lax.scan(play, starts, actions.T)
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), starts, states)


def play(game, actions):
    """The state after `actions` from the start."""
    return jax.tree.map(lambda leaf: leaf[len(actions), 0], replay(game, padded([actions], game.num_actions)))


def by_state(game, method, states):
    """The answers of a method for states with any leading shape, with that shape."""
    lead = states.terminated.shape
    answers = jitted(game, method)(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(lead) :]), states))
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*lead, *leaf.shape[1:]), answers)


def masks(game, states):
    return by_state(game, "legal_action_mask", states)


def observations(game, states):
    return by_state(game, "observe", states)


def boards(game, states):
    """int [..., A]: 0 empty, 1 player 0, 2 player 1, of states with any leading shape."""
    planes = observations(game, states).astype(int).reshape(*states.terminated.shape, game.num_actions, 2)
    player = np.asarray(states.current_player)[..., None]
    return planes[..., 0] * (player + 1) + planes[..., 1] * (2 - player)


def padded(lists, length):
    return np.array([[*actions, *[-1] * (length - len(actions))] for actions in lists], np.int32)


@pytest.mark.parametrize("game", [TICTACTOE, CONNECT2], ids=lambda game: game.name)
def test_golden_games_are_reproduced_ply_by_ply(golden, game):
    lines = golden(f"public/{game.name}")
    states = replay(game, padded([line["moves"] for line in lines], game.max_plies))
    board, legal = boards(game, states), masks(game, states)
    ended = np.asarray(states.terminated)
    for index, line in enumerate(lines):
        plies = len(line["moves"])
        assert board[: plies + 1, index].tolist() == line["boards"]
        assert [np.flatnonzero(mask).tolist() for mask in legal[:plies, index]] == line["legal"]
        assert np.asarray(states.current_player)[:plies, index].tolist() == line["to_play"]
        assert ended[:, index].tolist() == [False] * plies + [True] * (game.max_plies + 1 - plies)
        assert np.asarray(states.rewards)[plies, index].tolist() == [line["result"], -line["result"]]


@functools.cache
def levels(name):
    """By ply: (distinct states [n, ...], int [n] how many lines of play reach each), from the start on."""
    game = azjax.games.make(name)
    width = 2048  # above the largest level of tic-tac-toe, so that one compilation serves all
    step = jax.jit(jax.vmap(jax.vmap(game.step, (None, 0)), (0, None)))

    def distinct(states, count):
        stones = np.stack(jax.tree.leaves(states.stones), axis=-1)
        _, first, group = np.unique(stones, axis=0, return_index=True, return_inverse=True)
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[first], states)
        return states, np.bincount(group.reshape(-1), count).astype(int)

    states, count = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(KEY_SEED))), np.array([1])
    found = [(states, count)]
    while not np.all(states.terminated):
        rows = jax.tree.map(lambda leaf: np.resize(leaf, (width, *leaf.shape[1:])), states)
        children = step(rows, jnp.arange(game.num_actions))
        legal = masks(game, rows).copy()
        legal[len(count) :] = False
        children = jax.tree.map(lambda leaf: np.asarray(leaf)[legal], children)
        states, count = distinct(children, np.repeat(count, legal[: len(count)].sum(axis=1)))
        found.append((states, count))
    return found


@functools.cache
def reachable(name):
    """(every reachable state [n, ...], their boards int [n, A], int [n] how many lines of play reach each)."""
    states, counts = zip(*levels(name), strict=True)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
    return states, boards(azjax.games.make(name), states), np.concatenate(counts)


@pytest.mark.parametrize("name", ["tictactoe", "connect2"])
def test_the_number_of_lines_of_play_is_the_known_one(name):
    perft = json.loads((GOLDEN / "perft.json").read_text())[name]
    assert [int(count.sum()) for _, count in levels(name)[1:]] == perft


def test_tictactoe_has_255168_games_of_which_46080_are_drawn():
    states, _, count = reachable("tictactoe")
    results = np.bincount(states.rewards[states.terminated, 0].astype(int) + 1, count[states.terminated])
    assert results.tolist() == [77904, 46080, 131184]
    assert results.sum() == 255168


@pytest.mark.parametrize("name", ["tictactoe", "connect2"])
def test_reachable_positions_and_their_ends_are_those_of_the_solved_tables(golden, name):
    known = {}
    for line in golden(f"solved/{name}"):
        value = line["value"] if line["end"] else 0
        result = value if line["to_play"] == 0 else -value
        known[tuple(line["board"])] = (line["to_play"], line["end"] is not None, [result, -result])
    states, board, _ = reachable(name)
    facts = zip(states.current_player.tolist(), states.terminated.tolist(), states.rewards.tolist(), strict=True)
    assert dict(zip(map(tuple, board.tolist()), facts, strict=True)) == known


@pytest.mark.parametrize("name", ["tictactoe", "connect2"])
def test_reachable_positions_up_to_symmetry_are_765_and_17(name):
    game, counts = azjax.games.make(name), json.loads((GOLDEN / "counts.json").read_text())[name]
    states, _, _ = reachable(name)
    images = boards(game, jitted(game, "symmetries")(states)[0])
    smallest = [min(map(tuple, position)) for position in images.tolist()]
    assert len(set(smallest)) == counts["reachable_up_to_symmetry"]
    ended = {position for position, over in zip(smallest, states.terminated, strict=True) if over}
    assert len(ended) == counts["terminal_up_to_symmetry"]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_random_games_agree_with_plain_python_rules(size):
    game, rules = Mnk(*size), MnkRules(*size)
    generator = random.Random(str(size))
    games = [rules.random_game(generator) for _ in range(12)]
    # One cell in a game is played twice, and play goes on after the end: both change nothing.
    actions = [[action for _, action in plies[:-1]] for plies in games]
    for sequence in actions:
        sequence.insert(generator.randrange(1, len(sequence) + 1), sequence[0])
        sequence.append(generator.randrange(game.num_actions))
    states = jax.device_get(replay(game, padded(actions, game.num_actions + 2)))
    board, legal, observed = boards(game, states), masks(game, states), observations(game, states)
    for index, sequence in enumerate(actions):
        position = rules.start()
        for ply, action in enumerate([*sequence, -1]):
            at = (ply, index)
            assert tuple(board[at]) == position.board
            assert np.flatnonzero(legal[at]).tolist() == rules.legal_actions(position)
            assert states.current_player[at] == position.player
            assert states.terminated[at] == position.terminal
            assert tuple(states.rewards[at].tolist()) == position.rewards
            assert observed[at].tolist() == rules.planes(position)
            position = rules.step(position, action)


@pytest.mark.parametrize(
    ("size", "actions"),
    [
        ((7, 4, 3), [0, 21, 1, 23, 3, 25, 4, 26, 2]),
        ((15, 15, 5), [15, 0, 31, 2, 47, 4, 63, 6, 95, 8, 111, 10, 127, 12, 143, 14, 79]),
    ],
    ids=str,
)
def test_a_line_longer_than_k_wins_too(size, actions):
    before, after = play(Mnk(*size), actions[:-1]), play(Mnk(*size), actions)
    assert not before.terminated
    assert after.terminated
    assert after.rewards.tolist() == [1, -1]


def test_a_line_does_not_run_over_the_edge_of_the_board():
    #  _ _ X     X's stones have neighboring numbers, 2 3 4, but lie in two rows.
    #  X X O
    #  _ O _
    state = play(TICTACTOE, [2, 5, 3, 7, 4])
    assert TICTACTOE.to_text(state) == "__XXXO_O_"
    assert not state.terminated


def test_a_full_board_without_a_line_is_a_draw():
    state = play(TICTACTOE, [0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert state.terminated
    assert state.rewards.tolist() == [0, 0]


def test_a_line_made_by_the_last_stone_wins():
    state = play(TICTACTOE, [0, 1, 2, 3, 5, 4, 7, 6, 8])
    assert TICTACTOE.to_text(state) == "XOXOOXOXX"
    assert state.terminated
    assert state.rewards.tolist() == [1, -1]


def test_the_second_player_wins_with_a_column():
    state = play(TICTACTOE, [0, 1, 3, 4, 8, 7])
    assert state.terminated
    assert state.rewards.tolist() == [-1, 1]


def test_rewards_belong_to_the_step_just_made():
    assert play(TICTACTOE, [0, 3, 1, 4, 2]).rewards.tolist() == [1, -1]
    assert play(TICTACTOE, [0, 3, 1, 4, 2, 8]).rewards.tolist() == [0, 0]


def test_observations_show_the_movers_stones_first():
    x_to_move = play(TICTACTOE, [0, 4])
    own, other = np.moveaxis(np.asarray(TICTACTOE.observe(x_to_move)), -1, 0)
    assert own.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert other.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    o_to_move = play(TICTACTOE, [0, 4, 8])
    own, other = np.moveaxis(np.asarray(TICTACTOE.observe(o_to_move)), -1, 0)
    assert own.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert other.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert TICTACTOE.observe(o_to_move).dtype == jnp.float32


# Symmetries.


@pytest.mark.parametrize(
    ("size", "number"),
    [((3, 3, 3), 8), ((15, 15, 5), 8), ((7, 4, 3), 4), ((2, 5, 3), 4), ((4, 1, 2), 2), ((1, 5, 3), 2)],
    ids=str,
)
def test_a_square_has_8_symmetries_an_oblong_4_and_a_row_2(size, number):
    game = Mnk(*size)
    permutation = jax.jit(lambda: game.symmetries(game.init(jax.random.key(KEY_SEED)))[1])()
    assert permutation.shape == (number, game.num_actions)
    assert len(np.unique(permutation, axis=0)) == number


@functools.partial(jax.jit, static_argnums=0)
def turn_then_step_and_step_then_turn(game, state, action):
    turned, permutation = game.symmetries(state)
    after_turn = jax.vmap(game.step)(turned, permutation[:, action])
    return turned, after_turn, game.symmetries(game.step(state, action))[0]


@settings(max_examples=40, deadline=None)
@given(size=st.sampled_from([(3, 3, 3), (4, 4, 3), (7, 4, 3), (15, 15, 5)]), seed=st.integers(0, 2**32 - 1))
def test_turning_and_then_playing_is_playing_and_then_turning(size, seed):
    game, generator = Mnk(*size), random.Random(seed)
    plies = MnkRules(*size).random_game(generator)[:-1]
    stop = generator.randrange(len(plies))
    state = play(game, [action for _, action in plies[:stop]])
    turned, after_turn, turned_after = turn_then_step_and_step_then_turn(game, state, plies[stop][1])
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), after_turn, turned_after))

    board = np.array(plies[stop][0].board).reshape(game.rows, game.columns)
    images = [board, board[::-1], board[:, ::-1], board[::-1, ::-1]]
    images += [image.T for image in images] if game.rows == game.columns else []
    found = [tuple(cells) for cells in boards(game, turned).tolist()]
    assert sorted(found) == sorted(tuple(image.ravel().tolist()) for image in images)
    assert found[0] == plies[stop][0].board


# Text.


@pytest.mark.parametrize("size", [(3, 3, 3), (4, 1, 2), (7, 4, 3), (15, 15, 5)], ids=str)
def test_text_is_one_character_a_cell_and_read_back(size):
    game, rules = Mnk(*size), MnkRules(*size)
    generator = random.Random(str(size))
    for _ in range(3):
        plies = rules.random_game(generator)
        for position in (plies[-1][0], generator.choice(plies)[0]):
            text = rules.text(position)
            state = game.from_text(text)
            assert game.to_text(state) == text
            assert tuple(boards(game, jax.tree.map(lambda leaf: leaf[None], state))[0].tolist()) == position.board
            assert int(state.current_player) == position.player
            assert bool(state.terminated) == position.terminal
            assert tuple(state.rewards.tolist()) == position.rewards


def test_the_start_is_written_with_empty_cells():
    assert TICTACTOE.to_text(play(TICTACTOE, [])) == "_________"
    assert CONNECT2.to_text(play(CONNECT2, [1, 3])) == "_X_O"
    assert Mnk(3, 2, 3).to_text(play(Mnk(3, 2, 3), [5, 0])) == "O____X"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("XO", ["9 characters", "got 2", "XO"]),
        ("", ["9 characters", "got 0"]),
        ("XO_______X", ["9 characters", "got 10"]),
        ("X____Z___", ["character 6", "'Z'", "X, O and _"]),
        ("x________", ["character 1", "'x'"]),
        ("XO__ ____", ["character 5", "' '"]),
        ("XX_______", ["2 X", "0 O"]),
        ("O________", ["0 X", "1 O"]),
        ("XXXOOO___", ["X had a line", "O moved last"]),
        ("XXXOO_O__", ["X had a line", "O moved last"]),
        ("OOOXX_X_X", ["O had a line", "X moved last"]),
    ],
)
def test_bad_text_is_refused_with_the_reason(text, reasons):
    with pytest.raises(ValueError, match="tictactoe") as refusal:
        TICTACTOE.from_text(text)
    for reason in reasons:
        assert reason in str(refusal.value)


def test_two_lines_that_no_single_stone_completes_are_refused():
    with pytest.raises(ValueError, match="lines that no last move completes"):
        Mnk(4, 4, 3).from_text("XXX_OO_OO__OXXX_")


def test_two_lines_completed_by_one_stone_are_a_win():
    state = TICTACTOE.from_text("XXXXOOXOO")
    assert state.terminated
    assert state.rewards.tolist() == [1, -1]


@pytest.mark.parametrize(("move", "action"), [("a1", 6), ("a3", 0), ("c3", 2), ("b2", 4), ("c1", 8), (" B2 ", 4)])
def test_squares_are_a_letter_from_the_left_and_a_number_from_the_bottom(move, action):
    state = play(TICTACTOE, [])
    assert action_from_text(TICTACTOE, state, move) == action
    assert TICTACTOE.action_to_text(state, action) == move.strip().lower()


def test_squares_of_a_large_board():
    game = Mnk(15, 15, 5)
    state = play(game, [])
    assert game.action_to_text(state, 0) == "a15"
    assert game.action_to_text(state, 224) == "o1"
    assert action_from_text(game, state, "o15") == 14


def test_tictactoe_takes_plain_numbers_from_1_to_9():
    state = play(TICTACTOE, [])
    assert [action_from_text(TICTACTOE, state, str(number)) for number in range(1, 10)] == list(range(9))


def test_connect2_and_mnk_take_plain_numbers_from_0():
    assert [action_from_text(CONNECT2, play(CONNECT2, []), str(number)) for number in range(4)] == [0, 1, 2, 3]
    assert action_from_text(Mnk(7, 4, 3), play(Mnk(7, 4, 3), []), "27") == 27


@pytest.mark.parametrize("move", ["0", "10", "5", "b2", "d1", "a4", "a0", "-1", "", "b", "22", "pass", "\u0662"])
def test_a_move_that_is_not_legal_is_refused_by_its_own_text(move):
    state = play(TICTACTOE, [4])
    with pytest.raises(ValueError, match="not a legal move") as refusal:
        action_from_text(TICTACTOE, state, move)
    assert repr(move) in str(refusal.value)
    assert "a3, b3, c3, a2, c2, a1, b1, c1" in str(refusal.value)


def test_no_move_is_legal_after_the_end():
    with pytest.raises(ValueError, match="not a legal move"):
        action_from_text(TICTACTOE, TICTACTOE.from_text("XXXOO____"), "a1")


def test_the_board_is_drawn_with_its_coordinates():
    drawn = TICTACTOE.draw(TICTACTOE.from_text("XO__X____"))
    assert drawn.splitlines() == ["3  X O .", "2  . X .", "1  . . .", "   a b c"]


@pytest.mark.parametrize("game", [TICTACTOE, Mnk(15, 15, 5), azjax.games.make("connect_four")], ids=lambda g: g.name)
def test_the_same_bits_draw_the_same_action_as_from_the_slots(game):
    def play(states, bits):
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        from_slots = jax.vmap(functools.partial(Game.sample_legal_action, game))(states, bits)
        return jax.vmap(game.step)(states, actions), (actions, from_slots)

    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 16))
    # Plies after the end are played too.
    bits = jax.random.bits(jax.random.key(1), (game.max_plies + 1, 16))
    _, (actions, from_slots) = jax.jit(lambda: jax.lax.scan(play, starts, bits))()
    np.testing.assert_array_equal(actions, from_slots)
    assert (np.asarray(actions[-1]) == 0).all()


@pytest.mark.parametrize("size", [(3, 3, 3), (7, 4, 3), (15, 15, 5)])
def test_pieces_are_placed_one_by_one(size):
    game = Mnk(*size)
    cells = np.random.default_rng(0).integers(0, 3, game.num_cells)
    state = game.init(jax.random.key(0))
    for square, piece in enumerate(cells.tolist()):
        state = game.with_piece(state, square, piece)
    assert game.to_text(state) == "".join("_XO"[piece] for piece in cells)
    state = game.with_piece(state, 3, 0)
    assert game.to_text(state)[3] == "_"


@pytest.mark.parametrize(("columns", "number"), [(3, 0), (4, 0), (5, 1)])
def test_a_row_is_won_only_where_the_other_stones_have_room(columns, number):
    game = Mnk(columns, 1, 3)
    examples = game.examples()
    assert len(examples) == number
    for text, _ in examples:
        assert game.from_text(text).terminated
