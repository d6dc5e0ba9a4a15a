import contextlib
import errno
import gc
import json
import os
import random
import shutil
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_disk import fill, mount, small_disk

from azjax.core.errors import FileError, RunError
from azjax.runs.checkpoint import Checkpoints


def _state(step):
    return {
        "key": jax.random.key(step),
        "weights": jax.random.normal(jax.random.key(step), (50, 40)),
        "half": jnp.full(7, step, jnp.bfloat16),
        "flags": jnp.array([True, False, True]),
        "step": jnp.int32(step),
    }


LIKE = jax.eval_shape(lambda: _state(0))


def _equal(left, right):
    left, right = (jax.tree.map(np.asarray, dict(tree, key=jax.random.key_data(tree["key"]))) for tree in (left, right))
    return all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (left, right)), strict=True)
    )


@pytest.fixture(scope="module")
def three_steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "checkpoints"
    checkpoints = Checkpoints(folder)
    for step in (10, 20, 30):
        checkpoints.save(step, _state(step))
    return folder


@pytest.fixture
def folder(three_steps, tmp_path):
    return shutil.copytree(three_steps, tmp_path / "checkpoints")


def test_every_leaf_comes_back_with_its_bits_and_dtype(folder):
    step, state = Checkpoints(folder).restore(LIKE)
    assert step == 30
    assert _equal(state, _state(30))


def test_files_of_other_names_are_left_alone(folder):
    for name in ("\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT FIVE}.json", "007", "40.json.partial", "readme"):
        (folder / name).write_text("mine")
    checkpoints = Checkpoints(folder)
    assert checkpoints.steps() == [10, 20, 30]
    assert checkpoints.unfinished_steps() == []
    checkpoints.set_aside_after(20)
    assert checkpoints.steps() == [10, 20]
    assert (folder / "\N{SUPERSCRIPT TWO}").read_text() == (folder / "007").read_text() == "mine"


def test_a_given_step_can_be_restored(folder):
    step, state = Checkpoints(folder).restore(LIKE, 10)
    assert step == 10
    assert _equal(state, _state(10))


def test_the_newest_steps_and_the_best_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    for step, score in ((1, 5.0), (2, 1.0), (3, 4.0), (4, 3.0), (5, None)):
        checkpoints.save(step, _state(step), score)
        checkpoints.prune()
    assert checkpoints.steps() == [2, 4, 5]
    assert checkpoints.best_step() == 2
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == ["2", "2.json", "4", "4.json", "5", "5.json"]
    # A later step with the same score replaces it.
    checkpoints.save(6, _state(6), 1.0)
    checkpoints.prune()
    assert checkpoints.steps() == [5, 6]
    assert checkpoints.best_step() == 6


