"""Runs whose checkpoints were damaged resume to the same bits, from an earlier checkpoint, or not at all."""

import dataclasses
import random
import shutil
import warnings

import jax
import numpy as np
import pytest
import small_run
from killing import assert_equal_runs
from rich.console import Console

from azjax.core.errors import RunError
from azjax.games.registry import make
from azjax.runs import train
from azjax.runs.compiled_run import compile_run
from azjax.runs.loop import train_runs
from azjax.training import ALPHAZERO_LOSS

GAME = make("connect2")
HALF = dataclasses.replace(small_run.SMALL, iterations=6, evaluate_every=0)
WHOLE = dataclasses.replace(HALF, iterations=8)


def _remove(path, rng):
    path.unlink()


def _cut(path, rng):
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def _flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _clear(path, rng):
    path.write_bytes(bytes(path.stat().st_size))


def _lengthen(path, rng):
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 100)))


def _exchange(path, rng):
    """The content of another file of the checkpoints."""
    checkpoints = next(parent for parent in path.parents if parent.name == "checkpoints")
    others = sorted(each for each in checkpoints.rglob("*") if each.is_file() and each != path)
    path.write_bytes(rng.choice(others).read_bytes())


def _resume(compiled, folder):
    """As `train`, with a program that is compiled once for all tries."""
    train_runs(
        GAME,
        compiled,
        [WHOLE],
        [folder],
        seeds=np.uint32(WHOLE.seed),
        hyper=jax.tree.map(np.float32, WHOLE.hyper),
        resume=True,
        accept_changes=False,
        console=Console(quiet=True),
        loss_terms=ALPHAZERO_LOSS,
        callbacks=(),
    )


DAMAGES = (_remove, _cut, _flip, _clear, _lengthen, _exchange)


def test_a_damaged_checkpoint_changes_no_bit_of_what_follows(tmp_path):
    _damage_and_resume(6, tmp_path)


@pytest.mark.slow
def test_a_thousand_damaged_checkpoints_change_no_bit_of_what_follows(tmp_path, tries):
    _damage_and_resume(tries(1000), tmp_path)


def _damage_and_resume(count, tmp_path):
    train(GAME, HALF, tmp_path / "half")
    whole = shutil.copytree(tmp_path / "half", tmp_path / "whole")
    compiled = compile_run(GAME, WHOLE.static, 1, ALPHAZERO_LOSS)
    _resume(compiled, whole)
    rng, refused = random.Random(0), 0
    for number in range(count):
        # The folder of a try that fails is kept, with the damage before it was resumed.
        damaged, folder = tmp_path / f"damaged_{number}", tmp_path / f"resumed_{number}"
        shutil.copytree(tmp_path / "half", damaged)
        files = sorted(each for each in (damaged / "checkpoints").rglob("*") if each.is_file() and each.stat().st_size)
        damage = DAMAGES[number % len(DAMAGES)]
        for path in rng.sample(files, rng.randint(1, 3)):
            damage(path, rng)
        shutil.copytree(damaged, folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # one for each damaged checkpoint
            try:
                _resume(compiled, folder)
            except RunError as error:
                assert "no sound checkpoint" in str(error), (damaged, error)  # noqa: PT017
                refused += 1
            else:
                assert_equal_runs(whole, folder)
        shutil.rmtree(damaged)
        shutil.rmtree(folder)
    assert refused < count / 2
