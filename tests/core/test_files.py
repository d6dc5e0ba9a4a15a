import pytest

from azjax.core.errors import FileError
from azjax.core.files import write_atomically, write_text


def test_a_file_is_written_in_utf_8(tmp_path):
    write_text(tmp_path / "page.html", "café\n")
    assert (tmp_path / "page.html").read_bytes() == b"caf\xc3\xa9\n"


def test_a_block_that_fails_leaves_the_earlier_file_alone(tmp_path):
    write_text(tmp_path / "page.html", "earlier")
    with pytest.raises(ZeroDivisionError), write_atomically(tmp_path / "page.html") as file:
        file.write(str(1 // 0).encode())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("page.html", "earlier")]


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileError, match=r"missing/page\.html could not be written: No such file or directory"):
        write_text(tmp_path / "missing" / "page.html", "")
