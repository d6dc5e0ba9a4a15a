"""Which worker tries which point: never two at once, and a point whose worker was killed is tried once more."""

import concurrent.futures
import dataclasses
import math
import os
import types

import optuna
import pytest
from small_sweep import write_sweep

from azjax.core.errors import FileError, InputError
from azjax.sweep import JOURNAL, LeaseExpired, Trials, connect, load_study
from azjax.sweep.samplers import is_halved


@pytest.fixture(params=["journal", "database"])
def make_trials(request, tmp_path):
    """`make_trials(*changes, **options)`: the trials for one more worker.

    The database is at the address AZJAX_TEST_DATABASE; SQLite, which a single process may use, if there is none.
    """
    address = os.environ.get("AZJAX_TEST_DATABASE", f"sqlite:///{tmp_path}/study.db")
    if request.param == "database":
        for name in optuna.get_all_study_names(address):
            optuna.delete_study(study_name=name, storage=address)

    def make(*changes, **options):
        study = load_study(write_sweep(tmp_path, *changes))
        is_journal = request.param == "journal"
        return Trials(
            study, connect(tmp_path / JOURNAL) if is_journal else optuna.storages.get_storage(address), **options
        )

    return make


def states(trials):
    return [(point.number, point.state) for point in trials.points()]


def expire(trials):
    """Lets the leases that this worker knows expire, as if it had waited."""
    trials._leases = {number: (lease, since - 1e6) for number, (lease, since) in trials._leases.items()}


def test_two_workers_share_the_points_and_never_get_the_same(make_trials):
    one, two = make_trials(), make_trials()
    claimed = [worker.claim() for worker in (one, two, one)]
    assert [attempt.number for attempt in claimed] == [0, 1, 2]
    assert one.claim() is two.claim() is None
    assert not one.is_over()
    for worker, attempt in zip((one, two, one), claimed, strict=True):
        worker.report(attempt, [3.0, 1.0])
        worker.report(attempt, [2.0, float(attempt.number)])
        worker.finish(attempt)
    assert one.is_over()
    assert two.is_over()
    points = two.points()
    assert [point.state for point in points] == ["complete"] * 3
    assert points[2].values == [[3.0, 1.0], [2.0, 2.0]]
    assert two.optuna_study.best_value == 1.0  # the mean of 2 and 0


def test_a_point_that_cannot_be_trained_fails_once_with_its_reason(make_trials):
    trials = make_trials()
    trials.fail(trials.claim(), "too wide")
    (point,) = trials.points()
    assert (point.state, point.reason) == ("failed", "too wide")
    assert trials.claim().number == 1


def test_a_released_point_continues_however_often_it_is_released(make_trials):
    trials = make_trials()
    first = trials.claim()
    trials.report(first, [1.0, 2.0])
    for _ in range(4):
        trials.release(first)
        assert states(trials) == [(0, "waiting")]
        again = trials.claim()
        assert (again.number, again.params, again.values) == (0, first.params, [[1.0, 2.0]])
        first = again
    assert states(trials) == [(0, "running")]


def test_the_point_of_a_killed_worker_is_tried_once_more_from_its_last_rung(make_trials):
    killed, other = make_trials(), make_trials()
    attempt = killed.claim()
    killed.report(attempt, [1.0, 2.0])
    assert [other.claim().number for _ in range(2)] == [1, 2]  # which looks at the lease for the first time
    expire(other)
    again = other.claim()
    assert (again.number, again.params, again.values) == (0, attempt.params, [[1.0, 2.0]])
    # If the first worker lives after all, it learns that its lease has expired.
    for write in (lambda: killed.report(attempt, [0.0, 0.0]), lambda: killed.finish(attempt)):
        with pytest.raises(LeaseExpired):
            write()
    other.report(again, [0.0, 4.0])
    other.finish(again)
    point = make_trials().points()[0]
    assert (point.state, point.values) == ("complete", [[1.0, 2.0], [0.0, 4.0]])


def test_a_point_whose_workers_are_killed_twice_fails(make_trials):
    trials = make_trials(("trials = 3", "trials = 1"))
    for state in ("running", "running", "failed"):
        attempt = trials.claim()
        if attempt is None:
            expire(trials)
            attempt = trials.claim()
        assert states(trials) == [(0, state)]
    assert attempt is None
    assert trials.is_over()
    assert trials.points()[0].reason == "its worker was killed 2 times"


