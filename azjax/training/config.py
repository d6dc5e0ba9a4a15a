"""What defines a run: static sizes, and `Hyper`, the traced scalars that `jax.vmap` may vary."""

import dataclasses
import math

from azjax.games.game import Game, state_dataclass
from azjax.networks import Network, make_network


@state_dataclass
class Hyper:
    """Scalars that an iteration reads as arrays: another value costs no compilation.

    Attributes:
      learning_rate: of Adam, above 0.
      l2: weight of the squared parameters in the loss.
      c_puct: weight of exploration in the search.
      dirichlet_fraction: share of noise in the priors at a root, 0..1.
      dirichlet_alpha: concentration of that noise; 10 / (number of legal actions) if None.
      temperature: self-play draws its moves from visits^(1 / temperature).
    """

    learning_rate: float = 1e-3
    l2: float = 1e-4
    c_puct: float = 1.25
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float | None = None
    temperature: float = 1.0


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run. With the game, it decides every bit of the result.

    Attributes:
      seed: of everything random, 0..2^32 - 1.
      iterations: how many to train. The one field that a resumed run may change.
      network: `mlp` or `resnet`.
      width: units (mlp) or channels (resnet).
      depth: hidden layers (mlp) or residual blocks (resnet).
      num_simulations: of each search in self-play; new ones where the tree is reused.
      reuse_tree: self-play goes on in the tree below the move that was played, within an iteration.
      solver: the searches of self-play prove wins, losses and draws.
      num_games: games played side by side.
      steps_per_iteration: plies that each of those games advances in an iteration.
      random_start_plies: a game begins after 0 to this many random plies, drawn evenly.
      start_positions: texts to begin from, drawn evenly; the game's own start if empty.
      replay_size: positions kept; the oldest go first.
      updates_per_iteration: optimiser steps in an iteration.
      batch_size: positions in one optimiser step.
      evaluate_every: iterations between counts of the raw network's mistakes over all positions, which solves
        the game first; 0 for never. The counts are shown, and never enter training.
      checkpoint_every: iterations between checkpoints.
      keep_checkpoints: how many of the last ones stay, beside the best.
      hyper: the traced scalars.
    """

    seed: int = 0
    iterations: int = 200
    network: str = "resnet"
    width: int = 64
    depth: int = 4
    num_simulations: int = 32
    reuse_tree: bool = False
    solver: bool = False
    num_games: int = 64
    steps_per_iteration: int = 8
    random_start_plies: int = 0
    start_positions: tuple[str, ...] = ()
    replay_size: int = 65_536
    updates_per_iteration: int = 16
    batch_size: int = 256
    evaluate_every: int = 0
    checkpoint_every: int = 10
    keep_checkpoints: int = 3
    hyper: Hyper = dataclasses.field(default_factory=Hyper)

    def __post_init__(self) -> None:
        at_least_one = "iterations num_simulations num_games steps_per_iteration replay_size updates_per_iteration"
        for field in (*at_least_one.split(), "batch_size", "checkpoint_every", "keep_checkpoints"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be at least 1, got {getattr(self, field)}")
        for field in ("seed", "random_start_plies", "evaluate_every"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field} must be at least 0, got {getattr(self, field)}")
        if self.seed >= 2**32:
            raise ValueError(f"seed must be below 2^32, got {self.seed}")
        if self.replay_size < self.batch_size:
            raise ValueError(f"replay_size must be at least batch_size = {self.batch_size}, got {self.replay_size}")
        self.make_network()  # refuses an unknown one
        for name, scalar in dataclasses.asdict(self.hyper).items():
            if scalar is not None and not (scalar >= 0 and (math.isfinite(scalar) or name == "temperature")):
                raise ValueError(f"{name} must be a number of at least 0, got {scalar}")
            if scalar == 0 and name in ("learning_rate", "dirichlet_alpha"):
                raise ValueError(f"{name} must be above 0, got {scalar}")
        if self.hyper.dirichlet_fraction > 1:
            raise ValueError(f"dirichlet_fraction must be 0..1, got {self.hyper.dirichlet_fraction}")

    def make_network(self) -> Network:
        """The network that is trained."""
        return make_network(self.network, width=self.width, depth=self.depth)

    def replay_rows(self, game: Game) -> int:
        """Rows of `num_games` positions in the replay, a multiple of `steps_per_iteration`.

        Raises:
          ValueError: `replay_size` is too small for a game's positions to wait there for its result.
        """
        smallest = self.num_games * (self.steps_per_iteration + game.max_plies)
        if self.replay_size < smallest:
            raise ValueError(
                f"replay_size must be at least num_games * (steps_per_iteration + {game.max_plies}) = {smallest}, "
                f"since positions of {game.name} wait there for the result of their game; got {self.replay_size}"
            )
        return -(-self.replay_size // (self.num_games * self.steps_per_iteration)) * self.steps_per_iteration
