import os
import stat
import threading

import pytest

from azjax.core.errors import FileError, InputError
from azjax.core.files import check_can_write, only_writer, write_atomically, write_text


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


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "games")
    write_text(tmp_path / "link", "one")
    write_text(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "shared" / "games").read_text() == "two"
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["games"]


def test_a_device_is_written_to_and_stays():
    check_can_write(os.devnull)
    write_text(os.devnull, "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_what_cannot_be_written_is_told_before_the_work(tmp_path):
    check_can_write(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "no" / "file")
    no_folder = "there is no folder .*no"
    for path, reason in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "file", no_folder),
        (tmp_path / "link", no_folder),
    ):
        with pytest.raises(InputError, match=f"cannot be written: {reason}"):
            check_can_write(path)


def test_writers_of_a_folder_wait_for_each_other(tmp_path):
    entered = threading.Event()

    def enter():
        with only_writer(tmp_path / "b"):
            entered.set()

    thread = threading.Thread(target=enter)
    with only_writer(tmp_path / "a"):
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(60)
    thread.join()
    assert list(tmp_path.iterdir()) == []


def test_writers_of_one_file_at_once_have_files_of_their_own(tmp_path):
    path = tmp_path / "page.html"
    with write_atomically(path) as one, write_atomically(path) as other:
        assert one.name != other.name
        one.write(b"one")
        other.write(b"other")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "one")]