def test_a_renewed_lease_does_not_expire(make_trials):
    alive, other = make_trials(lease=0.03), make_trials(("trials = 3", "trials = 1\n"), lease=60.0)
    attempt = alive.claim()
    with alive.keep_lease(attempt):
        assert other.claim() is None
        while not other.optuna_study.get_trials()[0].user_attrs.get("lease"):
            pass
        expire(other)
        assert other.claim() is None
    assert states(other) == [(0, "running")]


def test_workers_that_claim_at_the_same_time_take_each_point_once(make_trials):
    workers = [make_trials(("trials = 3", "trials = 12")) for _ in range(4)]

    def claim_all(trials):
        claimed = []
        while not trials.is_over():
            attempt = trials.claim()
            if attempt is not None:
                claimed.append(attempt.number)
                trials.fail(attempt, "only a test")
        return claimed

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        claimed = [number for numbers in pool.map(claim_all, workers) for number in numbers]
    assert sorted(claimed) == [point.number for point in workers[0].points()]
    assert len(claimed) == 12


def test_a_surplus_point_does_not_count(make_trials):
    one, two = make_trials(("trials = 3", "trials = 1")), make_trials(("trials = 3", "trials = 1\n"))
    before = two._latest()  # nothing yet
    attempt = one.claim()
    two._latest = lambda: before
    assert two.claim() is None
    del two._latest
    assert states(two) == [(0, "running")]
    one.fail(attempt, "only a test")
    assert two.is_over()


def test_a_poor_point_is_pruned_by_the_values_of_others_at_the_same_rung(make_trials):
    trials = make_trials(("trials = 3", 'trials = 9\npruner = "median"'))
    for value in range(5):  # Optuna's median pruner needs five
        attempt = trials.claim()
        for _ in range(2):
            assert not trials.report(attempt, [float(value)] * 2)
        trials.finish(attempt)
    good, poor = trials.claim(), trials.claim()
    assert not trials.report(good, [1.0, 1.0])
    assert trials.report(poor, [3.0, 3.0])
    trials.finish(poor, pruned=True)
    assert states(trials)[-1] == (6, "pruned")


def test_successive_halving_lets_the_better_half_continue(make_trials):
    trials = make_trials(("trials = 3", 'trials = 9\npruner = "successive_halving"'))
    pruned = []
    for value in (4.0, 3.0, 2.0, 5.0, 6.0):
        pruned.append(trials.report(trials.claim(), [value, value]))
    assert pruned == [False, False, False, True, True]


def test_a_point_that_is_tried_again_keeps_its_values_at_earlier_rungs(make_trials):
    trials = make_trials(("trials = 3", 'trials = 9\npruner = "successive_halving"'))
    attempt = trials.claim()
    trials.report(attempt, [8.0, 8.0])
    trials.release(attempt)
    again = trials.claim()
    assert again.is_retry
    trials.report(again, [4.0, 4.0])
    assert trials.points()[0].values == [[8.0, 8.0], [4.0, 4.0]]


def test_successive_halving_counts_a_point_that_was_tried_again_once(make_trials):
    """Of the values 1, 5, 6, 7 and 4, in which 1 was released twice, 4 is one of the two best."""
    trials = make_trials(("trials = 3", 'trials = 9\npruner = "successive_halving"'))
    for value in (1.0, 5.0, 6.0, 7.0):
        attempt = trials.claim()
        trials.report(attempt, [value, value])
        if value == 1:
            for _ in range(2):
                trials.release(attempt)
                attempt = trials.claim()
        trials.finish(attempt)
    assert not trials.report(trials.claim(), [4.0, 4.0])


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1), ("maximize", -1)])
def test_the_better_half_is_that_of_the_objective_and_no_number_is_in_it(direction, sign):
    study = types.SimpleNamespace(objective=types.SimpleNamespace(direction=direction))
    values = [(sign * own, [sign * other for other in (1.0, 5.0, 6.0)]) for own in (4.0, 5.5)]
    assert [is_halved(study, own, others) for own, others in values] == [False, True]
    assert is_halved(study, math.nan, [1.0])
    assert not is_halved(study, 3.0, [])


def test_a_new_study_does_not_take_the_runs_of_another(make_trials, tmp_path):
    (tmp_path / "runs" / "trial_00000").mkdir(parents=True)
    with pytest.raises(InputError, match="has the runs of another study, which the storage does not know"):
        make_trials(folder=tmp_path / "runs")


