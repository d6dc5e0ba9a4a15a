"""`azjax doctor`."""

from azjax.benchmark.doctor import Doctor
from azjax.commands.arguments import parse
from azjax.commands.console import console


def doctor_command(arguments: list[str]) -> None:
    """Checks this machine."""
    parse("doctor", Doctor(), arguments).run(console)
