"""Checks before each checkpoint that the lock and the configuration of a run folder are still there."""

import os
import warnings
from pathlib import Path

from azjax.core.errors import FileError
from azjax.core.files import write_atomically
from azjax.runs.callback import Callback
from azjax.runs.run_folder import CONFIG, LOCK
from azjax.training.config import Config


class FolderGuard(Callback):
    """Before each checkpoint, writes a missing `config.json` again, and ends a run that has lost its lock."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[os.stat_result, bytes]] = {}

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        del config, iteration
        self._kept[folder] = (folder / LOCK).stat(), (folder / CONFIG).read_bytes()

    def save(self) -> None:
        """Looks at the folders.

        Raises:
          FileError: a lock was removed or replaced, so that another process may train there; or `config.json` is
            missing and could not be written.
        """
        for folder, (lock, config) in self._kept.items():
            path = folder / LOCK
            if not (path.exists() and os.path.samestat(path.stat(), lock)):
                raise FileError(
                    f"{path} was removed or replaced while the run went on: another process may train there"
                )
            if not (folder / CONFIG).exists():
                with write_atomically(folder / CONFIG) as file:
                    file.write(config)
                warnings.warn(f"{folder / CONFIG} was missing and is written again", stacklevel=2)
