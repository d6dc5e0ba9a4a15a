"""The files of docs/examples, copied out of the repository and imported, as users keep their own."""

import importlib.util
import shutil
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def load_example(name, folder):
    """The module of a copy of docs/examples/NAME.py in `folder`."""
    path = Path(shutil.copy(EXAMPLES / f"{name}.py", folder))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
