"""The code of the pages of docs/ runs as printed, and the site is complete."""

import dataclasses
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from mkdocs.config import load_config
from studies import load_hooks, load_study, page, result_of

import azjax
from azjax import networks
from azjax.evaluation import solve
from azjax.games import registry
from azjax.games.protocols import legal_texts
from azjax.packaged import packaged
from azjax.play.exhibition import FILES
from azjax.runs import load_run
from azjax.runs.metrics import METRICS, read_rows
from azjax.search import rules
from azjax.training import Config, init, make_iteration

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def code(name, block=0):
    """A block of Python of a page, the first by default."""
    return re.findall(r"^```python\n(.*?)^```", page(name), re.M | re.S)[block]


@pytest.fixture
def example(monkeypatch):
    """The names of the example of a game, which is registered for one test."""
    azjax.available()
    monkeypatch.setattr(registry.GAMES, "_entries", dict(registry.GAMES._entries))
    names = {"__name__": "nim_example"}
    exec(compile(code("adding_a_game"), "adding_a_game.md", "exec"), names)
    return names


@pytest.fixture
def nim(example):
    return example["Nim"](heap=13)


def test_the_example_game_keeps_every_law(example, capsys):
    assert azjax.make("nim", heap=13) == example["Nim"](13)
    exec(compile(code("adding_a_game", 1), "adding_a_game.md", "exec"), {})
    summary, *lacks = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"nim keeps every law \(\d+ positions of 32 random games, up to \d+ plies and 3 .*\)", summary)
    assert "\n".join(lacks) in page("adding_a_game")


def test_what_the_check_says_of_a_wrong_example_is_printed(example):
    class StonesBecomeNumbers(example["Nim"]):
        def step(self, state, action):
            following = super().step(state, action)
            return dataclasses.replace(following, stones=following.stones.astype(np.float32))

    class Nim(example["Nim"]):
        def step(self, state, action):
            return self - 1

    line = code("adding_a_game").partition("def step(")[0].count("\n") + 2  # the first one of `step`
    for wrong in (StonesBecomeNumbers(), Nim()):
        with pytest.raises(AssertionError) as found:
            azjax.games.check_game(wrong)
        told = re.sub(r"\(test_docs\.py, line \d+\)$", f"(nim.py, line {line})", str(found.value))
        assert f"\n{told}\n" in page("adding_a_game")


def test_the_example_game_with_a_notation_keeps_every_law(example):
    exec(compile(code("adding_a_game", 2), "adding_a_game.md", "exec"), example)
    game = example["WrittenNim"](13)
    assert isinstance(game, azjax.games.TextGame)
    azjax.games.check_game(game)
    assert legal_texts(game, game.from_text("2 1")) == ["take 1", "take 2"]
    with pytest.raises(ValueError, match=r"nim: a position is 0\.\.13 stones and player 0 or 1, .*; got '14 0'"):
        game.from_text("14 0")


def test_the_example_game_is_lost_at_multiples_of_four(nim):
    """Who leaves a multiple of four answers every move with its complement to four."""
    solution = solve(nim)
    running = ~solution.terminated
    lost = solution.states.stones[running] % 4 == 0
    np.testing.assert_array_equal(solution.values[running], np.where(lost, -1, 1))


def test_the_example_game_can_be_trained(nim):
    config = Config(
        network="mlp",
        width=8,
        depth=1,
        num_simulations=4,
        num_games=8,
        steps_per_iteration=13,  # a whole game
        replay_size=256,
        batch_size=8,
        updates_per_iteration=1,
    )
    state = jax.jit(lambda: init(nim, config, 0, config.hyper))()
    state, metrics = jax.jit(make_iteration(nim, config))(state, config.hyper)
    assert float(metrics["games"]) >= 8
    assert np.isfinite(float(metrics["loss"]))


@pytest.mark.slow_except("adding_a_loss_term-policy_entropy")
@pytest.mark.parametrize(
    ("name", "metric"), [("adding_a_network", "draw_loss"), ("adding_a_loss_term", "policy_entropy")]
)
def test_the_example_of_a_network_and_that_of_a_loss_term_train(name, metric, tmp_path, monkeypatch):
    monkeypatch.setattr(networks.NETWORKS, "_entries", dict(networks.NETWORKS._entries))
    names = {"__name__": "example"}
    exec(compile(code(name), f"{name}.md", "exec"), names)
    short = {"iterations": 1, "width": 8, "depth": 1, "num_simulations": 2, "num_games": 8, "steps_per_iteration": 9}
    short |= {"replay_size": 144, "batch_size": 8, "updates_per_iteration": 2, "evaluate_every": 0, "decay_updates": 0}
    monkeypatch.setattr(azjax, "preset", lambda game: Config(network="mlp").replace(**short))
    names["main"](tmp_path / "run")
    (row,) = read_rows(tmp_path / "run" / METRICS)
    assert np.isfinite(row[metric])
    assert load_run(tmp_path / "run")[1].network == ("draw_mlp" if "network" in name else "mlp")


