"""Evaluation during training: mistakes where the game is solved, and the ladder. It never enters training."""

from azjax.core.errors import InputError
import dataclasses
import math
from typing import Any

import jax

from azjax.evaluation import mistakes, network_player, solve, tabulate
from azjax.games.game import Game
from azjax.training.config import Config
from azjax.training.iteration import TrainState
from azjax.training.ladder import ladder_cost, make_ladder

_LADDER_KEY = 0x1ADDE2  # apart from the keys that an iteration splits off


class Evaluation:
    """What is measured of a run as it goes on.

    Args:
      game: what is learned; it is solved here if `config.evaluate_every` asks for mistakes.
      config: of the run.

    Raises:
      ValueError: it would take more than `config.evaluation_share` of the run, or the game cannot be solved, or there
        is no such opponent.
    """

    def __init__(self, game: Game, config: Config):
        self._config = config
        cost = 0.0
        if config.ladder_every:
            cost += ladder_cost(game, config) / config.ladder_every
            _check_share(config, cost)
            self._climb: Any = jax.jit(make_ladder(game, config), donate_argnums=0)
        if config.evaluate_every:
            self._solution = solve(game)
            self._player = network_player(game, config.make_network(), {})
            _check_share(config, cost + self._solution.num_unfinished / config.evaluate_every)

    def compile(self, like: TrainState) -> None:
        """Compiles the ladder for states of the shapes of `like`, so that its time is that of its matches."""
        if self._config.ladder_every:
            self._climb = self._climb.lower(like.ladder, like.averaged, like.key).compile()

    def is_due(self, iteration: int) -> bool:
        """Whether anything is measured after `iteration`."""
        return any(
            every and iteration % every == 0 for every in (self._config.ladder_every, self._config.evaluate_every)
        )

    def __call__(self, iteration: int, state: TrainState) -> tuple[TrainState, dict[str, float]]:
        """The state after `iteration`, on its ladder, and what was measured if it was time to."""
        measured: dict[str, float] = {}
        if self._config.ladder_every and iteration % self._config.ladder_every == 0:
            key = jax.random.fold_in(state.key, _LADDER_KEY)
            ladder, metrics = self._climb(state.ladder, state.averaged, key)
            state = dataclasses.replace(state, ladder=ladder)
            measured |= {name: float(value) for name, value in jax.device_get(metrics).items()}
        if self._config.evaluate_every and iteration % self._config.evaluate_every == 0:
            # Of all devices that hold them one is enough.
            averaged = jax.tree.map(lambda leaf: leaf.addressable_data(0), state.averaged)
            player = dataclasses.replace(self._player, params=averaged)
            measured["mistakes"] = mistakes(self._solution, tabulate(player, self._solution, jax.random.key(0))).count
        return state, measured

    def score(self, row: dict[str, float]) -> float | None:
        """What makes a checkpoint the best one, lower is better: mistakes, rating or loss, whichever the run has."""
        if self._config.evaluate_every:
            score = row.get("mistakes", math.nan)
        elif self._config.ladder_every:
            score = -row.get("ladder_rating", math.nan)
        else:
            score = row["loss"]
        return score if math.isfinite(score) else None


def _check_share(config: Config, cost: float) -> None:
    """Holds that the positions judged for an iteration, `cost`, are few beside those of self-play and learning."""
    share = cost / config.judged_per_iteration
    if share > config.evaluation_share:
        raise InputError(
            f"evaluation_share must be at least {math.ceil(1000 * share) / 1000:g}, got {config.evaluation_share:g}: "
            f"evaluation would judge up to {cost:,.0f} positions an iteration, self-play and learning "
            f"{config.judged_per_iteration:,.0f}; raise ladder_every = {config.ladder_every} or evaluate_every = "
            f"{config.evaluate_every}, or lower ladder_games or the simulations of ladder_opponents"
        )
