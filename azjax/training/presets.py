"""The settings of `azjax train GAME` without options. A game without a preset trains with `Config()`."""

from typing import Any

from azjax.games.game import AnyGame
from azjax.games.registry import available, make, options_of
from azjax.training.config import Config
from azjax.training.hyper import Hyper

# Games of some thousand positions: perfect play in a minute or two on 2 CPU cores.
_SMALL = Config(
    iterations=400,
    network="mlp",
    width=128,
    depth=3,
    precision="float32",  # not worth a measurement
    num_simulations=32,
    num_games=256,
    steps_per_iteration=8,
    random_start_plies=8,
    replay_size=131_072,
    updates_per_iteration=16,
    batch_size=512,
    evaluate_every=10,
    checkpoint_every=50,
    hyper=Hyper(learning_rate=1e-3, l2=1e-5),
)


def _large(iterations: int, **changes: Any) -> Config:
    """Games of millions of positions and more."""
    return Config(
        iterations=iterations,
        network="mlp",
        width=512,
        depth=4,
        policy="gumbel",
        num_simulations=16,
        solver=True,
        num_games=512,
        steps_per_iteration=8,
        replay_size=524_288,
        updates_per_iteration=16,
        decay_updates=16 * iterations,
        batch_size=1024,
        checkpoint_every=iterations // 10,
        keep_checkpoints=10,
        hyper=Hyper(
            learning_rate=1e-3,
            final_learning_rate=1e-5,
            l2=1e-6,
            ema_decay=0.999,
            root_value_fraction=0.25,
        ),
    ).replace(**changes)


# See docs/what_holds_learning_back.md, "The network and the optimizer".
_EQUIVARIANT: dict[str, Any] = {
    "network": "equivariant_mlp",
    "width": 1024,
    "depth": 2,
    "symmetries": False,
    "optimizer": "muon",
    "learning_rate": 4e-3,
    "value_scale": 0.5,
    "rescale_values": False,
}


# Boards of some million positions, which can be numbered: games of a few plies from positions drawn evenly.
_SMALL_BOARD = _large(
    400,
    **{**_EQUIVARIANT, "width": 512, "activation": "squared_relu"},
    max_num_considered_actions=8,
    random_start_plies=12,
    exploring_starts=0.8,
    exploring_plies=3,
)


def _pgx(iterations: int, updates: int = 16, **changes: Any) -> Config:
    """Games of pgx, of which no exact values are known: the ladder tells the strength."""
    return _large(
        iterations,
        random_start_plies=8,
        value_scale=0.5,
        rescale_values=False,
        replay_size=262_144,
        updates_per_iteration=updates,
        decay_updates=updates * iterations,
        ladder_every=100,
        ladder_games=32,
        checkpoint_every=100,
        **changes,
    )


def _board_game(iterations: int, **changes: Any) -> Config:
    """Board games of which no exact values are known."""
    return _large(
        iterations,
        **{**_EQUIVARIANT, **changes},
        root_value_fraction=0.5,
        max_num_considered_actions=8,
        random_start_plies=12,
    )


# Long games: fewer of them side by side reach their ends sooner.
_TAFL = _board_game(400, width=512, truncate_at_ply=150, num_games=256, steps_per_iteration=16)

