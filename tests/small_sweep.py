"""A sweep of connect2 that takes a few seconds."""

from pathlib import Path

SWEEP = """\
game = "connect2"
trials = 3
seeds = 2

[base]
network = "mlp"
width = 16
depth = 1
num_simulations = 4
num_games = 4
steps_per_iteration = 4
replay_size = 64
updates_per_iteration = 2
batch_size = 8
checkpoint_every = 2

[search]
learning_rate = {low = 1e-4, high = 1e-1, log = true}

[objective]
kind = "mistakes"

[budget]
simulations = 256
rungs = 2
"""


def write_sweep(folder: Path, *changes: tuple[str, str]) -> Path:
    """Writes STUDY.toml with changes, pairs of old and new text; returns its path."""
    text = SWEEP
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text)
    return path
