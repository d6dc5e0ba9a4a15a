"""Which part of the package may import which, and what an import must not do."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "azjax"

# A part imports from its own floor and from those above it in this list.
FLOORS: list[list[str]] = [
    ["core"],
    ["games"],
    ["search"],
    ["networks"],
    ["evaluation"],
    ["parallel"],
    ["training"],
    ["runs", "packaged"],
    ["agents", "render"],
    ["report", "export"],
    ["sweep"],
    ["play", "benchmark", "commands", "errors", "cli", "__main__"],
]
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
CONTRACT = tuple(
    f"azjax.games.{module}"
    for module in ("game", "protocols", "arguments", "endings", "repetition", "board_symmetries")
)
# These commands import parts of azjax in a function: the parts need extras.
LATE_IMPORTS = {("azjax.commands.play", "azjax.play.server"), ("azjax.commands.sweep", "azjax.sweep")}


def modules() -> Iterator[tuple[str, Path]]:
    """The dotted name (packages end in `.__init__`) and the path of each module under azjax/."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


def imported_names(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the dotted name of everything that `module` imports, anywhere in the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def late_imports(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The imports of azjax that stand in a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((line, name) for line, name in imported_names(module, node) if is_within(name, "azjax"))


def is_within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def floor_of(name: str) -> int:
    """The floor of a dotted name. azjax itself, which imports all parts, is on the last one."""
    _, _, below = name.partition(".")
    return FLOOR_OF.get(below.split(".")[0], len(FLOORS) - 1)


def forbidden_imports(module: str, source: str) -> list[str]:
    """One line for each import of `module` that breaks a rule."""
    part, tree = module.split(".")[1], ast.parse(source)
    found = []
    for line, name in imported_names(module, tree):
        if is_within(name, "flax") and part != "networks":
            found.append(f"{module}, line {line}: {name} (flax belongs to azjax.networks)")
        if not is_within(name, "azjax") or part == "__init__":
            continue
        if floor_of(name) > floor_of(module):
            found.append(f"{module}, line {line}: {name} (is on a later floor)")
        within_contract = any(is_within(name, contract) for contract in CONTRACT)
        if part in ("search", "networks") and is_within(name, "azjax.games") and not within_contract:
            found.append(f"{module}, line {line}: {name} ({part} knows games by their contract alone)")
    for line, name in late_imports(module, tree):
        if not any(module == importer and is_within(name, allowed) for importer, allowed in LATE_IMPORTS):
            found.append(f"{module}, line {line}: {name} (an import of azjax in a function)")
    return found


def test_every_module_has_a_floor() -> None:
    parts = {module.split(".")[1] for module, _ in modules()}
    assert "games" in parts
    assert parts - {"__init__"} <= FLOOR_OF.keys()


def test_no_import_breaks_a_rule() -> None:
    found = [line for module, path in modules() for line in forbidden_imports(module, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("azjax.games.mnk", "import azjax.search.tree"),
        ("azjax.games.mnk", "from azjax import make"),
        ("azjax.search.tree", "def late():\n    from azjax.core import bits"),
        ("azjax.games.santorini", "from azjax.render import svg"),
        ("azjax.agents", "from azjax.report import page"),
        ("azjax.search.__init__", "from ..networks import mlp"),
        ("azjax.search.tree", "from azjax.games import make"),
        ("azjax.networks.mlp", "from azjax.games.mnk import Mnk"),
        ("azjax.report.page", "from azjax.play import web"),
        ("azjax.training.loss", "from flax import nnx"),
    ],
)
def test_a_forbidden_import_is_named(module: str, source: str) -> None:
    (found,) = forbidden_imports(module, source)
    assert found.startswith(f"{module}, line ")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("azjax.__init__", "from azjax.play import web"),
        ("azjax.search.tree", "from azjax.games.game import Game"),
        ("azjax.search.policies", "from . import tree"),
        ("azjax.networks.mlp", "from flax import nnx"),
        ("azjax.agents", "from azjax.render import svg"),
        ("azjax.cli", "import azjax"),
        ("azjax.commands.play", "def run():\n    from azjax.play.server import serve"),
    ],
)
def test_an_allowed_import_is_not_named(module: str, source: str) -> None:
    assert forbidden_imports(module, source) == []


IMPORT_EVERYTHING = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # an extra that is not installed
        if error.name.split(".")[0] == "azjax":
            raise
    from jax._src import xla_bridge
    assert not xla_bridge.backends_are_initialized(), f"importing {name} starts a JAX backend"
"""


def test_importing_the_package_starts_no_jax_backend() -> None:
    names = [module.removesuffix(".__init__") for module, _ in modules() if not module.endswith(".__main__")]
    command = [sys.executable, "-c", IMPORT_EVERYTHING, "azjax", *names]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr


def test_nothing_in_the_package_unpickles_or_evaluates_text() -> None:
    dangerous = re.compile(r"\b(cloud)?pickle\b|allow_pickle\s*=\s*True|(?<![\w.])eval\(")
    files = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".js", ".html")]
    found = [
        f"{path.relative_to(ROOT)}, line {number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if dangerous.search(line)
    ]
    assert not found, "\n".join(found)
