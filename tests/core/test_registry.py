"""Names are taken once, and installed packages may offer entries."""

import importlib.metadata

import pytest

from azjax.core.errors import InputError
from azjax.core.registry import Registry


def first():
    return 1


def second():
    return 2


class Distribution(importlib.metadata.Distribution):
    """An installed package with entry points."""

    def __init__(self, entry_points):
        self._entry_points = entry_points

    def read_text(self, filename):
        return {"entry_points.txt": self._entry_points, "METADATA": "Name: other-games\nVersion: 1\n"}.get(filename)

    def locate_file(self, path):
        raise NotImplementedError


@pytest.fixture
def offers(monkeypatch):
    """Installs a package with entry points of the group `azjax.tests`."""

    def install(lines):
        distribution = Distribution(f"[azjax.tests]\n{lines}\n")
        monkeypatch.setattr(importlib.metadata, "distributions", lambda **_: [distribution])

    return install


def test_a_name_that_is_taken_is_refused_and_the_same_definition_is_not():
    registry = Registry("game", "azjax.tests")
    assert registry.register("one")(first) is first
    registry.register("one")(first)
    with pytest.raises(InputError, match=r"the name 'one' is taken by the game of .*test_registry"):
        registry.register("one")(second)
    assert registry.find("one") is first
    assert registry.names() == ["one"]


@pytest.mark.parametrize("name", ["", "-v", "a/b", "two words", "game:400", "..", "new\n"])
def test_a_name_that_no_folder_and_no_player_could_have_is_refused(name):
    registry = Registry("game", "azjax.tests")
    with pytest.raises(InputError, match=r"a game cannot be named '.*'; allowed: letters, digits, '_', '-' and '\.'"):
        registry.register(name)
    assert registry.names() == []


def test_a_decorator_without_a_name_is_refused():
    message = r'a network is registered under a name, as in @register\("mine"\); got <function first'
    with pytest.raises(InputError, match=message):
        Registry("network", "azjax.tests").register(first)


def test_an_unknown_name_gets_the_close_one_and_all_others():
    registry = Registry("rule of selection", "azjax.tests")
    registry.register("puct")(first)
    registry.register("ucb1")(second)
    assert registry.find("puct2") is None
    error = registry.unknown("puct2", registry.names())
    assert str(error) == "unknown rule of selection 'puct2' (did you mean puct?); available: puct, ucb1"


def test_an_entry_point_is_imported_when_its_name_is_asked_for(offers):
    offers("root = math:sqrt\nmissing = no_such_module:thing")
    registry = Registry("game", "azjax.tests")
    assert registry.names() == ["missing", "root"]
    assert registry.find("root")(9) == 3
    with pytest.raises(InputError, match=r"the game 'missing' of the package other-games cannot be imported: Module"):
        registry.find("missing")
    with pytest.raises(InputError, match="the name 'missing' is taken by the game of an installed package"):
        registry.register("missing")(first)


def test_a_module_may_register_what_its_package_offers(offers):
    offers(f"one = {__name__}:first")
    registry = Registry("game", "azjax.tests")
    registry.register("one")(first)
    assert registry.find("one") is first


def test_a_package_that_is_installed_later_is_found(offers):
    registry = Registry("game", "azjax.tests")
    assert registry.find("first") is None
    offers(f"first = {__name__}:first")
    assert registry.find("first") is not None
