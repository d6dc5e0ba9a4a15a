"""Runs JavaScript of the page in Node, without a browser."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from azjax.play.page_source import script

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")

_HERE = Path(__file__).parent


def run_programs(calls: list[dict[str, Any]]) -> list[list[list[list[int]]]]:
    """The outputs of programs of `azjax.export.program`.

    Args:
      calls: each with a `program`, how many of its inputs are `fixed`, and `inputs`: a list of calls, each a list of
        arrays as lists of integers, those of f32 by their bits.

    Returns:
      By program and call, the outputs in the same form.
    """
    return _node(script(("stablehlo.js",)) + (_HERE / "run_programs.js").read_text(), calls)


def ask_engine(folder: Path, questions: list[tuple[str, Any]]) -> list[list[dict[str, Any]]]:
    """The answers of the worker of an exhibition to questions of the page, each a path and a body."""
    return _node((_HERE / "ask_engine.js").read_text(), questions, str(folder))


def _node(source: str, data: Any, *arguments: str) -> Any:
    command = ["node", "-e", source, "--", *arguments]
    ended = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
