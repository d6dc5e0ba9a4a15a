"""STUDY.toml: the study it describes, and what is refused in one line."""

from pathlib import Path

import pytest
from small_sweep import write_sweep

import azjax
from azjax.core.errors import FileError
from azjax.sweep import Budget, Choices, Elo, Mistakes, Range, Score, Trials, connect, load_study
from azjax.training import Config

EXAMPLE = Path(__file__).parents[2] / "experiments" / "sweeps" / "tictactoe.toml"


def test_the_committed_study_is_one_of_tictactoe_over_three_seeds():
    study = load_study(EXAMPLE)
    assert (study.name, study.game, study.seeds) == ("tictactoe", azjax.make("tictactoe"), 3)
    assert isinstance(study.objective, Mistakes)
    assert {"learning_rate", "c_puct", "dirichlet_fraction", "num_simulations", "width"} == study.search.keys()
    assert study.trials == 64
    assert f"```toml\n{EXAMPLE.read_text()}```" in (EXAMPLE.parents[2] / "docs" / "sweeping.md").read_text()


def test_a_point_changes_the_base_which_changes_the_preset(tmp_path):
    study = load_study(write_sweep(tmp_path))
    preset = azjax.preset("connect2")
    config = study.config({"learning_rate": 0.01})
    assert config.hyper.learning_rate == 0.01
    assert config.width == 16 != preset.width
    assert config.random_start_plies == preset.random_start_plies == 2
    # Only the objective is measured.
    assert (config.evaluate_every, config.ladder_every) == (0, 0)


def test_values_of_a_range_or_choices_have_the_type_of_the_setting(tmp_path):
    search = "width = {low = 8, high = 16}\nl2 = {low = 0, high = 1}\nnetwork = {choices = ['mlp', 'resnet']}\n"
    study = load_study(write_sweep(tmp_path, ("[search]\n", "[search]\n" + search)))
    assert study.search["width"] == Range(8, 16)
    assert isinstance(study.search["l2"].low, float)
    assert study.search["network"] == Choices(["mlp", "resnet"])


def test_the_options_of_the_game_are_those_of_make(tmp_path):
    options = ("[base]", "[options]\ncolumns = 4\nrows = 1\nin_a_row = 2\n[base]")
    study = load_study(write_sweep(tmp_path, ('game = "connect2"', 'game = "mnk"'), options))
    assert study.game == azjax.make("mnk", columns=4, rows=1, in_a_row=2)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ('kind = "score"\nopponent = "uct:10"\ngames = 4', Score("uct:10", games=4)),
        ('kind = "elo"\nopponents = ["random", "uct:10"]', Elo(("random", "uct:10"))),
        ('kind = "mistakes"\nnum_simulations = 8', Mistakes(8)),
    ],
)
def test_the_kind_names_the_objective(tmp_path, table, kind):
    assert load_study(write_sweep(tmp_path, ('kind = "mistakes"', table))).objective == kind


def test_a_budget_in_simulations_is_the_number_of_iterations_that_fit():
    config = Config(num_games=4, steps_per_iteration=4, num_simulations=4)
    budget = Budget(simulations=256, rungs=3)
    # An iteration has 64 simulations; the rungs end after 85, 170 and 256.
    assert [budget.iterations(config, rung) for rung in (1, 2, 3)] == [1, 2, 4]
    fast = config.replace(fast_simulations=2, full_search_fraction=0.5)
    assert budget.iterations(fast, 3) == 5  # of 48
    doubling = config.replace(first_simulations=1, doubling_iterations=2)
    # Two iterations of 16, two of 32, and then of 64.
    assert [budget.iterations(doubling, rung) for rung in (1, 2, 3)] == [3, 5, 6]
    reanalyzing = config.replace(reanalyzed_steps=1)
    assert budget.iterations(reanalyzing, 3) == 3  # of 64 + 16


def test_a_budget_in_examples_counts_the_positions_of_the_batches():
    config = Config(updates_per_iteration=2, batch_size=8)
    assert [Budget(examples=96, rungs=2).iterations(config, rung) for rung in (1, 2)] == [3, 6]


