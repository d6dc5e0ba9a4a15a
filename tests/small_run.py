"""A run of connect2 that takes no time."""

from azjax.training import Config

SMALL = Config(
    iterations=4,
    network="mlp",
    width=16,
    depth=1,
    num_simulations=4,
    num_games=4,
    steps_per_iteration=4,
    replay_size=64,
    updates_per_iteration=2,
    batch_size=8,
    evaluate_every=2,
    checkpoint_every=2,
)
