"""The rights of the process that copies a store's files, tested in a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest

from sqlshell.service.engines.process.frames import COPY, CopyReport, CopyRequest
from sqlshell.service.engines.sandbox import landlock

linux = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")

PROGRAM = """
import os, signal, socket, subprocess, sys, time
from sqlshell.service.engines import converter
from sqlshell.service.failure import Failure

def tried(connection, root, name):
    try:
        eval(name, globals() | {"connection": connection, "root": root})
    except BaseException as error:
        raise Failure("", type(error).__name__) from None
    raise Failure("", "done")

converter._copied = tried
sys.exit(converter.main())
"""

REFUSED = (
    "open('/etc/passwd').read()",
    "open('{outside}').read()",
    "open('{outside}', 'a')",
    "open('{outside}.new', 'w')",
    "os.unlink('{outside}')",
    "os.listdir('{parent}')",
    "os.listdir('/')",
    "open('../outside', opener=lambda path, flags: os.open(path, flags, dir_fd=root)).read()",
    "open('link.csv', opener=lambda path, flags: os.open(path, flags, dir_fd=root)).read()",
    "os.open('new.csv', os.O_CREAT | os.O_WRONLY, dir_fd=root)",
    "os.open('good.csv', os.O_WRONLY, dir_fd=root)",
    "os.unlink('good.csv', dir_fd=root)",
    "os.rename('good.csv', 'bad.csv', src_dir_fd=root, dst_dir_fd=root)",
    "open('{before}', 'r+b')",
    "os.unlink('{before}')",
    "connection.execute('FROM read_text($$/etc/passwd$$)').fetchall()",
    "connection.execute('COPY (SELECT 1) TO $${outside}$$')",
    "connection.execute('ATTACH $${outside}.data$$ AS o')",
    "socket.create_connection(('127.0.0.1', 9), 1)",
    "subprocess.run(['/bin/true'])",
    *(("os.kill(os.getppid(), signal.SIGCONT)",) if landlock.signals(landlock.version()) else ()),
)
ALLOWED = (
    "open('good.csv', opener=lambda path, flags: os.open(path, flags, dir_fd=root)).read()",
    "open('{into}/x', 'w').write('x')",
    "open('{before}', 'rb').read()",
)


def converted(
    folder: Path, works: list[str], *, seconds: int = 60, program: str = PROGRAM
) -> tuple[int, list[CopyReport]]:
    """What a converter says of the entities `works` of the store in `folder`, and how it ended."""
    into, store, before = folder / "into", folder / "store", folder / "before.data"
    for place in (into, store):
        place.mkdir()
    (folder / "outside").write_text("secret")
    (store / "good.csv").write_text("n\n1\n")
    (store / "link.csv").symlink_to(folder / "outside")
    with duckdb.connect(str(before)):
        pass
    root = os.open(store, os.O_RDONLY | os.O_DIRECTORY)
    try:
        order = CopyRequest(root, str(into), works, str(before), [], 1, 200 << 20, 1 << 30, seconds, os.getpid())
        argv = [sys.executable, "-c", program]
        done = subprocess.run(argv, input=msgspec.json.encode(order), capture_output=True, pass_fds=[root], check=False)
    finally:
        os.close(root)
    assert done.stdout, done.stderr.decode()
    return done.returncode, [msgspec.json.decode(line, type=CopyReport) for line in done.stdout.splitlines()]


@linux
def test_it_reads_the_stores_folder_and_writes_the_copys(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("outside", "into")} | {"parent": tmp_path}
    refused, allowed = (
        [work.format(**places, before=tmp_path / "before.data") for work in works] for works in (REFUSED, ALLOWED)
    )
    code, message = converted(tmp_path, [*refused, *allowed])
    reasons = {item.name: item.reason for item in message if item.reason}
    assert [work for work in refused if reasons[work] == "done"] == []
    assert {work: reasons[work] for work in allowed} == dict.fromkeys(allowed, "done")
    assert (code, (tmp_path / "outside").read_text()) == (0, "secret")
    assert sorted(item.name for item in (tmp_path / "store").iterdir()) == ["good.csv", "link.csv"]
    assert (tmp_path / "into" / COPY).exists()


@pytest.mark.slow("waits for the end of its time")
def test_its_time_is_bounded(tmp_path: Path) -> None:
    code, message = converted(tmp_path, ["time.sleep(60)"], seconds=1)
    assert (code, [item.reason for item in message]) == (-signal.SIGALRM, [""])
