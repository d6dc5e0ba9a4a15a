"""`azjax agents`."""

import shutil

import pytest

from azjax.commands.agents import agents_command
from azjax.core.errors import InputError
from azjax.packaged import archive, packaged


def test_every_agent_is_listed_with_its_game_and_strength(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "azjax" / "agents" / "friend"
    folder.mkdir(parents=True)
    for ending in ("npz", "md"):
        shutil.copy(archive.FOLDER / f"santorini_2x2.{ending}", folder / f"friend.{ending}")
    agents_command([])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert {*packaged(), "friend"} <= lines.keys()
    assert "tictactoe" in lines["tictactoe"].split()[1]
    assert "No mistake on any" in lines["tictactoe"]  # the table may break the line
    assert "the cache" in lines["friend"]


def test_an_unknown_word_is_refused():
    with pytest.raises(InputError, match="azjax agents steal: unknown; available: fetch"):
        agents_command(["steal"])
    with pytest.raises(InputError, match="azjax agents fetch needs a SOURCE"):
        agents_command(["fetch"])
