"""A failed sync of a folder is an error: its new names may be lost in a power cut though the file was synced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from foldline._util.files import Outputs, replacing
from foldline.errors import StoreError
from foldline.stores import JsonlSession
from unit.samples import user

pytestmark = pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders are not synced")

FAILURES = [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS]
UNSUPPORTED = [errno.EINVAL, errno.EBADF, errno.ENOTSUP]


class Folders:
    """Makes the sync of every folder fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        self.synced: list[Path] = []
        fsync = os.fsync

        def call(descriptor: Any) -> None:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return fsync(descriptor)
            self.synced.append(Path(f"/proc/self/fd/{descriptor}"))
            if self.number:
                raise OSError(self.number, os.strerror(self.number))
            return fsync(descriptor)

        monkeypatch.setattr(os, "fsync", call)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Folders:
    return Folders(monkeypatch)


@pytest.mark.parametrize("number", FAILURES, ids=lambda number: errno.errorcode[number])
def test_a_replaced_file_whose_folder_is_not_synced_is_an_error(folders: Folders, tmp_path: Path, number: int) -> None:
    folders.number = number
    with pytest.raises(OSError) as caught, replacing(tmp_path / "x") as stream:
        stream.write(b"new")
    assert caught.value.errno == number
    assert (tmp_path / "x").read_bytes() == b"new"  # it is there, but perhaps not after a power cut
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("number", FAILURES, ids=lambda number: errno.errorcode[number])
def test_each_output_of_the_folder_is_named(folders: Folders, tmp_path: Path, number: int) -> None:
    folders.number = number
    with Outputs() as outputs:
        staged = []
        for name in ("a", "b"):
            with outputs.staging(tmp_path / name) as (file, stream):
                stream.write(b"new")
            staged.append(file)
        faults = outputs.place(staged)
    assert [fault and fault.errno for fault in faults] == [number, number]
    assert len(folders.synced) == 1


@pytest.mark.parametrize("number", FAILURES, ids=lambda number: errno.errorcode[number])
def test_a_new_session_whose_folder_is_not_synced_is_an_error(folders: Folders, tmp_path: Path, number: int) -> None:
    folders.number = number
    with pytest.raises(StoreError) as caught:
        JsonlSession(tmp_path / "session.jsonl")
    assert caught.value.code == "sync_failed"
    folders.number = 0
    store = JsonlSession(tmp_path / "session.jsonl")  # syncs the folder again
    assert len(folders.synced) == 2
    store.append(user("hi"))
    assert store.messages() == [user("hi")]


@pytest.mark.parametrize("number", UNSUPPORTED, ids=lambda number: errno.errorcode[number])
def test_a_file_system_that_cannot_sync_folders_is_no_error(folders: Folders, tmp_path: Path, number: int) -> None:
    folders.number = number
    with replacing(tmp_path / "x") as stream:
        stream.write(b"new")
    JsonlSession(tmp_path / "session.jsonl").append(user("hi"))
    assert len(folders.synced) == 2
