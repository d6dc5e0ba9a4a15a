"""The page about the games that a player lost, as one HTML file without external references."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from azjax.core.files import write_text
from azjax.games.protocols import action_to_text, player_names
from azjax.report.boards import board
from azjax.report.figures import new_figure, svg_text, tidy
from azjax.report.lost_games import LEAST_COST, LossReport, LostGame, Mistake, Turn
from azjax.report.templates import render

_COLOR = "#2a6fbb"


def write_losses(report: LossReport, path: Path, *, num_positions: int) -> None:
    """Writes the page.

    Args:
      report: what it shows.
      path: the HTML file.
      num_positions: positions shown at most.

    Raises:
      InputError: Matplotlib or Jinja is not installed.
      FileError: the file cannot be written; an existing one is unchanged.
    """
    content = {
        "title": f"{report.game.name}: games that {report.player} lost",
        "facts": facts(report),
        "results": results_rows(report),
        "forfeits": report.forfeits,
        "endings": [(side, ending, count) for (side, ending), count in report.endings.most_common()],
        "player": report.player,
        "judge": report.judge,
        "values": values_picture(report.judged),
        "turns": turn_rows(report),
        "mistakes_summary": mistakes_summary(report),
        "mistakes": [
            {"text": _describe(report, mistake), "picture": _picture(report, mistake)}
            for mistake in report.worst_mistakes(num_positions)
        ],
    }
    write_text(path, render("losses.html.jinja", content))


def facts(report: LossReport) -> dict[str, str]:
    """What was looked at, as labels and texts."""
    positions = sum(len(lost.actions) for lost in report.judged)
    judged = f"{len(report.judged):,}, with {positions:,} positions"
    return {
        "player": report.player,
        "lost games": f"{report.endings.total():,}",
        "judged games": judged,
        "judge": report.judge,
    }


def results_rows(report: LossReport) -> list[tuple[str, str, str, str, str, str]]:
    """The results of each side: its name, won, drawn and lost games, the score and its interval."""
    rows = []
    for name, record in zip(player_names(report.game), report.results, strict=True):
        low, high = record.interval
        score = (f"{record.score:.1%}", f"{low:.1%} to {high:.1%}") if record.games else ("", "")
        rows.append((name, f"{record.wins:,}", f"{record.draws:,}", f"{record.losses:,}", *score))
    return rows


def turn_rows(report: LossReport) -> list[tuple[str, str, str]]:
    """For each way in which the value turned: its name, the number of games, and the median of the plies left."""
    texts: dict[Turn, str] = {
        "opening": "the opening",
        "mistake": f"its own move, where {report.judge} prefers another",
        "own move": f"its own move, which {report.judge} would play too",
        "opponent": "the opponent's move",
    }
    rows = []
    for turn, text in texts.items():
        left = [len(lost.actions) - lost.turn for lost in report.judged if lost.turned_by == turn]
        rows.append((text, f"{len(left):,}", f"{np.median(left):g}" if left else ""))
    return rows


def mistakes_summary(report: LossReport) -> str:
    """How often the judge would have moved otherwise."""
    fine = [lost.is_fine[ply] for lost in report.judged for ply in lost.own_plies]
    mistakes = [mistake for lost in report.judged for mistake in lost.mistakes()]
    return (
        f"{report.judge} would not have played {fine.count(False):,} of the {len(fine):,} moves that {report.player} "
        f"chose in the judged games. After {len(mistakes):,} of them the value was lower by more than {LEAST_COST}."
    )


def values_picture(lost_games: list[LostGame]) -> str:
    """The values of each game against the plies that were left, and their median, as SVG."""
    figure = new_figure(8.0, 3.2)
    panel = figure.subplots()
    for lost in lost_games:
        panel.plot(np.arange(len(lost.values)) - len(lost.actions), lost.values, color=_COLOR, alpha=0.2, linewidth=0.8)
    plies, medians = zip(*_medians(lost_games), strict=True)
    panel.plot(plies, medians, color=_COLOR, linewidth=2, label="median")
    panel.axhline(0, color="#9aa0a6", linewidth=0.8)
    panel.set_ylim(-1.05, 1.05)
    panel.legend(frameon=False, fontsize=8)
    tidy(panel, "plies before the end")
    return svg_text(figure)


def _medians(lost_games: list[LostGame]) -> Iterator[tuple[int, float]]:
    """The median value at each number of plies before the end that at least half of the games have."""
    for left in range(int(np.median([len(lost.actions) for lost in lost_games])), -1, -1):
        yield -left, float(np.median([lost.values[-1 - left] for lost in lost_games if len(lost.values) > left]))


def _describe(report: LossReport, mistake: Mistake) -> str:
    lost, ply = mistake.game, mistake.ply
    played, preferred = (
        action_to_text(report.game, lost.states[ply], action) for action in (lost.actions[ply], lost.preferred[ply])
    )
    fall = " to ".join(f"{value:+z.2f}" for value in lost.values[ply : ply + 2])
    return f"Game {lost.number}, move {ply + 1}: {played}, from {fall}; {report.judge} prefers {preferred}"


def _picture(report: LossReport, mistake: Mistake) -> str:
    lost, ply = mistake.game, mistake.ply
    policy = np.zeros(report.game.num_actions, np.float32)
    policy[lost.preferred[ply]] = 1.0
    return board(report.game, lost.states[ply], policy=policy, last_action=lost.actions[ply - 1] if ply else None)
