"""What defines a run."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Annotated, Any

import jax
import numpy as np
import tyro

from azjax.core.errors import InputError
from azjax.core.field_types import check_field_types
from azjax.games.game import AnyGame
from azjax.networks import Network, check_settings, make_network, settings_of
from azjax.search import Evaluator, SearchHyper, SearchPolicy, evaluators, make_policy
from azjax.search.draws import Number
from azjax.search.kinds import check_kind
from azjax.training.hyper import HYPER_FIELDS, Hyper, check_scalars
from azjax.training.replay import MAX_WEIGHTED_POSITIONS

_LARGEST = 2**30  # of each number of `Config`, so that sums of two are below 2^31
# The smallest value of each number of `Config`.
_MINIMUM = {
    "iterations": 1,
    "num_simulations": 1,
    "num_games": 1,
    "steps_per_iteration": 1,
    "replay_size": 1,
    "updates_per_iteration": 1,
    "batch_size": 1,
    "checkpoint_every": 1,
    "keep_checkpoints": 1,
    "max_num_considered_actions": 1,
    "doubling_iterations": 1,
    "gate_rounds": 1,
    "ladder_games": 1,
    "seed": 0,
    "fast_simulations": 0,
    "first_simulations": 0,
    "truncate_at_ply": 0,
    "random_start_plies": 0,
    "exploring_plies": 0,
    "restart_candidates": 0,
    "reanalyzed_steps": 0,
    "evaluate_every": 0,
    "warmup_updates": 0,
    "decay_updates": 0,
    "gate_games": 0,
    "ladder_every": 0,
    "max_skipped_updates": 0,
}
# On the command line a network is a name.
_NAME = tyro.constructors.PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="NAME",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: isinstance(value, str | Network),
    str_from_instance=lambda network: [str(network)],
)
_POLICIES = ("alphazero", "gumbel")
_OF_GUMBEL = ("max_num_considered_actions", "value_scale", "rescale_values")
_OPTIMIZERS = ("adam", "muon")

AUXILIARY_LOSSES = ("outcome", "plies_left", "short_term", "value_error", "soft_policy", "opponent_policy")
"""The names of `azjax.training.auxiliary_losses`."""

AUTO = "auto"
"""The precision that is measured; see `azjax.runs.precision`."""
PRECISIONS = ("float32", "bfloat16")


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run. With the game, it decides every bit of the result.

    Attributes:
      seed: of all random numbers, 0..2^32 - 1.
      iterations: how many to train. The one field that a resumed run may change.
      network: `mlp`, `equivariant_mlp`, `resnet`, `se_resnet`, `board` or `axial`, or a registered one; in Python also
        an object (see `azjax.networks.Network`), which has its own `width`, `depth` and `activation`, and for which
        `precision` is that of Muon alone.
      width: units (the perceptrons) or channels (the others).
      depth: hidden layers (the perceptrons) or residual blocks (the others).
      precision: what the network and Muon compute in, `float32` or `bfloat16`; weights are float32. `auto` is the
        faster one on the machine where the run begins, measured then and saved with the run; without a run it is
        `float32`.
      activation: of the blocks of `equivariant_mlp`, `relu` or `squared_relu`.
      policy: the search of self-play, `alphazero` (PUCT) or `gumbel`.
      selection: the rule of selection of `alphazero`: `puct`, `variance_scaled`, `regularized_policy`,
        `relative_entropy`, or a registered one.
      num_simulations: new simulations of each search in self-play.
      fast_simulations: simulations of a fast search; 0 for full searches alone. All games have a full search at the
        same plies, drawn at random, and at the others a fast one without noise, which is not learned from (playout
        cap randomization, Wu 2019, section 3.1).
      first_simulations: simulations of each search of self-play in the first iterations; 0 for `num_simulations` from
        the start. See `azjax.training.schedules`.
      doubling_iterations: iterations after which the simulations double, again and again, from `first_simulations` up
        to `num_simulations`.
      max_num_considered_actions: see `gumbel_policy`.
      value_scale: of the Gumbel search, c_scale in its paper: how much the values weigh beside the prior logits.
      rescale_values: the Gumbel search stretches the values of a position to 0..1, however close they are.
      uncertainty_weighting: simulations count less the larger an error the network expects of their value, in self-play
        and in play; it learns to expect it by the auxiliary loss `value_error`. See `azjax/search/uncertainty.py`.
      reuse_tree: self-play keeps the tree below the move that was played, within an iteration.
      solver: the searches of self-play prove wins, losses and draws; a proven value is the value target.
      truncate_at_ply: games of self-play are truncated after this many plies, and the value of the last search is their
        result; 0 for never.
      num_games: games played side by side.
      steps_per_iteration: plies that each of those games advances in an iteration.
      random_start_plies: a game starts after 0 to this many random plies, drawn evenly.
      start_positions: texts of positions to start from, drawn evenly; the game's own start if empty.
      exploring_starts: share of the games, 0..1, that begin at a position drawn evenly from all that the game numbers
        (`azjax.games.protocols.NumberedGame`), as in Monte Carlo with exploring starts (Sutton and Barto 2018,
        "Reinforcement Learning", section 5.3). With `restart_candidates` it is the share of those games that do not
        begin at a position of the replay.
      exploring_plies: these games of self-play are truncated after this many plies, so that most of their positions are
        near the starts; 0: they are as long as other games.
      restart_candidates: a share of the games (`restart_fraction`) begins at a position of the replay: of this many
        that are drawn evenly, the one whose result differs most from the value that the search gave it; 1 for any, 0
        for no such games. See `azjax.training.restarts`.
      replay_size: positions kept; the oldest are replaced first.
      reanalyzed_steps: how many positions of the replay an iteration searches again with the newest network, for each
        of the games; 0 for none. See `azjax.training.reanalysis`.
      surprise_weighting: learn more often from positions where the search changed the network's policy much; see
        `azjax.training.replay.weigh_ready`.
      merge_equal_positions: the equal positions of a batch count as one; see `azjax.training.equal_positions`. Those
        that a symmetry maps to each other are equal if `symmetries` is true, and else not, whatever the network.
      symmetries: learn from each position under a random symmetry of the game.
      auxiliary_losses: further terms of the loss, of `outcome`, `plies_left`, `short_term`, `value_error`,
        `soft_policy` and `opponent_policy`, for networks with these outputs, such as `board`; see
        `azjax.training.auxiliary_losses`.
      optimizer: `adam` or `muon`; see `azjax.training.muon`.
      updates_per_iteration: optimizer steps in an iteration.
      warmup_updates: optimizer steps in which the learning rate rises from 0.
      decay_updates: optimizer steps after that in which it falls to `final_learning_rate`, along a cosine; 0 for none.
        In most presets these are the steps of all iterations: with other `iterations` give it too.
      gate_games: games of a match that the new weights must win against those of the iteration before to replace
        them; 0 for none. See `azjax.training.gate`.
      gate_rounds: with a gate, an iteration has up to this many rounds of `updates_per_iteration` and a match.
      max_skipped_updates: how many optimizer steps in a row may be skipped because the loss or its gradient is not
        finite, counted at the end of each iteration.
      batch_size: positions in one optimizer step.
      evaluate_every: iterations between counts of the raw network's mistakes over all positions, which solves
        the game first; 0 for never. The counts never enter training.
      ladder_every: iterations between matches of the raw network, its moves drawn from its policy, against the
        strongest one before and against `ladder_opponents`; 0 for never. See `azjax.training.ladder`.
      ladder_games: games of each of these matches.
      ladder_opponents: `random`, searches without a network such as `uct:100`, and in solved games `optimal`.
      evaluation_share: how many positions the counts of mistakes and the ladder together may evaluate, for each one
        that self-play and learning evaluate.
      checkpoint_every: iterations between checkpoints.
      keep_checkpoints: how many of the latest checkpoints are kept, beside the best.
      hyper: the traced scalars.
    """

    seed: int = 0
    iterations: int = 200
    network: Annotated[str | Network, _NAME] = "resnet"
    width: int = 64
    depth: int = 4
    precision: str = AUTO
    activation: str = "relu"
    policy: str = "alphazero"
    selection: str = "puct"
    num_simulations: int = 32
    fast_simulations: int = 0
    first_simulations: int = 0
    doubling_iterations: int = 100
    max_num_considered_actions: int = 16
    value_scale: float = 0.1
    rescale_values: bool = True
    uncertainty_weighting: bool = False
    reuse_tree: bool = False
    solver: bool = False
    truncate_at_ply: int = 0
    num_games: int = 64
    steps_per_iteration: int = 8
    random_start_plies: int = 0
    start_positions: tuple[str, ...] = ()
    exploring_starts: float = 0.0
    exploring_plies: int = 0
    restart_candidates: int = 0
    replay_size: int = 65_536
    reanalyzed_steps: int = 0
    surprise_weighting: bool = False
    merge_equal_positions: bool = False
    symmetries: bool = True
    auxiliary_losses: tuple[str, ...] = ()
    optimizer: str = "adam"
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
    hyper: Annotated[Hyper, tyro.conf.arg(name="hyperparameters", prefix_name=False)] = dataclasses.field(
        default_factory=Hyper
    )

    def __post_init__(self) -> None:
        for name in ("start_positions", "ladder_opponents", "auxiliary_losses"):
            texts = getattr(self, name)
            if isinstance(texts, str) or not isinstance(texts, Iterable):
                raise InputError(f"{name} must be a sequence of texts, got {texts!r}")
            object.__setattr__(self, name, tuple(getattr(self, name)))  # hashable, of any sequence
        for name, value in vars(self).items():
            object.__setattr__(self, name, _plain(value))
        if not isinstance(self.hyper, Hyper):
            raise InputError(f"hyper must be a Hyper, got {self.hyper!r}")
        object.__setattr__(self, "hyper", jax.tree.map(_plain, self.hyper))
        check_field_types(Config, vars(self))
        for name, minimum in _MINIMUM.items():
            if getattr(self, name) < minimum:
                raise InputError(f"{name} must be at least {minimum}, got {getattr(self, name)}")
        for name in {*_MINIMUM, "width", "depth"} - {"seed"}:
            if getattr(self, name) > _LARGEST:
                raise InputError(f"{name} must be at most {_LARGEST:,}, got {getattr(self, name):,}")
        for name in ("gate_games", "ladder_games"):
            if getattr(self, name) % 2:
                raise InputError(f"{name} must be even, so that both move first equally; got {getattr(self, name)}")
        if self.seed >= 2**32:
            raise InputError(f"seed must be below 2^32, got {self.seed}")
        if self.replay_size < self.batch_size:
            raise InputError(f"replay_size must be at least batch_size = {self.batch_size}, got {self.replay_size}")
        for name in ("fast_simulations", "first_simulations"):
            if getattr(self, name) >= self.num_simulations:
                raise InputError(
                    f"{name} must be below num_simulations = {self.num_simulations}, got {getattr(self, name)}"
                )
        if self.first_simulations and self.fast_simulations:
            raise InputError(
                f"first_simulations = {self.first_simulations} and fast_simulations = {self.fast_simulations} do not "
                "go together; one of them must be 0"
            )
        for name in ("evaluation_share", "value_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} must be a number above 0, got {getattr(self, name)}")
        if not 0 <= self.exploring_starts <= 1:
            raise InputError(f"exploring_starts must be 0..1, got {self.exploring_starts}")
        if self.exploring_plies and not self.exploring_starts:
            raise InputError(f"exploring_plies = {self.exploring_plies} needs exploring_starts above 0")
        if self.policy not in _POLICIES:
            raise InputError(f"unknown policy {self.policy!r}; available: {', '.join(_POLICIES)}")
        if self.optimizer not in _OPTIMIZERS:
            raise InputError(f"unknown optimizer {self.optimizer!r}; available: {', '.join(_OPTIMIZERS)}")
        for name in self.auxiliary_losses:
            if name not in AUXILIARY_LOSSES:
                raise InputError(f"unknown auxiliary loss {name!r}; available: {', '.join(AUXILIARY_LOSSES)}")
        if len(set(self.auxiliary_losses)) < len(self.auxiliary_losses):
            raise InputError(f"auxiliary_losses: each once, got {', '.join(self.auxiliary_losses)}")
        if len(set(self.ladder_opponents)) < len(self.ladder_opponents):
            raise InputError(f"ladder_opponents: each once, got {', '.join(self.ladder_opponents)}")
        if self.uncertainty_weighting and "value_error" not in self.auxiliary_losses:
            raise InputError(
                "uncertainty_weighting needs the auxiliary loss value_error: nothing else teaches the errors"
            )
        if self.uncertainty_weighting and self.policy == "alphazero" and self.selection != "puct":
            raise InputError(f"uncertainty_weighting needs the selection puct, got {self.selection}")
        check_kind(self.policy, self.selection)
        if self.precision not in (AUTO, *PRECISIONS):
            raise InputError(f"unknown precision {self.precision!r}; available: {', '.join((AUTO, *PRECISIONS))}")
        check_settings(self.network, **self._network_settings)
        self._check_hyper()

    def _check_hyper(self) -> None:
        hyper = self.hyper
        check_scalars(hyper)
        if hyper.forced_playouts is not None and (self.policy, self.selection) != ("alphazero", "puct"):
            raise InputError(f"forced_playouts need the selection puct, got {self.policy} and {self.selection}")
        if hyper.forced_playouts is not None and self.uncertainty_weighting:
            raise InputError("forced_playouts count visits: they go without uncertainty_weighting")
        for name in ("final_temperature", "final_random_start_plies"):
            if getattr(hyper, name) is not None and hyper.schedule_iterations == 0:
                raise InputError(f"{name} = {getattr(hyper, name):g} needs schedule_iterations above 0")
        last_plies = hyper.final_random_start_plies
        if last_plies is not None and last_plies >= self.random_start_plies:
            raise InputError(
                f"final_random_start_plies must be below random_start_plies = {self.random_start_plies}, "
                f"got {last_plies:g}"
            )
        if self.policy == "gumbel":
            for name in ("temperature", "late_temperature"):
                if math.isinf(getattr(hyper, name)):
                    raise InputError(f"{name} must be finite with the policy gumbel, whose noise it scales, got inf")

    def replace(self, **changes: Any) -> "Config":
        """A copy with other values of fields, its own or those of `hyper`; of another `hyper`, if both are given.

        Raises:
          TypeError: an unknown field.
          InputError: a value out of range.
        """
        of_hyper = {name: changes.pop(name) for name in HYPER_FIELDS & changes.keys()}
        hyper = dataclasses.replace(changes.pop("hyper", self.hyper), **of_hyper)
        return dataclasses.replace(self, hyper=hyper, **changes)

    @property
    def unread(self) -> dict[str, str]:
        """The fields, its own and those of `hyper`, that have no effect on this run, and the setting that is why."""
        hyper = self.hyper
        no_schedule = hyper.final_temperature is None and hyper.final_random_start_plies is None
        of_network = settings_of(self.network)
        not_of_network = {"width", "depth", "activation"}.difference(of_network)
        no_precision = "precision" not in of_network and self.optimizer != "muon"  # which has products of its own
        table: list[tuple[bool, str, Iterable[str]]] = [
            (self.policy == "gumbel", "policy = gumbel", ("c_puct", "dirichlet_fraction", "dirichlet_alpha")),
            (self.policy != "gumbel", f"policy = {self.policy}", _OF_GUMBEL),
            (self.selection == "relative_entropy", f"selection = {self.selection}", ("c_puct",)),
            (not self.decay_updates, "decay_updates = 0", ("final_learning_rate",)),
            (math.isinf(hyper.temperature_plies), "temperature_plies = inf", ("late_temperature",)),
            (no_schedule, "final_temperature and final_random_start_plies = None", ("schedule_iterations",)),
            (not self.first_simulations, "first_simulations = 0", ("doubling_iterations",)),
            (not self.fast_simulations, "fast_simulations = 0", ("full_search_fraction",)),
            (not self.restart_candidates, "restart_candidates = 0", ("restart_fraction",)),
            (not self.gate_games, "gate_games = 0", ("gate_rounds", "gate_threshold", "gate_tolerance")),
            (not self.ladder_every, "ladder_every = 0", ("ladder_games", "ladder_opponents")),
            (
                not (self.evaluate_every or self.ladder_every),
                "evaluate_every and ladder_every = 0",
                ("evaluation_share",),
            ),
            (True, f"network = {self.network}", sorted(not_of_network)),
            (no_precision, f"network = {self.network} and optimizer = {self.optimizer}", ("precision",)),
        ]
        return {name: why for holds, why, names in table if holds for name in names}

    @property
    def static(self) -> "Config":
        """What a compiled iteration depends on: equal for runs that differ in their length and in arrays alone.

        The seed is 0, and every number of `hyper` 0.5.
        """
        return dataclasses.replace(self, seed=0, iterations=1, hyper=jax.tree.map(lambda _: 0.5, self.hyper))

    def make_network(self, game: AnyGame) -> Network:
        """The network that is trained on `game`."""
        return make_network(self.network, game, **self._network_settings)

    @property
    def _network_settings(self) -> dict[str, Any]:
        settings = {"width": self.width, "depth": self.depth, "activation": self.activation}
        return settings | {"precision": self.settled_precision}

    @property
    def settled_precision(self) -> str:
        """`precision`; while it is `auto`, `float32`."""
        return PRECISIONS[0] if self.precision == AUTO else self.precision

    def make_evaluator(self, game: AnyGame, network: Network) -> Evaluator:
        """The evaluator of the searches."""
        return evaluators.network(network, game, self.uncertainty_weighting)

    def make_policy(self, game: AnyGame, network: Network) -> SearchPolicy:
        """The search of self-play."""
        options: dict[str, Any] = {"solver": self.solver, "selection": self.selection}
        if self.policy == "gumbel":
            options["max_num_considered_actions"] = self.max_num_considered_actions
        return make_policy(self.policy, game, self.make_evaluator(game, network), self.num_simulations, **options)

    def search_hyper(self, hyper: Hyper, temperature: Number, full: bool = True) -> SearchHyper:
        """The numbers of a search of self-play with this temperature. A fast search has no noise and forces nothing."""
        numbers = SearchHyper(
            c_puct=hyper.c_puct,
            forced_playouts=hyper.forced_playouts,
            dirichlet_fraction=hyper.dirichlet_fraction,
            dirichlet_alpha=hyper.dirichlet_alpha,
            temperature=temperature,
            gumbel_scale=temperature,
            value_scale=self.value_scale,
            rescale_values=self.rescale_values,
        )
        if full:
            return numbers
        # A reused tree needs the same rule of selection in full and fast searches.
        forced_playouts = None if hyper.forced_playouts is None else 0.0
        return dataclasses.replace(numbers, dirichlet_fraction=0.0, gumbel_scale=0.0, forced_playouts=forced_playouts)

    @property
    def mean_simulations(self) -> float:
        """Mean number of simulations of a search in self-play, full and fast ones together, after the last doubling."""
        share = self.hyper.full_search_fraction if self.fast_simulations else 1.0
        return share * self.num_simulations + (1 - share) * self.fast_simulations

    @property
    def evaluations_per_iteration(self) -> float:
        """Mean number of positions that self-play and learning evaluate in an iteration, after the last doubling."""
        played = self.steps_per_iteration * self.mean_simulations + self.reanalyzed_steps * self.num_simulations
        return self.num_games * played + self.updates_per_iteration * self.batch_size

    def longest_game(self, game: AnyGame) -> int:
        """Plies after which every game of self-play is over."""
        return min(self.truncate_at_ply or game.max_plies, game.max_plies)

    def replay_rows(self, game: AnyGame) -> int:
        """Rows of `num_games` positions in the replay, a multiple of `steps_per_iteration`.

        Raises:
          InputError: `replay_size` is too small for the positions of a game to wait there for its result.
        """
        longest = self.longest_game(game)
        smallest = self.num_games * (self.steps_per_iteration + longest)
        if self.replay_size < smallest:
            raise InputError(
                f"replay_size must be at least num_games * (steps_per_iteration + {longest}) = {smallest}, "
                f"since positions of {game.name} wait there for the result of their game; got {self.replay_size}"
            )
        rows = -(-self.replay_size // (self.num_games * self.steps_per_iteration)) * self.steps_per_iteration
        if self.surprise_weighting and rows * self.num_games > MAX_WEIGHTED_POSITIONS:
            raise InputError(
                f"replay_size must be at most {MAX_WEIGHTED_POSITIONS:,} with surprise_weighting, "
                f"got {self.replay_size:,}"
            )
        return rows
