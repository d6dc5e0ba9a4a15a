"""Loads the scripts in experiments/ and the hooks of the site as modules, and reads results and pages."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
sys.path.append(str(EXPERIMENTS))  # as for a script in this folder


def load_study(name: str) -> ModuleType:
    """The module of experiments/NAME.py."""
    return _load(name, EXPERIMENTS / f"{name}.py")


def load_hooks() -> ModuleType:
    """The module of docs/hooks.py."""
    return _load("hooks", ROOT / "docs" / "hooks.py")


def page(name: str) -> str:
    """The text of docs/NAME.md."""
    return (ROOT / "docs" / f"{name}.md").read_text()


def prose(name: str) -> str:
    """The text of docs/NAME.md without its line breaks."""
    return " ".join(page(name).split())


def result_of(name: str) -> Any:
    """The content of experiments/results/NAME.json."""
    return json.loads((EXPERIMENTS / "results" / f"{name}.json").read_text())


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    study = importlib.util.module_from_spec(spec)
    sys.modules[name] = study  # dataclasses look up their module
    spec.loader.exec_module(study)
    return study
