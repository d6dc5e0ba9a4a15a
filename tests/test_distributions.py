"""The wheel and the source archive hold what is committed, and two builds of them are the same bytes."""

import hashlib
import re
import shutil
import tarfile
import tomllib
import zipfile

import pytest
from building import ROOT, build, committed

import azjax

# Files for those who work on azjax, and not for its users. Hatchling adds .gitignore by itself.
NOT_IN_ARCHIVE = (".ci/", ".github/", ".pre-commit-config.yaml")

if shutil.which("git") is None or not (ROOT / ".git").exists():
    pytest.skip("needs the repository", allow_module_level=True)
pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source archive."""
    return build(tmp_path_factory.mktemp("built"), 1_500_000_000, 0o644)


def test_two_builds_are_the_same_bytes(built, tmp_path):
    again = build(tmp_path / "another folder", 1_600_000_000, 0o600)
    digests = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] for paths in (built, again)]
    assert digests[0] == digests[1]
    assert [path.suffix for path in built] == [".whl", ".gz"]


def test_the_wheel_holds_the_committed_files_of_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    assert names - metadata == committed("azjax")
    assert {name.partition("/")[2] for name in metadata} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }


def test_the_source_archive_holds_what_is_committed(built):
    with tarfile.open(built[1]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    expected = {path for path in committed() if not path.startswith(NOT_IN_ARCHIVE)}
    assert names == expected | {"PKG-INFO"}


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert project["version"] == cited == azjax.__version__
