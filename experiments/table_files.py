"""What do the files of solved boards cost: on disk, when they are read, in memory, and at each probe?

Files are compressed. The study compares that with what could be mapped into memory instead: fields of one width for the
scores and plies of the unfinished positions, a bit for each number that says whether it has one, and how many have one
before each word of these bits.

        python experiments/solved.py --output runs/solved.json && python experiments/table_files.py

The first study writes the files; to a new file of results it adds all boards again. Each file is read in a process of
its own, which takes a minute for all. Writes experiments/results/table_files.json.
"""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from study import RESULTS, RUNS, refuse_unknown, results_so_far, run_other, run_study, write_results

from azjax.evaluation import load_solution
from azjax.evaluation.numbered import NumberedSolution, Scores, numbering

BOARDS = ("hex_4x4", "connect_four_5x5", "connect_four_6x4", "santorini_3x3", "santorini_3x3_two_workers")
BATCH = 4096
PROBES = 100


def main(board: str | None = None, output: Path = RESULTS / "table_files.json", tables: Path = RUNS / "solved") -> None:
    """Measures all files, each in a process of its own, or one.

    Args:
      board: measure the file of this one alone, and add it to the results.
      output: file of the results.
      tables: folder of the files, from `solved.py`.
    """
    if board is None:
        for name in BOARDS:
            run_other("table_files.py", "--board", name, "--output", output, "--tables", tables)
        return
    refuse_unknown("board", [board], BOARDS)
    settings = {"batch": BATCH, "probes": PROBES}
    rows = results_so_far(output, settings, rows={})["rows"]
    rows[board] = measured(tables / f"{board}.npz")
    Console().print(board, rows[board])
    write_results(output, "table_files.py", settings, rows={name: rows[name] for name in BOARDS if name in rows})


def measured(path: Path) -> dict[str, Any]:
    """The facts of a file."""
    before = resident_megabytes()
    began = time.perf_counter()
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            archive[name]
    unpacking = time.perf_counter() - began
    began = time.perf_counter()
    solution = load_solution(path)
    reading, memory = time.perf_counter() - began, resident_megabytes() - before
    num_numbers = numbering(solution.game).num_position_numbers
    return {
        "unfinished": solution.num_unfinished,
        "megabytes": round(path.stat().st_size / 1e6, 1),
        "mapped_megabytes": round(mapped_bits(solution, num_numbers) / 8e6, 1),
        "unpacking_seconds": round(unpacking, 2),
        "reading_seconds": round(reading, 2),
        "memory_megabytes": memory,
        "probe_microseconds": {str(size): probe_microseconds(solution, size) for size in (1, BATCH)},
    }


def mapped_bits(solution: NumberedSolution, num_numbers: int) -> int:
    """Bits of a file that can be probed as it is."""
    widths = [
        max(1, (len(np.flatnonzero(np.bincount(values.view(np.uint8)))) - 1).bit_length())
        for values in (np.asarray(solution.table.scores), solution.plies)
    ]
    return solution.num_unfinished * sum(widths) + 2 * num_numbers


def probe_microseconds(solution: NumberedSolution, size: int) -> float:
    """Of each position, when this many are looked up at once: from the state to its score."""
    rows = np.linspace(0, solution.num_rows - 1, size).astype(int)
    states = jax.tree.map(jnp.asarray, solution.block(rows).states)
    table = solution.best_moves()
    score = jax.jit(lambda table, states: lookup(numbering(solution.game).position_number, table, states))
    jax.block_until_ready(score(table, states))
    began = time.perf_counter()
    for _ in range(PROBES):
        jax.block_until_ready(score(table, states))
    return round((time.perf_counter() - began) / PROBES / size * 1e6, 2)


def lookup(number: Callable[[Any], jax.Array], table: Scores, states: Any) -> jax.Array:
    """The scores of unfinished positions."""
    return jnp.asarray(table.scores)[table.find(jax.vmap(number)(states))]


def resident_megabytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    run_study(main)
