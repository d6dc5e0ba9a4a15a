import dataclasses
import json

import jax
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.evaluation import GameRecord, load_games, perft, play_match, random_player, records_of, save_games, solve
from azjax.games.mnk import Mnk
from azjax.games.registry import make

TICTACTOE = make("tictactoe")
WON = GameRecord(TICTACTOE, ("Ann", "Bob"), ("b2", "a1", "c1", "a3", "a2", "c3", "b1", "c2"), None)
SHORT = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1", "a2", "b1", "b2", "c1"), (1.0, -1.0))


def changed(record: GameRecord, **fields: object) -> str:
    return json.dumps(json.loads(record.to_json()) | fields)


def test_a_record_is_a_line_of_json():
    assert json.loads(SHORT.to_json()) == {
        "azjax": 1,
        "game": "tictactoe",
        "options": {},
        "players": ["Ann", "Bob"],
        "start": None,
        "moves": ["a1", "a2", "b1", "b2", "c1"],
        "rewards": [1.0, -1.0],
        "end": None,
        "opening_plies": 0,
    }


def test_the_opening_of_a_match_is_told_and_an_older_line_has_none():
    player = random_player(TICTACTOE)
    match = play_match(TICTACTOE, player, player, 2, jax.random.key(0), opening_plies=3)
    line = records_of(TICTACTOE, match)[0].to_json()
    assert GameRecord.from_json(line).opening_plies == 3
    older = {name: value for name, value in json.loads(line).items() if name != "opening_plies"}
    assert GameRecord.from_json(json.dumps(older)).opening_plies == 0


def test_a_game_is_replayed_move_by_move():
    states, actions = SHORT.replay()
    assert [TICTACTOE.to_text(state) for state in states[-2:]] == ["___OO_XX_", "___OO_XXX"]
    assert actions == [6, 3, 7, 4, 8]
    assert bool(states[-1].terminated)
    assert GameRecord.from_json(WON.to_json()) == WON


@pytest.mark.slow_except("tictactoe", "santorini")
@pytest.mark.parametrize(
    "game", [TICTACTOE, make("brandub", max_plies=30), make("santorini", size=3)], ids=lambda game: game.name
)
def test_the_games_of_a_match_come_back_from_a_file(game, tmp_path):
    player = random_player(game)
    match = play_match(game, player, player, 6, jax.random.key(0), opening_plies=2)
    save_games(tmp_path / "games.jsonl", records_of(game, match))
    records = load_games(tmp_path / "games.jsonl")
    assert records == records_of(game, match)
    for number, record in enumerate(records):
        actions = record.replay()[1]
        assert tuple(actions) == match.actions[number]
        assert record.rewards[number % 2] == match.rewards[number]


def test_records_have_seats_and_starts(positions_of):
    starts = positions_of(TICTACTOE, "XX_OO____", "XX_OO_X__")
    first, second = random_player(TICTACTOE), random_player(TICTACTOE)
    match = play_match(TICTACTOE, first, second, 4, jax.random.key(0), start_states=starts)
    records = records_of(TICTACTOE, match)
    assert [record.start for record in records] == ["XX_OO____"] * 2 + ["XX_OO_X__"] * 2
    for number, record in enumerate(records):
        states, _ = record.replay()
        # Player 0 is the match's first player in even games.
        of_first = np.sum([state.rewards for state in states], axis=0)[number % 2]
        assert of_first == match.rewards[number]


class RandomStarts(Mnk):
    """Tic-tac-toe whose first stone lies anywhere."""

    def init(self, key):
        state = super().init(key)
        return self.step(state, jax.random.randint(key, (), 0, 9))


def test_a_game_with_random_starts_records_the_start(tmp_path):
    game = RandomStarts(3, 3, 3)
    match = play_match(game, random_player(game), random_player(game), 40, jax.random.key(0))
    records = records_of(game, match)
    assert {record.start.count("X") for record in records} == {1}
    assert len({record.start for record in records}) > 3
    for record in records:
        record.replay()
    message = "^mnk draws its start, and has no position that all its games begin with$"
    for needs_the_start in (solve, lambda game: perft(game, 1)):
        with pytest.raises(InputError, match=message):
            needs_the_start(game)


