"""Old names work and warn where they are used; none outlives its version."""

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
import types
import warnings

import pytest

import azjax
from azjax.core.deprecation import ANNOUNCED
from azjax.errors import errors_in_one_line


@pytest.fixture
def module():
    """The module as users import it: the type checks of the tests would stand between it and its callers."""
    spec = importlib.util.spec_from_file_location("deprecation", importlib.util.find_spec(NAME).origin)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


NAME = "azjax.core.deprecation"


def outlived(announced, version):
    """The deprecations that a version should not contain any more."""
    major, minor = map(int, version.split(".")[:2])
    return [message for message, since in announced.items() if tuple(map(int, since.split(".")[:2])) < (major, minor)]


def warned_once(call):
    """The message and the file of the only warning of a call."""
    with pytest.warns(FutureWarning) as caught:
        call()
    (warning,) = caught
    return str(warning.message), warning.filename


def test_a_deprecated_function_works_and_warns_where_it_is_called(module):
    @module.deprecated("azjax.draw", since="0.3", use="azjax.show")
    def draw(game):
        return f"drawn: {game}"

    results = []
    message, file = warned_once(lambda: results.append(draw("brandub")))
    assert results == ["drawn: brandub"]
    assert message == "azjax.draw is deprecated and will be removed in azjax 0.4: use azjax.show"
    assert file == __file__


def test_a_deprecated_class_is_made_and_warns_where_it_is_called(module):
    @module.deprecated("azjax.Old", since="0.3.1", use="azjax.New")
    class Old:
        def __init__(self, value):
            self.value = value

    made = []
    message, file = warned_once(lambda: made.append(Old(3)))
    assert (made[0].value, isinstance(made[0], Old)) == (3, True)
    assert message == "azjax.Old is deprecated and will be removed in azjax 0.4: use azjax.New"
    assert file == __file__


def test_an_argument_is_taken_by_its_old_name(module):
    @module.renamed_keyword("average_decay", "ema_decay", since="0.9")
    def train(*, ema_decay=0.0):
        return ema_decay

    results = []
    message, file = warned_once(lambda: results.append(train(average_decay=0.5)))
    assert results == [0.5]
    assert message == (
        "the argument average_decay of train is deprecated and will be removed in azjax 0.10: use ema_decay"
    )
    assert file == __file__
    assert train(ema_decay=0.25) == 0.25  # without a warning, which would be an error
    with pytest.raises(TypeError, match="train got ema_decay and also its old name average_decay"):
        train(ema_decay=0.5, average_decay=0.5)


def test_an_attribute_of_a_module_is_found_by_its_old_name(module, monkeypatch):
    room = types.ModuleType("old_room")
    room.new_name = 7
    room.__getattr__ = module.renamed_attributes("old_room", {"old_name": "new_name"}, since="0.3")
    monkeypatch.setitem(sys.modules, "old_room", room)
    message, file = warned_once(lambda: room.old_name)
    assert message == "old_room.old_name is deprecated and will be removed in azjax 0.4: use old_room.new_name"
    assert file == __file__
    with pytest.warns(FutureWarning, match=r"old_room\.old_name") as caught:
        from old_room import old_name
    assert (old_name, {warning.filename for warning in caught}) == (7, {__file__})
    with pytest.raises(AttributeError, match="module 'old_room' has no attribute 'other_name'"):
        _ = room.other_name


def test_a_command_prints_the_warning_in_one_line(module, capsys):
    @module.deprecated("azjax.draw", since="0.3", use="azjax.show")
    def draw():
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("default", FutureWarning)  # as outside of tests
        with errors_in_one_line():
            for _ in range(3):
                draw()
    assert capsys.readouterr().err == (
        "azjax: azjax.draw is deprecated and will be removed in azjax 0.4: use azjax.show\n"
    )


def test_an_old_name_outlives_its_version_in_the_next(module):
    module.deprecated("azjax.draw", since="0.3", use="azjax.show")
    assert [bool(outlived(module.ANNOUNCED, version)) for version in ("0.2.0", "0.3.0", "0.3.9", "0.4.0", "1.0.0")] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_no_deprecation_of_the_package_outlives_its_version():
    for found in pkgutil.walk_packages(azjax.__path__, "azjax."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ModuleNotFoundError):  # an extra that is not installed
                importlib.import_module(found.name)
    assert outlived(ANNOUNCED, azjax.__version__) == []
