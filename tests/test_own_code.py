"""A game and a network in files outside the package: every command takes them, and a run folder names them."""

import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest
from refusals import refused

import azjax
from azjax import networks
from azjax.cli import main
from azjax.core import source
from azjax.core.errors import RunError
from azjax.games import registry
from azjax.networks import Mlp
from azjax.runs.metrics import METRICS, read_rows
from azjax.search import rules
from azjax.training import Config

DOCS = Path(__file__).parents[1] / "docs"
SMALL = [
    "--iterations=2",
    "--width=8",
    "--depth=1",
    "--num-simulations=2",
    "--num-games=8",
    "--updates-per-iteration=1",
]
SMALL += ["--batch-size=8", "--replay-size=256", "--games=2", "--checkpoint-every=1"]
IMPORTS = ["--import", "nim.py", "--import=draw_network.py"]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder with the two files, in which nothing of them is imported yet; returns a function that forgets them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(source, "imported", [])
    azjax.available()
    registries = registry.GAMES, networks.NETWORKS, rules.RULES
    before = [dict(each._entries) for each in registries]
    game = re.findall(r"^```python\n(.*?)^```", (DOCS / "adding_a_game.md").read_text(), re.M | re.S)[0]
    Path("nim.py").write_text(game)
    Path("draw_network.py").write_text((DOCS / "examples" / "draw_network.py").read_text())

    def forget():
        for module in ("nim", "draw_network", "broken"):
            sys.modules.pop(module, None)
        for each, entries in zip(registries, before, strict=True):
            each._entries = dict(entries)

    forget()
    yield forget
    forget()


def ended(capsys, arguments):
    """The exit code and what was printed to standard error."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code, capsys.readouterr().err


@pytest.mark.slow
def test_a_run_with_own_code_trains_resumes_and_is_measured(elsewhere, capsys):
    main(["train", "nim", "--heap", "7", *IMPORTS, "--network", "draw_mlp", *SMALL])
    saved = json.loads(Path("runs/nim/config.json").read_text())
    assert saved["sources"].keys() == {"nim.py", "draw_network.py"}
    elsewhere()
    main(["train", "nim", "--heap=7", *IMPORTS, "--network=draw_mlp", *SMALL[1:], "--iterations=3", "--resume"])
    assert len(read_rows(Path("runs/nim") / METRICS)) == 3
    capsys.readouterr()
    main(["evaluate", "runs/nim", *IMPORTS, "--games=2"])
    assert "nim: strength" in capsys.readouterr().out


def test_without_the_import_one_line_says_what_is_missing(elsewhere, capsys):
    main(["train", "nim", "--heap", "7", *IMPORTS, "--network", "draw_mlp", *SMALL])
    elsewhere()
    capsys.readouterr()
    expected = "azjax: runs/nim was made with nim.py, draw_network.py: add --import nim.py --import draw_network.py, or"
    for command in (
        ["evaluate", "runs/nim"],
        ["match", "runs/nim", "random"],
    ):
        code, error = ended(capsys, command)
        assert code == 1
        assert error.startswith(expected)
        assert error.count("\n") == 1


@pytest.mark.slow
def test_a_file_that_changed_is_named_and_resuming_needs_consent(elsewhere, capsys):
    train = ["train", "nim", "--heap", "7", *IMPORTS, "--network", "draw_mlp", *SMALL[1:]]
    main([*train, "--iterations=2"])
    elsewhere()
    with Path("nim.py").open("a") as file:
        file.write("# a change\n")
    code, error = ended(capsys, [*train, "--iterations=3", "--resume"])
    assert code == 1
    assert re.search(r"runs/nim was made with nim\.py = \w{16}, requested \w{16}; nothing was changed; --accept", error)
    main(["evaluate", "runs/nim", *IMPORTS, "--games=2"])
    assert capsys.readouterr().err.count("azjax: nim.py has changed since runs/nim was made\n") == 1


def test_the_name_of_a_game_of_the_package_is_refused(elsewhere, capsys):
    Path("other.py").write_text("import azjax\n\n\n@azjax.register('tictactoe')\ndef other():\n    pass\n")
    code, error = ended(capsys, ["solve", "tictactoe", "--import", "other.py"])
    assert code == 2
    assert error == "azjax: --import other.py: the name 'tictactoe' is taken by the game of azjax.games.mnk\n"


@pytest.mark.slow
def test_a_run_finds_the_game_of_an_installed_package_again(elsewhere, capsys, monkeypatch):
    class Package(importlib.metadata.Distribution):
        def read_text(self, filename):
            texts = {"entry_points.txt": "[azjax.games]\nnim = nim:nim\n", "METADATA": "Name: nims\nVersion: 1\n"}
            return texts.get(filename)

        def locate_file(self, path):
            raise NotImplementedError

    monkeypatch.setattr(importlib.metadata, "distributions", lambda **_: [Package()])
    monkeypatch.syspath_prepend(".")
    Path("nim.py").write_text(Path("nim.py").read_text().replace('@register("nim")\n', ""))
    main(["train", "nim", "--heap", "7", "--network", "mlp", *SMALL])
    elsewhere()
    main(["evaluate", "runs/nim", "--games=2"])
    assert "nim: strength" in capsys.readouterr().out


def test_import_without_a_file_is_refused(elsewhere, capsys):
    for arguments in (["--import"], ["--import", "--games"]):
        code, error = ended(capsys, ["evaluate", "tictactoe", *arguments])
        assert code == 2
        assert error == "azjax: --import needs a file of Python or the name of a module\n"


@pytest.mark.slow
def test_a_network_that_is_an_object_trains_and_is_loaded(tmp_path):
    config = Config(
        network=Mlp(8, 1),
        iterations=1,
        num_simulations=2,
        num_games=8,
        updates_per_iteration=1,
        batch_size=8,
        replay_size=256,
    )
    azjax.train(azjax.make("connect2"), config, tmp_path / "run")
    assert azjax.runs.load_run(tmp_path / "run")[1] == config
    azjax.load_player(str(tmp_path / "run"))


@pytest.mark.slow
def test_a_run_whose_network_class_is_gone_is_refused(tmp_path):
    config = Config(network=Mlp(8, 1), iterations=1, num_games=8, batch_size=8, replay_size=256)
    azjax.train(azjax.make("connect2"), config, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text().replace('"Mlp"', '"Perceptron"'))
    with pytest.raises(RunError, match=r"azjax\.networks\.mlp has no network Perceptron"):
        azjax.runs.load_run(tmp_path / "run")


BROKEN = """
import dataclasses
import azjax
from azjax.games import Game
from azjax.games.mnk import Mnk

