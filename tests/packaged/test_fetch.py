"""Fetching an agent from a folder or over https: what is taken, and all that is refused."""

import email.message
import hashlib
import io
import urllib.request
import urllib.response
import zipfile

import jax
import numpy as np
import pytest

from azjax.agents import is_trained, load_player
from azjax.core.errors import AzjaxError, FileError, InputError
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.packaged import archive, fetch, fetch_agent, fetched, load_agent, save_agent, strength_of

GAME = make("connect2")
NETWORK = {"name": "mlp", "width": 8, "depth": 1}
CARD = b"# mine\n\n## Strength\n\nWins now and then.\n"
OTHER = "0" * 64
STANDARD = ("random", "optimal", "uct", "uniform", "rollout", "gtp", "line", "opentafl", "santorini", "openspiel")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "azjax" / "agents"


@pytest.fixture
def source(tmp_path, monkeypatch, cache):
    """The folder of an agent `mine`."""
    folder = tmp_path / "source"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(archive, "FOLDER", folder)
        save_agent("mine", GAME, NETWORK, make_network(game=GAME, **NETWORK).init(jax.random.key(0), GAME), 1.5)
    (folder / "mine.md").write_bytes(CARD)
    return folder


def sha256_of(folder, name="mine"):
    return hashlib.sha256((folder / f"{name}.npz").read_bytes() + (folder / f"{name}.md").read_bytes()).hexdigest()


def left(cache):
    return sorted(cache.rglob("*")) if cache.exists() else []


