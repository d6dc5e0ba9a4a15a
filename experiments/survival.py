"""Fault tolerance: the tests that repeat faults, more often than the slow suite does.

Each row is a fault, what must happen, and the tests that hold it. They run one after the other in processes of their
own, and a row is written as soon as it has ended.

    python experiments/survival.py --factor 10

runs them ten times as often as `make test-slow`, which takes hours; rows that are there already are kept, except those
of a smaller factor. `--only TEXT` chooses the rows whose fault contains the text. Writes
experiments/results/survival.json.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from study import RESULTS, ROOT, results_so_far, run_study, write_results

from azjax.core.errors import InputError


class Fault(NamedTuple):
    """A fault that tests repeat.

    Attributes:
      name: what happens.
      outcome: what must follow.
      tests: of pytest, in tests/.
    """

    name: str
    outcome: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "a run is killed (signal 9) at random moments, every second time while it changes a checkpoint",
        "it resumes to the same bit",
        ("slow/test_killed_runs.py",),
    ),
    Fault(
        "Ctrl-C, SIGTERM, a closed terminal",
        "it saves, exits with the code of the signal, and resumes to the same bit",
        (
            "slow/test_faults.py::test_a_signal_saves_at_once_and_the_run_continues_to_the_same_bit",
            "slow/test_faults.py::test_a_terminal_that_is_closed_saves_the_run",
        ),
    ),
    Fault(
        "one write of a run fails, or all from one on: disk full, input/output error, read-only",
        "one line that names the folder; it resumes to the same bit",
        ("slow/test_failing_writes.py::test_a_run_whose_writes_fail_ends_with_a_line_and_resumes_to_the_same_bit",),
    ),
    Fault(
        "a write of a sweep or of its runs fails, or all from one on",
        "one line that names the folder; the same command completes every trial",
        ("slow/test_failing_writes.py::test_a_sweep_whose_writes_fail_is_completed_later",),
    ),
    Fault(
        "a write of a solution, game record, pool, exported network, page or report fails, or all from one on",
        "one line that names the file; what was there stays",
        ("slow/test_failing_writes.py::test_outputs_whose_writes_fail_end_with_a_line_and_are_written_again",),
    ),
    Fault(
        "files of checkpoints are removed, cut, lengthened, exchanged, cleared, or a bit of them flips",
        "it resumes to the same bit from an earlier checkpoint, or says that there is none",
        (
            "runs/test_damaged_runs.py::test_a_thousand_damaged_checkpoints_change_no_bit_of_what_follows",
            "runs/test_checkpoint.py::test_a_lot_of_random_damage_is_never_taken_for_a_sound_state",
        ),
    ),
    Fault(
        "a small or full disk, a read-only one, too little memory, a second trainer",
        "one line; the last checkpoint can be read",
        (
            "slow/test_faults.py::test_a_full_disk_is_reported_in_one_line_and_the_run_continues_with_more_space",
            "slow/test_faults.py::test_a_disk_that_fills_despite_the_check_is_reported_in_one_line",
            "slow/test_faults.py::test_a_read_only_disk_is_reported_in_one_line_and_can_be_read",
            "slow/test_faults.py::test_a_run_that_needs_too_much_memory_is_refused_in_one_line",
            "slow/test_faults.py::test_one_of_two_trainers_in_a_folder_is_refused",
        ),
    ),
    Fault(
        "the run folder, or its lock or configuration, is removed, renamed or replaced while the run goes on",
        "one line at the next checkpoint; the configuration is written again",
        (
            "runs/test_loop.py::test_a_folder_that_vanishes_while_the_run_goes_on_is_told",
            "runs/test_loop.py::test_a_configuration_that_is_removed_while_the_run_goes_on_is_written_again",
            "runs/test_loop.py::test_a_lock_that_is_removed_while_the_run_goes_on_ends_it",
        ),
    ),
    Fault(
        "a checkpoint is removed while it is read",
        "the next one is read",
        ("runs/test_checkpoint.py::test_a_step_that_a_trainer_removes_while_it_is_read_is_followed_by_the_next",),
    ),
    Fault(
        "a process of several is killed, frozen, or gets a signal",
        "all stop and name it; they resume to the same bit, also in one process",
        ("slow/test_many_processes.py",),
    ),
    Fault(
        "workers of a sweep, with a journal or PostgreSQL, are killed, or their parent is",
        "every trial is complete once; the workers end within 5 seconds",
        (
            "slow/test_killed_workers.py::test_two_workers_killed_five_times_each_complete_every_trial_once",
            "slow/test_sweep.py::test_the_trial_of_a_killed_worker_is_tried_again",
            "slow/test_sweep.py::test_workers_whose_parent_is_killed_stop_and_release_their_points",
        ),
    ),
    Fault(
        "the database of a sweep restarts, or stays away",
        "every trial is complete once; one line",
        (
            "slow/test_killed_workers.py::test_a_sweep_goes_on_when_its_database_restarts",
            "slow/test_killed_workers.py::test_a_database_that_stays_away_is_told_in_one_line",
        ),
    ),
    Fault(
        "random lines to the engines of the two protocols",
        "each is answered; the game stays as it was",
        (
            "play/test_gtp.py::test_a_hundred_thousand_random_lines_are_answered_or_refused_in_bounded_memory",
            "play/test_opentafl.py::test_a_hundred_thousand_random_lines_are_answered_or_refused",
        ),
    ),
    Fault(
        "random and cut queries to the analysis engine",
        "each is answered once for each of its positions, or refused",
        ("play/test_analysis.py::test_ten_thousand_random_queries_are_answered_or_refused",),
    ),
    Fault(
        "random requests to the page",
        "400 with a reason; none is answered with a traceback",
        (
            "play/test_refused_requests.py::test_ten_thousand_random_questions_are_answered_or_refused_in_the_same_memory",
        ),
    ),
    Fault(
        "double and concurrent clicks on the page of each game",
        "one move; page and server agree",
        ("slow/test_page.py::test_clicks_that_come_too_fast_are_one_move",),
    ),
    Fault(
        "evaluators that give NaN, infinite or huge values and logits",
        "the search ends with a legal action and finite numbers",
        ("search/test_broken_evaluators.py::test_a_search_ends_with_legal_actions_and_finite_numbers",),
    ),
    Fault(
        "games that break a law of the contract",
        "`azjax check` names the law",
        (
            "conformance/test_registered_games.py::test_a_broken_law_is_named",
            "conformance/test_registered_games.py::test_a_broken_law_of_a_protocol_is_named",
        ),
    ),
)

Row = dict[str, Any]


def main(
    factor: int = 1, only: str = "", tests: Path = ROOT / "tests", output: Path = RESULTS / "survival.json"
) -> None:
    """Runs the tests, prints and writes.

    Args:
      factor: how many times as often as in the slow suite faults are repeated, where a test can.
      only: part of the name of the faults that are tried; all by default.
      tests: the folder of the tests.
      output: file of the results.
    """
    if factor < 1:
        raise InputError(f"factor must be at least 1, got {factor}")
    console = Console()
    rows: list[Row] = results_so_far(output, {}, rows=[])["rows"]
    order = [fault.name for fault in FAULTS]
    rows = [row for row in rows if row["fault"] in order]
    if not any(only in name for name in order):
        raise InputError(f"only: no fault has {only!r} in its name; faults: {'; '.join(order)}")
    for fault in FAULTS:
        known = any(row["fault"] == fault.name and row["factor"] >= factor for row in rows)
        if only not in fault.name or known:
            continue
        with console.status(fault.name):
            row = try_fault(fault, factor, tests)
        console.print(f"{fault.name}: {row['tries']:,} tries, {row['failed']} failed, {row['seconds']:,.0f} s")
        rows = [other for other in rows if other["fault"] != fault.name] + [row]
        rows.sort(key=lambda row: order.index(row["fault"]))
        write_results(output, "survival.py", {}, rows=rows)


def try_fault(fault: Fault, factor: int, tests: Path) -> Row:
    """Runs the tests of a fault, and tells what came out."""
    environment = {**os.environ, "AZJAX_TEST_FACTOR": str(factor)}
    if fault.tests[0].startswith("slow/"):
        environment["XLA_FLAGS"] = ""  # as the slow suite: its programs are compiled in full
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        names = [str(tests / name) for name in fault.tests]
        # The newer family of reports has no place for the tries.
        options = ["-q", "-m", "slow or not slow", f"--junitxml={report}", "-o", "junit_family=xunit1"]
        command = [sys.executable, "-m", "pytest", *options, *names]
        done = subprocess.run(command, cwd=tests.parent, env=environment, capture_output=True, text=True, check=False)
        if not report.exists():
            sys.exit(
                f"{fault.name}: pytest ended with code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
            )
        cases = list(ElementTree.parse(report).iter("testcase"))
    counts = [case.find("properties/property[@name='tries']") for case in cases if case.find("skipped") is None]
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return {
        "fault": fault.name,
        "outcome": fault.outcome,
        "tests": list(fault.tests),
        "factor": factor,
        "tries": sum(1 if count is None else int(count.attrib["value"]) for count in counts),
        "failed": len(failed),
        "failures": failed,
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "seconds": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    run_study(main)
