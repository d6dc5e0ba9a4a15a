"""What every benchmark writes: its command, its settings, the machine, and what was measured."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

BUSY = 0.5  # load average; above it, rates are lower than the machine's own


def machine(packages: Sequence[str] = ("azjax", "jax", "jaxlib", "mctx")) -> dict[str, Any]:
    """What the numbers were measured on, and the versions of the packages that are installed."""
    device = jax.devices()[0]
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return {
        "device": f"{device.platform}: {device.device_kind}, {jax.device_count()} in all",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in packages if package in installed},
    }


def machine_with_load(packages: Sequence[str]) -> dict[str, Any]:
    """`machine`, and its load average of the last minute: to be asked before anything is measured."""
    return machine(packages) | {"load_average": round(os.getloadavg()[0], 2)}


def tell_load(report: dict[str, Any], console: Console) -> None:
    """Prints that the machine was not idle, if so."""
    load = report["machine"]["load_average"]
    if load > BUSY:
        console.print(f"the machine was not idle: load average {load:g}")


def write_report(report: dict[str, Any], path: Path, console: Console | None = None) -> None:
    """Writes a report as JSON, with its folder, and prints where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    if console is not None:
        console.print(f"written to {path}", soft_wrap=True)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
