"""Checkpoints: Orbax writes the arrays, and a manifest beside each step proves that they are intact.

A step counts only if its manifest is sound. The manifest is written last and holds the SHA-256 of every file of the
step, and dtype and shape of every array. (Orbax alone silently casts a wrong dtype and accepts some flipped bytes.)
"""

import contextlib
import functools
import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

import jax
import orbax.checkpoint as ocp
from jaxtyping import PyTree

from azjax.core.errors import FileError, RunError
from azjax.core.files import write_text
from azjax.core.json_text import parse_json
from azjax.parallel.processes import is_first

_T = TypeVar("_T")

_DAMAGED = "damaged"
_ARRAYS = "default"  # Orbax's name for them in a step
_ATTEMPTS = 10
_OVERHEAD_BYTES = 500_000  # of a step's metadata, with a margin


class Manifest(TypedDict):
    """What the manifest of a step holds, beside the SHA-256 of itself.

    Attributes:
      step: number of finished iterations.
      score: lower is better; None if nothing was measured.
      temporary: it is kept while it is the newest step.
      leaves: dtype and shape of every array, by its path.
      files: SHA-256 of every file, by its relative path.
    """

    step: int
    score: float | None
    temporary: NotRequired[bool]
    leaves: dict[str, list[Any]]
    files: dict[str, str]


