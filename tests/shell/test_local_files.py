"""`\\local` reads a large result where its file is, and removes the file with the result's last name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Program

LARGE = "select i as id, 'row ' || i as name, timestamp '2024-01-01' + to_seconds(i) as since from range(60000) t(i);\n"
NESTED = "select i as id, [i, 1] as pair, encode('a' || i) as bytes from range(60000) t(i);\n"


@pytest.mark.slow("runs the program")
def test_large_results_keep_their_types_and_leave_no_files(program: Program, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    count = f"find {temporary} -name '*.parquet' | wc -l"
    script = (
        f"\\o /dev/null\n{LARGE}{NESTED}\\o\n"
        "\\local select count(*) as n, sum(id) as s, max(name) as m, max(since) as t from _1\n"
        "\\local select sum(pair[1]) as s, typeof(any_value(pair)) as t, max(bytes) as b from _1\n"
        + f"\\! {count}\n"
        + "\\local select 1 as one\n" * 9
        + f"\\! {count}\n"
        + "\\local select count(*) as n from _9\n"
    )
    done = program("-q", "--format", "csv", stdin=script, env={"TMPDIR": str(temporary)})
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[1] == "60000,1799970000,row 9999,2024-01-01 16:39:59"
    assert lines[3] == "1799970000,BIGINT[],\\x6139393939"
    assert lines[4] == "1", "a table that is a view needs its file"
    assert lines[-3:] == ["0", "n", "1"]
    assert list(temporary.iterdir()) == []
