"""No simulation copies an array of its tree, however many nodes it has room for."""

import dataclasses
import functools
import math
import re

import jax
import numpy as np
import pytest

from azjax.core.xla import _IS_TRIED
from azjax.search import alphazero_policy, evaluators, gumbel_policy, uct_policy
from benchmarks.rules.table_game import TableGame

NUM_SIMULATIONS = 600
DENSE_SLOTS = TableGame(seed=1, width=32, depth=8, actions=11, slots=6)
BLOCKED_SLOTS = dataclasses.replace(DENSE_SLOTS, actions=100, slots=24)
GAMES = {"dense": DENSE_SLOTS, "blocked": BLOCKED_SLOTS}


@dataclasses.dataclass(frozen=True)
class WithErrors:
    """Random values with errors, by which simulations count."""

    game: TableGame

    def __call__(self, params, key, states):
        logits, value = evaluators.random(self.game)(params, key, states)
        return logits, value, abs(value)


SEARCHES = {
    "alphazero": (alphazero_policy, {}),
    "alphazero with noise": (alphazero_policy, {"dirichlet_fraction": 0.25}),
    "alphazero with forced playouts": (alphazero_policy, {"forced_playouts": 2.0}),
    "alphazero with a solver": (alphazero_policy, {"solver": True}),
    "alphazero with 4 leaves": (alphazero_policy, {"leaves_per_step": 4}),
    "alphazero with 4 leaves and a solver": (alphazero_policy, {"leaves_per_step": 4, "solver": True}),
    "alphazero with errors": (alphazero_policy, {"evaluator": WithErrors}),
    "alphazero with errors and 4 leaves": (alphazero_policy, {"evaluator": WithErrors, "leaves_per_step": 4}),
    "gumbel": (gumbel_policy, {}),
    "gumbel with a solver": (gumbel_policy, {"solver": True}),
    "uct": (uct_policy, {}),
    "uct with a solver": (uct_policy, {"solver": True}),
    "uct with 4 leaves": (uct_policy, {"leaves_per_step": 4}),
}


def computations(text):
    """The lines of each computation of a compiled program, by its name."""
    found, lines = {}, []
    for line in text.splitlines():
        if header := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* {$", line):
            found[header[1]] = lines = []
        elif not line.startswith("}"):
            lines.append(line)
    return found


def callees(line):
    """The computations that an instruction calls."""
    single = re.findall(r"(?:body|condition|calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)", line)
    branches = re.findall(r"branch_computations={([^}]*)}", line)
    return single + [name.strip(" %") for names in branches for name in names.split(",")]


def copies_in_loops(text, size):
    """The copies of at least so many numbers in the loops of a compiled program."""
    lines = computations(text)
    waiting = [name for body in lines.values() for line in body for name in re.findall(r"body=%?([\w.\-]+)", line)]
    in_loops = set()
    while waiting:
        name = waiting.pop()
        if name in lines and name not in in_loops:
            in_loops.add(name)
            waiting += [callee for line in lines[name] for callee in callees(line)]
    copied = [
        (shape, line.strip())
        for name in in_loops
        for line in lines[name]
        for shape in re.findall(r"= \(?\w+\[([\d,]*)\]\S* copy(?:-start)?\(", line)
    ]
    return [line for shape, line in copied if math.prod(int(axis) for axis in shape.split(",") if axis) >= size]


def compiled_search(game, batch, policy, options):
    states = game.state_at(np.arange(batch))
    options = {"evaluator": evaluators.random, "num_simulations": NUM_SIMULATIONS, **options}
    options |= {"game": game, "evaluator": options["evaluator"](game)}
    search = jax.jit(functools.partial(policy, **options))
    return search.lower(None, jax.random.key(0), states).compile().as_text()


def cases():
    """Every search with both stores, of one position and of several. XLA compiles a batch of one otherwise."""
    return [(search, store, batch) for search in SEARCHES for store in GAMES for batch in (1, 4)]


@pytest.mark.slow_except(
    "alphazero with a solver-blocked-1", "alphazero with 4 leaves and a solver-dense-4", "gumbel-blocked-4"
)
@pytest.mark.skipif(
    not _IS_TRIED or jax.default_backend() != "cpu", reason="without kernels XLA copies trees in some searches"
)
@pytest.mark.parametrize(("search", "store", "batch"), cases())
def test_no_simulation_copies_a_tree(search, store, batch):
    text = compiled_search(GAMES[store], batch, *SEARCHES[search])
    assert "while(" in text
    assert copies_in_loops(text, NUM_SIMULATIONS * batch) == []


def test_a_copy_in_a_loop_is_found():
    def swap(step, pair):
        first, second = pair
        return second, first.at[0].set(step)

    pair = np.zeros((2, NUM_SIMULATIONS), np.float32)
    swaps = jax.jit(lambda pair: jax.lax.fori_loop(0, 9, swap, (pair[0], pair[1])))
    assert copies_in_loops(swaps.lower(pair).compile().as_text(), NUM_SIMULATIONS) != []
