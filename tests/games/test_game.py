import dataclasses
import functools
import json
import re

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import azjax.games
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, select_rows
from azjax.games import ConfiguredGame, Game, random_legal_action
from azjax.games.game import reward_of_mover
from azjax.games.protocols import action_from_text, action_to_text, legal_texts, rules_for_people
from azjax.games.registry import GAMES, options_of

NUM_ACTIONS = 12


@pytree_dataclass
class MaskState:
    legal: jax.Array  # bool [A]
    current_player: jax.Array
    terminated: jax.Array
    rewards: jax.Array


def state_with(legal):
    mask = np.isin(np.arange(NUM_ACTIONS), legal)
    return MaskState(jnp.asarray(mask), jnp.int32(0), jnp.bool_(not mask.any()), jnp.zeros(2))


@dataclasses.dataclass(frozen=True)
class MaskGame(Game):
    """The state says which of 12 actions are legal; playing one takes it away. `slots` is K."""

    slots: int
    name: str = "mask"

    @property
    def num_actions(self):
        return NUM_ACTIONS

    @property
    def max_legal_actions(self):
        return self.slots

    @property
    def max_plies(self):
        return self.slots

    @property
    def observation_shape(self):
        return (NUM_ACTIONS,)

    def init(self, key):
        return state_with(range(self.slots))

    def step(self, state, action):
        legal = state.legal & (jnp.arange(NUM_ACTIONS) != action)
        return MaskState(legal, 1 - state.current_player, ~legal.any(), jnp.zeros(2))

    def legal_action_mask(self, state):
        return state.legal

    def observe(self, state):
        return state.legal.astype(jnp.float32)


# The registry.


def test_the_mnk_family_is_available():
    assert {"connect2", "mnk", "tictactoe"} <= set(azjax.games.available())
    assert azjax.games.available() == sorted(azjax.games.available())


def test_make_builds_a_game_by_its_name():
    assert azjax.games.make("tictactoe").name == "tictactoe"
    assert azjax.games.make("connect2").num_actions == 4
    assert azjax.games.make("mnk", columns=5, rows=4, in_a_row=4).observation_shape == (4, 5, 2)


def test_the_options_of_a_game_make_it_again():
    games = [azjax.games.make(name) for name in azjax.games.available()]
    for game in [*games, azjax.games.make("mnk", columns=5, rows=4, in_a_row=4)]:
        assert azjax.games.make(game.name, **options_of(game)) == game


def test_an_unknown_game_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"unknown game 'tictactoo'.*did you mean tictactoe") as refusal:
        azjax.games.make("tictactoo")
    for name in azjax.games.available():
        assert name in str(refusal.value)
    with pytest.raises(ValueError, match="unknown game 'chess'"):
        azjax.games.make("chess")


def test_an_unknown_option_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"mnk has no option 'size'; its options: columns, rows, in_a_row"):
        azjax.games.make("mnk", size=3)
    with pytest.raises(ValueError, match=r"tictactoe has no option 'name'; its options: none"):
        azjax.games.make("tictactoe", name="x")
    with pytest.raises(ValueError, match=r"tictactoe has no option 'rows'; its options: none"):
        azjax.games.make("tictactoe", rows=3)


