"""Ratings: the strengths of many players, from the games that they played against each other.

The model is that of Bradley and Terry (1952) with the draws of Davidson (1970) and an advantage of moving first
(Davidson and Beaver 1977). With t the first player's strength minus the second one's, plus the advantage, the player
who moves first wins, draws or loses a game in proportion to e^(t/2), e^d and e^(-t/2).

Axes: `pairings` (ordered pairs of players), `players`, `parameters` (strengths, advantage and d).
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float, Int

from azjax.core.errors import InputError
from azjax.evaluation.match_result import MatchResult, Record

_ELO = 400 / math.log(10)  # Elo of a unit of strength: odds of 10 to 1 are 400
_NO_PRIOR = 1e-3  # virtual games that only keep fits finite
_FAR = 32.0  # units of strength, 5,600 Elo: an interval that goes so far from its estimate has no end there
_LOST_IN_95 = 1.920729  # log-likelihood that both ends of a 95% interval lack: half of chi2(1)'s quantile
_SMALL = 1e-3  # times d^2 / 2: keeps d finite where nothing was drawn


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Strengths in Elo: a difference of 400 means odds of 10 to 1 of winning rather than losing.

    Attributes:
      players: their names, the strongest first.
      elo: of each player.
      intervals: both ends of the 95% interval of each rating; -inf or inf where the results set no limit.
      games: of each player.
      first_move_advantage: in Elo.
      draw_rate: share of games that two players draw whose strengths are equal, the advantage included.
    """

    players: tuple[str, ...]
    elo: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    games: tuple[int, ...]
    first_move_advantage: float
    draw_rate: float


def rate(
    pairings: Iterable[tuple[str, str, Record]],
    *,
    anchor: str | None = None,
    virtual_games: float = 0.1,
) -> Ratings:
    """Fits ratings to results by maximum likelihood with a prior, and intervals by the profile of the likelihood.

    The prior draws ratings to the mean, those far from it most. The intervals are of the results alone: a rating
    belongs to its interval if some strengths of the other players make it likely enough (Venzon and Moolgavkar 1988).
    So the interval of a player who lost all games has no lower end.

    Args:
      pairings: the player who moved first, the one who moved second, and the results for the former; pairs may repeat.
      anchor: the player whose rating is 0; the mean of all ratings by default.
      virtual_games: a prior, more than 0: this many additional games of each player, half of them won, against a player
        of mean strength. They keep the rating of a player finite who won or lost all games.

    Raises:
      InputError: fewer than two players, a player against itself, numbers of games that are not whole, an anchor
        without games, or an option out of range.
    """
    counted: dict[tuple[str, str], Record] = {}
    for first, second, record in pairings:
        if first == second:
            raise InputError(f"{first!r} cannot be rated from games against itself")
        numbers = (record.wins, record.draws, record.losses)
        if any(number < 0 or number != int(number) for number in numbers):
            raise InputError(f"games of {first!r} and {second!r} must be whole numbers of 0 or more, got {numbers}")
        counted[first, second] = counted.get((first, second), Record(0, 0, 0)) + record
    counted = {pair: record for pair, record in counted.items() if record.games}
    names = sorted({name for pair in counted for name in pair})
    if len(names) < 2:
        raise InputError(f"ratings need games between at least two players, got {len(names)}")
    if anchor is not None and anchor not in names:
        raise InputError(f"unknown anchor {anchor!r}; players: {', '.join(names)}")
    if not 0 < virtual_games < math.inf:
        raise InputError(f"virtual_games must be more than 0 and finite, got {virtual_games}")

    seats = np.array([[names.index(name) for name in pair] for pair in counted])
    results = np.array([[record.wins, record.draws, record.losses] for record in counted.values()], float)
    design, virtual = _design(seats, len(names), virtual_games)
    most_likely = _fit(design, np.concatenate([results, virtual]))
    # A rating is this weighted sum of the strengths.
    others = np.full(len(names), 1 / len(names)) if anchor is None else np.eye(len(names))[names.index(anchor)]
    weights = np.eye(len(names)) - others
    elo = _ELO * weights @ most_likely[: len(names)]
    nearly_alone = np.concatenate([results, virtual * _NO_PRIOR / virtual_games])
    without_prior = _fit(design, nearly_alone, most_likely)
    intervals = [_interval(design, nearly_alone, without_prior, row) for row in weights]
    order = np.argsort(-elo, kind="stable")
    played = np.bincount(seats.ravel(), np.repeat(results.sum(axis=1), 2))
    advantage, drawing = most_likely[len(names) :]
    return Ratings(
        players=tuple(names[player] for player in order),
        elo=tuple(elo[order].tolist()),
        intervals=tuple((_ELO * intervals[player][0], _ELO * intervals[player][1]) for player in order),
        games=tuple(int(played[player]) for player in order),
        first_move_advantage=_ELO * float(advantage),
        draw_rate=float(scipy.special.softmax([0.0, drawing, 0.0])[1]),
    )


def pairings_of(matches: Sequence[MatchResult]) -> list[tuple[str, str, Record]]:
    """The results of the games without a forfeit, in the form that `rate` takes: a forfeit is not a win."""
    pairings = []
    for match in matches:
        first, second = match.played_out_by_seat
        turned = Record(second.losses, second.draws, second.wins)
        pairings += [(match.first, match.second, first), (match.second, match.first, turned)]
    return pairings


