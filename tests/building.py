"""Builds the wheel and the source archive."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def committed(folder="."):
    """The paths of the files that git knows."""
    command = ["git", "ls-files", "-z", "--cached", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {path for path in listed.split("\0") if (ROOT / path).is_file()}


def build(folder, seconds, mode):
    """Builds the wheel and the source archive from a copy of the committed files, and returns their paths.

    Args:
      folder: an empty one.
      seconds: the time of the files, since 1970.
      mode: their permissions.
    """
    for path in committed():
        copy = folder / "source" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
        os.utime(copy, (seconds, seconds))
        copy.chmod(mode)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, cwd=folder / "source", env=environment, capture_output=True, check=True)
    return sorted((folder / "dist").iterdir())
