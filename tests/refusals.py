"""Commands that are refused."""

import pytest

from azjax.cli import main


def refused(capsys, arguments, code=2):
    """The message, of one line, with which a command is refused."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == code
    error = capsys.readouterr().err
    assert error.startswith("azjax: ")
    assert error.index("\n") == len(error) - 1
    return error[:-1].removeprefix("azjax: ")


def refused_without_a_file(capsys, folder, monkeypatch, arguments):
    """The same in an empty folder, which stays empty."""
    monkeypatch.chdir(folder)
    message = refused(capsys, arguments)
    assert not list(folder.iterdir())
    return message


def closed_output(*_: object, **__: object) -> None:
    """What `print` does where the reader of the output has ended."""
    raise BrokenPipeError
