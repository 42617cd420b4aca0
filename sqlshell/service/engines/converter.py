"""The process that copies files of a store into a database file, and exits.

It reads files that anybody may have written, so it has few rights: it can read the store's directory, write one
directory, and has limits on memory, file size and time. Files are opened beneath the store's directory without
following links, and read by their descriptors, so that the opened file is the one that is read, and no name is a
pattern.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import duckdb
import msgspec

from sqlshell.service.engines.files.data_files import explained, reader
from sqlshell.service.engines.files.failures import Cause, disk_full
from sqlshell.service.engines.process.frames import COPY, CopyReport, CopyRequest
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.service.engines.sandbox.beneath import Stamp, open_file, stamp
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, literal


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=CopyRequest)
    into = Path(order.into)
    before = [Path(order.before)] if order.before else []
    signal.alarm(order.seconds)
    sandbox.restrict(
        [order.root, *before],
        [into],
        sandbox.Bounds(order.memory + sandbox.BEYOND + order.threads * sandbox.THREAD, order.file_size),
        parent=order.parent,
    )
    temporary = into / "temporary"
    temporary.mkdir(mode=0o700)
    connection = duckdb.connect(str(into / COPY))
    for setting in (
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "enable_external_file_cache = false",
        f"temp_directory = {literal(str(temporary))}",
        f"memory_limit = '{order.memory}B'",
        f"threads = {order.threads}",
    ):
        connection.execute(f"SET {setting}")
    if before:
        connection.execute(f"ATTACH {literal(order.before)} AS before (READ_ONLY)")
        for name in order.keep:
            connection.execute(f"CREATE TABLE {always_quoted(name)} AS FROM before.main.{always_quoted(name)}")
        connection.execute("DETACH before")
    for name in order.entities:
        _say(CopyReport(name))
        try:
            _say(CopyReport(name, stamp=_copied(connection, order.root, name)))
        except Failure as failure:
            _say(CopyReport(name, reason=failure.message))
        except OSError as error:
            _say(CopyReport(name, reason=error.strerror or "the file cannot be opened"))
        except duckdb.Error as error:
            _say(CopyReport(name, reason=_reason(str(error), name)))
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                # The instance is unusable after such an error; another process copies the other entities.
                return 1
    connection.close()
    shutil.rmtree(temporary, ignore_errors=True)
    return 0


def _copied(connection: duckdb.DuckDBPyConnection, root: int, name: str) -> Stamp:
    with open_file(root, name) as file:
        status = os.fstat(file)
        into, path = f"CREATE TABLE {always_quoted(name)} AS FROM ", Path(f"/dev/fd/{file}")
        try:
            connection.execute(into + reader(name, path, lines=True))
        except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
            if not (Cause.NOT_CONVERTED.of(error) or Cause.NOT_CAST.of(error)):
                raise
            # A later row has a different type from the first rows.
            os.lseek(file, 0, os.SEEK_SET)
            connection.execute(into + reader(name, path, lines=True, whole=True))
        return stamp(status)


def _reason(message: str, name: str) -> str:
    if Cause.FILE_TOO_LARGE.of(message):
        return "its copy would be too large (limit set by sqlshell serve --quota)"
    if disk_full(message):
        return "no space left on device for its copy"
    for folder in ("/dev/fd/", "/proc/self/fd/"):
        while folder in message:
            before, _, after = message.partition(folder)
            message = before + name + after.lstrip("0123456789")
    return explained(message, store=True).strip()


def _say(report: CopyReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()
