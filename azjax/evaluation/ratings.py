"""Ratings: how strong each of many players is, from the games that they played against each other.

The model is that of Bradley and Terry (1952) with draws as Davidson (1970) has them and an advantage of moving first
(Davidson and Beaver 1977). With t the first player's strength minus the second one's, plus the advantage, a game is
won, drawn or lost by the one who moves first in proportion to e^(t/2), e^d and e^(-t/2).

Axis letters: `C` pairings (who moves first against whom), `P` players, `R` resamples.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import optimize, special

from azjax.core.errors import InputError
from azjax.evaluation.matches import MatchResult, Record

_ELO = 400 / math.log(10)  # of a unit of strength: odds of 10 to 1 are 400


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Strengths in Elo: 400 more are odds of 10 to 1 of winning rather than losing, whoever moves first.

    Attributes:
      players: their names, the strongest first.
      elo: of each of them.
      intervals: low and high end of each one's 95% interval.
      games: of each of them.
      first_move_advantage: in Elo.
      draw_rate: share of games that two equal players draw, between who moves first and who moves second.
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
    """Fits ratings to results; the most likely ones, with intervals by parametric bootstrap (Efron 1979).

    Args:
      pairings: who moved first, who moved second, and the results as the former sees them; any number of each pair.
      anchor: the player whose rating is 0; the mean of all ratings by default.
      virtual_games: that each player is taken to have played besides, half won and half lost, against a player of mean
        strength; more than 0, so that one who won or lost all games is rated too.
      resamples: of all games, played again by the fitted model, for the intervals.
      seed: of the resamples.

    Raises:
      ValueError: fewer than two players, a player against itself, an anchor who has not played, or an option out of
        range.
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
    # From the fitted model, not from the results, which never vary where a player won all games.
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
        draw_rate=float(special.softmax([0.0, drawing, 0.0])[1]),
    )


def pairings_of(matches: Sequence[MatchResult]) -> list[tuple[str, str, Record]]:
    """The results of matches, as `rate` takes them."""
    found = []
    for match in matches:
        second = match.moving_second
        turned = Record(second.losses, second.draws, second.wins)
        found += [(match.first, match.second, match.moving_first), (match.second, match.first, turned)]
    return found


def _design(seats: np.ndarray, players: int, virtual_games: float) -> tuple[np.ndarray, np.ndarray]:
    """What t is a sum of, [C + 2P, P + 1]: strengths and the advantage; and the virtual results [2P, 3] behind."""
    rows = np.zeros((len(seats) + 2 * players, players + 1))
    rows[:, players] = 1
    pairing = np.arange(len(seats))
    rows[pairing, seats[:, 0]] = 1
    rows[pairing, seats[:, 1]] = -1
    # The player of mean strength has strength 0 and no column; each moves first in half of the games.
    rows[len(seats) :, :players] = np.concatenate([np.eye(players), -np.eye(players)])
    return rows, np.tile([virtual_games / 4, 0.0, virtual_games / 4], (2 * players, 1))


def _fit(design: np.ndarray, results: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The most likely strengths [P], advantage and d; the likelihood has one peak."""
    games = results.sum(axis=1)
    won_more, drawn = (results[:, 0] - results[:, 2]) / 2, results[:, 1]
    wide = np.pad(design, ((0, 0), (0, 1)))  # d is in no t

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = _log_probabilities(design, parameters)
        win, draw, lose = np.exp(log_p).T
        slope = design.T @ (games * (win - lose) / 2 - won_more)
        # The square keeps d finite where nothing was drawn.
        small = 1e-3 * parameters[-1]
        value = -np.sum(results * log_p) + small * parameters[-1] / 2
        return float(value), np.append(slope, np.sum(games * draw - drawn) + small)

    def curvature(parameters: np.ndarray) -> np.ndarray:
        win, draw, lose = np.exp(_log_probabilities(design, parameters)).T
        of_t = games * (win + lose - (win - lose) ** 2) / 4
        of_both = -games * (win - lose) * draw / 2
        matrix = wide.T @ (of_t[:, None] * wide)
        matrix[:-1, -1] = matrix[-1, :-1] = design.T @ of_both
        matrix[-1, -1] = np.sum(games * draw * (1 - draw)) + 1e-3
        return matrix

    if start is None:
        start = np.zeros(design.shape[1] + 1)
    found = optimize.minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-6})
    return found.x


def _log_probabilities(design: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Of a win, a draw and a loss of who moves first, [C, 3]."""
    t, d = design @ parameters[:-1], parameters[-1]
    return special.log_softmax(np.stack([t / 2, np.full_like(t, d), -t / 2], axis=1), axis=1)


def _anchored(strengths: np.ndarray, anchor: int | None) -> np.ndarray:
    """Strengths [R, P] less the anchor's, or their mean."""
    return strengths - (strengths.mean(axis=1) if anchor is None else strengths[:, anchor])[:, None]