@dataclasses.dataclass(frozen=True)
class Half(Game):
    name = "half"

class Thawed(Mnk):
    __hash__ = None

azjax.register("half")(Half)
azjax.register("thawed")(lambda: Thawed(3, 3, 3))
azjax.register("row")(lambda n: None)
"""


@pytest.mark.parametrize("command", ["train", "solve", "evaluate random --game"])
@pytest.mark.parametrize(
    ("right", "wrong", "code", "line"),
    [
        ("taken = action + 1", "taken = action + 1 if action else 1", 1, "nim: step: raised TracerBoolConversionError"),
        ("return (self.heap + 1,)", "return (self.heap,)", 1, "nim: observe: it returned float32 [13] instead of "),
        (
            "max_legal_actions = 3",
            "max_legal_actions = 2",
            1,
            "nim: max_legal_actions: the start has 3 legal actions; ",
        ),
        ("return Nim(heap)", "return Nim(1 // 0)", 2, "nim: its function raised ZeroDivisionError: "),
    ],
)
def test_commands_tell_what_is_wrong_with_a_game_in_one_line(elsewhere, capsys, command, right, wrong, code, line):
    text = Path("nim.py").read_text()
    assert text.count(right) == 1
    Path("nim.py").write_text(text.replace(right, wrong))
    assert refused(capsys, [*command.split(), "nim", "--import", "nim.py"], code).startswith(line)


@pytest.mark.parametrize(
    ("game", "line"),
    [
        ("half", "half: Can't instantiate abstract class Half with abstract methods"),
        ("thawed", "thawed: a game must be hashable; make Thawed a frozen dataclass"),
        ("row", "row: its option n needs a type and a default, as `n: int = 3`"),
    ],
)
def test_a_game_that_is_not_whole_is_refused_in_one_line(elsewhere, capsys, game, line):
    Path("broken.py").write_text(BROKEN)
    assert line in refused(capsys, ["check", game, "--import", "broken.py"])
