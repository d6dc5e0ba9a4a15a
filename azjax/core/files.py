"""Files that are written completely or not at all."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from azjax.core.errors import FileError, InputError


@contextlib.contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` once the block ends without an error.

    A link stays, and the file that it leads to is replaced. A device, such as /dev/stdout, is written to.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    file_path = Path(os.path.realpath(path))
    # Processes of several machines, or of several containers, may have the same number.
    part = file_path.with_name(f"{file_path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        if file_path.exists() and not (file_path.is_file() or file_path.is_dir()):
            with open(file_path, "wb") as device:
                yield device
            return
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, file_path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):  # such as that of a folder that is none, which has been told
            part.unlink()


def check_can_write(path: str | Path) -> None:
    """Checks, before a long work, that a file can be written at the path.

    Raises:
      InputError: it cannot.
    """
    path = Path(path)
    folder = Path(os.path.realpath(path)).parent  # a link stays one, and its target is written
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        return  # a device
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path} cannot be written: {folder} is not writable")


@contextlib.contextmanager
def only_writer(path: str | Path) -> Iterator[None]:
    """Waits until no other process is within such a block for a file of this folder; that of its target for a link.

    Raises:
      FileError: the folder cannot be read.
    """
    folder = Path(os.path.realpath(path)).parent
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
