"""The studies of experiments/, which are scripts and no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
sys.path.append(str(EXPERIMENTS))  # as for a script that lies there


def load_study(name: str) -> ModuleType:
    """The module of experiments/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    study = importlib.util.module_from_spec(spec)
    sys.modules[name] = study  # dataclasses look their module up
    spec.loader.exec_module(study)
    return study
