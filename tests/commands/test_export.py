"""`azjax export`."""

import pytest

from azjax.commands.export import export_command
from azjax.core.errors import InputError


def test_the_file_has_the_name_of_the_player_and_lies_here(capsys, tmp_path, monkeypatch):
    pytest.importorskip("flatbuffers")
    monkeypatch.chdir(tmp_path)
    export_command(["tictactoe", "--format", "stablehlo"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tictactoe.json", "tictactoe.stablehlo"]
    assert capsys.readouterr().out == "tictactoe.stablehlo, described in tictactoe.json\n"


def test_what_is_no_agent_and_an_unknown_format_are_refused():
    with pytest.raises(InputError, match="'random' is no trained agent, such as a run folder, RUN@best, or one of"):
        export_command(["random", "--format", "onnx"])
    with pytest.raises(InputError, match="unknown format 'pb'; available: safetensors, onnx, stablehlo"):
        export_command(["tictactoe", "--format", "pb"])
    with pytest.raises(InputError, match="/nowhere/x cannot be written: there is no folder /nowhere"):
        export_command(["tictactoe", "--format", "onnx", "--output", "/nowhere/x"])
