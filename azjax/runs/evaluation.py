"""Evaluation during training: mistakes where the game is solved, and the ladder. It does not influence training."""

import dataclasses
import math
from collections.abc import Mapping

import jax

from azjax.core.errors import InputError
from azjax.evaluation import DeviceMatch, mistakes, network_player, solve, tabulate
from azjax.games.game import AnyGame
from azjax.training.config import Config
from azjax.training.iteration import TrainState
from azjax.training.ladder import Climb, ladder_cost, make_ladder

_LADDER_KEY = 0x1ADDE2  # differs from the keys that an iteration splits off


class PeriodicEvaluation:
    """Measures a run every few iterations.

    Args:
      game: the game that is learned; it is solved here if `config.evaluate_every` asks for mistakes.
      config: the configuration of the run.

    Raises:
      InputError: evaluation would take more than `config.evaluation_share` of the run, the game cannot be solved, or an
        opponent is unknown.
    """

    def __init__(self, game: AnyGame, config: Config):
        self._config = config
        cost = 0.0
        if config.ladder_every:
            cost += ladder_cost(game, config) / config.ladder_every
            _check_share(config, cost)
            self._jitted_climb = jax.jit(make_ladder(game, config), donate_argnums=0)
            self._climb: Climb = self._jitted_climb
        if config.evaluate_every:
            try:
                self._solution = solve(game)
            except InputError as error:
                problem = f"evaluate_every counts mistakes, ladder_every measures by matches: {error}"
                raise InputError(problem) from error
            self._player = network_player(game, config.make_network(game), {})
            _check_share(config, cost + self._solution.num_unfinished / config.evaluate_every)

    def compile(self, like: TrainState) -> None:
        """Compiles the ladder for states shaped like `like`, so that its measured time is that of its matches."""
        if self._config.ladder_every:
            self._climb = self._jitted_climb.lower(like.ladder, like.ema, like.key).compile()

    def is_due(self, iteration: int) -> bool:
        """Whether anything is measured after `iteration`."""
        periods = (self._config.ladder_every, self._config.evaluate_every)
        return any(every and iteration % every == 0 for every in periods)

    def __call__(self, iteration: int, state: TrainState) -> tuple[TrainState, dict[str, float], DeviceMatch | None]:
        """Measures the state after `iteration`.

        Returns:
          the state with its new ladder, the metrics that were due, and the match against the network on the ladder's
          highest rung; None if it was not due.
        """
        metrics: dict[str, float] = {}
        match: DeviceMatch | None = None
        if state.ladder is not None and iteration % self._config.ladder_every == 0:
            key = jax.random.fold_in(state.key, _LADDER_KEY)
            ladder, results, match = self._climb(state.ladder, state.ema, key)
            state = dataclasses.replace(state, ladder=ladder)
            metrics |= {name: float(value) for name, value in jax.device_get(results).items()}
        if self._config.evaluate_every and iteration % self._config.evaluate_every == 0:
            # Every device holds the same variables; the copy of one is enough.
            variables = jax.tree.map(lambda leaf: leaf.addressable_data(0), state.ema)
            player = dataclasses.replace(self._player, params=variables)
            table = tabulate(player, self._solution, jax.random.key(0))
            metrics["mistakes"] = mistakes(self._solution, table).count
        return state, metrics, match

    def score(self, row: Mapping[str, float]) -> float | None:
        """What the best checkpoint has least of: mistakes, the negative rating or the loss, whichever the run measures.

        None where the row does not have it.
        """
        if self._config.evaluate_every:
            score = row.get("mistakes", math.nan)
        elif self._config.ladder_every:
            score = -row.get("ladder_rating", math.nan)
        else:
            score = row["loss"]
        return score if math.isfinite(score) else None


def _check_share(config: Config, cost: float) -> None:
    """Refuses evaluation whose `cost`, in positions an iteration, is too large beside self-play and learning."""
    share = cost / config.evaluations_per_iteration
    if share > config.evaluation_share:
        periods = {name: getattr(config, name) for name in ("ladder_every", "evaluate_every")}
        raised = " or ".join(f"{name} = {period}" for name, period in periods.items() if period)
        lowered = ", or lower ladder_games or the simulations of ladder_opponents" * bool(config.ladder_every)
        raise InputError(
            f"evaluation_share must be at least {math.ceil(1000 * share) / 1000:g}, got {config.evaluation_share:g}: "
            f"evaluation would take up to {cost:,.0f} positions an iteration, self-play and learning "
            f"{config.evaluations_per_iteration:,.0f}; raise {raised}{lowered}"
        )
