"""The footer of a Parquet file under other names, read by two other programs; damaged ones are refused."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

from sqlshell.output.typed.parquet_footer import UnknownFooterError, with_columns


def made(place: Path, columns: int, rows: int = 5000) -> Path:
    values = ", ".join(f"i + {number} AS c{number}" for number in range(columns))
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT {values}, 'left out' AS width FROM range({rows}) t(i)) TO '{place}' "
            "(FORMAT parquet, ROW_GROUP_SIZE 2048, KV_METADATA {known: 'only here'})"
        )
    return place


@pytest.mark.parametrize("columns", [1, 2, 15, 40])
def test_columns_are_renamed_and_left_out(tmp_path: Path, columns: int) -> None:
    place = made(tmp_path / "made.parquet", columns)
    names = ["größe", "a.b", *(f"n{number}" for number in range(2, columns))][:columns]
    end, footer = with_columns(place, names)
    other = tmp_path / "other.parquet"
    other.write_bytes(place.read_bytes()[:end] + footer)
    read = pyarrow.parquet.read_table(other)
    assert read.column_names == names
    assert read.column(columns - 1).to_pylist() == [row + columns - 1 for row in range(5000)]
    assert b"only here" not in footer
    known = pyarrow.parquet.read_metadata(other)
    assert (known.num_rows, known.num_columns) == (5000, columns)
    for number in range(known.num_row_groups):
        group = known.row_group(number)
        assert group.total_byte_size == sum(group.column(at).total_uncompressed_size for at in range(columns))
    with duckdb.connect() as reader:
        assert reader.read_parquet(str(other)).columns == names
        assert reader.read_parquet(str(other)).filter(f'"{names[0]}" = 4999').fetchall()[0][0] == 4999


def test_other_files_are_refused(tmp_path: Path) -> None:
    place = made(tmp_path / "made.parquet", 2)
    content = place.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - length
    damaged = [b"", b"PAR1", content[:-1], content[:start] + bytes(length) + content[-8:]]
    damaged += [content[:start] + content[start : start + length // 2] + content[-8:]]
    damaged += [content[:-8] + (length - 1).to_bytes(4, "little") + b"PAR1"]
    damaged += [content[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1"]
    damaged += [content[:start] + b"\xff" * length + content[-8:]]
    for data in damaged:
        place.write_bytes(data)
        with pytest.raises((UnknownFooterError, OSError)):
            with_columns(place, ["a", "b"])
    place.write_bytes(content)
    with pytest.raises(UnknownFooterError):
        with_columns(place, ["a", "b", "c", "d"])
    with duckdb.connect() as maker:
        maker.execute(f"COPY (SELECT {{'x': 1}} AS c0) TO '{place}' (FORMAT parquet)")
    with pytest.raises(UnknownFooterError):
        with_columns(place, ["a"])


def test_no_damaged_footer_gives_another_error(tmp_path: Path) -> None:
    place = made(tmp_path / "made.parquet", 2, rows=10)
    content = place.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    refused = 0
    for at in range(start, len(content)):
        place.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            end, footer = with_columns(place, ["a", "b"])
        except UnknownFooterError:
            refused += 1
            continue
        # What is damaged belongs to what is left out or to values that only a reader can judge.
        assert (end, footer[-4:]) == (start, b"PAR1")
    assert refused > (len(content) - start) // 10
