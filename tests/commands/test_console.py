"""How far a command is, where there is no terminal."""

import time

from azjax.commands import console
from azjax.commands.solve import _shown


def test_a_part_of_the_work_has_its_own_time_left(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    with _shown("solving") as progress:
        now = 60.0
        progress("finding positions", 500, None)
        progress("finding values", 0, 2000)
        now = 90.0
        progress("finding values", 500, 2000)
    assert capsys.readouterr().out.splitlines()[-1] == "finding values: 500 of 2,000 positions, 30 s, 90 s left"