class Https:
    """What answers instead of a server: bytes, a code of an error, or the address of a redirect."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def handler(self):
        https = self

        class Handler(urllib.request.HTTPSHandler):
            def https_open(self, request):
                https.asked.append(request.full_url)
                answer, headers = https.answers.get(request.full_url, 404), email.message.Message()
                code = answer if isinstance(answer, int) else 302 if isinstance(answer, str) else 200
                if code == 302:
                    headers["location"] = answer
                body = answer if isinstance(answer, bytes) else b""
                response = urllib.response.addinfourl(io.BytesIO(body), headers, request.full_url, code)
                response.msg = "OK" if code == 200 else "Not Found"
                return response

        return Handler


@pytest.fixture
def https(source, monkeypatch):
    index = "https://agents.example/index"
    server = Https({f"{index}/mine.{ending}": (source / f"mine.{ending}").read_bytes() for ending in ("npz", "md")})
    monkeypatch.setattr(urllib.request, "HTTPSHandler", server.handler())
    return server


def test_an_agent_of_a_folder_becomes_a_player_by_its_name(source, cache):
    assert not is_trained("mine")
    assert fetch_agent(f"{source}/mine", sha256_of(source)) == cache / "mine"
    assert fetched() == ["mine"]
    assert [path.name for path in left(cache)] == ["mine", "mine.md", "mine.npz"]
    assert strength_of("mine") == "Wins now and then."
    assert load_agent("mine").hyper.c_puct == 1.5
    player = load_player("mine:easy")
    assert (player.name, player.about["strength"]) == ("network", "Wins now and then.")
    with pytest.raises(InputError, match=r"the agent mine is in .*/mine already: remove that folder first"):
        fetch_agent(f"{source}/mine", sha256_of(source))


def test_an_agent_of_an_https_address(https, source, cache):
    fetch_agent("https://agents.example/index/mine", sha256_of(source).upper())
    assert https.asked == ["https://agents.example/index/mine.npz", "https://agents.example/index/mine.md"]
    assert (cache / "mine" / "mine.npz").read_bytes() == (source / "mine.npz").read_bytes()


def test_redirects_are_followed_to_https_alone(https, source, cache):
    index = "https://agents.example"
    https.answers |= {f"{index}/new/mine.{ending}": f"{index}/index/mine.{ending}" for ending in ("npz", "md")}
    fetch_agent(f"{index}/new/mine", sha256_of(source))
    assert fetched() == ["mine"]
    https.answers[f"{index}/plain/other.npz"] = "http://agents.example/index/mine.npz"
    with pytest.raises(InputError, match=r"other\.npz redirects to http://agents.example/.*, which is not https"):
        fetch_agent(f"{index}/plain/other", OTHER)
    https.answers[f"{index}/local/other.npz"] = "file:///etc/passwd"
    with pytest.raises(AzjaxError, match=r"other\.npz"):
        fetch_agent(f"{index}/local/other", OTHER)
    assert fetched() == ["mine"]


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        ("http://agents.example/mine", OTHER, "fetched from a folder or over https, not over http$"),
        ("ftp://agents.example/mine", OTHER, "not over ftp$"),
        ("file:///tmp/mine", OTHER, "not over file$"),
        ("https:///mine", OTHER, "an address is https://HOST/FOLDER/NAME"),
        ("https://agents.example/mine?of=1", OTHER, "an address is https://HOST/FOLDER/NAME"),
        ("https://agents.example/..", OTHER, r"must end in the name of an agent, .* got '\.\.'"),
        ("https://agents.example/..%2fmine", OTHER, r"must end in the name of an agent, .* got '\.\.%2fmine'"),
        ("somewhere/", OTHER, "must end in the name of an agent, .* got ''"),
        ("somewhere/.mine", OTHER, r"must end in the name of an agent, .* got '\.mine'"),
        ("somewhere\\..\\mine", OTHER, "must end in the name of an agent"),
        ("somewhere/brandub", OTHER, "the agent brandub comes with azjax"),
        *(
            (f"somewhere/{name}", OTHER, f"an agent has another name than .*{name}.*; got '{name}'$")
            for name in STANDARD
        ),
        ("somewhere/mine", "abc", "a SHA-256 has 64 hexadecimal digits, got 'abc'"),
    ],
)
def test_a_bad_source_is_refused_before_anything_is_read(address, sha256, message, https, cache):
    with pytest.raises(InputError, match=message):
        fetch_agent(address, sha256)
    assert https.asked == left(cache) == []


def test_an_agent_with_another_sha256_is_not_used(source, cache, monkeypatch):
    monkeypatch.setattr(fetch, "read_agent", None)  # it would fail if it were called
    expected = sha256_of(source)
    (source / "mine.md").write_bytes(CARD + b"Trust me.\n")
    with pytest.raises(InputError, match=f"followed by NAME.md is {sha256_of(source)}, not {expected}"):
        fetch_agent(f"{source}/mine", expected)
    assert left(cache) == []


def test_files_that_are_missing_or_too_large_are_refused(source, https, cache, monkeypatch):
    with pytest.raises(FileError, match=r"nobody\.npz could not be read: No such file or directory"):
        fetch_agent(f"{source}/nobody", OTHER)
    with pytest.raises(FileError, match=r"nobody\.npz could not be fetched: Not Found"):
        fetch_agent("https://agents.example/index/nobody", OTHER)
    monkeypatch.setattr(fetch, "MAX_AGENT_BYTES", 100)
    for folder in (source, "https://agents.example/index"):
        with pytest.raises(InputError, match=r"mine\.npz is larger than 100 bytes, the most that is fetched"):
            fetch_agent(f"{folder}/mine", OTHER)
    assert left(cache) == []


def _rewritten(source, change):
    with np.load(source / "mine.npz") as file:
        content = dict(file)
    change(content)
    np.savez_compressed(source / "mine.npz", **content)


def test_damaged_archives_are_refused_and_leave_nothing(source, cache, monkeypatch):
    sound = (source / "mine.npz").read_bytes()
    _rewritten(source, lambda content: content.pop("params/value/bias"))
    with pytest.raises(InputError, match=r"source/mine\.npz is damaged: its values are not those that were written"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    (source / "mine.npz").write_bytes(sound[: len(sound) // 2])
    with pytest.raises(InputError, match=r"source/mine\.npz is no agent file, or is damaged"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    (source / "mine.npz").write_bytes(b"not an archive")
    with pytest.raises(InputError, match=r"source/mine\.npz is no agent file, or is damaged"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    with monkeypatch.context() as patch:
        patch.setattr(archive, "FOLDER", source)
        other = make_network(game=GAME, **NETWORK | {"width": 9}).init(jax.random.key(0), GAME)
        save_agent("mine", GAME, NETWORK, other, 1.5)
    with pytest.raises(InputError, match=r"mine\.npz is damaged: its variables are not those of its network"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    assert left(cache) == []


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(source, cache, monkeypatch):
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1 << 20)
    with zipfile.ZipFile(source / "mine.npz", "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros.npy", bytes(1 << 21))
    assert (source / "mine.npz").stat().st_size < 1 << 16
    with pytest.raises(InputError, match=r"mine\.npz .*unpacks to .* bytes, and at most 1,048,576 are read"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    assert left(cache) == []


def test_a_full_disk_leaves_nothing(source, cache, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch.Path, "write_bytes", full)
    with pytest.raises(FileError, match="mine could not be written: No space left on device"):
        fetch_agent(f"{source}/mine", sha256_of(source))
    assert left(cache) == []
