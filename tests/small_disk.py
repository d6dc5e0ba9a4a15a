"""A disk of 3 MB, to fill or to make read-only. It needs root; otherwise the test is skipped."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Makes `folder` and mounts the disk there."""
    folder.mkdir()
    try:
        mount("size=3m", folder)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk of 3 MB cannot be mounted here: {getattr(error, 'stderr', error)}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def mount(options: str, folder: Path) -> None:
    """Mounts with options such as `size=3m` or `remount,ro`."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def fill(folder: Path, free: int) -> None:
    """Fills the disk with a file, except for `free` bytes."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    with (folder / "filler").open("r+b") as file:
        file.truncate(max(0, file.seek(0, 2) - free))
