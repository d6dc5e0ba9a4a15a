"""Files that are written completely or not at all."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from azjax.core.errors import FileError


@contextlib.contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` once the block ends without an error.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    path = Path(path)
    # Processes of several machines, or of several containers, may have the same number.
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):  # such as that of a folder that is none, which has been told
            part.unlink()


@contextlib.contextmanager
def only_writer(path: str | Path) -> Iterator[None]:
    """Waits until no other process is within such a block for a file of this folder.

    Raises:
      FileError: the folder cannot be read.
    """
    folder = Path(path).absolute().parent
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def write_text(path: str | Path, text: str) -> None:
    """Writes a file in UTF-8, completely or not at all.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    with write_atomically(path) as file:
        file.write(text.encode())
