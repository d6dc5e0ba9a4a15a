"""tyro parses options. Its errors, boxes of several lines, become errors of one line."""

import contextlib
import io
import re
import sys
from typing import Any

import tyro
from rich.text import Text

from azjax.core.errors import InputError

_PROPOSALS = ("Perhaps you meant", "Arguments similar to")
_TYPES = {"INT": "an integer", "FLOAT": "a number", "STR": "a text", "PATH": "a path", "{NONE}": "None"}
_WRONG_TYPES = (
    r"no type matching (?P<types>.*) could be instantiated from \[(?P<got>.*?)\]\. Got errors.*",
    r"invalid literal for (?P<types>int)\(\) with base 10: (?P<got>.*)",
    r"could not convert string to (?P<types>float): (?P<got>.*)",
)


def parse_with_tyro(kind: Any, arguments: list[str], prog: str, **options: Any) -> Any:
    """`tyro.cli` of these arguments. It exits with 0 after `--help`.

    Args:
      kind: a dataclass, whose fields are options, or a function, whose arguments are.
      arguments: the options and their values.
      prog: the words before them, such as `azjax match tictactoe random`.
      **options: of `tyro.cli`.

    Raises:
      InputError: an unknown option, one that is given twice, a value that is empty or of another type, or one that
        `kind` refuses.
    """
    _check_words(arguments)
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            parsed = tyro.cli(kind, args=arguments, prog=prog, **options)
    except SystemExit as end:
        if end.code != 2:
            raise
        error: BaseException | None = end
        while error is not None:
            if isinstance(error, InputError):
                raise error from None
            error = error.__context__
        raise InputError(f"{_in_one_line(box.getvalue())}; `{prog} --help` tells more") from None
    print(box.getvalue(), end="", file=sys.stderr)  # warnings
    return parsed


def _check_words(arguments: list[str]) -> None:
    """Refuses an option that is given twice, of which tyro would take the last, and empty values."""
    given: set[str] = set()
    option = ""
    for word in arguments:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            option = name
            switch = "--" + name.removeprefix("--no-").removeprefix("--").replace("_", "-")
            if switch in given:
                raise InputError(f"{switch} is given twice")
            given.add(switch)
        if not word or (word.startswith("--") and equals and not value):
            raise InputError(f"{option or 'an argument'} must not be empty")


def _in_one_line(box: str) -> str:
    """The first part of the box, and the options that a later part proposes."""
    # On a terminal it has colors. Where the output is not UTF-8 it has no sides, and its lines are hyphens.
    plain = Text.from_ansi(box).plain
    lines = "\n".join(line.strip("│").rstrip() for line in plain.splitlines()[1:-1])
    first, *others = filter(str.strip, re.split(r"^ *[─-]{4,}$", lines, flags=re.MULTILINE))
    message = " ".join(first.split()).rstrip(".").removesuffix(". Expected 1 values")
    for pattern in _WRONG_TYPES:
        if (wrong := re.fullmatch(rf"Error parsing (?P<option>\S+): {pattern}", message)) is not None:
            types = [_TYPES.get(name.upper(), name) for name in reversed(wrong["types"].split("|"))]
            message = f"{wrong['option']} must be {' or '.join(types)}, got {wrong['got']}"
    if (choice := re.fullmatch(r"(.*)\. Expected one of \((.*)\)", message)) is not None:
        allowed = sorted(word.strip("'") for word in choice[2].split(", "))
        message = f"{choice[1]}; available: {', '.join(allowed)}"
    proposals = "".join(part for part in others if part.strip().startswith(_PROPOSALS))
    close = re.findall(r"^ {5,6}(--[^\s,]+)", proposals, flags=re.MULTILINE)
    hint = f" (did you mean {' or '.join(close[:3])}?)" if close else ""
    return f"{message[:1].lower()}{message[1:]}{hint}"
