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
from azjax.evaluation.matches import MatchResult, Record

_ELO = 400 / math.log(10)  # Elo of a unit of strength: odds of 10 to 1 are 400


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Strengths in Elo: a difference of 400 means odds of 10 to 1 of winning rather than losing.

    Attributes:
      players: their names, the strongest first.
      elo: of each player.
      intervals: both ends of the 95% interval of each rating.
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
    virtual_games: float = 1.0,
    resamples: int = 500,
    seed: int = 0,
) -> Ratings:
    """Fits ratings to results by maximum likelihood, with intervals by parametric bootstrap (Efron 1979).

    Args:
      pairings: the player who moved first, the one who moved second, and the results for the former; pairs may repeat.
      anchor: the player whose rating is 0; the mean of all ratings by default.
      virtual_games: a prior, more than 0: so many additional games of each player, half of them won, against a player
        of mean strength. They keep the rating of a player finite who won or lost all games.
      resamples: sets of results drawn from the fitted model, for the intervals.
      seed: of the resamples.

    Raises:
      InputError: fewer than two players, a player against itself, an anchor without games, or an option out of range.
    """
    counted: dict[tuple[str, str], Record] = {}
    for first, second, record in pairings:
        if first == second:
            raise InputError(f"{first!r} cannot be rated from games against itself")
        counted[first, second] = counted.get((first, second), Record(0, 0, 0)) + record
    counted = {pair: record for pair, record in counted.items() if record.games}
    names = sorted({name for pair in counted for name in pair})
    if len(names) < 2:
        raise InputError(f"ratings need games between at least two players, got {len(names)}")
    if anchor is not None and anchor not in names:
        raise InputError(f"unknown anchor {anchor!r}; players: {', '.join(names)}")
    if not virtual_games > 0:
        raise InputError(f"virtual_games must be more than 0, got {virtual_games}")
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples}")

    seats = np.array([[names.index(name) for name in pair] for pair in counted])
    results = np.array([[record.wins, record.draws, record.losses] for record in counted.values()], float)
    design, virtual = _design(seats, len(names), virtual_games)
    most_likely = _fit(design, np.concatenate([results, virtual]))
    generator = np.random.default_rng(seed)
    games = results.sum(axis=1)
    # From the fitted model: the results themselves do not vary where a player won all games.
    expected = np.exp(_log_probabilities(design, most_likely)[: len(games)])
    drawn = generator.multinomial(games.astype(int), expected, size=(resamples, len(games)))
    fits = [_fit(design, np.concatenate([again, virtual]), most_likely) for again in drawn.astype(float)]

    strengths = _anchored(np.array([most_likely, *fits])[:, : len(names)], names.index(anchor) if anchor else None)
    low, high = np.quantile(strengths[1:], (0.025, 0.975), axis=0)
    order = np.argsort(-strengths[0], kind="stable")
    played = np.bincount(seats.ravel(), np.repeat(games, 2))
    advantage, drawing = most_likely[len(names) :]
    return Ratings(
        players=tuple(names[player] for player in order),
        elo=tuple((_ELO * strengths[0, order]).tolist()),
        intervals=tuple(zip((_ELO * low[order]).tolist(), (_ELO * high[order]).tolist(), strict=True)),
        games=tuple(int(played[player]) for player in order),
        first_move_advantage=_ELO * float(advantage),
        draw_rate=float(scipy.special.softmax([0.0, drawing, 0.0])[1]),
    )


def pairings_of(matches: Sequence[MatchResult]) -> list[tuple[str, str, Record]]:
    """The results of the games that nobody forfeited, in the form that `rate` takes: a forfeit is not a win."""
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


def _fit(
    design: Float[np.ndarray, "rows columns"],
    results: Float[np.ndarray, "rows 3"],
    start: Float[np.ndarray, "parameters"] | None = None,
) -> Float[np.ndarray, "parameters"]:
    """The most likely strengths, advantage and d; the likelihood has a single maximum."""
    games = results.sum(axis=1)
    won_more, drawn = (results[:, 0] - results[:, 2]) / 2, results[:, 1]
    wide = np.pad(design, ((0, 0), (0, 1)))  # t does not depend on d

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = _log_probabilities(design, parameters)
        win, draw, lose = np.exp(log_p).T
        slope = design.T @ (games * (win - lose) / 2 - won_more)
        # The square keeps d finite where nothing was drawn.
        small = 1e-3 * parameters[-1]
        value = -np.sum(results * log_p) + small * parameters[-1] / 2
        return float(value), np.append(slope, np.sum(games * draw - drawn) + small)

    def curvature(parameters: np.ndarray) -> Any:
        win, draw, lose = np.exp(_log_probabilities(design, parameters)).T
        of_t = games * (win + lose - (win - lose) ** 2) / 4
        of_both = -games * (win - lose) * draw / 2
        matrix = wide.T @ (of_t[:, None] * wide)
        matrix[:-1, -1] = matrix[-1, :-1] = design.T @ of_both
        matrix[-1, -1] = np.sum(games * draw * (1 - draw)) + 1e-3
        return matrix

    if start is None:
        start = np.zeros(design.shape[1] + 1)
    fit = scipy.optimize.minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-6})
    most_likely: np.ndarray = fit.x
    return most_likely


def _log_probabilities(
    design: Float[np.ndarray, "rows columns"], parameters: Float[np.ndarray, "parameters"]
) -> Float[np.ndarray, "rows 3"]:
    """The log-probabilities of a win, a draw and a loss of the player who moves first."""
    t, d = design @ parameters[:-1], parameters[-1]
    log_p: np.ndarray = scipy.special.log_softmax(np.stack([t / 2, np.full_like(t, d), -t / 2], axis=1), axis=1)
    return log_p


def _anchored(strengths: Float[np.ndarray, "fits players"], anchor: int | None) -> Float[np.ndarray, "fits players"]:
    """Strengths minus the anchor's, or minus their mean."""
    anchored: np.ndarray = strengths - (strengths.mean(axis=1) if anchor is None else strengths[:, anchor])[:, None]
    return anchored
