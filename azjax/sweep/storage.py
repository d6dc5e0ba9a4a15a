"""Where a study is kept: in a journal file that all workers can reach, or in a database."""

import os
import time
from pathlib import Path

import optuna
import sqlalchemy.exc
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from azjax.core.errors import InputError

JOURNAL = "journal.log"


def connect(storage: str | Path, *, must_exist: bool = False) -> optuna.storages.BaseStorage:
    """Opens a storage, and makes it where there is none.

    Args:
      storage: path of a journal file, or the address of a database, such as postgresql+psycopg://USER@HOST/NAME.
      must_exist: make no journal file.

    Raises:
      ValueError: there is no such file, or it is an address of SQLite, or of a database that cannot be talked to.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if "://" not in str(storage):
        # The lock is a link to the path, which is looked up from where the link lies.
        path = Path(storage).absolute()
        if must_exist and not path.exists():
            raise InputError(f"there is no sweep yet: {storage} is missing")
        path.parent.mkdir(parents=True, exist_ok=True)
        return optuna.storages.JournalStorage(JournalFileBackend(str(path), _WriterLock(path)))
    kind = str(storage).partition(":")[0]
    if kind.startswith("sqlite"):
        raise InputError("SQLite fails where several workers begin at once; give the path of a journal file instead")
    try:
        return _database(str(storage))
    except ImportError as error:
        raise InputError(f"{kind} needs a driver, such as that of: pip install 'psycopg[binary]'") from error
    except Exception as error:  # the driver's own kinds; the address is not told, since it may hold a password
        raise InputError(f"cannot connect to the {kind} storage: {_first_line(error)}") from error


def _database(address: str) -> optuna.storages.BaseStorage:
    """Of workers that find an empty database at the same time, one makes the tables and the others fail; once."""
    try:
        return optuna.storages.get_storage(address)
    except (sqlalchemy.exc.IntegrityError, sqlalchemy.exc.ProgrammingError):
        time.sleep(2)
        return optuna.storages.get_storage(address)


class _WriterLock(JournalFileSymlinkLock):
    """Lets one worker write. It takes away half a row that a full disk or a machine that went down has left."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        super().acquire()
        try:
            _cut_half_row(self._path)
        except BaseException:
            self.release()
            raise
        return True


def _cut_half_row(path: Path) -> None:
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if not end:
            return
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
