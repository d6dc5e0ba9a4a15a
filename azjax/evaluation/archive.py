"""What is kept of a game in a file, a solution or an agent: arrays, which are checked before they are believed.

A file is a NumPy archive (`.npz`): the arrays, and a manifest in JSON with the game, its options and the SHA-256 of the
arrays.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from azjax.core.errors import FileError, InputError
from azjax.games.game import Game
from azjax.games.registry import make, options_of

_FORMAT = 1
_MANIFEST = "manifest"


def save_archive(
    path: str | Path, kind: str, game: Game, manifest: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Writes a file, whole or not at all.

    Args:
      path: of the file.
      kind: what it holds: `solution` or `agent`.
      game: what it belongs to.
      manifest: what else it tells; JSON.
      arrays: of any number and shape.

    Raises:
      OSError: it could not be written; what stood there before stays.
    """
    path = Path(path)
    head = {"kind": kind, "format": _FORMAT, "game": game.name, "options": options_of(game)}
    told = head | manifest | {"sha256": digest(arrays)}
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            content: dict[str, Any] = {_MANIFEST: np.array(json.dumps(told)), **arrays}
            np.savez_compressed(file, **content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def load_archive(path: str | Path, kind: str) -> tuple[Game, dict[str, Any], dict[str, np.ndarray]]:
    """Reads a file and checks all of its bytes.

    Args:
      path: what `save_archive` wrote.
      kind: what it must hold.

    Returns:
      the game, the manifest and the arrays.

    Raises:
      ValueError: no such file, one of another kind, or a damaged one.
    """
    game, manifest, arrays = _read(path, kind, with_arrays=True)
    if digest(arrays) != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its values are not those that were written")
    return game, manifest, arrays


def game_of_archive(path: str | Path, kind: str) -> Game:
    """The game that a file belongs to; arguments and errors are those of `load_archive`."""
    return _read(path, kind, with_arrays=False)[0]


def _read(path: str | Path, kind: str, *, with_arrays: bool) -> tuple[Game, dict[str, Any], dict[str, np.ndarray]]:
    try:
        # Opened here: NumPy does not close what it cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            manifest = json.loads(str(archive[_MANIFEST]))
            if (manifest["kind"], manifest["format"]) != (kind, _FORMAT):
                raise InputError(
                    f"it is of kind {manifest['kind']}, format {manifest['format']}, not {kind}, {_FORMAT}"
                )
            arrays = {name: archive[name] for name in archive.files if with_arrays and name != _MANIFEST}
        return make(manifest["game"], **manifest["options"]), manifest, arrays
    except FileNotFoundError:
        raise InputError(f"there is no {kind} file {path}") from None
    except Exception as error:  # a damaged archive can raise any
        raise InputError(f"{path} is no {kind} file, or is damaged: {error}") from error


def digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of the arrays' names, types and bytes."""
    sha256 = hashlib.sha256()
    for name in sorted(arrays):
        sha256.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        sha256.update(np.ascontiguousarray(arrays[name]).data)
    return sha256.hexdigest()
