"""What defines a run: static sizes, and `Hyper`, the traced scalars that `jax.vmap` may vary."""

import dataclasses
import math
from typing import Any

import jax

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game
from azjax.networks import Network, make_network


@pytree_dataclass
class Hyper:
    """Scalars that an iteration reads as arrays: another value costs no compilation.

    Attributes:
      learning_rate: of Adam, above 0; see `Config.warmup_updates` and `decay_updates`.
      final_learning_rate: where the decay ends, if there is one.
      max_gradient_norm: longer gradients are scaled down to this; infinity for never.
      l2: weight of the squared parameters in the loss.
      average_decay: of the averaged weights, with which a run is evaluated and played, per optimiser step, below 1;
        0 for the latest weights.
      root_value_fraction: share of the search's value in the value target, 0..1; the rest is the game's result.
      c_puct: weight of exploration in the search.
      dirichlet_fraction: share of noise in the priors at a root, 0..1.
      dirichlet_alpha: concentration of that noise; 10 / (number of legal actions) if None.
      forced_playouts: see `alphazero_policy`; none if None.
      full_search_fraction: share of the plies with a full search, where there are `fast_simulations`, above 0, to 1.
      gate_threshold: points a game with which new weights pass the gate, 0..1; see `Config.gate_games`.
      gate_tolerance: so much less than the round before ends the rounds.
      temperature: self-play draws its moves from visits^(1 / temperature); in the Gumbel search it scales the noise.
      temperature_plies: after so many plies of its game a move is drawn with `late_temperature`; infinity for never.
      late_temperature: see there.
    """

    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    max_gradient_norm: float = math.inf
    l2: float = 1e-4
    average_decay: float = 0.0
    root_value_fraction: float = 0.0
    c_puct: float = 1.25
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float | None = None
    forced_playouts: float | None = None
    full_search_fraction: float = 0.25
    gate_threshold: float = 0.55
    gate_tolerance: float = 0.03
    temperature: float = 1.0
    temperature_plies: float = math.inf
    late_temperature: float = 0.0


