"""The ladder: how strong a run has become, by matches against its earlier networks and against fixed opponents.

It runs on the device, with moves drawn from the raw network's policy, and never enters training.
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from azjax.core.pytree import pytree_dataclass
from azjax.evaluation import DeviceMatch, make_device_match, network_player
from azjax.evaluation.standard_players import named_player, num_simulations_of
from azjax.games.game import AnyGame
from azjax.networks import Variables
from azjax.training.config import Config
from azjax.training.loss import Metrics
from azjax.training.self_play import make_start

_NEXT_RUNG = 0.55  # points a game, the default of the gate


@pytree_dataclass
class Ladder:
    """How far a run has climbed.

    Attributes:
      variables: of the network on the highest rung; at first the untrained one.
      rung: how many networks each beat the one below with at least 0.55 points a game.
      rating: of the network on the highest rung, in Elo points above the untrained one, summed over the rungs.
    """

    variables: Variables
    rung: Int32[Array, ""]
    rating: Float32[Array, ""]

    @classmethod
    def init(cls, variables: Variables) -> "Ladder":
        """A ladder without rungs, below which the untrained network stands."""
        # A copy, since the same array cannot be donated twice.
        return cls(jax.tree.map(jnp.copy, variables), jnp.int32(0), jnp.float32(0))


Climb: TypeAlias = Callable[[Ladder, Variables, PRNGKeyArray], tuple[Ladder, Metrics, DeviceMatch]]


def make_ladder(game: AnyGame, config: Config) -> Climb:
    """`climb(ladder, variables, key) -> (ladder, metrics, match)`, pure: the matches of one network.

    Metrics are `ladder_score` against the network on the highest rung, `ladder_rating` (Elo 1978: 400 points for each
    power of ten in the odds) and `ladder_rung` after it, and `score_NAME` against each of `config.ladder_opponents`.
    The match is the one against the network on the highest rung.
    """
    player = network_player(game, config.make_network(game), {}, temperature=1.0)
    opponents = [named_player(name, game) for name in config.ladder_opponents]
    start, games, max_plies = make_start(game, config), config.ladder_games, game.max_plies
    matches = [
        make_device_match(game, player.policy, each.policy, num_games=games, max_plies=max_plies, start=start)
        for each in (player, *opponents)
    ]

    def climb(ladder: Ladder, variables: Variables, key: PRNGKeyArray) -> tuple[Ladder, Metrics, DeviceMatch]:
        opponent_params = ladder.variables, *(each.params for each in opponents)
        keys = jax.random.split(key, len(matches))
        climbed, *others = (
            match(variables, params, key) for match, params, key in zip(matches, opponent_params, keys, strict=True)
        )
        score = climbed.score
        # As if one more game had been drawn, so that the odds of winning every game are finite.
        cautious = (games * score + 0.5) / (games + 1)
        rating = ladder.rating + 400 * jnp.log10(cautious / (1 - cautious))
        higher = score >= _NEXT_RUNG
        next_rung = Ladder(variables, ladder.rung + 1, rating)
        ladder = jax.tree.map(lambda new, old: jnp.where(higher, new, old), next_rung, ladder)
        fixed = {f"score_{name}": match.score for name, match in zip(config.ladder_opponents, others, strict=True)}
        rung = ladder.rung.astype(jnp.float32)
        return ladder, {"ladder_score": score, "ladder_rating": rating, "ladder_rung": rung, **fixed}, climbed

    return climb


def ladder_cost(game: AnyGame, config: Config) -> int:
    """Positions evaluated or simulated in the matches of one network, at most."""
    moves = config.ladder_games * -(-game.max_plies // 2)  # of one side: matches are not truncated
    return moves * (2 + sum(1 + max(1, num_simulations_of(name)) for name in config.ladder_opponents))