def test_temporary_steps_stay_while_they_are_the_newest_and_push_out_no_other(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    kept = []
    # The temporary steps have the best scores, and go nevertheless.
    for step, temporary, score in ((4, False, 5.0), (6, False, 4.0), (7, True, 2.0), (8, False, 3.0), (9, True, 1.0)):
        checkpoints.save(step, _state(step), score, temporary=temporary)
        checkpoints.prune()
        kept.append(checkpoints.steps())
    assert kept == [[4], [4, 6], [4, 6, 7], [6, 8], [6, 8, 9]]
    assert checkpoints.restore(LIKE)[0] == 9


def test_a_flipped_byte_anywhere_falls_back_with_a_warning(folder):
    rng = random.Random(0)
    files = sorted(path for path in [*(folder / "30").rglob("*"), folder / "30.json"] if path.is_file())
    for path in files:
        content = path.read_bytes()
        position = rng.randrange(len(content)) if content else None
        path.write_bytes(
            b"x" if position is None else content[:position] + bytes([content[position] ^ 64]) + content[position + 1 :]
        )
        with pytest.warns(UserWarning, match="checkpoint 30 is damaged .* going back to checkpoint 20"):
            step, state = Checkpoints(folder).restore(LIKE)
        assert step == 20
        assert _equal(state, _state(20))
        path.write_bytes(content)
    assert Checkpoints(folder).restore(LIKE)[0] == 30


def test_random_damage_is_never_taken_for_a_sound_state(three_steps, tmp_path):
    _damage_and_restore(10, three_steps, tmp_path)


@pytest.mark.slow
def test_a_lot_of_random_damage_is_never_taken_for_a_sound_state(three_steps, tmp_path, tries):
    _damage_and_restore(tries(200), three_steps, tmp_path)


def _damage_and_restore(count, three_steps, tmp_path):
    rng = random.Random(count)
    files = sorted(path.relative_to(three_steps) for path in three_steps.rglob("*") if path.is_file())
    for number in range(count):
        folder = shutil.copytree(three_steps, tmp_path / str(number))
        file = rng.choice(files)
        _damage(folder / file, rng)
        hit = int(file.parts[0].removesuffix(".json"))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            step, state = Checkpoints(folder).restore(LIKE)
        assert _equal(state, _state(step)), file
        if step == 30:
            assert not warned, file
        else:
            assert (step, hit) == (20, 30), file
            assert file.name in str(warned[0].message)
        # The damaged step is refused by its number too, unless only white space of its manifest changed.
        with contextlib.suppress(RunError):
            assert _equal(Checkpoints(folder).restore(LIKE, hit)[1], _state(hit)), file
        shutil.rmtree(folder)


def _damage(path, rng):
    """Flips bits of a byte, truncates the file or removes it."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "truncate", "remove"])
    if kind == "remove" or not content:
        path.unlink()
    elif kind == "truncate":
        path.write_bytes(content[: rng.randrange(len(content))])
    else:
        content[rng.randrange(len(content))] ^= rng.randrange(1, 256)
        path.write_bytes(content)


def test_a_missing_or_an_extra_file_is_damage(folder):
    (folder / "30" / "more").write_text("x")
    (folder / "20" / "_CHECKPOINT_METADATA").unlink()
    with pytest.warns(UserWarning, match="is damaged") as warned:
        assert Checkpoints(folder).restore(LIKE)[0] == 10
    assert "more is not as it was written" in str(warned[0].message)
    assert "_CHECKPOINT_METADATA is missing" in str(warned[1].message)


def test_without_a_sound_step_nothing_is_restored(folder):
    for step in (10, 20, 30):
        (folder / f"{step}.json").write_text("{}")
    with pytest.raises(RunError, match=r"no sound checkpoint; checkpoint 30 is damaged \(30\.json is missing"):
        Checkpoints(folder).restore(LIKE)
    assert (folder / "30").is_dir()


def test_a_step_without_its_manifest_does_not_count_and_can_be_written_again(folder):
    (folder / "30.json").unlink()
    checkpoints = Checkpoints(folder)
    assert checkpoints.unfinished_steps() == [30]
    with pytest.warns(UserWarning, match=r"checkpoint 30 is damaged \(30\.json is missing"):
        assert checkpoints.restore(LIKE)[0] == 20
    checkpoints.set_aside_after(20)
    checkpoints.save(25, _state(25))
    checkpoints.save(30, _state(31))
    assert _equal(Checkpoints(folder).restore(LIKE)[1], _state(31))
    assert (folder.parent / "damaged" / "30").is_dir()


@pytest.mark.parametrize(
    ("name", "leaf", "message"),
    [
        ("weights", jax.ShapeDtypeStruct((50, 41), jnp.float32), r"\['weights'\] was saved as float32 \[50, 40\]"),
        ("weights", jax.ShapeDtypeStruct((50, 40), jnp.bfloat16), "expected bfloat16"),
        ("extra", jax.ShapeDtypeStruct((), jnp.float32), r"\['extra'\] was saved as absent"),
    ],
)
def test_unexpected_arrays_are_refused_by_name(folder, name, leaf, message):
    with pytest.raises(RunError, match=message):
        Checkpoints(folder).restore({**LIKE, name: leaf})


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(FileError, match="checkpoint 1 could not be written to"):
        Checkpoints(tmp_path / "checkpoints").save(1, _state(1))


def test_a_full_disk_is_reported_before_anything_is_written(folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: types.SimpleNamespace(free=0))
    with pytest.raises(FileError, match=r"checkpoint 40 could not be written .* MB are needed and 0\.0 MB are free"):
        Checkpoints(folder).save(40, _state(40))
    assert Checkpoints(folder).restore(LIKE)[0] == 30


# Orbax leaves coroutines behind that warn when they are collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_disk_that_fills_while_a_step_is_written_keeps_the_step_before(tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk") as disk:
        checkpoints = Checkpoints(disk / "checkpoints")
        checkpoints.save(1, _state(1))
        fill(disk, free=8192)
        # Another process takes the space after it was checked.
        monkeypatch.setattr(shutil, "disk_usage", lambda path: types.SimpleNamespace(free=10**9))
        with pytest.raises(FileError, match="checkpoint 2 could not be written to") as raised:
            checkpoints.save(2, _state(2))
        gc.collect()
        assert len(str(raised.value).splitlines()) == 1
        assert Checkpoints(disk / "checkpoints").steps() == [1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the half that was written
            step, state = Checkpoints(disk / "checkpoints").restore(LIKE)
        assert step == 1
        assert _equal(state, _state(1))
        (disk / "filler").unlink()
        checkpoints = Checkpoints(disk / "checkpoints")
        checkpoints.set_aside_after(1)
        checkpoints.save(2, _state(2))
        assert _equal(Checkpoints(disk / "checkpoints").restore(LIKE)[1], _state(2))


def test_a_read_only_disk_is_reported_and_can_be_read(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        Checkpoints(disk / "checkpoints").save(1, _state(1))
        mount("remount,ro", disk)
        with pytest.raises(
            FileError, match=r"checkpoint 2 could not be written to .*: .*Read-only file system"
        ) as raised:
            Checkpoints(disk / "checkpoints").save(2, _state(2))
        assert len(str(raised.value).splitlines()) == 1
        step, state = Checkpoints(disk / "checkpoints").restore(LIKE)
        assert step == 1
        assert _equal(state, _state(1))


def test_the_manifest_names_every_file_and_every_array(folder):
    body = json.loads((folder / "30.json").read_text())["body"]
    assert body["step"] == 30
    assert body["leaves"]["['half']"] == ["bfloat16", [7]]
    assert set(body["files"]) == {str(p.relative_to(folder / "30")) for p in (folder / "30").rglob("*") if p.is_file()}


def test_a_step_that_a_trainer_removes_while_it_is_read_is_followed_by_the_next(folder, monkeypatch):
    checkpoints, trainer = Checkpoints(folder), Checkpoints(folder, keep=1)
    read, saved = checkpoints._read, iter([40, 50])

    def read_late(step, like):
        if new := next(saved, None):
            trainer.save(new, _state(new))
            trainer.prune()  # removes the step that is read
        return read(step, like)

    monkeypatch.setattr(checkpoints, "_read", read_late)
    step, state = checkpoints.restore(LIKE)
    assert step == 50
    assert _equal(state, _state(50))


def test_the_best_step_is_restored_by_name(folder):
    checkpoints = Checkpoints(folder)
    checkpoints.save(40, _state(40), score=-5.0)
    checkpoints.save(50, _state(50), score=2.0)
    assert checkpoints.restore(LIKE, "best")[0] == 40


def test_a_step_whose_arrays_went_elsewhere_is_no_checkpoint(tmp_path):
    """As Orbax does with names that it takes for patterns."""
    with pytest.raises(FileError, match=r"checkpoint 1 could not be written to .*: its arrays are not in .*"):
        Checkpoints(tmp_path / "run[1]").save(1, _state(1))
    assert Checkpoints(tmp_path / "run[1]").steps() == []


def test_steps_are_set_aside_where_the_checkpoints_are_on_another_device(folder, monkeypatch):
    def other_device(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", other_device)
    Checkpoints(folder).set_aside_after(10)
    assert Checkpoints(folder).steps() == [10]
    assert (folder.parent / "damaged" / "30" / "default" / "manifest.ocdbt").exists()