# By the registered name and the options of the game.
_PRESETS: list[tuple[str, dict[str, Any], Config]] = [
    (
        "connect2",
        {},
        _SMALL.replace(
            iterations=100,
            width=64,
            depth=2,
            num_simulations=16,
            num_games=64,
            steps_per_iteration=4,
            random_start_plies=2,
            replay_size=4096,
            batch_size=128,
            evaluate_every=5,
            checkpoint_every=100,
            learning_rate=3e-3,
        ),
    ),
    (
        "tictactoe",
        {},
        # The best of experiments/sweeps/tictactoe.toml, see docs/sweeping.md. It needs half the iterations when equal
        # positions are merged.
        _SMALL.replace(
            iterations=100,
            width=256,
            num_simulations=16,
            random_start_plies=7,
            merge_equal_positions=True,
            decay_updates=16 * 100,
            learning_rate=6.3e-3,
            final_learning_rate=1e-4,
            c_puct=1.3,
            dirichlet_fraction=0.49,
        ),
    ),
    ("hex", {"size": 4}, _SMALL_BOARD),
    ("connect_four", {"columns": 5, "rows": 4}, _SMALL_BOARD),
    (
        "connect_four",
        {},
        # See docs/what_holds_learning_back.md, "An hour of Connect Four".
        _large(
            6200,
            **{**_EQUIVARIANT, "width": 768, "optimizer": "adam", "learning_rate": 1.5e-3},
            num_simulations=32,
            first_simulations=8,
            doubling_iterations=2500,
            max_num_considered_actions=8,
            root_value_fraction=0.5,
            random_start_plies=20,
            replay_size=1_048_576,
            updates_per_iteration=32,
            decay_updates=32 * 6200,
            batch_size=512,
        ),
    ),
    (
        "brandub",
        {},
        _large(
            2000,
            **_EQUIVARIANT,
            activation="squared_relu",
            first_simulations=16,
            num_simulations=32,
            doubling_iterations=1500,
            root_value_fraction=0.5,
            l2=1e-5,
            max_num_considered_actions=8,
            truncate_at_ply=150,
            random_start_plies=12,
        ),
    ),
    ("ard_ri", {}, _TAFL),
    ("tablut", {}, _TAFL),
    ("tawlbwrdd", {}, _TAFL),
    # Its random games last 340 plies: from the start few of self-play would end.
    ("hnefatafl", {}, _TAFL.replace(random_start_plies=300)),
    ("othello", {}, _board_game(400)),
    # Games with two symmetries alone, where a layer of the same width costs 2.7 times as much.
    # From random plies that may fill the board, since other games end too late to learn from in the first minutes.
    ("hex", {}, _board_game(400, width=512).replace(random_start_plies=120)),
    ("breakthrough", {}, _board_game(400, width=512)),
    ("chomp", {"rows": 3, "columns": 4}, _SMALL),
    # Larger boards have too many positions to measure the network on all of them on the way.
    ("chomp", {}, _SMALL.replace(evaluate_every=0)),
    ("mnk", {"columns": 3, "rows": 3}, _SMALL),
    ("mnk", {}, _board_game(400)),
    ("pgx:animal_shogi", {}, _pgx(1500, num_games=256)),
    ("pgx:gardner_chess", {}, _pgx(1000, updates=8, num_games=128)),
    ("pgx:go_9x9", {}, _pgx(1000, num_games=256)),
    ("pgx:hex", {}, _pgx(900)),
    ("pgx:othello", {}, _pgx(1600)),
    ("santorini", {"size": 2, "workers": 1}, _SMALL.replace(iterations=200, merge_equal_positions=True)),
    (
        "santorini",
        {"size": 3, "workers": 1},
        # See docs/what_holds_learning_back.md, "What a search tells the network".
        _large(
            3600,
            **_EQUIVARIANT,
            max_num_considered_actions=8,
            random_start_plies=32,
            exploring_starts=0.8,
            exploring_plies=3,
        ),
    ),
    (
        "santorini",
        {"size": 5, "workers": 2},
        _large(
            2100,
            **_EQUIVARIANT,
            activation="squared_relu",
            first_simulations=16,
            num_simulations=32,
            doubling_iterations=1500,
            root_value_fraction=0.5,
            l2=1e-5,
            max_num_considered_actions=8,
            random_start_plies=16,
            checkpoint_every=300,
            keep_checkpoints=8,
        ),
    ),
    ("santorini", {}, _board_game(400)),
]


def preset(game: str | AnyGame) -> Config:
    """The settings for a game, given by its registered name or as an object."""
    game = make(game) if isinstance(game, str) else game
    for name, options, config in _PRESETS:
        if game.name == name and options.items() <= options_of(game).items():
            return config
    return Config()


def games_with_presets() -> dict[str, AnyGame]:
    """The games of the package with settings of their own, by the arguments of `azjax train` that select them."""
    games: dict[str, AnyGame] = {}
    for name, options, _ in _PRESETS:
        if name in available() and (game := make(name, **options)) not in games.values():
            games[" ".join([name, *(f"--{option} {value}" for option, value in options.items())])] = game
    return games