@pytest.mark.slow
def test_the_example_of_a_rule_trains_and_plays(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rules.RULES, "_entries", dict(rules.RULES._entries))
    names = {"__name__": "reduced_urgency"}
    exec(compile(code("adding_a_selection_rule"), "adding_a_selection_rule.md", "exec"), names)
    short = {"iterations": 1, "width": 8, "depth": 1, "num_simulations": 4, "num_games": 8, "steps_per_iteration": 9}
    short |= {"replay_size": 144, "batch_size": 8, "updates_per_iteration": 2}
    monkeypatch.setattr(azjax, "preset", lambda game: Config(network="mlp").replace(**short))
    names["main"](str(tmp_path / "run"))
    assert load_run(tmp_path / "run")[1].selection == "reduced_urgency"
    assert re.search(r"network \+ 100 simulations plays square [0-8], value -?0\.\d\d\n", capsys.readouterr().out)


@pytest.mark.slow
def test_a_policy_object_searches_and_goes_on_as_printed():
    names = {"__name__": "policy_example"}
    exec(compile(code("search"), "search.md", "exec"), names)
    assert (names["result"].visits.sum(axis=1) >= 100).all()
    assert (names["result"].tree.visits[0] > 101).any()
    exec(compile(code("search", 1), "search.md", "exec"), names)
    assert (names["result"].visits[:, 3] > 0).all()


def test_the_example_of_mctx_has_the_output_of_mctx_with_the_import_of_mctx(capsys):
    printed = []
    ours = code("coming_from_mctx")
    for program in (ours, ours.replace("from azjax.search import mctx", "import mctx")):
        exec(compile(program, "coming_from_mctx.md", "exec"), {"__name__": "mctx_example"})
        printed.append(capsys.readouterr().out)
    assert "[" in printed[0]
    assert printed[0] == printed[1]


def test_the_tree_is_seen_as_printed(capsys):
    exec(compile(code("search", 2), "search.md", "exec"), {"__name__": "search_example"})
    assert "X___O____" in capsys.readouterr().out


