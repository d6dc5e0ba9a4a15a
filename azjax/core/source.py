"""Code from outside the package: importing it, and naming where a thing was defined."""

import functools
import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from azjax.core.errors import InputError

_NO_FILE = "__main__"  # the source of what was defined in a notebook or an interactive session

imported: list[str] = []
"""What `import_code` has imported, as it takes it from any folder."""


def import_code(name: str) -> None:
    """Imports a file of Python (`my_game.py`) or a module (`my_package.games`), whose decorators then register it.

    A file is imported as the module of its name, and finds the modules beside it, as a script does.

    Raises:
      InputError: there is no such file or module, its name is that of another module, or it raises an error.
    """
    path = Path(name)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise InputError(f"--import {name}: there is no such file")
    module = path.stem if is_file else name
    loaded = sys.modules.get(module)
    if is_file and loaded is not None:
        if getattr(loaded, "__file__", None) == str(path.resolve()):
            return
        raise InputError(f"--import {name}: another module is called {module!r}; give the file another name")
    try:
        if is_file:
            _import_file(module, path.resolve())
        else:
            importlib.import_module(module)
        imported.append(str(path.resolve()) if is_file else name)
    except InputError as error:
        raise InputError(f"--import {name}: {error}") from error
    except ModuleNotFoundError as error:
        if is_file or error.name not in (module, module.partition(".")[0]):
            raise InputError(f"--import {name}: {_in_one_line(error)}") from error
        raise InputError(f"--import {name}: there is no such module, and a file must end in .py") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"--import {name}: {_in_one_line(error)}") from error


def source_name(thing: Any) -> str:
    """Where a class, a function or the class of an object was defined.

    It is the name of a file, such as `my_game.py`, or of a module of a package, such as `my_package.games`; both can be
    given to `import_code`. `__main__` where there is no file, as in a notebook.
    """
    module = _module_of(thing)
    name, file = getattr(module, "__name__", "__main__"), getattr(module, "__file__", None)
    if "." in name:
        return str(name)
    return _NO_FILE if file is None else Path(file).name


def sources(*things: Any) -> dict[str, str]:
    """The names of the files and modules from outside azjax that define the things, and hashes of their contents.

    A hash is the first 16 hexadecimal digits of a SHA-256; empty where there is no file.
    """
    return {
        source_name(thing): _hash(_module_of(thing)) for thing in things if not source_name(thing).startswith("azjax.")
    }


def changed_or_missing(saved: dict[str, str]) -> tuple[list[str], list[str]]:
    """Which of these `sources` are loaded with another hash, and which are not loaded. A notebook's is neither."""
    loaded = {name: _loaded(name) for name in saved if name != _NO_FILE}
    changed = [name for name, module in loaded.items() if module is not None and _hash(module) != saved[name]]
    return changed, [name for name, module in loaded.items() if module is None]


def loaded_class(source: str, qualified_name: str) -> Any:
    """The class of that name, from a source that is loaded; None where it is not."""
    module = _loaded(source)
    try:
        return functools.reduce(getattr, qualified_name.split("."), module)
    except AttributeError:
        return None


def place_of(error: BaseException) -> str:
    """Where it was raised, outside of JAX, such as ` (my_game.py, line 12)`; empty if that is unknown."""
    jax = importlib.util.find_spec("jax")
    assert jax is not None
    assert jax.origin is not None
    inside, frames = Path(jax.origin).parent, traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not Path(frame.filename).is_relative_to(inside)]
    return f" ({Path(outside[-1].filename).name}, line {outside[-1].lineno})" if outside else ""


def _loaded(source: str) -> ModuleType | None:
    if not source.endswith(".py"):
        return sys.modules.get(source)
    modules = [each for each in sys.modules.values() if Path(getattr(each, "__file__", None) or "").name == source]
    return next((each for each in modules if "." not in each.__name__), None)


def _module_of(thing: Any) -> ModuleType | None:
    while isinstance(thing, functools.partial):
        thing = thing.func
    defined = thing if hasattr(thing, "__qualname__") else type(thing)
    return sys.modules.get(defined.__module__)


def _hash(module: ModuleType | None) -> str:
    file = getattr(module, "__file__", None)
    return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


def _import_file(name: str, path: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _in_one_line(error: BaseException) -> str:
    """The error, and the place in which it was raised."""
    return f"{type(error).__name__}: {error}" + ("" if isinstance(error, SyntaxError) else place_of(error))
