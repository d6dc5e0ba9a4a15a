"""Ctrl-C ends the page's server while a search is answered."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

pytestmark = pytest.mark.slow


def test_ctrl_c_while_a_search_is_answered_shows_no_traceback():
    command = [sys.executable, "-m", "azjax", "play", "tictactoe", "--web", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        address = server.stdout.readline().split()[0]
        question = json.dumps({"start": None, "actions": [], "level": "search", "simulations": 4096})
        request = urllib.request.Request(f"{address}/think", question.encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.readline()  # the first line: the answer goes on
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=120)
    assert (server.returncode, errors) == (0, "")
