"""The page about lost games, of games whose exact values are known."""

import dataclasses

import jax.numpy as jnp
import pytest

from azjax.cli import main
from azjax.evaluation import GameRecord, Player, Record, optimal_player, random_player, save_games, solve
from azjax.evaluation.players import MoveChoice
from azjax.games.protocols import action_to_text
from azjax.games.registry import make
from azjax.report import judge_lost_games, write_losses
from azjax.report.losses_page import facts, mistakes_summary, results_rows, turn_rows

GAME = make("tictactoe")
OPENING = ("b2", "b1", "a1")  # b1 gives up the draw; then O can only answer threats


def record_of(*moves, reward, start=None, players=("ex", "oh"), end=None):
    return GameRecord(GAME, players, moves, (reward, -reward), start, end)


def text_after(*moves):
    return GAME.to_text(GameRecord(GAME, ("", ""), moves, None).replay()[0][-1])


RECORDS = [
    record_of(*OPENING, "c3", "a3", "a2", "c1", reward=1.0),
    record_of("b2", "a1", "a3", "c1", "b1", "b3", "a2", "c2", "c3", reward=0.0, players=("oh", "ex")),
    record_of("b2", reward=1.0, end="crash"),
    record_of("c3", "a3", "a2", "c1", reward=1.0, start=text_after(*OPENING)),
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
    first, second = report.lost
    assert (first.number, second.number, first.seat) == (1, 4, 1)
    assert first.values.tolist() == [0, 0, -1, -1, -1, -1, -1, -1]
    assert second.values.tolist() == [-1] * 5


def test_a_game_turns_by_a_move_of_its_own_in_the_opening_or_by_a_reply(report):
    first, second = report.lost
    assert (first.turn, first.turned_at) == (2, "own move")
    assert (second.turn, second.turned_at) == (0, "opening")
    blind = judge_lost_games(RECORDS, "oh", Player("even", _Even()), num_games=1)
    assert (blind.num_lost, len(blind.lost)) == (2, 1)
    assert (blind.lost[0].turn, blind.lost[0].turned_at) == (7, "reply")
    assert turn_rows(report) == [("the opening", "1", "4"), ("a move of its own", "1", "5"), ("a reply", "0", "")]


def test_the_move_that_lost_value_is_found(report):
    (mistake,) = report.worst_mistakes(10)
    assert (mistake.game.number, mistake.ply, mistake.cost) == (1, 1, 1.0)
    # A corner draws.
    preferred = action_to_text(GAME, mistake.game.states[1], mistake.game.preferred[1])
    assert preferred in ("a1", "a3", "c1", "c3")
    assert "Moves that lost more than a tenth in value: 1, in 1 of 2 games." in mistakes_summary(report)


def test_results_leave_out_forfeits(report):
    assert report.results == (Record(0, 1, 0), Record(0, 0, 2))
    assert report.forfeits == 1
    assert report.endings == {("O", "X wins"): 2}
    assert [row[:4] for row in results_rows(report)] == [
        ("X", "0", "1", "0"),
        ("O", "0", "0", "2"),
    ]
    assert facts(report)["lost games"] == "2, of which 2 were judged, with 11 positions"


def test_the_page_shows_the_mistake(report, tmp_path):
    write_losses(dataclasses.replace(report, player="<oh>"), tmp_path / "lost.html", num_positions=3)
    page = (tmp_path / "lost.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<oh>" not in page
    assert page.count("<figcaption>") == 1
    assert "Game 1, move 2: b1, from +0.00 to -1.00; the search prefers " in page


@pytest.mark.parametrize(
    ("records", "player", "options", "reason"),
    [
        (RECORDS, "al", {}, "unknown player 'al'; players of these games: ex, oh"),
        (RECORDS, "ex", {}, "ex lost none of its 3 games"),
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
    assert "a move of its own" in (tmp_path / "games.html").read_text()
    with pytest.raises(SystemExit):
        main(["report", str(file)])
    assert capsys.readouterr().err.startswith("azjax: ex is no trained agent: name a judge that searches")
    file.write_text("")
    with pytest.raises(SystemExit):
        main(["report", str(file)])
    assert capsys.readouterr().err == f"azjax: {file} has no games\n"