@pytest.mark.parametrize("name", [3, None, MaskGame(3)], ids=repr)
def test_a_name_that_is_no_text_is_refused(name, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users, who check no types at run time
    with pytest.raises(InputError, match=f"a text such as 'tictactoe'; got {re.escape(repr(name))}"):
        azjax.make(name)


def test_a_function_without_a_game_is_refused(monkeypatch):
    monkeypatch.setitem(GAMES._entries, "nothing", lambda: None)
    with pytest.raises(InputError, match=r"^nothing: its function must return an azjax.games.Game, got None$"):
        azjax.make("nothing")


def test_an_error_of_a_function_from_outside_is_told_with_its_place(monkeypatch):
    def square(size: int = 3):
        raise ValueError(f"size is {size}")

    monkeypatch.setitem(GAMES._entries, "square", square)
    with pytest.raises(
        InputError, match=r"^square: its function raised ValueError: size is 99 \(test_game.py, line \d+\)$"
    ):
        azjax.make("square", size=99)


def test_an_option_that_is_no_attribute_is_refused_unless_the_game_says_its_options(monkeypatch):
    class Configured(MaskGame, ConfiguredGame):
        @property
        def options(self):
            return {"stones": self.slots}

    for kind in (MaskGame, Configured):
        monkeypatch.setitem(GAMES._entries, "mask", lambda stones=3, kind=kind: kind(stones))
        game = kind(5)
        if kind is Configured:
            assert options_of(game) == {"stones": 5}
        else:
            with pytest.raises(InputError, match=r"^mask: its option stones is no attribute of MaskGame: name the"):
                options_of(game)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"columns": 0}, "columns must be 1..26, got 0"),
        ({"columns": 27}, "columns must be 1..26, got 27"),
        ({"rows": -1}, "rows must be 1..26, got -1"),
        ({"in_a_row": 0}, "in_a_row must be 1..3 on this board, got 0"),
        ({"in_a_row": 4}, "in_a_row must be 1..3 on this board, got 4"),
        ({"columns": 5, "rows": 2, "in_a_row": 6}, "in_a_row must be 1..5 on this board, got 6"),
    ],
)
def test_an_option_out_of_its_range_is_refused_with_the_range(options, reason):
    with pytest.raises(ValueError, match="mnk: ") as refusal:
        azjax.games.make("mnk", **options)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "option", "number"),
    [
        ("mnk", "columns", 5),
        ("mnk", "in_a_row", 2),
        ("connect_four", "rows", 5),
        ("chomp", "rows", 3),
        ("hex", "size", 4),
        ("othello", "size", 6),
        ("breakthrough", "columns", 4),
        ("santorini", "size", 4),
        ("santorini", "workers", 1),
        ("brandub", "history", 64),
        ("tablut", "max_plies", 80),
    ],
)
def test_numbers_of_numpy_are_those_of_python_and_truth_values_are_none(name, option, number):
    game = azjax.games.make(name, **{option: np.int64(number)})
    assert json.loads(json.dumps(options_of(game)))[option] == number
    assert game == azjax.games.make(name, **{option: number})
    with pytest.raises(ValueError, match=f"{option} must be .*, got True"):
        azjax.games.make(name, **{option: True})


def test_equal_games_share_one_compilation():
    traced = []

    @functools.partial(jax.jit, static_argnums=0)
    def start(game, key):
        traced.append(game)
        return game.init(key)

    key = jax.random.key(0)
    for _ in range(2):
        start(azjax.games.make("tictactoe"), key)
        start(azjax.games.make("mnk", columns=5), key)
    assert len(traced) == 2
    assert hash(azjax.games.make("mnk", columns=5)) == hash(azjax.games.make("mnk", columns=5))
    assert azjax.games.make("mnk", columns=5) != azjax.games.make("mnk", columns=6)


# What a game need not write itself.

LEGAL_SETS = [[], [0], [11], [0, 11], [3, 4, 7], [0, 1, 2, 3, 4], [7, 8, 9, 10, 11], [1, 3, 5, 8, 10]]


def test_the_default_slots_hold_the_legal_actions_ascending_and_then_holes():
    game = MaskGame(slots=5)
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[state_with(legal) for legal in LEGAL_SETS])
    actions, valid = jax.jit(jax.vmap(game.legal_slots))(states)
    assert actions.shape == valid.shape == (len(LEGAL_SETS), 5)
    assert actions.dtype == jnp.int32
    for legal, row, row_valid in zip(LEGAL_SETS, actions.tolist(), valid.tolist(), strict=True):
        assert row == legal + [0] * (5 - len(legal))
        assert row_valid == [True] * len(legal) + [False] * (5 - len(legal))


def test_with_a_slot_for_every_action_slot_a_is_action_a():
    game = MaskGame(slots=NUM_ACTIONS)
    actions, valid = game.legal_slots(state_with([3, 4, 7]))
    assert actions.tolist() == list(range(NUM_ACTIONS))
    assert np.flatnonzero(valid).tolist() == [3, 4, 7]


