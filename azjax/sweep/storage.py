"""The storage of a study: a journal file that all workers can reach, or a database."""

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy.event
import sqlalchemy.exc
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.storages.journal._storage import NOT_FOUND_MSG

from azjax.core.errors import FileError, InputError

JOURNAL = "journal.log"
_RESTART_SECONDS = 60.0  # that a database may take, as long as a lease lasts


def connect(storage: str | Path, *, must_exist: bool = False) -> optuna.storages.BaseStorage:
    """Opens a storage, or makes it if there is none.

    Args:
      storage: path of a journal file, or address of a database, such as postgresql+psycopg://USER@HOST/NAME.
      must_exist: whether a missing journal file is an error.

    Raises:
      FileError: the journal file is missing or damaged, or it cannot be made.
      InputError: the address is of SQLite, or of a database that cannot be reached.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if "://" not in str(storage):
        # Absolute, since the lock is a symbolic link to it.
        path = Path(storage).absolute()
        if path.is_dir():
            raise FileError(f"{storage} is a folder; a storage is a journal file or the address of a database")
        if must_exist and not path.exists():
            raise FileError(f"there is no sweep yet: {storage} is missing")
        with _file_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            return _JournalStorage(path)
    kind = str(storage).partition(":")[0]
    if kind.startswith("sqlite"):
        raise InputError("SQLite fails when several workers begin at once; give the path of a journal file instead")
    try:
        return _database(str(storage))
    except ImportError as error:
        raise InputError(f"{kind} needs a driver, such as that of: pip install 'psycopg[binary]'") from error
    except Exception as error:  # each driver has its own types; the address may hold a password, so it is not shown
        raise InputError(f"cannot connect to the {kind} storage: {_first_line(error)}") from error


@contextlib.contextmanager
def database_errors() -> Iterator[None]:
    """Within, a database that fails is told in one line.

    Raises:
      FileError: it could not be reached for a minute, or it ended in the middle of an operation.
    """
    try:
        yield
    except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
        cause = error.__cause__ if isinstance(error, optuna.exceptions.StorageInternalError) else error
        cause = getattr(cause, "orig", None) or cause or error  # of the driver, without the statement
        raise FileError(f"the database of the sweep failed: {_first_line(cause)}") from error


def _database(address: str) -> optuna.storages.BaseStorage:
    """If several workers make the tables of an empty database at once, all but one fail; they try once more."""
    # A connection that the server has closed is replaced before it is used.
    make = functools.partial(optuna.storages.RDBStorage, address, engine_kwargs={"pool_pre_ping": True})
    try:
        storage = make()
    except (sqlalchemy.exc.IntegrityError, sqlalchemy.exc.ProgrammingError):
        time.sleep(2)
        storage = make()
    sqlalchemy.event.listen(storage.engine, "do_connect", _wait_for_server)
    return optuna.storages.get_storage(storage)


def _wait_for_server(dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
    """A new connection, also to a server that restarts meanwhile."""
    del record
    began = time.monotonic()
    while True:
        try:
            return dialect.connect(*arguments, **options)
        except dialect.loaded_dbapi.OperationalError:
            if time.monotonic() - began > _RESTART_SECONDS:
                raise
        time.sleep(1)


class _JournalStorage(optuna.storages.JournalStorage):
    """Tells the row of a journal that cannot be read; the file stays as it is."""

    def __init__(self, path: Path):
        self._path = path
        super().__init__(_Journal(path))

    def _sync_with_backend(self) -> None:
        before = self._replay_result.log_number_read
        try:
            super()._sync_with_backend()
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self._damaged(self._replay_result.log_number_read + 1, str(error)) from error
        except (AssertionError, AttributeError, IndexError, KeyError, TypeError) as error:
            if error.args == (NOT_FOUND_MSG,) or self._replay_result.log_number_read == before:
                raise  # the answer to what was asked, and no damage
            raise self._damaged(self._replay_result.log_number_read, "it is no operation of a study") from error

    def _damaged(self, row: int, problem: str) -> FileError:
        rows_before = f"head -n {row - 1} keeps the rows before it"
        return FileError(f"{self._path}: row {row} is damaged ({problem}); {rows_before}")


class _Journal(JournalFileBackend):
    """A journal file whose errors are `FileError`."""

    def __init__(self, path: Path):
        super().__init__(str(path), _WriterLock(path))
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with _file_errors(self._path):
            super().append_logs(logs)


class _WriterLock(JournalFileSymlinkLock):
    """Lets one worker write, after it has removed an incomplete row that a full disk or a crash has left."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        super().acquire()
        try:
            _remove_incomplete_row(self._path)
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        try:
            super().release()
        except RuntimeError as error:
            reason = getattr(error.__context__, "strerror", None) or error
            raise FileError(f"{self._path}: its lock could not be released: {reason}") from error


def _remove_incomplete_row(path: Path) -> None:
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if not end:
            return
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


@contextlib.contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
