"""Checkpoints: Orbax writes the arrays, a manifest beside each step proves them.

A step counts only if its manifest does: it is written last, and holds the SHA-256 of every file of the step, and
dtype and shape of every array (Orbax alone casts a wrong dtype, and returns some flipped bytes, without a word).
"""

from azjax.core.errors import FileError
import functools
import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from azjax.core.errors import RunError, SettingsError
from azjax.parallel.processes import is_first

_DAMAGED = "damaged"
_OVERHEAD_BYTES = 500_000  # a step's metadata, and slack


class Checkpoints:
    """The checkpoints of one run: the last `keep`, and the best.

    Args:
      folder: where they lie.
      keep: how many of the last ones stay.
    """

    def __init__(self, folder: Path, keep: int = 3):
        self.folder = folder.absolute()
        self.keep = keep

    @functools.cached_property
    def _manager(self) -> ocp.CheckpointManager:
        """Made when the first step is written: it clears the folder of half-written steps, which no reader may."""
        options = ocp.CheckpointManagerOptions(enable_async_checkpointing=False, cleanup_tmp_directories=True)
        return ocp.CheckpointManager(self.folder, options=options)

    def steps(self) -> list[int]:
        """The steps that have a manifest, ascending; whether they are sound shows when they are restored."""
        return sorted(int(path.stem) for path in self.folder.glob("*.json") if path.stem.isdigit())

    def unfinished_steps(self) -> list[int]:
        """The steps that have files and no manifest, ascending: cut off while written or removed, or damaged."""
        found = {int(path.name) for path in self.folder.glob("*") if path.name.isdigit()}
        return sorted(found - set(self.steps()))

    def best_step(self) -> int:
        """The step of the lowest score, the later one on ties; the newest where none has a score.

        Raises:
          RunError: there is no manifest that can be read.
        """
        manifests = {step: body for step in self.steps() if (body := _read_manifest(self._manifest(step))) is not None}
        if not manifests:
            raise RunError(f"{self.folder} holds no sound checkpoint")
        scored = [(body["score"], -step) for step, body in manifests.items() if body["score"] is not None]
        return -min(scored)[1] if scored else max(manifests)

    def save(self, step: int, state: Any, score: float | None = None) -> None:
        """Writes `state` as `step`, then drops what is neither among the last nor the best.

        Of several processes each must call it: all write their parts of the arrays, and the first one the manifest.

        Args:
          step: the number of finished iterations.
          state: any pytree of arrays.
          score: lower is better; None where nothing was measured.

        Raises:
          RunError: it could not be written; the steps before stay as they are.
        """
        leaves = _named_leaves(state)
        try:
            self._check_space(sum(leaf.nbytes for leaf in leaves.values()))
            # Forced: Orbax would skip a step below its newest one, and say nothing.
            self._manager.save(step, args=ocp.args.StandardSave(leaves), force=True)
            self._manager.wait_until_finished()
            if is_first():
                body = {
                    "step": step,
                    "score": score,
                    "leaves": _describe(leaves),
                    "files": _digests(self.folder / str(step)),
                }
                _write_manifest(self._manifest(step), body)
        except (OSError, ValueError) as error:
            raise RunError(f"checkpoint {step} could not be written to {self.folder}: {_one_line(error)}") from error
        if is_first():
            kept = {*self.steps()[-self.keep :], self.best_step()}
            for old in set(self.steps()) - kept:
                self._remove(old)

    def restore(self, like: Any, step: int | None = None) -> tuple[int, Any]:
        """Reads the newest sound step, with a warning for each damaged one that it passes over, or `step`.

        Args:
          like: a pytree of the structure, shapes and dtypes expected (`jax.eval_shape` gives one). Each array comes to
            where its sharding says, or to the first device where it has none; how it was saved does not matter.
          step: a certain step; nothing else is tried then.

        Returns:
          the step and its state.

        Raises:
          RunError: there is no sound checkpoint, or the arrays saved are not those expected.
        """
        if step is not None and step not in self.steps():
            there = ", ".join(map(str, self.steps())) or "none"
            raise RunError(f"{self.folder} has no checkpoint {step}; there are: {there}")
        problems: list[str] = []
        for candidate in (
            [step] if step is not None else sorted({*self.steps(), *self.unfinished_steps()}, reverse=True)
        ):
            problem = self._problem(candidate)
            if problem is None:
                for told in problems:
                    warnings.warn(f"{self.folder}: {told}; going back to checkpoint {candidate}", stacklevel=2)
                return candidate, self._read(candidate, like)
            problems.append(f"checkpoint {candidate} is damaged ({problem})")
        raise RunError(f"{self.folder} holds no sound checkpoint" + "".join(f"; {told}" for told in problems))

    def set_aside_after(self, step: int) -> None:
        """Moves later steps, and those without a manifest, to the folder `damaged` beside it."""
        sound = {number for number in self.steps() if number <= step}
        later = [
            path
            for path in (self.folder.iterdir() if self.folder.exists() else [])
            if path.name.removesuffix(".json").isdigit() and int(path.name.removesuffix(".json")) not in sound
        ]
        aside = self.folder.parent / _DAMAGED
        for path in later:
            aside.mkdir(exist_ok=True)
            if (aside / path.name).is_dir():
                shutil.rmtree(aside / path.name)
            path.replace(aside / path.name)

    def _check_space(self, num_bytes: int) -> None:
        # Asked for first: on a full disk Orbax's threads write their tracebacks over the screen.
        self.folder.mkdir(parents=True, exist_ok=True)
        needed, free = num_bytes + _OVERHEAD_BYTES, shutil.disk_usage(self.folder).free
        if free < needed:
            raise FileError(f"{needed / 1e6:.1f} MB are needed and {free / 1e6:.1f} MB are free on the disk")

    def _manifest(self, step: int) -> Path:
        return self.folder / f"{step}.json"

    def _problem(self, step: int) -> str | None:
        """What is wrong with the files of a step, in a few words; None if they are as they were written."""
        body = _read_manifest(self._manifest(step))
        if body is None:
            return f"{self._manifest(step).name} is missing or unreadable"
        found = _digests(self.folder / str(step))
        for name in sorted({*body["files"], *found}):
            if name not in found:
                return f"{name} is missing"
            if body["files"].get(name) != found[name]:
                return f"{name} is not as it was written"
        return None

    def _read(self, step: int, like: Any) -> Any:
        expected = _named_leaves(like)
        saved, asked = _read_manifest(self._manifest(step))["leaves"], _describe(expected)
        for name in sorted({*saved, *asked}):
            if saved.get(name) != asked.get(name):
                was, now = (" ".join(map(str, leaves.get(name, ["absent"]))) for leaves in (saved, asked))
                raise RunError(f"checkpoint {step} in {self.folder}: {name} was saved as {was}, asked for {now}")
        first = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        abstract = {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding or first)
            for name, leaf in expected.items()
        }
        with ocp.StandardCheckpointer() as checkpointer:
            leaves = checkpointer.restore(self.folder / str(step) / "default", abstract)
        return jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in expected])

    def _remove(self, step: int) -> None:
        # The manifest goes first: a step without one does not count.
        self._manifest(step).unlink(missing_ok=True)
        shutil.rmtree(self.folder / str(step), ignore_errors=True)
        self._manager.reload()


def _named_leaves(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _describe(leaves: dict[str, Any]) -> dict[str, list]:
    return {name: [str(leaf.dtype), list(leaf.shape)] for name, leaf in leaves.items()}


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder`, by relative path; empty if there is no such folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _body_digest(body: dict) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _write_manifest(path: Path, body: dict) -> None:
    text = json.dumps({"sha256": _body_digest(body), "body": body}, sort_keys=True, indent=1)
    partial = path.with_suffix(".partial")
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _read_manifest(path: Path) -> Any:
    """The manifest's body; None if it is missing, unreadable or not as it was written."""
    try:
        manifest = json.loads(path.read_text())
        return manifest["body"] if _body_digest(manifest["body"]) == manifest["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
