"""Errors that a user can act on. Commands print them in one line; any other error is a bug and keeps its traceback."""


class AzjaxError(Exception):
    """The base of all errors below."""


class InputError(AzjaxError, ValueError):
    """Bad input: an unknown name, a value out of range, a malformed text. The message says what is allowed."""


class FileError(AzjaxError, OSError):
    """A file cannot be read or written."""


class RunError(AzjaxError, RuntimeError):
    """A run cannot begin or continue: its folder cannot be used, or its checkpoints are damaged."""


class LockedError(RunError):
    """Another process trains in the folder of a run."""


class SettingsError(RunError):
    """The settings of a run cannot be trained: too little memory, or updates without a finite gradient."""


class MemoryInUseError(SettingsError):
    """The free memory is too small for a run that the memory of the machine has room for: others use it."""


class LawError(AzjaxError, AssertionError):
    """A game breaks a law of the contract; see `azjax.games.check_game`."""
