"""The desk of a researcher: the wheel in an environment of its own, and a folder elsewhere with a game and a network.

The steps follow each other as a user takes them, each with the run that the first one made.
"""

import json
import random
import re
import shutil
import site
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
from building import ROOT, build
from clicking import CHROMIUM, launch, play_to_the_end
from examples import EXAMPLES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs the repository"),
]

IMPORTS = ["--import", "hexapawn.py", "--import", "draw_network.py"]
TRAIN = ["train", "hexapawn", "--network=draw_mlp", "--width=32", "--num-simulations=4", "--num-games=16"]
TRAIN += ["--iterations=200", "--replay-size=2048", "--batch-size=32", "--updates-per-iteration=2", "--games=10"]
TRAIN += ["--checkpoint-every=20"]
RUN = Path("runs/hexapawn")
STUDY = """
game = "hexapawn"
trials = 4
seeds = 1
sampler = "random"

[base]
network = "draw_mlp"
width = 16
num_games = 16
replay_size = 2048

[search]
learning_rate = {low = 3e-4, high = 1e-2, log = true}

[objective]
kind = "elo"
opponents = ["random"]
games = 10

[budget]
simulations = 20_000
"""
COMPARE = """
import json, sys
import jax, numpy, onnxruntime
import azjax, hexapawn, draw_network

assert "site-packages" in azjax.__file__, azjax.__file__
game, config = azjax.runs.load_run("runs/hexapawn")
_, variables = azjax.runs.load_variables("runs/hexapawn")
network = config.make_network(game)
board = jax.random.randint(jax.random.key(0), (1000, game.rows, game.columns), 0, 3)
observations = numpy.stack([board == 1, board == 2], -1).astype(numpy.float32)
output, _ = network.apply(variables, observations, train=False)
session = onnxruntime.InferenceSession("hexapawn.onnx", providers=["CPUExecutionProvider"])
names = [each.name for each in session.get_outputs()]
given = dict(zip(names, session.run(None, {session.get_inputs()[0].name: observations})))
for ours, theirs in ((output.prior_logits, given["prior_logits"]), (output.value, given["value"])):
    numpy.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)
print("equal", float(numpy.abs(output.prior_logits).max()))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with the wheel. Its other packages are those of this environment."""
    folder = tmp_path_factory.mktemp("environment")
    wheel, _ = build(tmp_path_factory.mktemp("built"), 1_500_000_000, 0o644)
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    ).stdout.strip()
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel]
    subprocess.run(install, check=True, capture_output=True)
    # A path here does not take the files *.pth of that folder with it, so that azjax is found in the wheel alone.
    (Path(purelib) / "others.pth").write_text("\n".join(site.getsitepackages()))
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the user."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("hexapawn.py", "draw_network.py"):
        shutil.copy(EXAMPLES / name, folder)
    return folder


@pytest.fixture(scope="module")
def azjax(python, folder):
    """Runs a command of azjax in the folder; returns what it prints."""

    def run(*arguments):
        done = subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(*arguments):
        return [python.with_name("azjax"), *arguments, *IMPORTS]

    run.command = command
    return run


@pytest.fixture(scope="module")
def killed(folder, azjax):
    """A training that was killed (signal 9) after its first checkpoint; the rows of its metrics."""
    metrics = folder / RUN / "metrics.jsonl"
    with subprocess.Popen(azjax.command(*TRAIN), cwd=folder, stderr=subprocess.PIPE, text=True) as training:
        while not (metrics.exists() and len(metrics.read_bytes().splitlines()) > 30):
            assert training.poll() is None, training.stderr.read()
            time.sleep(0.05)
        training.kill()
    return metrics.read_text().splitlines()


@pytest.fixture(scope="module")
def run(folder, azjax, killed):
    """The run after it was resumed to its end, and what that printed."""
    return azjax(*TRAIN, "--resume")


def test_a_killed_run_goes_on(folder, killed, run):
    rows = [json.loads(line) for line in (folder / RUN / "metrics.jsonl").read_text().splitlines()]
    assert int(re.search(rf"resumed {RUN} at iteration (\d+)", run)[1]) >= 20
    assert [row["iteration"] for row in rows] == list(range(1, 201))
    assert rows[:20] == [json.loads(line) for line in killed[:20]]


@pytest.mark.usefixtures("run")
def test_it_is_evaluated(azjax):
    assert "hexapawn: strength" in azjax("evaluate", str(RUN), "--games=10")


@pytest.mark.usefixtures("run")
def test_it_plays_a_match(azjax):
    assert "random" in azjax("match", f"{RUN}:8", "random", "--games=10")


@pytest.mark.usefixtures("run")
def test_it_has_a_report(azjax, folder):
    azjax("report", str(RUN), "--games=10")
    assert "<svg" in next((folder / RUN).rglob("*.html")).read_text()


@pytest.mark.usefixtures("run")
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_it_is_played_by_clicking(azjax, folder):
    sync_api = pytest.importorskip("playwright.sync_api")
    command = azjax.command("play", str(RUN), "--web", "--port=0")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            with sync_api.sync_playwright() as playwright:
                browser = launch(playwright)
                page = browser.new_page(bypass_csp=True)  # waiting for a condition evaluates it
                page.set_default_timeout(60_000)
                page.goto(address)
                page.wait_for_function("shown !== null")
                assert play_to_the_end(page, random.Random(0)) >= 2
                assert page.inner_text("#status").endswith("won")
                browser.close()
        finally:
            server.terminate()


def test_it_is_swept_by_two_workers(azjax, folder):
    (folder / "study.toml").write_text(STUDY)
    assert "4/4 trials" in azjax("sweep", "study.toml", "--workers", "2")
    logs = [json.loads(line) for line in (folder / "sweeps/study/journal.log").read_text().splitlines()]
    assert len({log["worker_id"].rpartition("-")[0] for log in logs if "datetime_complete" in log}) == 2


@pytest.mark.usefixtures("run")
def test_onnxruntime_computes_the_same(azjax, folder, python):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package)
    azjax("export", str(RUN), "--format=onnx", "--output=hexapawn.onnx")
    done = subprocess.run([python, "-c", COMPARE], cwd=folder, capture_output=True, text=True)
    assert done.stdout.startswith("equal"), done.stderr
