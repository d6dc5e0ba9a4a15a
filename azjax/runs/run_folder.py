"""The run folder: what a run was made with, the lock of its trainer, and loading its state."""

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

import jax
import numpy as np
from jaxtyping import Array, PyTree, UInt32

from azjax.core.errors import FileError, InputError, LockedError, RunError
from azjax.core.files import write_text
from azjax.core.json_text import parse_json
from azjax.core.source import changed_or_missing, sources
from azjax.core.version import __version__
from azjax.core.whole_numbers import whole
from azjax.games.game import AnyGame, Game, State
from azjax.games.protocols import next_game, without_history
from azjax.games.registry import GAMES, factory, make, options_of
from azjax.networks import NETWORKS, Variables, network_source
from azjax.runs.checkpoint import Checkpoints
from azjax.search.rules import RULES, rule_of
from azjax.training.config import Config
from azjax.training.iteration import TrainState, init
from azjax.training.loss import LossTerm
from azjax.training.saved_config import config_from_json, config_to_json

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
FORMAT = 2
"""The format of run folders. Version 0.1 of azjax wrote format 1, without the number."""

LOCK = "lock"
_MAY_CHANGE = {"iterations"}  # on resume
_NEEDS_NO_CONSENT = {"devices"}  # the same run up to rounding
_PACKAGES = ("jax", "jaxlib", "flax", "optax")

_S = TypeVar("_S", bound=State)


class RunDescription(TypedDict):
    """What determines every bit of a run, as `config.json` holds it.

    Attributes:
      format: see `FORMAT`.
      versions: of the packages, by name.
      platform: JAX's backend.
      devices: number of devices over which the run is split.
      game: the name for `azjax.make`.
      game_rules: see `rules_fingerprint`.
      options: the options for `azjax.make`.
      sources: the files and modules from outside azjax that define the game, the network, the rule of selection and
        the loss, with hashes of their contents; see `azjax.core.source.sources`.
      loss_terms: the names of the terms of the loss.
      config: the fields of `Config`.
    """

    format: int
    versions: dict[str, str]
    platform: str
    devices: int
    game: str
    game_rules: str
    options: dict[str, Any]
    sources: dict[str, str]
    loss_terms: list[str]
    config: dict[str, Any]


def load_run(folder: str | Path) -> tuple[AnyGame, Config]:
    """The game and the configuration of a run folder.

    Raises:
      RunError: it is not a run folder, another version of azjax wrote it, or it was made with code that is not
        imported.
    """
    saved = _read_config(Path(folder))
    # What an installed package offers is imported when it is looked for.
    config = saved["config"]
    for registry, name in ((GAMES, saved["game"]), (NETWORKS, config.get("network")), (RULES, config.get("selection"))):
        if isinstance(name, str):
            registry.find(name)
    changed, missing = changed_or_missing(saved.get("sources", {}))
    if missing:
        imports = " ".join(f"--import {name}" for name in missing)
        raise RunError(f"{folder} was made with {', '.join(missing)}: add {imports}, or import it in your own script")
    for name in changed:
        _warn_once(f"{name} has changed since {folder} was made")
    try:
        if not isinstance(saved["game"], str):
            raise InputError(f"game must be a name, got {saved['game']!r}")
        return make(saved["game"], **saved["options"]), config_from_json(saved["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder}: its {CONFIG} does not describe a run: {error}") from error


def saved_settings(folder: str | Path) -> dict[str, Any]:
    """The fields of the configuration of a run as they were saved, without checks.

    Raises:
      RunError: it is not a run folder, or another version of azjax wrote it.
    """
    return _read_config(Path(folder))["config"]


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=3)


def load_state(folder: str | Path, step: int | Literal["best"] | None = None) -> tuple[int, TrainState]:
    """A checkpoint of a run.

    Args:
      folder: the run folder.
      step: the number of the checkpoint; `best` for the one with the lowest score, None for the newest sound one.

    Returns:
      the number of the checkpoint and its state.

    Raises:
      RunError: it is not a run folder, it has no sound checkpoint, or another version of azjax wrote it.
    """
    if step not in (None, "best") and whole(step) is None:
        raise InputError(f"step must be the number of a checkpoint, 'best' or None, got {step!r}")
    game, config = load_run(folder)
    like = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    return Checkpoints(Path(folder) / CHECKPOINTS).restore(like, step)