def _design(
    seats: Int[np.ndarray, "pairings 2"], players: int, virtual_games: float
) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "virtual 3"]]:
    """The coefficients of strengths and advantage in t, by pairing; and the virtual results, whose rows come last."""
    rows = np.zeros((len(seats) + 2 * players, players + 1))
    rows[:, players] = 1
    pairing = np.arange(len(seats))
    rows[pairing, seats[:, 0]] = 1
    rows[pairing, seats[:, 1]] = -1
    # The virtual opponent has strength 0 and no column; each moves first in half of the games.
    rows[len(seats) :, :players] = np.concatenate([np.eye(players), -np.eye(players)])
    return rows, np.tile([virtual_games / 4, 0.0, virtual_games / 4], (2 * players, 1))


def _interval(
    design: Float[np.ndarray, "rows columns"],
    results: Float[np.ndarray, "rows 3"],
    most_likely: Float[np.ndarray, "parameters"],
    weights: Float[np.ndarray, "players"],
) -> tuple[float, float]:
    """The ends of the 95% interval of a weighted sum of the strengths, by its profile likelihood."""
    if not weights.any():
        return 0.0, 0.0  # the anchor
    # With the sum given, one strength follows from the others: its column goes into theirs.
    player = int(np.argmax(np.abs(weights)))
    rest = np.delete(np.arange(len(most_likely)), player)
    column = design[:, player] / weights[player]
    reduced = np.delete(design, player, axis=1) - np.outer(column, np.delete(np.pad(weights, (0, 1)), player))
    estimate = float(weights @ most_likely[: len(weights)])
    least = _loss(design, results, most_likely)

    def lacks(value: float) -> float:
        """How much less likely than allowed the best parameters with this sum are."""
        offset = value * column
        fit = _fit(reduced, results, most_likely[rest], offset)
        return _loss(reduced, results, fit, offset) - least - _LOST_IN_95

    ends = []
    for side in (-1, 1):
        step = 0.5
        while step <= _FAR and lacks(estimate + side * step) < 0:
            step *= 2
        found = step <= _FAR
        ends.append(
            float(scipy.optimize.brentq(lacks, estimate, estimate + side * step, xtol=1e-3)) if found else side * np.inf
        )
    return ends[0], ends[1]


def _fit(
    design: Float[np.ndarray, "rows columns"],
    results: Float[np.ndarray, "rows 3"],
    start: Float[np.ndarray, "parameters"] | None = None,
    offset: Float[np.ndarray, "rows"] | float = 0.0,
) -> Float[np.ndarray, "parameters"]:
    """The most likely strengths, advantage and d; the likelihood has a single maximum. `offset` is added to t."""
    games = results.sum(axis=1)
    won_more, drawn = (results[:, 0] - results[:, 2]) / 2, results[:, 1]
    wide = np.pad(design, ((0, 0), (0, 1)))  # t does not depend on d

    def slope(parameters: np.ndarray) -> np.ndarray:
        win, draw, lose = np.exp(_log_probabilities(design, parameters, offset)).T
        of_t = design.T @ (games * (win - lose) / 2 - won_more)
        return np.append(of_t, np.sum(games * draw - drawn) + _SMALL * parameters[-1])

    def curvature(parameters: np.ndarray) -> Any:
        win, draw, lose = np.exp(_log_probabilities(design, parameters, offset)).T
        of_t = games * (win + lose - (win - lose) ** 2) / 4
        of_both = -games * (win - lose) * draw / 2
        matrix = wide.T @ (of_t[:, None] * wide)
        matrix[:-1, -1] = matrix[-1, :-1] = design.T @ of_both
        matrix[-1, -1] = np.sum(games * draw * (1 - draw)) + _SMALL
        return matrix

    if start is None:
        start = np.zeros(design.shape[1] + 1)
    fit = scipy.optimize.minimize(
        lambda parameters: _loss(design, results, parameters, offset),
        start,
        jac=slope,
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-6},
    )
    most_likely: np.ndarray = fit.x
    return most_likely


def _loss(
    design: Float[np.ndarray, "rows columns"],
    results: Float[np.ndarray, "rows 3"],
    parameters: Float[np.ndarray, "parameters"],
    offset: Float[np.ndarray, "rows"] | float = 0.0,
) -> float:
    """The negative log-likelihood."""
    log_p = _log_probabilities(design, parameters, offset)
    return float(-np.sum(results * log_p) + _SMALL * parameters[-1] ** 2 / 2)


def _log_probabilities(
    design: Float[np.ndarray, "rows columns"],
    parameters: Float[np.ndarray, "parameters"],
    offset: Float[np.ndarray, "rows"] | float,
) -> Float[np.ndarray, "rows 3"]:
    """The log-probabilities of a win, a draw and a loss of the player who moves first."""
    t, d = design @ parameters[:-1] + offset, parameters[-1]
    log_p: np.ndarray = scipy.special.log_softmax(np.stack([t / 2, np.full_like(t, d), -t / 2], axis=1), axis=1)
    return log_p