def test_the_description_holds_what_must_not_change_and_not_the_number_of_trials(tmp_path):
    one = load_study(write_sweep(tmp_path)).describe()
    assert load_study(write_sweep(tmp_path, ("trials = 3", "trials = 9\n"))).describe() == one
    assert load_study(write_sweep(tmp_path, ("width = 16", "width = 8"))).describe() != one
    # Settings that differ between points are not part of the base.
    assert {"seed", "iterations", "learning_rate"}.isdisjoint({*one["base"], *one["base"]["hyper"]})


def test_the_committed_journal_is_that_of_the_committed_study():
    study = load_study(EXAMPLE)
    journal = EXAMPLE.parents[1] / "results" / "sweep_tictactoe.journal"
    written = journal.read_bytes()
    points = Trials(study, connect(journal, must_exist=True)).points()
    assert len(points) == study.trials == 64
    assert {point.state for point in points} == {"complete", "pruned"}
    assert journal.read_bytes() == written


def test_a_grid_has_all_its_points_by_default(tmp_path):
    changes = (
        ("trials = 3", 'sampler = "grid"'),
        ("{low = 1e-4, high = 1e-1, log = true}", "{choices = [0.1, 0.2]}\nwidth = {choices = [8, 16, 32]}"),
    )
    assert load_study(write_sweep(tmp_path, *changes)).trials == 6


