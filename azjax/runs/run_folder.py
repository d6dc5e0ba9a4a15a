"""The folder of a run: what it was made with, who trains there, and its weights for those who only read."""

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from azjax.games.registry import options_of
from azjax.games.game import Game
from azjax.games.registry import make
from azjax.core.errors import RunError
from azjax.runs.checkpoint import Checkpoints
from azjax.training.config import Config, Hyper
from azjax.runs.fingerprint import rules_fingerprint
from azjax.training.iteration import TrainState, init

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
_LOCK = "lock"
_MAY_CHANGE = {"iterations"}  # on resume
_NEEDS_NO_CONSENT = {"devices"}  # the same run up to rounding
_PACKAGES = ("azjax", "jax", "jaxlib", "flax", "optax")


def load_run(folder: str | Path) -> tuple[Game, Config]:
    """The game and the configuration of a run folder.

    Raises:
      RunError: it is not a run folder.
    """
    saved = _read_config(Path(folder))
    try:
        config: Any = {
            name: tuple(value) if isinstance(value, list) else value for name, value in saved["config"].items()
        }
        return make(saved["game"], **saved["options"]), Config(**{**config, "hyper": Hyper(**config["hyper"])})
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder}: its {CONFIG} does not describe a run: {error}") from error


def load_state(folder: str | Path, step: int | None = None) -> tuple[int, TrainState]:
    """The number and the state of a checkpoint of a run, the newest sound one by default.

    Raises:
      RunError: it is not a run folder, or there is no sound checkpoint, or it was written by another version.
    """
    game, config = load_run(folder)
    like = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    return Checkpoints(Path(folder) / CHECKPOINTS).restore(like, step)


def load_variables(folder: str | Path, step: int | None = None) -> tuple[int, Any]:
    """As `load_state`, and of the state the network's averaged variables alone."""
    step, state = load_state(folder, step)
    return step, state.averaged


def describe_run(game: Game, config: Config, num_devices: int) -> dict[str, Any]:
    """What decides every bit of a run, as `config.json` holds it."""
    description = {
        "versions": {package: importlib.metadata.version(package) for package in _PACKAGES},
        "platform": jax.default_backend(),
        "devices": num_devices,
        "game": game.name,
        "game_rules": rules_fingerprint(game),
        "options": options_of(game),
        "config": dataclasses.asdict(config),
    }
    return json.loads(json.dumps(description))


def check_folder(folder: Path, description: dict[str, Any], *, resume: bool, accept_changes: bool) -> str:
    """Holds that a run may begin in `folder`, or that the run in it may go on; writes nothing.

    Returns:
      the changes that were accepted, or need not be, in words; empty where there are none.

    Raises:
      RunError: neither may be.
    """
    # What was cut off before it began leaves these alone.
    if not folder.exists() or (
        folder.is_dir() and {path.name for path in folder.iterdir()} <= {_LOCK, CONFIG + ".partial"}
    ):
        return ""
    saved = _read_config(folder)
    if not resume:
        raise RunError(f"{folder} holds a run already: go on with --resume, or name another folder with --folder")
    saved["config"] = with_defaults(saved["config"])
    saved = {name: description[name] for name in ("platform", "devices", "game_rules")} | saved
    if (saved["game"], saved["options"]) != (description["game"], description["options"]):
        saved["game_rules"] = description["game_rules"]  # another game says more
    found = {name: each for name, each in _differences(saved, description).items() if name not in _MAY_CHANGE}
    changes = "; ".join(f"{name} = {was}, asked for {now}" for name, (was, now) in found.items())
    if found.keys() - _NEEDS_NO_CONSENT and not accept_changes:
        raise RunError(
            f"{folder} was made with {changes}; nothing was changed; --accept-changes goes on with what is asked"
        )
    return changes


def with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """A saved configuration with the fields that came later: it was made with their defaults."""
    defaults = json.loads(json.dumps(dataclasses.asdict(Config())))
    return defaults | config | {"hyper": defaults["hyper"] | config["hyper"]}


@contextlib.contextmanager
def only_trainer(folder: Path) -> Iterator[None]:
    """Makes the folder and holds its lock, which the system lets go of when the process ends, however it does.

    Raises:
      RunError: another process trains there, or the folder cannot be made or written.
    """
    verb = "written" if folder.exists() else "made"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Not emptied: it tells who has it.
        file = (folder / _LOCK).open("a+")
    except OSError as error:
        raise RunError(f"{folder} cannot be {verb}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise RunError(f"{folder}: another process trains there" + (holder and f": {holder}")) from None
        except OSError as error:
            raise RunError(f"{folder} cannot be locked: {error.strerror}") from error
        # Only told to others, so that a full disk is left to what must be written.
        with contextlib.suppress(OSError):
            file.truncate(0)
            os.write(file.fileno(), f"number {os.getpid()} on {platform.node()}\n".encode())
        yield


def write_config(folder: Path, description: dict[str, Any]) -> None:
    """Makes the folder that of a run.

    Raises:
      RunError: it cannot be written.
    """
    partial = folder / (CONFIG + ".partial")
    try:
        partial.write_text(json.dumps(description, indent=2) + "\n")
        partial.replace(folder / CONFIG)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror}") from error


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        saved = json.loads((folder / CONFIG).read_text())
        _ = saved["game"], {**saved["options"], **saved["config"], **saved["config"]["hyper"]}
        return saved
    except FileNotFoundError:
        problem = f"there is no {CONFIG}" if folder.is_dir() else "there is no such folder"
    except NotADirectoryError:
        problem = "it is a file"
    except OSError as error:
        problem = str(error.strerror)
    except (ValueError, KeyError, TypeError):
        problem = f"its {CONFIG} cannot be read"
    raise RunError(f"{folder} is not a run folder: {problem}")


def _differences(saved: dict, asked: dict) -> dict[str, tuple[Any, Any]]:
    """Fields that differ, named as the options are, with both values."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in {**saved, **asked}:
        was, now = saved.get(name), asked.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            found |= _differences(was, now)
        elif was != now:
            found[name] = (was, now)
    return found
