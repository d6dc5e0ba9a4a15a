"""Files that are written completely or not at all, and archives: NumPy files (`.npz`) that are checked when read.

An archive belongs to a game. It holds arrays, and a manifest in JSON with the game, its options and the SHA-256 of the
arrays.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from azjax.core.errors import FileError, InputError
from azjax.core.json_text import parse_json
from azjax.games.game import AnyGame
from azjax.games.registry import make, options_of

_FORMAT = 1
_MANIFEST = "manifest"
_MOST_UNPACKED = 200  # bytes for each byte of the file; solutions have up to 20, and a zip file can have 1,000

Arrays = dict[str, np.ndarray]
Manifest = dict[str, Any]
"""JSON."""


@contextlib.contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` once the block ends without an error.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def save_archive(path: str | Path, kind: str, game: AnyGame, manifest: Manifest, arrays: Arrays) -> None:
    """Writes an archive.

    Args:
      path: the file.
      kind: of the content: `solution` or `agent`.
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


def load_archive(path: str | Path, kind: str) -> tuple[AnyGame, Manifest, Arrays]:
    """Reads an archive of this kind and checks all of its bytes.

    Raises:
      InputError: the file is missing, damaged, or of another kind.
    """
    game, manifest, arrays = _read(path, kind, with_arrays=True)
    if digest(arrays) != manifest.get("sha256"):
        raise InputError(f"{path} is damaged: its values are not those that were written")
    return game, manifest, arrays


def game_of_archive(path: str | Path, kind: str) -> AnyGame:
    """The game of an archive; arguments and errors are those of `load_archive`."""
    return _read(path, kind, with_arrays=False)[0]


def digest(arrays: Arrays) -> str:
    """SHA-256 of the arrays' names, dtypes, shapes and bytes."""
    sha256 = hashlib.sha256()
    for name in sorted(arrays):
        sha256.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        sha256.update(np.ascontiguousarray(arrays[name]).data)
    return sha256.hexdigest()


def _read(path: str | Path, kind: str, *, with_arrays: bool) -> tuple[AnyGame, Manifest, Arrays]:
    try:
        # Opened here, since NumPy does not close a file that it cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            packed, unpacked = os.fstat(file.fileno()).st_size, sum(each.file_size for each in archive.zip.infolist())
            if unpacked > _MOST_UNPACKED * packed:
                raise InputError(f"{packed:,} bytes that unpack to {unpacked:,}")
            manifest: Manifest = parse_json(str(archive[_MANIFEST]))
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
