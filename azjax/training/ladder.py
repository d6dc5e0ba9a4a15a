"""The ladder: how strong a run has become, by matches against what it was before and against fixed opponents.

All of it runs on the device, with moves drawn from the raw network's policy, and never enters training.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from azjax.core.pytree import pytree_dataclass
from azjax.evaluation import network_player
from azjax.evaluation.device_match import make_device_match
from azjax.evaluation.named_players import named_player, num_simulations_of
from azjax.games.game import Game
from azjax.networks import Variables
from azjax.training.config import Config
from azjax.training.self_play import make_start

Metrics = dict[str, chex.Array]

_NEXT_RUNG = 0.55  # points a game, as the gate asks for


@pytree_dataclass
class Ladder:
    """How far a run has climbed.

    variables: of the network on the highest rung; the first one stands on the ground.
    rung: int32 []; how many networks each beat the one below, by 0.55 points a game or more.
    rating: float32 []; of that network in Elo points above the first one, summed over the rungs.
    """

    variables: Variables
    rung: chex.Array
    rating: chex.Array

    @classmethod
    def begin(cls, variables: Variables) -> "Ladder":
        """On the ground."""
        # Copies: what is donated must not be given twice.
        return cls(jax.tree.map(jnp.copy, variables), jnp.int32(0), jnp.float32(0))


def make_ladder(game: Game, config: Config) -> Callable[[Ladder, Variables, chex.PRNGKey], tuple[Ladder, Metrics]]:
    """`climb(ladder, variables, key) -> (ladder, metrics)`, pure: the matches of one network.

    Metrics are float32 scalars: `ladder_score` against the network on the highest rung, `ladder_rating` (Elo 1978:
    400 points for each power of ten in the odds) and `ladder_rung` after it, and `score_NAME` against each of
    `config.ladder_opponents`.
    """
    player = network_player(game, config.make_network(), {}, temperature=1.0)
    opponents = [named_player(name, game) for name in config.ladder_opponents]
    start, games, max_plies = make_start(game, config), config.ladder_games, config.longest_game(game)
    matches = [
        make_device_match(game, player.policy, each.policy, num_games=games, max_plies=max_plies, start=start)
        for each in (player, *opponents)
    ]

    def climb(ladder: Ladder, variables: Variables, key: chex.PRNGKey) -> tuple[Ladder, Metrics]:
        below, *params = ladder.variables, *(each.params for each in opponents)
        keys = jax.random.split(key, len(matches))
        score, *scores = (
            match(variables, others, each) for match, others, each in zip(matches, (below, *params), keys, strict=True)
        )
        # Half a draw more than there was, so that the odds of a clean sweep are finite.
        cautious = (games * score + 0.5) / (games + 1)
        rating = ladder.rating + 400 * jnp.log10(cautious / (1 - cautious))
        higher = score >= _NEXT_RUNG
        new = Ladder(variables, ladder.rung + 1, rating)
        ladder = jax.tree.map(lambda new, old: jnp.where(higher, new, old), new, ladder)
        fixed = {f"score_{name}": points for name, points in zip(config.ladder_opponents, scores, strict=True)}
        rung = ladder.rung.astype(jnp.float32)
        return ladder, {"ladder_score": score, "ladder_rating": rating, "ladder_rung": rung, **fixed}

    return climb


def ladder_cost(game: Game, config: Config) -> int:
    """Positions judged or simulated in the matches of one network, at most."""
    moves = config.ladder_games * -(-config.longest_game(game) // 2)  # of one side
    return moves * (2 + sum(1 + max(1, num_simulations_of(name)) for name in config.ladder_opponents))
