"""The settings with which `azjax train GAME` needs no option. A game without a preset trains with `Config()`."""

from typing import Any

from azjax.games.game import Game, make
from azjax.training.config import Config, Hyper

# By registered name, and by the options of the game that matter.
_PRESETS: list[tuple[str, dict[str, Any], Config]] = [
    (
        "connect2",
        {},
        Config(
            iterations=200,
            network="mlp",
            width=64,
            depth=2,
            num_simulations=16,
            num_games=64,
            steps_per_iteration=4,
            random_start_plies=2,
            replay_size=4096,
            updates_per_iteration=16,
            batch_size=128,
            evaluate_every=5,
            checkpoint_every=50,
            hyper=Hyper(learning_rate=3e-3, l2=1e-5),
        ),
    ),
    (
        "tictactoe",
        {},
        Config(
            iterations=500,
            network="mlp",
            width=128,
            depth=3,
            num_simulations=32,
            num_games=256,
            steps_per_iteration=8,
            random_start_plies=7,
            replay_size=131_072,
            updates_per_iteration=16,
            batch_size=512,
            evaluate_every=10,
            checkpoint_every=50,
            hyper=Hyper(learning_rate=1e-3, l2=1e-5),
        ),
    ),
    (
        "santorini",
        {"size": 2, "workers": 1},
        Config(
            iterations=400,
            network="mlp",
            width=128,
            depth=3,
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
        ),
    ),
    (
        "santorini",
        {"size": 3, "workers": 1},
        Config(
            iterations=2500,
            network="mlp",
            width=512,
            depth=4,
            policy="gumbel",
            num_simulations=16,
            num_games=512,
            steps_per_iteration=8,
            random_start_plies=24,
            replay_size=524_288,
            updates_per_iteration=16,
            decay_updates=40_000,
            batch_size=1024,
            checkpoint_every=250,
            keep_checkpoints=10,
            hyper=Hyper(learning_rate=1e-3, final_learning_rate=1e-5, l2=1e-6, average_decay=0.999),
        ),
    ),
    (
        "connect_four",
        {},
        Config(
            iterations=5500,
            network="mlp",
            width=768,
            depth=4,
            precision="bfloat16",
            policy="gumbel",
            num_simulations=16,
            solver=True,
            num_games=512,
            steps_per_iteration=8,
            random_start_plies=20,
            replay_size=1_048_576,
            updates_per_iteration=16,
            decay_updates=88_000,
            batch_size=1024,
            checkpoint_every=550,
            keep_checkpoints=10,
            hyper=Hyper(
                learning_rate=1e-3,
                final_learning_rate=1e-5,
                l2=1e-6,
                average_decay=0.999,
                root_value_fraction=0.25,
            ),
        ),
    ),
]


def preset(game: str | Game) -> Config:
    """The settings for a game, by its registered name, or with its options."""
    game = make(game) if isinstance(game, str) else game
    for name, options, config in _PRESETS:
        if game.name == name and options.items() <= game.options.items():
            return config
    return Config()