def load_variables(folder: str | Path, step: int | Literal["best"] | None = None) -> tuple[int, Variables]:
    """As `load_state`, but only `TrainState.ema`: the variables with which a run is evaluated and played.

    Raises:
      RunError: also for a weight that is not finite.
    """
    step, state = load_state(folder, step)
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.ema):
        if not np.isfinite(leaf).all():
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            raise RunError(f"{folder}: {name} of checkpoint {step} holds a weight that is not finite")
    return step, state.ema


@functools.lru_cache(maxsize=4)
def rules_fingerprint(game: AnyGame) -> str:
    """16 hexadecimal digits that change with the rules of a game, but not with their implementation.

    It is the beginning of the SHA-256 of all positions, legal actions, observations and rewards of 32 x 64 plies of
    random play, and of the symmetries of the last positions. A rule that matters in none of these does not change it.
    """
    digest = hashlib.sha256()
    # NumPy has frozen this generator, unlike `default_rng`.
    bits = np.random.RandomState(0).randint(0, 2**32, (64, 32), dtype=np.uint32)
    played = jax.device_get(jax.jit(functools.partial(_play_at_random, game))(bits))
    for path, leaf in jax.tree_util.tree_leaves_with_path(played):
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def _play_at_random(game: Game[_S], bits: UInt32[Array, "T G"]) -> PyTree:
    """What `rules_fingerprint` hashes: T plies of G games."""
    keys = jax.random.split(jax.random.key(0), bits.shape[1])

    def play(states: _S, bits: UInt32[Array, "G"]) -> tuple[_S, PyTree]:
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        following = jax.vmap(game.step)(states, actions)
        return jax.vmap(functools.partial(next_game, game))(keys, following), jax.vmap(describe)(following)

    def describe(state: _S) -> PyTree:
        return without_history(game, state), game.legal_action_mask(state), game.observe(state)

    def symmetries(state: _S) -> PyTree:
        return game.symmetries(without_history(game, state))

    last, described = jax.lax.scan(play, jax.vmap(game.init)(keys), bits)
    return described, jax.vmap(symmetries)(last)


def describe_run(game: AnyGame, config: Config, num_devices: int, loss_terms: tuple[LossTerm, ...]) -> RunDescription:
    """The description of a run that begins now."""
    description = {
        "format": FORMAT,
        "versions": {"azjax": __version__, **{name: importlib.metadata.version(name) for name in _PACKAGES}},
        "platform": jax.default_backend(),
        "devices": num_devices,
        "game": game.name,
        "game_rules": rules_fingerprint(game),
        "options": options_of(game),
        "sources": sources(
            game,
            factory(game.name),
            network_source(config.network),
            rule_of(config.selection),
            *(term.function for term in loss_terms),
        ),
        "loss_terms": [term.name for term in loss_terms],
        "config": config_to_json(config),
    }
    as_saved: RunDescription = json.loads(json.dumps(description))
    return as_saved


def check_folder(folder: Path, description: RunDescription, *, resume: bool, accept_changes: bool) -> str:
    """Checks that a run may begin in `folder`, or that the run in it may continue; writes nothing.

    Returns:
      the changes that were accepted or need no consent, in words; empty if there are none.

    Raises:
      RunError: the run may neither begin nor continue.
    """
    _check_name(folder)
    # A run that was stopped before it began leaves only these files.
    if not folder.exists() or (
        folder.is_dir() and all(path.name == LOCK or path.name.startswith(f"{CONFIG}.") for path in folder.iterdir())
    ):
        return ""
    saved: dict[str, Any] = {**_read_config(folder)}
    if not resume:
        raise RunError(f"{folder} holds a run already: go on with --resume, or name another folder with --folder")
    current: dict[str, Any] = {**description}
    saved = {"sources": {}} | saved | {"config": with_defaults(saved["config"])}
    if (saved["game"], saved["options"]) != (current["game"], current["options"]):
        saved["game_rules"] = current["game_rules"]  # the name of another game says more
    differences = {name: pair for name, pair in _differences(saved, current).items() if name not in _MAY_CHANGE}
    changes = "; ".join(f"{name} = {was}, requested {now}" for name, (was, now) in differences.items())
    if differences.keys() - _NEEDS_NO_CONSENT and not accept_changes:
        raise RunError(
            f"{folder} was made with {changes}; nothing was changed; --accept-changes goes on with the requested values"
        )
    return changes


