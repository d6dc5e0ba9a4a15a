"""The files of docs/examples, copied out of the repository and imported, as users keep their own."""

import contextlib
import importlib.util
import shutil
import sys
from pathlib import Path
from unittest import mock

from azjax.games import registry

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def load_example(name, folder):
    """The module of a copy of docs/examples/NAME.py in `folder`."""
    path = Path(shutil.copy(EXAMPLES / f"{name}.py", folder))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def games_forgotten():
    """Games that are registered within are forgotten at its end."""
    registry.available()
    with mock.patch.dict(registry.GAMES._entries):
        yield
