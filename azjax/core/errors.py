"""The errors that are for users. Commands tell them in one line; any other error is a bug and keeps its traceback."""


class AzjaxError(Exception):
    """Base of the errors whose message a user can act on."""


class InputError(AzjaxError, ValueError):
    """Bad input: an unknown name, a value out of range, a malformed text. The message names what is allowed."""


class FileError(AzjaxError, OSError):
    """A file that cannot be read or written."""


class RunError(AzjaxError, RuntimeError):
    """A run folder that cannot be used, or a checkpoint that cannot be trusted."""


class SettingsError(RunError):
    """Settings that cannot be trained: too much memory, or updates without a finite gradient."""