def test_a_grid_is_complete_even_if_points_are_tried_again(make_trials):
    grid = "{choices = [0.1, 0.2]}\nwidth = {choices = [8, 16]}"
    trials = make_trials(("trials = 3", 'sampler = "grid"'), ("{low = 1e-4, high = 1e-1, log = true}", grid))
    points = []
    for turn in range(5):
        attempt = trials.claim()
        if turn == 1:
            trials.release(attempt)
            continue
        points.append((attempt.number, attempt.params["learning_rate"], attempt.params["width"]))
        trials.fail(attempt, "only a test")
    assert sorted(point[1:] for point in points) == [(0.1, 8), (0.1, 16), (0.2, 8), (0.2, 16)]
    assert trials.is_over()


def test_a_study_that_was_not_begun_takes_the_place_of_another(make_trials):
    make_trials()
    make_trials(("width = 16", "width = 8")).claim()
    with pytest.raises(ValueError, match=r"base.width = 8, requested 16; only trials"):
        make_trials()


def test_another_study_of_the_same_name_is_refused(make_trials):
    make_trials().claim()
    make_trials(("trials = 3", "trials = 8\n"), ("[budget]", "[slurm]\ntimeout_min = 5\n\n[budget]"))
    with pytest.raises(
        ValueError, match=r"base.width = 16, requested 8; budget.rungs = 2, requested 4; only trials and \[slurm\]"
    ):
        make_trials(("rungs = 2", ""), ("width = 16", "width = 8"))


def test_the_incomplete_row_of_a_full_disk_is_removed(tmp_path):
    study = load_study(write_sweep(tmp_path))
    first = Trials(study, connect(tmp_path / JOURNAL))
    first.claim()
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"op_code": 4, "work')
    second = Trials(study, connect(tmp_path / JOURNAL))
    assert [second.claim().number, first.claim().number] == [1, 2]
    assert states(Trials(study, connect(tmp_path / JOURNAL))) == [(number, "running") for number in range(3)]


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("sqlite:///study.db", "SQLite fails when several workers begin at once; give the path of a journal file"),
        ("nonsense://me:secret@host/study", "cannot connect to the nonsense storage: Can't load plugin"),
    ],
)
def test_a_storage_that_cannot_be_used_is_refused_in_one_line(address, line):
    with pytest.raises(ValueError, match=line) as refused:
        connect(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[" * 50,
        b'"\xff"',
        b"[1]",
        b"{}",
        b'{"op_code": 99}',
        b'{"op_code": 4}',
        b'{"op_code": 4, "study_id": 7}',
    ],
)
def test_a_damaged_row_of_a_journal_is_named_and_the_file_is_kept(tmp_path, line):
    path = tmp_path / JOURNAL
    optuna.create_study(storage=connect(path), study_name="mine").ask()
    rows = path.read_bytes().splitlines(keepends=True)
    written = b"".join([*rows[:-1], line + b"\n", rows[-1]])
    path.write_bytes(written)
    with pytest.raises(FileError, match=rf"journal\.log: row {len(rows)} is damaged \(.*\); head -n {len(rows) - 1} "):
        connect(path)
    assert path.read_bytes() == written
    path.write_bytes(b"".join(rows))
    assert len(optuna.load_study(storage=connect(path), study_name="mine").trials) == 1


def test_a_folder_as_a_storage_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"is a folder; a storage is a journal file or the address of a database$"):
        connect(tmp_path)


def test_looking_at_a_missing_journal_makes_no_study(tmp_path):
    with pytest.raises(FileError, match=r"there is no sweep yet: .*journal\.log is missing"):
        connect(tmp_path / "no" / JOURNAL, must_exist=True)
    assert not (tmp_path / "no").exists()


def test_looking_at_a_study_that_was_never_begun_makes_none(make_trials):
    trials = make_trials()
    other = dataclasses.replace(trials.study, name="another")
    with pytest.raises(InputError, match="there is no sweep another there yet"):
        Trials(other, trials._storage, must_exist=True)
    assert [study.study_name for study in trials._storage.get_all_studies()] == [trials.study.name]


def test_a_lock_that_cannot_be_released_is_told(tmp_path, monkeypatch):
    trials = Trials(load_study(write_sweep(tmp_path)), connect(tmp_path / JOURNAL))
    rename = os.rename

    def full(source, target):
        if str(source).endswith(".lock"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(FileError, match=r"journal\.log: its lock could not be released: No space left on device"):
        trials.claim()


def test_a_claim_that_fails_halfway_is_given_back(make_trials, monkeypatch):
    trials = make_trials()

    def fails(_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(trials, "_is_surplus", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        trials.claim()
    assert states(trials) == [(0, "waiting")]
    monkeypatch.undo()
    assert trials.claim().number == 0
