"""Fetches an agent, `NAME.npz` and its card `NAME.md`, from a folder or over https into the user's cache directory.

Nothing is used before its SHA-256 is the one that the user gave, and nothing that is fetched is ever executed.
"""

import hashlib
import http.client
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from azjax.core.errors import AzjaxError, FileError, InputError
from azjax.evaluation.engine_protocols import ENGINE_PROTOCOLS
from azjax.evaluation.openspiel import OPENSPIEL
from azjax.evaluation.standard_players import PLAYER_NAMES
from azjax.packaged.archive import cache_folder, packaged, read_agent

MAX_AGENT_BYTES = 1 << 26
MAX_CARD_BYTES = 1 << 20

_SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# An agent comes before them where a player is named.
_STANDARD = sorted({*(name.partition(":")[0] for name in PLAYER_NAMES), *ENGINE_PROTOCOLS, OPENSPIEL})


def fetch_agent(source: str, sha256: str) -> Path:
    """Fetches an agent; afterwards it is a player by its name.

    Args:
      source: `FOLDER/NAME` or `https://HOST/FOLDER/NAME`, where `NAME.npz` and `NAME.md` are.
      sha256: of the two files one after the other, as `cat NAME.npz NAME.md | sha256sum` prints it.

    Returns:
      the folder in the cache that holds both files.

    Raises:
      InputError: a bad source, name or SHA-256, files too large, other files than expected, a damaged agent, or a name
        that is taken.
      FileError: a file could not be read or written; nothing is left of what was fetched.
    """
    expected = sha256.lower()
    if not re.fullmatch("[0-9a-f]{64}", expected):
        raise InputError(f"a SHA-256 has 64 hexadecimal digits, got {sha256!r}")
    name = _name(source)
    folder = cache_folder() / name
    if name in packaged() or folder.exists():
        held = "comes with azjax" if name in packaged() else f"is in {folder} already: remove that folder first"
        raise InputError(f"the agent {name} {held}")
    bounds = {"npz": MAX_AGENT_BYTES, "md": MAX_CARD_BYTES}
    content = {ending: _read(f"{source}.{ending}", bound) for ending, bound in bounds.items()}
    found = hashlib.sha256(content["npz"] + content["md"]).hexdigest()
    if found != expected:
        raise InputError(f"{source}: the SHA-256 of NAME.npz followed by NAME.md is {found}, not {expected}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror}") from error
    try:
        for ending, data in content.items():
            (part / f"{name}.{ending}").write_bytes(data)
        _check(part / f"{name}.npz", source)
        os.rename(part, folder)
    except OSError as error:
        raise FileError(f"{folder} could not be written: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _name(source: str) -> str:
    """The name of the agent, which becomes the name of a folder."""
    scheme, colon, _ = source.partition("://")
    if colon and scheme != "https":
        raise InputError(f"{source}: agents are fetched from a folder or over https, not over {scheme}")
    try:
        url = urllib.parse.urlsplit(source if colon else "")
    except ValueError:
        url = urllib.parse.urlsplit("")
    if colon and (not url.hostname or url.query or url.fragment):
        raise InputError(f"{source}: an address is https://HOST/FOLDER/NAME")
    name = source.rpartition("/")[2]
    if not _NAME.fullmatch(name):
        allowed = "letters, digits, - and _, without .npz"
        raise InputError(f"{source}: it must end in the name of an agent, of {allowed}; got {name!r}")
    if name in _STANDARD:
        raise InputError(f"{source}: an agent has another name than {', '.join(_STANDARD)}; got {name!r}")
    return name


def _read(source: str, bound: int) -> bytes:
    """The bytes of a file or of an address, at most `bound`."""
    try:
        with _open(source) as file:
            content: bytes = file.read(bound + 1)
    except AzjaxError:
        raise
    except (urllib.error.URLError, http.client.HTTPException) as error:
        raise FileError(f"{source} could not be fetched: {getattr(error, 'reason', None) or error}") from error
    except (OSError, ValueError) as error:
        raise FileError(f"{source} could not be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > bound:
        raise InputError(f"{source} is larger than {bound:,} bytes, the most that is fetched")
    return content


def _open(source: str) -> Any:
    """A file of bytes to read, which closes at the end of a `with` block."""
    if "://" not in source:
        return open(source, "rb")
    opener = urllib.request.OpenerDirector()  # it has no handler of other schemes, unlike `build_opener`
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _HttpsRedirects(),
    ):
        opener.add_handler(handler)
    return opener.open(source, timeout=_SECONDS)


class _HttpsRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https alone."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise InputError(f"{req.full_url} redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check(path: Path, source: str) -> None:
    """Checks that the file is an agent whose variables fit its network."""
    try:
        read_agent(path)
    except InputError as error:
        raise InputError(str(error).replace(str(path), f"{source}.npz")) from error
