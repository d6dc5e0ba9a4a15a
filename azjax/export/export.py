"""One agent to one file, with a description in JSON beside it."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax import export as jax_export

from azjax.core.errors import AzjaxError, FileError, InputError
from azjax.core.files import check_can_write, write_atomically
from azjax.core.json_text import parse_json
from azjax.export.description import FILES, INPUT, describe, describe_file
from azjax.export.onnx_graph import to_onnx
from azjax.export.onnx_primitives import PRIMITIVES
from azjax.export.positions import evaluation, in_float32, open_batch
from azjax.packaged import Agent

_PLATFORMS = ("cpu", "cuda", "tpu")


def export_agent(agent: Agent, format: str, path: str | Path, *, name: str = "") -> Path:
    """Writes the network of an agent, in float32, and its description to the JSON file of the same stem.

    The description is one for all formats: another format of the same agent adds its file to it.

    Args:
      agent: what to write.
      format: `safetensors` (the variables alone), `onnx` or `stablehlo`.
      path: the file to write, which must not exist.
      name: of the agent, for the description.

    Returns:
      the JSON file.

    Raises:
      InputError: an unknown format, a file that exists or whose description is that of something else, a package that
        is not installed, or a network that cannot be written in this format.
      FileError: a file could not be written; none is left.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; available: {', '.join(FORMATS)}")
    path = Path(path)
    if path.suffix == ".json":
        raise InputError(f"{path}: the description is the JSON file; give the file of the network another ending")
    if path.exists():
        raise InputError(f"{path} exists already; name another file with --output")
    check_can_write(path)
    beside = path.with_suffix(".json")
    try:
        description = describe(agent, name)
        files = _described_files(beside, description)
        content = FORMATS[format](agent)
    except AzjaxError:
        raise
    except Exception as error:  # a network from outside the package can raise any
        told = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"the network cannot be written as {format}: {told}") from error
    files[path.name] = describe_file(format, content)
    _write(path, content)
    try:
        _write(beside, (json.dumps({**description, FILES: files}, indent=1) + "\n").encode())
    except FileError:
        path.unlink()
        raise
    return beside


def _safetensors(agent: Agent) -> bytes:
    """All variables, by their path, such as `params/hidden_0/kernel`."""
    library = _import("safetensors.numpy")
    leaves = jax.tree_util.tree_leaves_with_path(agent.variables)
    arrays = {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf, order="C") for path, leaf in leaves
    }
    return library.save(arrays)  # type: ignore[no-any-return]


def _onnx(agent: Agent) -> bytes:
    _import("onnx")
    function = evaluation(in_float32(agent.network), agent.variables)
    return to_onnx(function, INPUT, open_batch(agent.game.observation_shape), PRIMITIVES)


def _stablehlo(agent: Agent) -> bytes:
    """What `jax.export.deserialize` reads."""
    _import("flatbuffers")
    function = jax.jit(evaluation(in_float32(agent.network), agent.variables))
    exported = jax_export.export(function, platforms=_PLATFORMS)(open_batch(agent.game.observation_shape))
    return bytes(exported.serialize())


FORMATS: dict[str, Callable[[Agent], bytes]] = {"safetensors": _safetensors, "onnx": _onnx, "stablehlo": _stablehlo}
"""The content of a file in each format."""


def _described_files(beside: Path, description: dict[str, Any]) -> dict[str, Any]:
    """The files that an earlier description names, if it is that of the same agent."""
    if not beside.exists():
        return {}
    try:
        earlier = parse_json(beside.read_bytes())
        files: dict[str, Any] = dict(earlier.pop(FILES))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        earlier = files = {}
    if earlier != description:
        raise InputError(f"{beside} exists already and describes something else; name another file with --output")
    return files


def _write(path: Path, content: bytes) -> None:
    with write_atomically(path) as file:
        file.write(content)


def _import(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(f"{package.partition('.')[0]} is not installed: pip install 'azjax[export]'") from error
