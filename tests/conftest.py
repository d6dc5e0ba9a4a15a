"""What all tests share: one JAX configuration, and the golden files."""

import atexit
import gc
import gzip
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Read when jax is first imported; processes that tests start inherit them all.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Most of the time goes into compiling programs that run for milliseconds.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    # XLA ends the process at a flag that it does not know.
    + " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    * importlib.metadata.version("jax").startswith("0.10."),
)
if "PYTEST_XDIST_WORKER" not in os.environ:
    # Many tests compile the same programs. The cache begins empty, so that none is older than the code.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="azjax-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
    os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(10**10)  # with a limit its files are locked while written
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

import jax
import jaxtyping
import pytest
from jaxtyping import install_import_hook

if os.environ.get("AZJAX_CHECK_TYPES"):
    # Types and shapes of all arguments, results and fields are checked when a test calls into the package. It takes a
    # quarter longer, so that `make test-slow` alone asks for it.
    install_import_hook("azjax", "typecheck.check")

from azjax.games.registry import GAMES, available  # after the hook, which changes modules while they are imported

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.devices()  # JAX runs from here on, so that no test changes how many there are

# JAX makes millions of objects, few of which become free: searching them all took a twentieth of the time.
gc.freeze()
gc.set_threshold(50_000, 20, 100)

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def types_unchecked(monkeypatch):
    """Wrong types reach the package as they do for users, who check none at run time."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Marks as slow what `slow_except` does not name, before pytest leaves out what is slow."""
    named, found = set(), set()
    for item in items:
        marker = item.get_closest_marker("slow_except")
        if marker is None:
            continue
        test, _, _ = item.nodeid.partition("[")
        named |= {(test, case) for case in marker.args}
        found.add((test, item.callspec.id))
        if item.callspec.id not in marker.args:
            item.add_marker("slow")
    # Where single cases are asked for, as in `pytest FILE::TEST[CASE]`, others are not there.
    if named - found and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"slow_except names cases that do not exist: {sorted(named - found)}")


@pytest.fixture(autouse=True, scope="module")
def names_of_the_package() -> Iterator[None]:
    """Forgets the games that a module registers, as studies do: what other modules see must not depend on the order."""
    available()  # the games of the package are registered when they are first asked for
    registered = dict(GAMES._entries)
    yield
    GAMES._entries = registered


@pytest.fixture(autouse=True, scope="module")
def few_mappings() -> Iterator[None]:
    """Lets go of compiled programs before there are so many that Linux refuses them memory (65,530 mappings)."""
    yield
    _clear_if_many()


@pytest.fixture(autouse=True)
def few_mappings_in_slow_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module of slow tests alone may compile too many programs."""
    yield
    if "slow" in request.keywords:
        _clear_if_many()


def _clear_if_many() -> None:
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > 30_000:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def tries(record_property: Callable[[str, object], None]) -> Callable[[int], int]:
    """`tries(60)`: how often a slow test repeats a fault, `AZJAX_TEST_FACTOR` times as often as usual.

    The number goes into the report of pytest, where experiments/survival.py finds it.
    """

    def times(usual: int) -> int:
        count = usual * int(os.environ.get("AZJAX_TEST_FACTOR", "1"))
        record_property("tries", count)
        return count

    return times


@pytest.fixture(scope="session")
def golden() -> Callable[[str], list[Any]]:
    """`golden("tictactoe")`: the JSON lines of the one file `tests/golden/**/tictactoe.jsonl.gz`.

    Where two folders hold the same name, a folder goes before it: `golden("solved/tictactoe")`.
    """

    def lines(name: str) -> list[Any]:
        found = sorted(GOLDEN.rglob(f"{name}.jsonl.gz"))
        if len(found) != 1:
            known = sorted(str(path.relative_to(GOLDEN)) for path in found or GOLDEN.rglob("*.jsonl.gz"))
            raise LookupError(f"{name!r} names {len(found)} golden files, not one; choose from: {', '.join(known)}")
        with gzip.open(found[0], "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return lines
