"""Files that cannot be read: the message names the file, the line and the cause."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from sqlshell.runtime.compressed_files import ends_too_early
from tests.conftest import Program

MANY = "1,2\n" * 30_000
DATA: dict[str, tuple[bytes, str]] = {
    "latin.csv": (b"name,city\nanna,K\xf6ln\n", "latin.csv, line 2: invalid UTF-8"),
    "first.csv": (b"K\xf6ln,b\n1,2\n", "first.csv, line 1: invalid UTF-8"),
    "latin.tsv": (b"name\tcity\nanna\tK\xf6ln\n", "latin.tsv, line 2: invalid UTF-8"),
    "type.csv": (f"a,b\n{MANY}oops,2\n".encode(), "type.csv, line 30002, column \"a\": cannot convert"),
    "wide.csv": (f"a,b\n{MANY}1,2,3\n".encode(), "wide.csv, line 30002: expected 2 columns, found 3"),
    "bad.jsonl": (b'{"a":1}\n{"a":}\n{"a":2}\n', "bad.jsonl, line 2, byte 6: unexpected character"),
    "one.jsonl": (b'{"a":}\n', "one.jsonl, line 1, byte 6: unexpected character"),
    "latin.jsonl": (b'{"a":1}\n{"a":"K\xf6ln"}\n', "latin.jsonl, line 2, byte 8: invalid UTF-8"),
    "late.ndjson": (b'{"a":1}\n' * 30_000 + b'{"a":\n', "late.ndjson, line 30001"),
    "bad.json": (b'[{"a":1},\n{"a":}]', "bad.json, record 2, byte 6: unexpected character"),
    "bad.parquet": (b"PAR", "bad.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_a_data_file(program: Program, tmp_path: Path, name: str) -> None:
    content, message = DATA[name]
    (tmp_path / name).write_bytes(content)
    done = program(name, "-q", "-c", f"from {name.partition('.')[0]}")
    assert done.code in {1, 2}
    assert message in done.err
    assert len(done.err.strip().splitlines()) <= 4, done.err
    sql = program("-q", "-c", f"from '{name}'")
    assert (sql.code, message in sql.err) == (1, True), sql.err


def test_compressed_data_that_is_cut_off_is_not_read(program: Program) -> None:
    whole = zstd.compress(b"a,b\n" + b"1,2\n" * 100_000)
    for data in (whole[:-5], whole + whole[:3]):
        done = program("-", "-c", "from stdin", stdin=data)
        assert (done.code, done.out) == (2, "")
        assert "stdin: the zstd data is incomplete" in done.err
        done = program("import", "-", "t.duckdb", "--table", "t", "--create", stdin=data)
        assert (done.code, "the zstd data is incomplete" in done.err) == (2, True), done.err
    done = program("-", "--format", "csv", "-c", "select count(*) as n from stdin", stdin=whole)
    assert (done.code, done.out) == (0, "n\n100000\n")


@given(
    st.lists(st.tuples(st.binary(max_size=400), st.booleans(), st.sampled_from(["frame", "stream", "skippable"]))),
    st.integers(0, 4000),
)
def test_zstd_frames_that_are_cut_off_are_recognized(pieces: list[tuple[bytes, bool, str]], kept: int) -> None:
    data, ends = b"", {0}
    for piece, checksum, kind in pieces:
        if kind == "skippable":
            data += b"\x5f\x2a\x4d\x18" + len(piece).to_bytes(4, "little") + piece
        elif kind == "frame":
            data += zstd.compress(piece * 9, options={zstd.CompressionParameter.checksum_flag: checksum})
        else:
            stream = zstd.ZstdCompressor()
            data += stream.compress(piece) + stream.flush(stream.FLUSH_BLOCK) + stream.compress(piece) + stream.flush()
        ends.add(len(data))
    with NamedTemporaryFile() as file:
        file.write(data[:kept])
        file.flush()
        assert ends_too_early(Path(file.name)) is (min(kept, len(data)) not in ends)


def test_a_format_that_cannot_be_detected(program: Program, tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\nx,3,4\n")
    done = program("-q", "-c", "from read_csv('ragged.csv', columns = {a: 'int', b: 'int'})")
    assert (done.code, len(done.err.splitlines())) == (1, 3), done.err
    assert "ragged.csv: expected 2 columns, found 3; correct the parameter columns" in done.err
    done = program("-q", "-c", "from read_csv('ragged.csv', columns = {a: 'int'}, delim = '|', quote = 'a')")
    assert (done.code, len(done.err) < 400) == (1, True), done.err


def test_what_is_advised_works(program: Program, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"name,city\nanna,K\xf6ln\n")
    sql = "FROM read_csv('latin.csv', encoding = 'latin-1')"
    assert sql in program("latin.csv", "-c", "select 1").err
    assert program("-q", "-c", sql, "--format", "csv").out == "name,city\nanna,Köln\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[profiles.work]\nurl = "http://127.0.0.1:9"\nretries = = 3\n', "config.toml, line 3: "),
        (b'[profiles.work]\n\nurl = "x\n', "config.toml, line 3: "),
        (b'[profiles.work]\nurl = "K\xf6ln"\n', "config.toml, line 2: invalid UTF-8"),
        (b"[profiles.work", "config.toml, line 1: "),
    ],
)
def test_the_doctor_names_the_line_of_the_settings(
    program: Program, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    done = program("doctor", env=env)
    assert done.code == 3
    assert f"!!  config: {tmp_path}/{message}" in done.out
    assert "ok  target: the embedded service" in done.out
    assert done.err == ""
    shell = program("-c", "select 1", env=env)
    assert (shell.code, f"error: {tmp_path}/{message}" in shell.err) == (2, True), shell.err


def test_the_doctor_of_a_target_that_is_none(program: Program, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[profiles.work]\nretrys = 3\n")
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    for target, message in (("work", "unknown key 'retrys'"), ("nowhere", "nowhere")):
        done = program("doctor", target, env=env)
        assert done.code == 3
        assert "ok  packages" in done.out
        assert message in next(line for line in done.out.splitlines() if line.startswith("!!  target")), done.out


def test_a_profile_that_is_named_like_a_command_keeps_its_hint(program: Program, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[profiles.jobs]\nretrys = 3\n")
    done = program("jobs", "-c", "select 1", env={"SQLSHELL_CONFIG_DIR": str(tmp_path)})
    assert (done.code, 'help: did you mean "retries"?\n' in done.err) == (2, True), done.err


@pytest.mark.slow("runs the program twice")
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_quote_that_is_not_closed_is_not_skipped(program: Program, tmp_path: Path, ending: str) -> None:
    rows = "".join(f"{number},y\n" for number in range(3, 5000))
    text = f'a,b\n1,x\n2,"abc\n{rows}'.encode()
    (tmp_path / f"u.csv{ending}").write_bytes(gzip.compress(text) if ending else text)
    argv = (
        "import",
        f"u.csv{ending}",
        "w.duckdb",
        "--table",
        "t",
        "--create",
        "--max-errors",
        "5",
        "--rejects",
        "r.csv",
    )
    done = program(*argv)
    assert (done.code, f"u.csv{ending}, line 3: unterminated quoted field" in done.err) == (1, True), done
    # The quote of another row is closed.
    text = f'a,b\n1,x\n2,"abc"z\n{rows}'.encode()
    (tmp_path / f"u.csv{ending}").write_bytes(gzip.compress(text) if ending else text)
    done = program(*argv)
    assert (done.code, "4,998 rows loaded" in done.err) == (0, True), done


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: data[:-8] + bytes(4) + data[-4:], "the gzip data is damaged"),
        (lambda data: data[:-6], "the gzip data is incomplete"),
        (lambda data: data + bytes(512), "other bytes follow the gzip data"),
        (lambda data: data + b"garbage", "other bytes follow the gzip data"),
        (lambda data: data + gzip.compress(b"3\n" * 99_999) + gzip.compress(b""), ""),
    ],
    ids=["checksum", "cut", "padded", "garbage", "members"],
)
def test_damaged_gzip_data_is_not_loaded(
    program: Program, tmp_path: Path, change: Callable[[bytes], bytes], error: str
) -> None:
    data = change(gzip.compress(b"id\n" + b"1\n" * 20_000))
    (tmp_path / "b.csv.gz").write_bytes(data)
    done = program("import", "b.csv.gz", "w.duckdb", "--table", "t", "--create")
    assert (done.code, error in done.err) == (2 if error else 0, True), done
    piped = program("-", "-c", "select count(*) from stdin", stdin=data)
    assert (piped.code, error in piped.err) == (2 if error else 0, True), piped
