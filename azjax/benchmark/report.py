"""The report that every benchmark writes: its command, its settings, the machine and the measured rows."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
from rich.console import Console

from azjax.core.errors import FileError
from azjax.core.files import check_can_write, write_text
from azjax.parallel.sharding import num_cores

Report: TypeAlias = dict[str, Any]
"""JSON: a report, or a row of one."""

BUSY = 0.5  # load average; above it, rates are lower than the machine's own


def machine(packages: Sequence[str] = ("azjax", "jax", "jaxlib", "mctx")) -> Report:
    """The machine that is measured, and the versions of the packages that are installed."""
    device = jax.devices()[0]
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return {
        "device": f"{device.platform}: {device.device_kind}, {jax.device_count()} in all",
        "cpu": _cpu_name(),
        "cores": num_cores(),
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in packages if package in installed},
    }


def machine_with_load(packages: Sequence[str]) -> Report:
    """`machine`, and its load average of the last minute. Call it before anything is measured."""
    return machine(packages) | {"load_average": round(os.getloadavg()[0], 2)}


def print_load(report: Report, console: Console) -> None:
    """Prints that the machine was not idle, if so."""
    load = report["machine"]["load_average"]
    if load > BUSY:
        console.print(f"the machine was not idle: load average {load:g}")


def check_output(path: Path | None) -> None:
    """Makes the folder of a report or picture, and checks that it can be written there, before anything is measured.

    Raises:
      InputError: it cannot.
      FileError: the folder cannot be made.
    """
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path.parent} cannot be made: {error.strerror}") from error
    check_can_write(path)


def write_report(report: Report, path: Path, console: Console | None = None) -> None:
    """Writes a report as JSON, with its folder, and prints where it is."""
    check_output(path)
    write_text(path, json.dumps(report, indent=2) + "\n")
    if console is not None:
        console.print(f"written to {path}", soft_wrap=True)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