RANGE = "{low = 1e-4, high = 1e-1, log = true}"
KIND = 'kind = "mistakes"'


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "game",
            "gaming",
            "the file has no 'gaming'; allowed: game, search, objective, budget, options, base, slurm, ",
        ),
        ('game = "connect2"', "", "the file needs game"),
        ("connect2", "chess", "unknown game 'chess'; available: "),
        ('game = "connect2"', "game = 2", "game must be a text, got 2"),
        ("trials = 3", "trials =", "Invalid value (at line 2, column 9)"),
        ("trials = 3", "trials = true", "trials must be a whole number, got True"),
        ("trials = 3", "", "trials must be 1..1,000,000, got none"),
        ("seeds = 2", "seeds = 0", "seeds must be 1..65,536, got 0"),
        ("seeds = 2", 'sampler = "best"', "unknown sampler 'best'; available: tpe, random, grid"),
        ("seeds = 2", 'pruner = "best"', "unknown pruner 'best'; available: none, median, successive_halving"),
        ("seeds = 2", 'sampler = "grid"', "the sampler grid needs choices, and learning_rate is a range"),
        ("[base]", "[options]\nwings = 2\n[base]", "connect2 has no option 'wings'; its options: none"),
        (
            "width = 16",
            "wide = 16",
            "[base]: unknown setting 'wide' (did you mean width?); available: network, ",
        ),
        ("width = 16", 'width = "16"', "[base]: width must be a whole number, got '16'"),
        ("trials = 3", "trials = 0", "trials must be 1..1,000,000, got none or 0"),
        ("width = 16", "seed = 1", "[base]: seed is set by the sweep, see seeds"),
        ("width = 16", "iterations = 1", "[base]: iterations is set by the sweep, see [budget]"),
        ("batch_size = 8", "batch_size = 0", "[base]: batch_size must be at least 1, got 0"),
        ("replay_size = 64", "replay_size = 16", "replay_size must be at least num_games * (steps_per_iteration + 4) "),
        ("learning_rate =", "seed =", "[search] seed: seed is set by the sweep, see seeds"),
        ("learning_rate = " + RANGE, "", "[search] must name one setting or more"),
        (RANGE, "0.1", "[search] learning_rate: needs {choices = [...]} or {low = ..., high = ...}, got 0.1"),
        (RANGE, "{low = 1}", "[search] learning_rate: it needs high"),
        (RANGE, "{low = 1, high = 2, step = 1}", "[search] learning_rate: it has no 'step'; allowed: low, high, log"),
        (RANGE, "{low = 2, high = 1}", "low must be less than high, and both finite; got 2.0 and 1.0"),
        (RANGE, "{low = 0, high = 1, log = true}", "low must be above 0 with log = true, got 0.0"),
        (RANGE, '{low = "a", high = 1}', "[search] learning_rate: learning_rate must be a number, got 'a'"),
        (
            RANGE,
            "{low = -1, high = 1}",
            "[search] learning_rate = -1.0: learning_rate must be a finite number of at least 0",
        ),
        (RANGE, "{choices = [-2, -1]}", "learning_rate = -2.0: learning_rate must be a finite number of at least 0"),
        (RANGE, "{choices = [1]}", "choices must be two or more different values, got [1.0]"),
        (RANGE, "{choices = [[1], 2]}", "[search] learning_rate: learning_rate must be a number, got [1]"),
        (RANGE, RANGE + "\nrestart_fraction = {choices = [0.1, 0.2]}", "restart_fraction has no effect with the other"),
        (RANGE, RANGE + "\nnetwork = {low = 1, high = 2}", "[search] network: it is a text and needs choices"),
        (RANGE, RANGE + "\nnetwork = {choices = ['mlp', 'cnn']}", "[search] network = cnn: unknown network 'cnn'"),
        (RANGE, RANGE + "\nwidth = {low = 8, high = 16.5}", "[search] width: width must be a whole number, got 16.5"),
        (RANGE, RANGE + "\nstart_positions = {choices = [['a'], ['b']]}", "a list of texts cannot be searched"),
        (KIND, "", "[objective]: unknown kind None; available: mistakes, score, elo"),
        (KIND, 'kind = ["mistakes"]', "[objective]: unknown kind ['mistakes']; available: mistakes, score, elo"),
        (KIND, 'kind = "score"', "[objective]: score needs opponent"),
        (KIND, 'kind = "score"\nopponent = "you"', "[objective]: unknown player 'you'; available: random, optimal, "),
        (KIND, 'kind = "score"\nopponent = "tictactoe"', "[objective]: opponent tictactoe plays "),
        (KIND, 'kind = "score"\nopponent = "connect2:meduim"', "connect2:meduim: after the colon comes a number of"),
        (KIND, 'kind = "score"\nopponent = "random"\ngames = 3', "games must be even and at least 2, so that both"),
        (KIND, 'kind = "elo"\nopponents = []', "opponents must be one or more different PLAYERs, got []"),
        (KIND, 'kind = "elo"\nopponents = "random"', "[objective]: opponents must be a list of texts, got 'random'"),
        (KIND, KIND + "\nnum_simulations = -1", "[objective]: num_simulations must be at least 0, got -1"),
        (
            "simulations = 256",
            "examples = 0",
            "one of simulations and examples must be above 0, and the other left out",
        ),
        ("simulations = 256", "simulations = 9\nexamples = 9", "[budget]: one of simulations and examples must be"),
        ("simulations = 256", "simulations = 2.5e2", "[budget]: simulations must be a whole number, got 250.0"),
        ("rungs = 2", "rungs = 0", "[budget]: rungs must be at least 1, got 0"),
        ("rungs = 2", "rungs = 5", "simulations = 256 in 5 rungs are 51 a rung, and an iteration takes 64: 320 are "),
    ],
)
def test_a_wrong_key_or_value_is_refused_in_one_line(tmp_path, old, new, line):
    path = write_sweep(tmp_path)
    head, found, tail = path.read_text().partition(old)
    assert found
    path.write_text(head + new + tail)
    with pytest.raises(ValueError, match=r"\A.+\Z") as refused:
        load_study(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert line in str(refused.value)


def test_a_value_that_needs_another_setting_may_be_searched_beside_it(tmp_path):
    """`exploring_plies` is refused without `exploring_starts`, which the base does not have."""
    plies = RANGE + "\nexploring_plies = {choices = [2, 4]}"
    with pytest.raises(ValueError, match=r"\[search\] exploring_plies = 2: .* needs exploring_starts above 0"):
        load_study(write_sweep(tmp_path, (RANGE, plies)))
    study = load_study(write_sweep(tmp_path, (RANGE, plies + "\nexploring_starts = {low = 0.1, high = 0.5}")))
    assert study.config({"exploring_plies": 4, "exploring_starts": 0.5}).exploring_plies == 4


def test_a_gate_and_a_budget_in_examples_are_refused(tmp_path):
    changes = (("simulations = 256", "examples = 256"), ("width = 16", "width = 16\ngate_games = 8"))
    with pytest.raises(ValueError, match="a budget in examples needs gate_games = 0"):
        load_study(write_sweep(tmp_path, *changes))


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileError, match=r"none\.toml cannot be read: No such file or directory"):
        load_study(tmp_path / "none.toml")
