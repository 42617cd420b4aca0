"""Result files that several processes share: in a directory, and in an object store."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlshell.errors import ServiceError, UsageError
from sqlshell.service.results.results import Spool
from tests.service.cluster import needs_cluster
from tests.service.required import required

if TYPE_CHECKING:
    from sqlshell.service.results.shared_files import SharedFiles

pytestmark = [needs_cluster, pytest.mark.engines]

_HAS_S3 = required("s3") or all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors", "s3fs"))
needs_s3 = pytest.mark.requires("" if _HAS_S3 else "needs S3: pip install s3fs 'moto[s3]' flask flask-cors")


@contextlib.contextmanager
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server with S3's interface; yields its URL."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
    ):
        monkeypatch.setenv(name, value)
    # fsspec may have kept one with the address of an earlier server.
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        s3fs.S3FileSystem(skip_instance_cache=True).makedirs("bucket", exist_ok=True)
        yield "s3://bucket/prefix"
    finally:
        server.stop()


@pytest.fixture(params=["directory", pytest.param("object store", marks=needs_s3)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "directory":
        yield f"file://{tmp_path}/shared"
    else:
        with object_store(monkeypatch) as made:
            yield made


def test_a_result_of_one_process_is_read_and_removed_by_another(tmp_path: Path, url: str) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    here, there = (SharedFiles(url) for _ in range(2))
    made = Spool(lambda: tmp_path / "made", 10, here, here.place("o", "s"))
    made.keep([f'["{number}","{"x" * 10_000}"]' for number in range(20)])
    made.finish()
    found = Spool(lambda: tmp_path / "found", 10, there, there.place("o", "s"))
    found.restore(made.layout, made.body, made.size)
    assert found.partition(1) == made.partition(1)
    assert found.partition(1).startswith(b'["10"')
    found.drop()
    there.close()
    (tmp_path / "made").unlink()
    with pytest.raises(FileNotFoundError):
        made.partition(0)
    here.close()


def test_a_small_result_needs_no_file(tmp_path: Path) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    files = SharedFiles(f"file://{tmp_path}/shared")
    made = Spool(lambda: tmp_path / "made", 10, files, files.place("o", "s"))
    made.keep(['["1"]'])
    made.finish()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    files.close()


def _spool(files: SharedFiles, path: Path, name: str) -> Spool:
    return Spool(lambda: path, 10, files, files.place("o", name))


def test_copies_that_nobody_uses_make_room_for_others(tmp_path: Path) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    url = f"file://{tmp_path}/shared"
    with contextlib.closing(SharedFiles(url)) as here, contextlib.closing(SharedFiles(url, 250_000, 0)) as there:
        made, found = [], []
        for number in range(4):
            name = str(number)
            made.append(_spool(here, tmp_path / f"made{name}", name))
            made[-1].keep([f'["{number}","{"x" * 100_000}"]'])
            made[-1].finish()
            spool = _spool(there, tmp_path / f"found{name}", name)
            found.append(spool.restore(made[-1].layout, made[-1].body, made[-1].size))

        def copies() -> set[str]:
            return {path.name for path in tmp_path.glob("found*")}

        for number in (0, 1, 0, 2):
            assert found[number].partition(0) == made[number].partition(0)
        assert copies() == {"found0", "found2"}
        # It is fetched again, and the file that a reader has opened can be read to its end.
        file, size = found[0].open_whole()
        for number in (1, 3):
            assert found[number].partition(0) == made[number].partition(0)
        assert copies() == {"found1", "found3"}
        with file:
            assert len(file.read()) == size
        assert len(list(tmp_path.glob("made*"))) == 4


def test_copies_that_were_used_just_now_are_kept(tmp_path: Path) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    with contextlib.closing(SharedFiles(f"file://{tmp_path}/shared", 1)) as files:
        for name in ("a", "b"):
            made = _spool(files, tmp_path / name, name)
            made.keep([f'["{"x" * 100_000}"]'])
            made.finish()
        assert sorted(path.name for path in tmp_path.glob("?")) == ["a", "b"]


def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    with pytest.raises(UsageError, match=r"--results-url nowhere://"):
        SharedFiles("nowhere://bucket")
    for place in ("memory://x", "simplecache::memory://x", "relative", "file://relative", "file:relative"):
        with pytest.raises(UsageError, match=r"--results-url must (be the URL of a storage|contain an absolute path)"):
            SharedFiles(place)
    with pytest.raises(ServiceError, match=r"cannot use --results-url ftp://…") as failed:
        SharedFiles("ftp://user:S3cret@127.0.0.1:1/x")
    assert "S3cret" not in str(failed.value)
    (tmp_path / "file").touch()
    with pytest.raises(ServiceError, match=r"cannot write to --results-url"):
        SharedFiles(f"file://{tmp_path}/file")


def test_a_storage_has_an_identity(tmp_path: Path, url: str) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    with (
        contextlib.closing(SharedFiles(url)) as here,
        contextlib.closing(SharedFiles(url)) as there,
        contextlib.closing(SharedFiles(f"{tmp_path}/elsewhere")) as elsewhere,
    ):
        assert here.identity() == there.identity() != elsewhere.identity()


@needs_s3
def test_a_bucket_is_not_created(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    with object_store(monkeypatch), pytest.raises(ServiceError, match=r"cannot write to --results-url"):
        SharedFiles("s3://misspelt/prefix")


def test_what_no_statement_needs_is_removed_by_a_sweep(tmp_path: Path, url: str) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    with contextlib.closing(SharedFiles(url)) as files:
        kept = {}
        for name in ("needed", "running", "left"):
            made = _spool(files, tmp_path / name, name)
            made.keep([f'["{"x" * 100_000}"]'])
            made.finish()
            kept[name] = made
            (tmp_path / name).unlink()

        def needed(names: Collection[str]) -> dict[str, bool]:
            assert set(names) <= {"needed", "running", "left"}
            return {"needed": False, "running": True}

        assert files.sweep("this", needed) == 1
        assert files.sweep("this", needed) == 0
        for name in ("needed", "running"):
            assert kept[name].partition(0)
        with pytest.raises(FileNotFoundError):
            kept["left"].partition(0)
        # Another service that has its results in the same storage removes nothing.
        with pytest.raises(OSError, match="another service"):
            files.sweep("other", lambda names: {})


def test_incomplete_files_are_removed_once_their_statements_have_ended(tmp_path: Path) -> None:
    from sqlshell.service.results.shared_files import SharedFiles

    folder = tmp_path / "shared/results/o"
    folder.mkdir(parents=True)
    for name in ("ended.1.part", "running.1.part", "gone.1.part"):
        (folder / name).touch()
    with contextlib.closing(SharedFiles(f"file://{tmp_path}/shared")) as files:
        assert files.sweep("this", lambda names: {"ended": False, "running": True}) == 2
    assert [path.name for path in folder.iterdir()] == ["running.1.part"]
