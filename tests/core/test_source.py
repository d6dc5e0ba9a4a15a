"""Code from outside is imported from a file or a module, and named by it."""

import hashlib
import sys

import pytest

from azjax.core import source
from azjax.core.errors import InputError
from azjax.core.source import changed_or_missing, import_code, loaded_class, source_name, sources
from azjax.games.mnk import Mnk


@pytest.fixture
def modules(monkeypatch):
    """`sys.modules`, `sys.path` and the list of imports as they were before the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(source, "imported", [])
    before = set(sys.modules)
    yield sys.modules
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path, text):
    path.write_text(text)
    return str(path)


def test_a_file_is_imported_once_and_finds_the_modules_beside_it(modules, tmp_path):
    write(tmp_path / "outside_helper.py", "NUMBER = 7\n")
    path = write(
        tmp_path / "outside_game.py", "from outside_helper import NUMBER\n\nclass Thing:\n    number = NUMBER\n"
    )
    import_code(path)
    thing = modules["outside_game"].Thing
    import_code(path)
    assert modules["outside_game"].Thing is thing
    assert thing.number == 7
    assert source.imported == [path]
    assert source_name(thing) == source_name(thing()) == "outside_game.py"
    digest = hashlib.sha256((tmp_path / "outside_game.py").read_bytes()).hexdigest()
    assert sources(thing, Mnk, import_code) == {"outside_game.py": digest[:16]}
    assert loaded_class("outside_game.py", "Thing") is thing
    assert loaded_class("outside_game.py", "Other") is None


def test_code_that_changed_and_code_that_is_not_loaded_are_told_apart(modules, tmp_path):
    path = write(tmp_path / "outside_game.py", "class Thing: pass\n")
    import_code(path)
    saved = sources(modules["outside_game"].Thing) | {"other_game.py": "0" * 16, "no.such.module": ""}
    assert changed_or_missing(saved) == ([], ["other_game.py", "no.such.module"])
    write(tmp_path / "outside_game.py", "class Thing: x = 1\n")
    assert changed_or_missing(saved)[0] == ["outside_game.py"]


def test_a_module_is_named_by_its_dotted_name():
    assert source_name(Mnk) == "azjax.games.mnk"
    assert loaded_class("azjax.games.mnk", "Mnk") is Mnk


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("import sys\n\nsys.exit(0)\n", "SystemExit: 0 (outside_bad.py, line 3)"),
        ("x = 1 +\n", "SyntaxError: invalid syntax"),
        ("import math\n\nx = missing\n", "NameError: name 'missing' is not defined (outside_bad.py, line 3)"),
        ("from azjax.core.errors import InputError\nraise InputError('the name is taken')\n", ": the name is taken"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_the_place(modules, tmp_path, text, message):
    path = tmp_path / "outside_bad.py"
    if text is not None:
        write(path, text)
    with pytest.raises(InputError) as refused:
        import_code(str(path))
    assert str(refused.value).startswith(f"--import {path}: ")
    assert message in str(refused.value)
    assert "outside_bad" not in modules


def test_a_file_with_the_name_of_another_module_is_refused(modules, tmp_path):
    path = write(tmp_path / "math.py", "")
    with pytest.raises(InputError, match=r"another module is called 'math'; give the file another name"):
        import_code(path)


def test_a_module_that_does_not_exist_is_refused(modules):
    with pytest.raises(InputError, match="--import no_such_package: there is no such module, and a file must end in"):
        import_code("no_such_package")
