"""The page about lost games, of games whose exact values are known."""

import dataclasses

import jax.numpy as jnp
import pytest

from azjax.cli import main
from azjax.commands.report import _longer_search
from azjax.evaluation import GameRecord, Player, Record, load_games, optimal_player, random_player, save_games, solve
from azjax.evaluation.players import MoveChoice
from azjax.games.protocols import action_to_text
from azjax.games.registry import make
from azjax.report import boards, judge_lost_games, write_losses
from azjax.report.losses_page import facts, mistakes_summary, results_rows, turn_rows

GAME = make("tictactoe")
OPENING = ("b2", "b1", "a1")  # b1 gives up the draw; then O can only answer threats


def record_of(*moves, reward, start=None, players=("ex", "oh"), end=None):
    return GameRecord(GAME, players, moves, (reward, -reward), start, end)


def text_after(*moves):
    return GAME.to_text(GameRecord(GAME, ("", ""), moves, None).replay()[0][-1])


AS_FIRST = ("a2", "b2", "c2", "a3", "c1", "c3", "b3", "a1")  # c2 gives up the draw
RECORDS = [
    record_of(*OPENING, "c3", "a3", "a2", "c1", reward=1.0),
    record_of("b2", "a1", "a3", "c1", "b1", "b3", "a2", "c2", "c3", reward=0.0, players=("oh", "ex")),
    record_of("b2", reward=1.0, end="crash"),
    record_of("c3", "a3", "a2", "c1", reward=1.0, start=text_after(*OPENING)),
    record_of(*AS_FIRST, reward=-1.0, players=("oh", "ex")),
    dataclasses.replace(record_of(*AS_FIRST, reward=-1.0, players=("oh", "ex")), opening_plies=3),
]


@pytest.fixture(scope="module")
def judge():
    return optimal_player(solve(GAME))


@pytest.fixture(scope="module")
def report(judge):
    return judge_lost_games(RECORDS, "oh", judge, num_games=10)


@dataclasses.dataclass(frozen=True)
class _Even:
    """Finds every position even, and prefers the last action."""

    def __call__(self, params, key, states):
        last = jnp.eye(9, dtype=jnp.float32)[jnp.full(len(states.terminated), 8)]
        return MoveChoice(last, jnp.zeros(len(states.terminated)), last)


def test_values_are_those_of_the_judge_for_the_player(report):
    assert [(lost.number, lost.seat, lost.opening_plies) for lost in report.judged] == [
        (1, 1, 0),
        (4, 1, 0),
        (5, 0, 0),
        (6, 0, 3),
    ]
    by_a_move, from_the_start, as_first, _ = report.judged
    assert by_a_move.values.tolist() == [0, 0, *[-1] * 6]
    assert from_the_start.values.tolist() == [-1] * 5
    assert as_first.values.tolist() == [0, 0, 0, *[-1] * 6]
    assert (by_a_move.own_plies, as_first.own_plies) == ([1, 3, 5], [0, 2, 4, 6])


def test_what_turned_a_game_is_told(report):
    assert [(lost.turn, lost.turned_by) for lost in report.judged] == [
        (2, "mistake"),
        (0, "opening"),
        (3, "mistake"),
        (3, "opening"),  # c2 was drawn at random
    ]
    blind = judge_lost_games(RECORDS, "oh", Player("even", _Even()), num_games=1)
    assert [(lost.turn, lost.turned_by) for lost in blind.judged] == [(7, "opponent")]
    willing = report.judged[0]._replace(is_fine=[True] * 7)
    assert willing.turned_by == "own move"
    assert turn_rows(report) == [
        ("the opening", "2", "4.5"),
        ("its own move, where optimal prefers another", "2", "5"),
        ("its own move, which optimal would play too", "0", ""),
        ("the opponent's move", "0", ""),
    ]


def test_games_to_judge_are_spread_over_all(judge):
    assert [lost.number for lost in judge_lost_games(RECORDS, "oh", judge, num_games=2).judged] == [1, 5]


def test_the_moves_that_lost_value_are_found(report):
    mistakes = report.worst_mistakes(10)
    assert [(each.game.number, each.ply, each.cost) for each in mistakes] == [(1, 1, 1.0), (5, 2, 1.0)]
    # A corner draws.
    preferred = action_to_text(GAME, mistakes[0].game.states[1], mistakes[0].game.preferred[1])
    assert preferred in ("a1", "a3", "c1", "c3")
    # Where every move is lost, the judge might play any.
    assert mistakes_summary(report).startswith("optimal would not have played 2 of the 11 moves that oh chose")
    assert mistakes_summary(report).endswith("After 2 of them the value was lower by more than 0.1.")


def test_results_leave_out_forfeits(report):
    assert report.results == (Record(0, 1, 2), Record(0, 0, 2))
    assert report.forfeits == 1
    assert report.endings == {("O", "X wins"): 2, ("X", "O wins"): 2}
    assert [row[:4] for row in results_rows(report)] == [("X", "0", "1", "2"), ("O", "0", "0", "2")]
    assert facts(report)["judged games"] == "4, with 27 positions"