def test_a_record_may_have_an_end_outside_the_rules():
    resigned = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1",), (1.0, -1.0), end="resignation")
    assert GameRecord.from_json(resigned.to_json()) == resigned


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("chess", "no game record"),
        ("[]", "no game record: it must be a table of JSON"),
        ("5", "no game record: it must be a table of JSON"),
        ("{}", "no game record: 'azjax' is missing"),
        ("[" * 100_000, "no game record: it is nested too deeply"),
        (changed(SHORT, rewards=[10**400, 0]), "no game record: the number 1000000000000000000000000... is too large"),
        (changed(SHORT, azjax=10**30), "no game record: the number 1000000000000000000000000... is too large"),
        (changed(SHORT, azjax=2), "format 2, not 1"),
        (changed(SHORT, game="chess"), "unknown game 'chess'"),
        (changed(SHORT, options={"wings": 2}), "wings"),
        (changed(SHORT, game="othello", options={"size": 8.0}), "othello: size must be 4, 6 or 8, got 8.0"),
        (changed(SHORT, game="hex", options={"swap": 5}), "hex: swap must be true or false, got 5"),
        (changed(SHORT, players=["Ann"]), "no game record: players must be two names"),
        (changed(SHORT, players="AB"), "no game record: players must be two names"),
        (changed(SHORT, rewards=["nan", 1]), r"rewards must be two finite numbers or null, got \['nan', 1\]"),
        (changed(SHORT, rewards=[1, -1, 5]), r"rewards must be two finite numbers or null, got \[1, -1, 5\]"),
        (changed(SHORT, moves=["a1"], rewards=[7, 7], end="resignation"), "what one player wins the other loses"),
        (changed(SHORT, opening_plies=6), "opening_plies must be 0..5, the number of moves, got 6"),
        (changed(SHORT, opening_plies="2"), "opening_plies must be 0..5, the number of moves, got '2'"),
        (changed(SHORT, moves=[1]), "moves must be texts"),
        (changed(SHORT, moves="a1"), "moves must be texts"),
        (changed(SHORT, game=1), "game must be a name, and options a table"),
        (changed(SHORT, options=[]), "game must be a name, and options a table"),
        (changed(SHORT, start=3), "start and end must be texts or null"),
        (changed(SHORT, moves=["a1", "a1"], rewards=None), "move 2: 'a1' is not a legal move here; legal: "),
        (changed(SHORT, moves=[*SHORT.moves, "c3"]), "the game ended after 5 moves, and has 6"),
        (changed(SHORT, rewards=[-1.0, 1.0]), r"rewards must be \[1.0, -1.0\], as the game ended"),
        (changed(SHORT, rewards=None), r"rewards must be \[1.0, -1.0\], as the game ended, got None"),
        (changed(SHORT, moves=["a1"]), "has both rewards and an end, or neither"),
        (changed(SHORT, start="XXXXXXXXX"), "X"),
    ],
)
def test_an_impossible_record_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        GameRecord.from_json(line)


def test_a_name_may_have_any_separator_of_lines(tmp_path):
    record = dataclasses.replace(SHORT, players=("one\u2028two\x85", "three\u2029"))
    save_games(tmp_path / "games.jsonl", [record, record])
    assert load_games(tmp_path / "games.jsonl") == [record, record]


def test_the_error_of_a_bad_file_names_the_line(tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text(f"{SHORT.to_json()}\n\n{changed(SHORT, moves=['z9'])}\n")
    with pytest.raises(ValueError, match=r"games.jsonl, line 3: move 1: 'z9' is not a legal move here"):
        load_games(path)
    with pytest.raises(ValueError, match=r"nothing.jsonl could not be read: No such file"):
        load_games(tmp_path / "nothing.jsonl")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"games.jsonl could not be read"):
        load_games(path)
    with pytest.raises(OSError, match=r"no/games.jsonl could not be written: No such file"):
        save_games(tmp_path / "no" / "games.jsonl", [SHORT])


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "games.jsonl"
    save_games(path, [SHORT])

    def broken():
        yield WON
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        save_games(path, broken())
    assert load_games(path) == [SHORT]
    assert list(tmp_path.iterdir()) == [path]
