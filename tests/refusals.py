"""Commands that are refused."""

import re

import pytest

from azjax.cli import main


def refused(capsys, arguments, code=2):
    """The message with which a command is refused, without the box around those of tyro."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == code
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return " ".join(re.sub("[╭╮╰╯│─]", " ", error).split()).removeprefix("azjax: ")