class Checkpoints:
    """The checkpoints of one run: the newest `keep` and the best.

    Args:
      folder: the folder of the checkpoints.
      keep: number of the newest checkpoints that are kept.
    """

    def __init__(self, folder: Path, keep: int = 3):
        self.folder = Path(folder).absolute()
        self.keep = keep

    @functools.cached_property
    def _manager(self) -> ocp.CheckpointManager:
        """Orbax's manager. It removes half-written steps, so it is made by the first save and never by a reader."""
        options = ocp.CheckpointManagerOptions(enable_async_checkpointing=False, cleanup_tmp_directories=True)
        return ocp.CheckpointManager(self.folder, options=options)

    def steps(self) -> list[int]:
        """The steps that have a manifest, ascending. Whether they are sound is checked by `restore`."""
        return sorted(int(path.stem) for path in self.folder.glob("*.json") if _is_step(path.stem))

    def unfinished_steps(self) -> list[int]:
        """The steps that have files but no manifest, ascending: interrupted while written or removed, or damaged."""
        with_files = {int(path.name) for path in self.folder.glob("*") if _is_step(path.name)}
        return sorted(with_files - set(self.steps()))

    def best_step(self, steps: Sequence[int] | None = None) -> int:
        """The step with the lowest score, the latest one on ties; the newest step if none has a score.

        Args:
          steps: those to choose from; all if None.

        Raises:
          RunError: no manifest is sound.
        """
        steps = self.steps() if steps is None else steps
        manifests = {step: body for step in steps if (body := _read_manifest(self._manifest(step))) is not None}
        if not manifests:
            raise RunError(f"{self.folder} holds no sound checkpoint")
        scored = [(body["score"], -step) for step, body in manifests.items() if body["score"] is not None]
        return -min(scored)[1] if scored else max(manifests)

    def save(self, step: int, state: PyTree, score: float | None = None, *, temporary: bool = False) -> None:
        """Writes `state` as `step`.

        Every process must call it: each writes its part of the arrays, and process 0 writes the manifest.

        Args:
          step: the number of finished iterations.
          state: a pytree of arrays.
          score: lower is better; None if nothing was measured.
          temporary: `prune` removes it after the next save, so that a run that was stopped keeps the checkpoints of
            one that was not.

        Raises:
          FileError: it could not be written; earlier steps stay as they are.
        """
        leaves = _named_leaves(state)
        try:
            self._check_space(sum(leaf.nbytes for leaf in leaves.values()))
            # Without `force` Orbax silently skips a step below its newest one.
            self._manager.save(step, args=ocp.args.StandardSave(leaves), force=True)
            self._manager.wait_until_finished()
            if is_first():
                files = _digests(self.folder / str(step))
                if f"{_ARRAYS}/manifest.ocdbt" not in files:
                    raise FileError(f"its arrays are not in {self.folder / str(step)}")
                body: Manifest = {"step": step, "score": score, "leaves": _describe(leaves), "files": files}
                if temporary:
                    body["temporary"] = True
                _write_manifest(self._manifest(step), body)
        except (OSError, ValueError) as error:
            raise FileError(f"checkpoint {step} could not be written to {self.folder}: {_one_line(error)}") from error

    def prune(self) -> None:
        """Removes the steps that are neither among the newest nor the best, and temporary ones before the newest."""
        *_, newest = steps = self.steps()
        lasting = [step for step in steps if not self._is_temporary(step)]
        for step in {*steps} - {newest, *lasting[-self.keep :], self.best_step(lasting or steps)}:
            self._remove(step)

    def restore(self, like: _T, step: int | Literal["best"] | None = None) -> tuple[int, _T]:
        """Reads the newest sound step, with a warning for each damaged one that it skips; or exactly `step`.

        A trainer may save and remove steps meanwhile.

        Args:
          like: a pytree with the expected structure, shapes and dtypes (`jax.eval_shape` gives one). An array is
            placed by the sharding of its leaf, or on the first device if that has none, whatever it was saved with.
          step: the step to read; that of `best_step`, or the newest sound one if None.

        Returns:
          the step and its state.

        Raises:
          RunError: there is no sound checkpoint, or the saved arrays are not the expected ones.
        """
        attempts = 0
        while True:
            attempts, before = attempts + 1, self.steps()
            try:
                return self._restore(like, self.best_step() if step == "best" else step)
            except (RunError, OSError, ValueError) as error:
                if attempts < _ATTEMPTS and self.steps() != before:
                    continue
                if isinstance(error, RunError):
                    raise
                raise RunError(f"a checkpoint in {self.folder} cannot be read: {_one_line(error)}") from error

    def _restore(self, like: _T, step: int | None) -> tuple[int, _T]:
        if step is not None and step not in self.steps():
            available = ", ".join(map(str, self.steps())) or "none"
            raise RunError(f"{self.folder} has no checkpoint {step}; available: {available}")
        damages: list[str] = []
        newest_first = sorted({*self.steps(), *self.unfinished_steps()}, reverse=True)
        for candidate in newest_first if step is None else [step]:
            problem = self._problem(candidate)
            if problem is None:
                for damage in damages:
                    warnings.warn(f"{self.folder}: {damage}; going back to checkpoint {candidate}", stacklevel=2)
                return candidate, self._read(candidate, like)
            damages.append(f"checkpoint {candidate} is damaged ({problem})")
        raise RunError("; ".join([f"{self.folder} holds no sound checkpoint", *damages]))

    def set_aside_after(self, step: int) -> None:
        """Moves later steps, and steps without a manifest, to the folder `damaged` beside the checkpoints."""
        sound = {number for number in self.steps() if number <= step}
        later = [
            path
            for path in (self.folder.iterdir() if self.folder.exists() else [])
            if _is_step(name := path.name.removesuffix(".json")) and int(name) not in sound
        ]
        aside = self.folder.parent / _DAMAGED
        for path in later:
            aside.mkdir(exist_ok=True)
            if (aside / path.name).is_dir():
                shutil.rmtree(aside / path.name)
            shutil.move(path, aside / path.name)  # the checkpoints may be on another device

    def _check_space(self, num_bytes: int) -> None:
        # Checked first: on a full disk Orbax's threads print tracebacks.
        self.folder.mkdir(exist_ok=True)
        needed, free = num_bytes + _OVERHEAD_BYTES, shutil.disk_usage(self.folder).free
        if free < needed:
            raise FileError(f"{needed / 1e6:.1f} MB are needed and {free / 1e6:.1f} MB are free on the disk")

    def _is_temporary(self, step: int) -> bool:
        body = _read_manifest(self._manifest(step))
        return body is not None and body.get("temporary", False)

    def _manifest(self, step: int) -> Path:
        return self.folder / f"{step}.json"

    def _problem(self, step: int) -> str | None:
        """What is wrong with the files of a step; None if they are as they were written."""
        body = _read_manifest(self._manifest(step))
        if body is None:
            return f"{self._manifest(step).name} is missing or unreadable"
        digests = _digests(self.folder / str(step))
        for name in sorted({*body["files"], *digests}):
            if name not in digests:
                return f"{name} is missing"
            if body["files"].get(name) != digests[name]:
                return f"{name} is not as it was written"
        return None

    def _read(self, step: int, like: _T) -> _T:
        """Reads a step whose files are sound."""
        manifest = _read_manifest(self._manifest(step))
        if manifest is None:
            raise RunError(f"checkpoint {step} in {self.folder} was removed")
        leaves_like = _named_leaves(like)
        saved, expected = manifest["leaves"], _describe(leaves_like)
        for name in sorted({*saved, *expected}):
            if saved.get(name) != expected.get(name):
                was, now = (" ".join(map(str, leaves.get(name, ["absent"]))) for leaves in (saved, expected))
                raise RunError(f"checkpoint {step} in {self.folder}: {name} was saved as {was}, expected {now}")
        first = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        abstract = {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding or first)
            for name, leaf in leaves_like.items()
        }
        with ocp.StandardCheckpointer() as checkpointer:
            leaves = checkpointer.restore(self.folder / str(step) / _ARRAYS, abstract)
        state: _T = jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in leaves_like])
        return state

    def _remove(self, step: int) -> None:
        # The manifest is removed first: a step without one does not count.
        self._manifest(step).unlink(missing_ok=True)
        shutil.rmtree(self.folder / str(step), ignore_errors=True)
        self._manager.reload()


def _named_leaves(tree: PyTree) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _describe(leaves: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [str(leaf.dtype), list(leaf.shape)] for name, leaf in leaves.items()}


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder`, by relative path; empty if there is no such folder."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a trainer removes old steps
            if path.is_file():
                digests[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def _body_digest(body: Manifest) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _write_manifest(path: Path, body: Manifest) -> None:
    text = json.dumps({"sha256": _body_digest(body), "body": body}, sort_keys=True, indent=1)
    write_text(path, text)


def _read_manifest(path: Path) -> Manifest | None:
    """The body of a manifest; None if it is missing, unreadable or damaged."""
    try:
        manifest = parse_json(path.read_bytes())
        body: Manifest = manifest["body"]
        return body if _body_digest(body) == manifest["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_step(name: str) -> bool:
    """Whether a file of this name belongs to a step; other files are left alone."""
    return re.fullmatch(r"0|[1-9][0-9]*", name) is not None


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