def test_a_resigned_game_is_lost_and_ends_with_its_result(judge):
    resigned = record_of(*OPENING, reward=1.0, end="resignation")
    at_once = record_of(reward=1.0, end="resignation")
    report = judge_lost_games([resigned, at_once, RECORDS[2]], "oh", judge, num_games=10)
    assert (report.results, report.forfeits) == ((Record(0, 0, 0), Record(0, 0, 2)), 1)
    assert report.endings == {("O", "resignation"): 1}
    (lost,) = report.judged
    assert lost.values.tolist() == [0, 0, -1, -1]  # b1 gives up the draw


def test_the_page_shows_the_mistake(report, tmp_path):
    write_losses(dataclasses.replace(report, player="<oh>"), tmp_path / "lost.html", num_positions=3)
    page = (tmp_path / "lost.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<oh>" not in page
    assert page.count("<figcaption>") == 2
    assert "Game 1, move 2: b1, from +0.00 to -1.00; optimal prefers " in page


def test_a_game_without_a_picture_is_shown_as_text(report, tmp_path, monkeypatch):
    monkeypatch.setattr(boards, "has_picture", lambda game: False)
    write_losses(report, tmp_path / "lost.html", num_positions=1)
    assert GAME.draw(report.worst_mistakes(1)[0].game.states[1]) in (tmp_path / "lost.html").read_text()


@pytest.mark.parametrize(
    ("records", "player", "options", "reason"),
    [
        (RECORDS, "al", {}, "unknown player 'al'; players of these games: ex, oh"),
        (RECORDS, "ex", {}, "ex lost none of its 5 games"),
        (RECORDS, "oh", {"num_games": 0}, "games must be at least 1, got 0"),
        ([], "oh", {}, "the games must be of one kind, got none"),
    ],
)
def test_games_that_cannot_be_judged_are_refused(judge, records, player, options, reason):
    with pytest.raises(ValueError, match=reason):
        judge_lost_games(records, player, judge, **{"num_games": 1, **options})


def test_a_judge_needs_values():
    with pytest.raises(ValueError, match="random gives no values, so it cannot judge"):
        judge_lost_games(RECORDS, "oh", random_player(GAME), num_games=1)


def test_the_command_writes_the_page_beside_the_games(tmp_path, capsys):
    file = tmp_path / "games.jsonl"
    save_games(file, RECORDS)
    main(["report", str(file), "--player", "oh", "--judge", "optimal"])
    assert capsys.readouterr().out.strip() == str(tmp_path / "games.html")
    assert "the opponent&#39;s move" in (tmp_path / "games.html").read_text()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "ex is no trained agent: name a judge that searches, such as --judge uct:10000"),
        (["--player", "foo"], "foo played no game of games.jsonl; players: ex, oh"),
        (["--output", "games.jsonl"], "games.jsonl has the games: name another file for the page by --output"),
        (["--output", "no/page.html"], "no/page.html cannot be written: there is no folder"),
        (["--positions", "0"], "positions must be at least 1, got 0"),
    ],
)
def test_the_command_refuses_what_cannot_work_before_it_judges(tmp_path, monkeypatch, capsys, options, reason):
    monkeypatch.chdir(tmp_path)
    save_games("games.jsonl", RECORDS)
    with pytest.raises(SystemExit):
        main(["report", "games.jsonl", *options])
    assert reason in " ".join(capsys.readouterr().err.split())
    assert load_games("games.jsonl") == RECORDS


@pytest.mark.parametrize(("text", "reason"), [("", "has no games"), (None, "could not be read")])
def test_a_file_without_games_is_refused(tmp_path, capsys, text, reason):
    file = tmp_path / "games.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit):
        main(["report", str(file)])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tictactoe", "tictactoe:25", "tictactoe, 1 s", "tictactoe:25 + gumbel + solver"])
def test_the_judge_of_an_agent_is_the_agent_itself(name):
    assert _longer_search(name) == "tictactoe:1600"


def test_a_player_that_played_itself_lost_with_one_seat(judge):
    """In the first game it lost as O, in the second as X."""
    records = [
        record_of(*OPENING, "c3", "a3", "a2", "c1", reward=1.0, players=("oh", "oh")),
        record_of(*AS_FIRST, reward=-1.0, players=("oh", "oh")),
    ]
    report = judge_lost_games(records, "oh", judge, num_games=10)
    assert [(lost.number, lost.seat) for lost in report.judged] == [(1, 1), (2, 0)]
    assert report.results == (Record(1, 0, 1), Record(1, 0, 1))
    assert report.forfeits == 0


def test_the_judge_of_a_long_search_is_longer_still():
    assert _longer_search("tictactoe:1600 + solver") == "tictactoe:6400"