_HYPER_FIELDS = {field.name for field in dataclasses.fields(Hyper)}
_POLICIES = ("alphazero", "gumbel")
_UP_TO_ONE = ("average_decay", "root_value_fraction", "dirichlet_fraction", "full_search_fraction", "gate_threshold")
_MAY_BE_INFINITE = ("max_gradient_norm", "temperature", "temperature_plies", "late_temperature")
_ABOVE_ZERO = ("learning_rate", "max_gradient_norm", "dirichlet_alpha", "full_search_fraction")


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run. With the game, it decides every bit of the result.

    Attributes:
      seed: of everything random, 0..2^32 - 1.
      iterations: how many to train. The one field that a resumed run may change.
      network: `mlp`, `resnet` or `se_resnet`.
      width: units (mlp) or channels (resnet).
      depth: hidden layers (mlp) or residual blocks (resnet).
      precision: what the network computes in, `float32` or `bfloat16`; its weights are float32.
      policy: the search of self-play, `alphazero` (PUCT) or `gumbel`.
      num_simulations: of each search in self-play; new ones where the tree is reused.
      fast_simulations: of a fast search, if not 0. All games then have a full search at the same plies, drawn evenly,
        and a fast one without noise, which is not learned from, at the others (playout cap randomisation, Wu 2019,
        section 3.1).
      max_num_considered_actions: of `gumbel_policy`.
      reuse_tree: self-play goes on in the tree below the move that was played, within an iteration.
      solver: the searches of self-play prove wins, losses and draws; what is proven is the value target.
      cut_at_ply: games are cut after so many plies, if not 0, and the last search's value stands for the result.
      num_games: games played side by side.
      steps_per_iteration: plies that each of those games advances in an iteration.
      random_start_plies: a game begins after 0 to this many random plies, drawn evenly.
      start_positions: texts to begin from, drawn evenly; the game's own start if empty.
      replay_size: positions kept; the oldest go first.
      symmetries: learn from each position under a random symmetry of the game.
      updates_per_iteration: optimiser steps in an iteration.
      warmup_updates: optimiser steps in which the learning rate rises from 0.
      decay_updates: optimiser steps after that in which it falls to `final_learning_rate`, along a cosine; 0 for none.
      gate_games: games of a match against the network of the iteration before, which the one that learned must win
        to take its place; 0 for none. See `azjax.training.gate`.
      gate_rounds: with a gate, an iteration has up to so many rounds of `updates_per_iteration` and a match.
      max_skipped_updates: so many optimiser steps in a row may be skipped for a gradient that is not finite.
      batch_size: positions in one optimiser step.
      evaluate_every: iterations between counts of the raw network's mistakes over all positions, which solves
        the game first; 0 for never. The counts are shown, and never enter training.
      ladder_every: iterations between matches of the raw network, its moves drawn from its policy, against the
        strongest one before and against `ladder_opponents`; 0 for never. See `azjax.training.ladder`.
      ladder_games: of each of these matches.
      ladder_opponents: `random`, and searches without a network such as `uct:100`.
      evaluation_share: positions that mistakes and ladder together may judge, for each one that self-play and learning
        do.
      checkpoint_every: iterations between checkpoints.
      keep_checkpoints: how many of the last ones stay, beside the best.
      hyper: the traced scalars.
    """

    seed: int = 0
    iterations: int = 200
    network: str = "resnet"
    width: int = 64
    depth: int = 4
    precision: str = "float32"
    policy: str = "alphazero"
    num_simulations: int = 32
    fast_simulations: int = 0
    max_num_considered_actions: int = 16
    reuse_tree: bool = False
    solver: bool = False
    cut_at_ply: int = 0
    num_games: int = 64
    steps_per_iteration: int = 8
    random_start_plies: int = 0
    start_positions: tuple[str, ...] = ()
    replay_size: int = 65_536
    symmetries: bool = True
    updates_per_iteration: int = 16
    warmup_updates: int = 0
    decay_updates: int = 0
    gate_games: int = 0
    gate_rounds: int = 10
    max_skipped_updates: int = 10
    batch_size: int = 256
    evaluate_every: int = 0
    ladder_every: int = 0
    ladder_games: int = 64
    ladder_opponents: tuple[str, ...] = ("random", "uct:100")
    evaluation_share: float = 0.25
    checkpoint_every: int = 10
    keep_checkpoints: int = 3
    hyper: Hyper = dataclasses.field(default_factory=Hyper)

    def __post_init__(self) -> None:
        for field in ("start_positions", "ladder_opponents"):
            object.__setattr__(self, field, tuple(getattr(self, field)))  # of any sequence, since it must be hashable
        at_least_one = "iterations num_simulations num_games steps_per_iteration replay_size updates_per_iteration"
        at_least_one += " batch_size checkpoint_every keep_checkpoints max_num_considered_actions gate_rounds"
        at_least_one += " ladder_games"
        for field in at_least_one.split():
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, got {getattr(self, field)}")
        at_least_zero = "seed fast_simulations cut_at_ply random_start_plies evaluate_every warmup_updates"
        at_least_zero += " decay_updates gate_games ladder_every"
        for field in (*at_least_zero.split(), "max_skipped_updates"):
            if getattr(self, field) < 0:
                raise InputError(f"{field} must be at least 0, got {getattr(self, field)}")
        if self.seed >= 2**32:
            raise InputError(f"seed must be below 2^32, got {self.seed}")
        if self.replay_size < self.batch_size:
            raise InputError(f"replay_size must be at least batch_size = {self.batch_size}, got {self.replay_size}")
        if self.fast_simulations >= self.num_simulations:
            raise InputError(
                f"fast_simulations must be below num_simulations = {self.num_simulations}, got {self.fast_simulations}"
            )
        if not 0 < self.evaluation_share < math.inf:
            raise InputError(f"evaluation_share must be a number above 0, got {self.evaluation_share}")
        if self.policy not in _POLICIES:
            raise InputError(f"unknown policy {self.policy!r}; available: {', '.join(_POLICIES)}")
        self.make_network()  # refuses an unknown one
        for name, scalar in dataclasses.asdict(self.hyper).items():
            if scalar is None:
                continue
            if not (scalar >= 0 and (math.isfinite(scalar) or name in _MAY_BE_INFINITE)):
                raise InputError(f"{name} must be a number of at least 0, got {scalar}")
            if scalar == 0 and name in _ABOVE_ZERO:
                raise InputError(f"{name} must be above 0, got {scalar}")
            if scalar > 1 and name in _UP_TO_ONE:
                raise InputError(f"{name} must be 0..1, got {scalar}")
        if self.hyper.average_decay == 1:
            raise InputError("average_decay must be below 1, got 1.0: the averaged weights would never change")
        if self.policy == "gumbel":
            self._check_gumbel()

    def _check_gumbel(self) -> None:
        for name, asked in (
            ("reuse_tree", self.reuse_tree),
            ("forced_playouts", self.hyper.forced_playouts is not None),
        ):
            if asked:
                raise InputError(f"{name} needs the policy alphazero, got gumbel")
        for name in ("temperature", "late_temperature"):
            if math.isinf(getattr(self.hyper, name)):
                raise InputError(f"{name} must be finite with the policy gumbel, whose noise it scales, got inf")

    def replace(self, **changes: Any) -> "Config":
        """With other values of fields, of its own or of `hyper`.

        Raises:
          TypeError: an unknown field.
          ValueError: a value that is refused.
        """
        of_hyper = {name: changes.pop(name) for name in _HYPER_FIELDS & changes.keys()}
        return dataclasses.replace(self, hyper=dataclasses.replace(self.hyper, **of_hyper), **changes)

    @property
    def static(self) -> "Config":
        """What a compiled iteration depends on: equal for runs that differ in their length and in arrays alone."""
        return dataclasses.replace(self, seed=0, iterations=1, hyper=jax.tree.map(lambda _: 0.5, self.hyper))

    def make_network(self) -> Network:
        """The network that is trained."""
        return make_network(self.network, width=self.width, depth=self.depth, precision=self.precision)

    @property
    def mean_simulations(self) -> float:
        """Of a search in self-play, full and fast ones together."""
        share = self.hyper.full_search_fraction if self.fast_simulations else 1.0
        return share * self.num_simulations + (1 - share) * self.fast_simulations

    @property
    def judged_per_iteration(self) -> float:
        """Positions that the searches of self-play judge on average in an iteration, and that it learns from."""
        played = self.num_games * self.steps_per_iteration * self.mean_simulations
        return played + self.updates_per_iteration * self.batch_size

    def longest_game(self, game: Game) -> int:
        """Plies after which every game of self-play is over."""
        return min(self.cut_at_ply or game.max_plies, game.max_plies)

    def replay_rows(self, game: Game) -> int:
        """Rows of `num_games` positions in the replay, a multiple of `steps_per_iteration`.

        Raises:
          ValueError: `replay_size` is too small for a game's positions to wait there for its result.
        """
        longest = self.longest_game(game)
        smallest = self.num_games * (self.steps_per_iteration + longest)
        if self.replay_size < smallest:
            raise InputError(
                f"replay_size must be at least num_games * (steps_per_iteration + {longest}) = {smallest}, "
                f"since positions of {game.name} wait there for the result of their game; got {self.replay_size}"
            )
        return -(-self.replay_size // (self.num_games * self.steps_per_iteration)) * self.steps_per_iteration
