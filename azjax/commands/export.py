"""`azjax export PLAYER`."""

import dataclasses
from pathlib import Path

import tyro

from azjax.agents import load_trained
from azjax.commands.arguments import first_word, parse
from azjax.commands.console import say
from azjax.core.errors import InputError
from azjax.export import FORMATS, export_agent


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Writes the network of a trained agent for other programs, and a description beside it.

    Attributes:
      format: safetensors (the weights alone), onnx or stablehlo.
      output: the file to write. Default: the agent's name in this folder.
    """

    format: str = tyro.MISSING
    output: Path | None = None


def export_command(arguments: list[str]) -> None:
    """Exports an agent."""
    spec, arguments = first_word("export", "PLAYER", ExportOptions(), arguments)
    options = parse(f"export {spec}", ExportOptions(), arguments)
    if options.format not in FORMATS:
        raise InputError(f"unknown format {options.format!r}; available: {', '.join(FORMATS)}")
    path = options.output or Path(f"{Path(spec).absolute().name}.{options.format}")
    beside = export_agent(load_trained(spec), options.format, path, name=spec)
    say(f"{path}, described in {beside}")
