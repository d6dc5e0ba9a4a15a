"""Archives: NumPy files (`.npz`) that are checked when they are read.

An archive belongs to a game. It holds arrays, and a manifest in JSON with the game, its options and the SHA-256 of the
arrays.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from azjax.core.errors import InputError
from azjax.core.files import write_atomically
from azjax.core.json_text import parse_json
from azjax.games.game import AnyGame
from azjax.games.registry import make, options_of

_FORMAT = 1
_MANIFEST = "manifest"
_MOST_BYTES_OF_MANIFEST = 1 << 20

Arrays = dict[str, np.ndarray]
Manifest = dict[str, Any]
"""JSON."""
MostBytes = Callable[[AnyGame, Manifest], int]


def save_archive(path: str | Path, kind: str, game: AnyGame, manifest: Manifest, arrays: Arrays) -> None:
    """Writes an archive.

    Args:
      path: the file.
      kind: of the content: `solution`, `endings` or `agent`.
      game: the game that the content belongs to.
      manifest: further entries.
      arrays: by name.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    head = {"kind": kind, "format": _FORMAT, "game": game.name, "options": options_of(game)}
    content = np.array(json.dumps(head | manifest | {"sha256": digest(arrays)}))
    with write_atomically(path) as file:
        np.savez_compressed(file, **{_MANIFEST: content, **arrays})  # type: ignore[arg-type]


def load_archive(path: str | Path, kind: str, most_bytes: MostBytes) -> tuple[AnyGame, Manifest, Arrays]:
    """Reads an archive of this kind and checks all of its bytes.

    Args:
      path: the file.
      kind: of the content.
      most_bytes: how many bytes the arrays may unpack to, by the game and the manifest; more are not unpacked.

    Raises:
      InputError: the file is missing, damaged, too large when unpacked, or of another kind.
    """
    game, manifest, arrays = _read(path, kind, most_bytes)
    if digest(arrays) != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its values are not those that were written")
    return game, manifest, arrays


def game_of_archive(path: str | Path, kind: str) -> AnyGame:
    """The game of an archive, whose arrays are not read; errors are those of `load_archive`."""
    return _read(path, kind, None)[0]


def kind_of_archive(path: str | Path) -> str:
    """The kind of an archive, whose arrays are not read; errors are those of `load_archive`."""
    return str(_read(path, None, None)[1]["kind"])


def digest(arrays: Arrays) -> str:
    """SHA-256 of the arrays' names, dtypes, shapes and bytes."""
    sha256 = hashlib.sha256()
    for name in sorted(arrays):
        sha256.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        sha256.update(np.ascontiguousarray(arrays[name]).data)
    return sha256.hexdigest()


def _check_size(unpacked: int, most: int) -> None:
    """A zip file may unpack to a thousand times its size."""
    if unpacked > most:
        raise InputError(f"it unpacks to {unpacked:,} bytes, and at most {most:,} are read")


def _read(path: str | Path, kind: str | None, most_bytes: MostBytes | None) -> tuple[AnyGame, Manifest, Arrays]:
    """The arrays are read if `most_bytes` is given. `kind` is None for any."""
    what = f"{kind} file" if kind else "azjax archive"
    try:
        # Opened here, since NumPy does not close a file that it cannot read.
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise InputError("it is no .npz file")
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            sizes = {each.filename.removesuffix(".npy"): each.file_size for each in archive.zip.infolist()}
            _check_size(sizes.pop(_MANIFEST, 0), _MOST_BYTES_OF_MANIFEST)
            manifest: Manifest = parse_json(str(archive[_MANIFEST]))
            if (manifest["kind"], manifest["format"]) != (kind or manifest["kind"], _FORMAT):
                raise InputError(
                    f"it is of kind {manifest['kind']}, format {manifest['format']}, not {kind or 'any'}, {_FORMAT}"
                )
            game, arrays = make(manifest["game"], **manifest["options"]), {}
            if most_bytes is not None:
                _check_size(sum(sizes.values()), most_bytes(game, manifest))
                arrays = {name: archive[name] for name in archive.files if name != _MANIFEST}
        return game, manifest, arrays
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a damaged archive can raise any
        raise InputError(f"{path} is no {what}, or is damaged: {error}") from error