def _check_name(folder: Path) -> None:
    """Checks that Orbax can write checkpoints there: below other names it loses their arrays, or raises."""
    path = str(folder.absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        raise RunError(f"{path!r} cannot be a run folder: its name is not in UTF-8") from None
    wrong = [character for character in "[]\\" if character in path]
    if wrong:
        raise RunError(f"{path} cannot be a run folder: its name contains {' '.join(wrong)}")


def with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """A saved configuration with the defaults of the fields that were added after it was saved."""
    defaults = config_to_json(Config())
    merged: dict[str, Any] = defaults | config | {"hyper": defaults["hyper"] | config["hyper"]}
    return merged


@contextlib.contextmanager
def only_trainer(folder: Path) -> Iterator[None]:
    """Makes the folder and holds its lock. The system releases the lock when the process ends, however it ends.

    A folder that it made and in which nothing was written is removed again.

    Raises:
      LockedError: another process trains there.
      FileError: the folder cannot be made or written.
    """
    existed = folder.exists()
    verb = "written" if existed else "made"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Opened without truncating: the file names the process that holds it.
        file = (folder / LOCK).open("a+")
    except OSError as error:
        raise FileError(f"{folder} cannot be {verb}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise LockedError(f"{folder}: another process trains there" + (holder and f": {holder}")) from None
        except OSError as error:
            raise FileError(f"{folder} cannot be locked: {error.strerror}") from error
        # The name is only information: a full disk is reported when something important is written.
        with contextlib.suppress(OSError):
            file.truncate(0)
            os.write(file.fileno(), f"number {os.getpid()} on {platform.node()}\n".encode())
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if not existed and os.listdir(folder) == [LOCK]:
                    (folder / LOCK).unlink()
                    folder.rmdir()


def write_config(folder: Path, description: RunDescription) -> None:
    """Writes `config.json`, which makes the folder a run folder.

    Raises:
      FileError: it cannot be written.
    """
    write_text(folder / CONFIG, json.dumps(description, indent=2) + "\n")


def _read_config(folder: Path) -> RunDescription:
    try:
        saved: RunDescription = parse_json((folder / CONFIG).read_bytes())
        problem = _problem_of(saved)
    except FileNotFoundError:
        members = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
        problem = f"there is no {CONFIG}" if folder.is_dir() else "there is no such folder"
        if members:
            problem += f", but runs are in it: {', '.join(members[:3])}{', ...' * (len(members) > 3)}"
    except NotADirectoryError:
        problem = "it is a file"
    except OSError as error:
        problem = str(error.strerror)
    except ValueError as error:
        problem = f"its {CONFIG} cannot be read: {error}"
    else:
        if not problem:
            if saved.get("format", 1) == FORMAT:
                return saved
            writer = saved.get("versions", {}).get("azjax", "of an unknown version")
            raise RunError(
                f"{folder} was written by azjax {writer}, whose runs this version cannot load; to train it again, take "
                f"the settings from its {CONFIG} (CHANGELOG.md lists those with new names)"
            )
    raise RunError(f"{folder} is not a run folder: {problem}")


def _problem_of(saved: Any) -> str:
    """What keeps the JSON of a run folder from being a description of a run; empty if nothing does."""
    if not isinstance(saved, dict):
        return f"its {CONFIG} is not an object"
    parts = {"options": saved.get("options"), "config": saved.get("config")}
    parts |= {name: saved.get(name, {}) for name in ("sources", "versions")}
    if isinstance(config := parts["config"], dict):
        parts["hyper of its config"] = config.get("hyper")
    wrong = ["game"] * ("game" not in saved) + [name for name, part in parts.items() if not isinstance(part, dict)]
    return f"its {CONFIG} has no {wrong[0]}" if wrong else ""


def _differences(saved: dict[str, Any], current: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The innermost fields that differ, with both values."""
    differences: dict[str, tuple[Any, Any]] = {}
    for name in {**saved, **current}:
        was, now = saved.get(name), current.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            differences |= _differences(was, now)
        elif was != now:
            differences[name] = (was, now)
    return differences