@pytest.mark.parametrize("slots", [7, NUM_ACTIONS])
def test_random_legal_actions_are_uniform_over_the_legal_ones(slots):
    legal, draws = [0, 2, 3, 7, 8, 9, 11], 14_000
    game, state = MaskGame(slots), state_with(legal)
    keys = jax.random.split(jax.random.key(1), draws)
    drawn = jax.jit(jax.vmap(lambda key: random_legal_action(game, key, state)))(keys)
    counts = np.bincount(drawn, minlength=NUM_ACTIONS)
    assert counts.sum() == counts[legal].sum()
    expected = draws / len(legal)
    # 22.46 is exceeded once in 1000 keys by a uniform draw (6 degrees of freedom).
    assert ((counts[legal] - expected) ** 2 / expected).sum() < 22.46


def test_the_only_legal_action_is_drawn_and_0_after_the_end():
    keys = jax.random.split(jax.random.key(2), 20)
    for slots in (5, NUM_ACTIONS):
        draw = jax.jit(jax.vmap(functools.partial(random_legal_action, MaskGame(slots)), (0, None)))
        for legal, expected in (([6], 6), ([11], 11), ([], 0)):
            assert set(draw(keys, state_with(legal)).tolist()) == {expected}


def test_the_default_symmetry_is_the_identity_alone():
    state = state_with([1, 5])
    states, permutation = MaskGame(5).symmetries(state)
    assert permutation.tolist() == [list(range(NUM_ACTIONS))]
    assert states.legal.tolist() == [state.legal.tolist()]
    assert states.rewards.shape == (1, 2)


def test_without_a_notation_moves_are_plain_numbers():
    game, state = MaskGame(5), state_with([1, 11])
    assert action_to_text(game, state, 11) == "11"
    assert action_from_text(game, state, " 11 ") == 11
    assert legal_texts(game, state) == ["1", "11"]
    with pytest.raises(ValueError, match="'2' is not a legal move here; legal: 1, 11"):
        action_from_text(game, state, "2")


def test_rows_are_selected_in_every_leaf():
    new, old = ({"flat": jnp.full(3, n), "board": jnp.full((3, 2, 2), n)} for n in (1, 0))
    chosen = select_rows(jnp.array([True, False, True]), new, old)
    assert chosen["flat"].tolist() == [1, 0, 1]
    assert chosen["board"].sum(axis=(1, 2)).tolist() == [4, 0, 4]


def test_the_reward_of_a_step_is_that_of_the_player_who_made_it():
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), state_with([1]), state_with([2]))
    state = dataclasses.replace(state, current_player=jnp.array([0, 1], jnp.int32))
    following = dataclasses.replace(state, rewards=jnp.array([[1.0, -1.0], [1.0, -1.0]]))
    assert reward_of_mover(state, following).tolist() == [1, -1]
    children = dataclasses.replace(state, rewards=jnp.array([[[1.0, -1.0], [0, 0]], [[1.0, -1.0], [-1.0, 1.0]]]))
    assert reward_of_mover(state, children).tolist() == [[1, 0], [-1, 1]]


@pytest.mark.parametrize("name", [name for name in azjax.games.available() if not name.startswith("pgx:")])
def test_every_game_tells_its_rules_and_its_notation(name):
    rules, notation = rules_for_people(azjax.make(name))
    for text in (rules, notation):
        assert text.endswith(".")
        assert "  " not in text
        assert "None" not in text
    assert notation.startswith("A move is")


@pytest.mark.parametrize(
    ("name", "options", "word", "corner"),
    [
        ("tictactoe", {}, "from the bottom", "a3"),
        ("chomp", {}, "from the bottom", "a3"),
        ("hex", {}, "from the top", "a1"),
        ("hex", {"swap": True}, "or swap", "a1"),
        ("othello", {}, "from the top", "a1"),
    ],
)
def test_the_notation_counts_rows_as_the_moves_do(name, options, word, corner):
    game = azjax.make(name, **options)
    assert word in game.move_notation()
    assert action_to_text(game, game.init(jax.random.key(0)), 0) == corner  # action 0 is top left


def test_a_game_without_text_tells_no_rules():
    assert rules_for_people(MaskGame(3)) == ("", "")