def test_the_example_study_runs_as_printed(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(load_study("study"), "RESULTS", tmp_path)
    names = {"__name__": "is_it_a_draw"}
    exec(compile(code("adding_an_experiment"), "adding_an_experiment.md", "exec"), names)
    names["main"]()
    assert capsys.readouterr().out == "a draw\n"
    assert json.loads((tmp_path / "is_it_a_draw.json").read_text())["value"] == 0


def test_the_weights_give_the_same_values_in_jax_numpy_and_onnxruntime(capsys, tmp_path, monkeypatch):
    for package in ("safetensors", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "weights_example"}
    for block in range(5):
        exec(compile(code("using_the_weights", block), "using_the_weights.md", "exec"), names)
    in_jax, in_numpy, in_onnxruntime = names["output"].value, names["value"], names["outputs"]["value"]
    np.testing.assert_allclose(in_numpy, in_jax, atol=1e-5)
    np.testing.assert_allclose(in_onnxruntime, in_jax, atol=1e-5)
    assert capsys.readouterr().out.count("values after each first move:") == 3


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_tutorial_has_all_cells_of_its_notebook(notebook):
    tutorial = (DOCS / "tutorials" / f"{notebook.stem}.md").read_text()
    cells = ["".join(cell["source"]).strip() for cell in json.loads(notebook.read_text())["cells"]]
    assert cells
    assert [cell for cell in cells if cell not in tutorial] == []


def test_every_table_is_in_a_page():
    pages = "\n".join(path.read_text() for path in [ROOT / "README.md", *DOCS.glob("*.md")])
    asked = re.findall(r"^<!-- \[\[\[cog print\((\w+\.\w+)\(\)\) \]\]\] -->\n[^\n]", pages, re.M)
    modules = ("tables_of_results", "tables_of_solved", "tables_of_speed")
    made = [
        f"{name}.{each}"
        for name in modules
        for each in re.findall(r"^def (\w+)\(\)", (DOCS / f"{name}.py").read_text(), re.M)
    ]
    assert set(asked) == set(made)


def test_tables_show_what_was_measured():
    filled = page("benchmarks")
    for row in result_of("search")["rows"]:
        assert f"| {row['ratio']:,.1f} |" in filled
    for row in result_of("self_play_speed")["rows"]:
        assert all(f"| {ratio:.2f} |" in filled for ratio in row["ratio"].values())
    rates = {row["devices"]: row["positions_per_second"] for row in result_of("self_play_speed")["rows"][:2]}
    with_flax = "pgx + mctx, convolutions of Flax"
    assert f"{rates[2]['azjax'] / rates[1][with_flax]:.1f} times as many positions" in filled.replace("\n", " ")
    for row in result_of("games")["rows"]:
        assert f" {row['steps_per_second']['azjax']:,} |" in filled
    networks = result_of("network_speed")
    assert all(f"| {row['evaluations_per_second']:,} |" in filled for row in networks["rows"])
    single, half = (f"{networks['matrix_gflops'][precision]:.0f}" for precision in ("float32", "bfloat16"))
    assert f"{single} GFLOP/s in float32 and {half} in bfloat16" in filled
    playing = page("playing")
    for row in result_of("exhibition")["rows"]:
        assert f"| {row['agent']} | {row['bytes'] / 1e6:.1f} MB | {row['milliseconds']:.2f} ms |" in playing
    cards = page("agents")
    assert all(f"### {name}" in cards for name in packaged())


@pytest.mark.slow
def test_every_metric_of_an_iteration_is_explained():
    game = azjax.make("connect2")
    config = azjax.preset(game).replace(gate_games=2)
    state = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    _, metrics = jax.eval_shape(make_iteration(game, config), state, config.hyper)
    section = page("learning.md").partition("## The metrics of a run")[2]
    assert {"loss", "games", "gate_score"} <= metrics.keys()
    assert [name for name in metrics if f"`{name}`" not in section] == []


def test_the_site_has_an_agent_to_play(tmp_path):
    load_hooks().on_post_build({"site_dir": str(tmp_path)})
    assert 'src="exhibition/index.html"' in page("exhibition")
    assert {path.name for path in (tmp_path / "exhibition").iterdir()} == set(FILES)


def test_formulas_become_mathml():
    marked = r'<p>so <span class="arithmatex">\(a &lt; \frac{1}{2}\)</span></p>'
    shown = load_hooks().on_page_content(marked)
    assert re.search(r"<math[^>]*>.*<mfrac>.*</math></p>$", shown)
    assert "arithmatex" not in shown


def test_the_messages_that_the_page_on_troubles_explains_are_those_of_the_source():
    source = "".join(path.read_text() for kind in ("*.py", "*.js") for path in (ROOT / "azjax").rglob(kind))
    source = re.sub(r'"\s*f?"', "", source)  # of texts that go on in the next line
    rows = re.findall(r"^\| `([^`]+)`[^|]*\|", page("troubleshooting"), re.M)
    messages = [row for row in rows if row != "azjax: command not found"]  # a shell's
    assert len(messages) > 12
    for message in messages:
        for part in filter(None, map(str.strip, message.split("..."))):
            assert part in source, message


def test_links_between_pages_and_to_pictures_lead_somewhere():
    for path in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / link).exists(), (path.name, link)


def test_a_line_that_begins_with_a_number_and_a_point_is_an_item_of_a_list():
    """Markdown makes one also of the end of a sentence, such as `96. Then`, and the number is lost."""
    for path in PAGES:
        before, item = "", 0
        for line in path.read_text().splitlines():
            if found := re.match(r" *(\d+)[.)] ", line):
                number = int(found[1])
                assert number == item + 1 or (number == 1 and not before.strip()), f"{path.name}: {line}"
                item = number
            before = line


def test_each_row_of_a_table_has_a_line():
    wrapped = [f"{path.name}: {line}" for path in PAGES for line in path.read_text().splitlines() if "| | ---" in line]
    assert wrapped == []


def test_the_site_has_the_examples_and_not_the_code_that_makes_it():
    left_out = load_config(str(ROOT / "mkdocs.yml")).exclude_docs
    scripts = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.py")}
    shown = {script for script in scripts if not left_out.match_file(script)}
    assert shown == {script for script in scripts if script.startswith("examples/")}
