"""Completion: each line of completion.txt has a text with a cursor and the first suggestions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.sql.completion.catalog import (
    BLOCK,
    MOST,
    CachedCatalog,
    Catalog,
    Column,
    ForeignKey,
    Function,
    Names,
    Relation,
)
from sqlshell.sql.completion.expected import Expected
from sqlshell.sql.completion.suggestions import Place, Suggestion, suggestions

TABLE = Path(__file__).with_name("completion.txt")


def contents() -> CachedCatalog:
    relations = [
        Relation("local", "main", "orders", "table"),
        Relation("local", "main", "customers", "table"),
        Relation("local", "main", "events", "stream"),
        Relation("local", "main", "maße", "table"),
        Relation("local", "sales", "Orders 2024", "view"),
        Relation("local", "sales", "invoices", "table"),
        Relation("local", "main", "monthly", "materialized view"),
        Relation("other", "main", "far", "table"),
    ]
    system = [
        Relation("local", "information_schema", "tables", "view"),
        Relation("local", "pg_catalog", "pg_class", "table"),
    ]
    columns = {
        "local.main.orders": ["id", "customer_id", "total", "created", "note"],
        "local.main.customers": ["id", "name", "email"],
        "local.main.maße": ["größe"],
        "local.sales.Orders 2024": ["Amount", "region"],
        "local.sales.invoices": ["number", "order_no"],
        "other.main.far": ["distance"],
        "local.information_schema.tables": ["table_name"],
        "local.pg_catalog.pg_class": ["relname"],
    }
    names = {
        "database": ["local", "other"],
        "schema": ["main", "sales"],
        "store": ["kafka1", "files1"],
        "role": ["owner", "reader", "writer"],
        "pool": ["pool1"],
        "organization": ["acme"],
        "sequence": ["numbers"],
        "index": ["by_total"],
        "user type": ["mood"],
        "macro": ["added"],
        "query": ["11112222-0000-4000-8000-000000000001"],
    }
    typed = {name: [Column(column, "INTEGER") for column in given] for name, given in columns.items()}
    keys = [ForeignKey("local.sales.invoices", ["order_no"], "local.main.orders", ["id"])]
    functions = [
        Function("count", "(any) -> BIGINT"),
        Function("array_agg", "(arg) -> T[]"),
        *(Function(name, "(date, date) -> integer") for name in ("date_add", "date_part", "date_trunc")),
        Function("generate_series", "(start, stop)", rows=True),
        Function("second", "(timestamp) -> BIGINT"),
    ]
    return CachedCatalog(relations, typed, functions, names, keys, system)


def other(wanted: Expected) -> list[Suggestion]:
    lists = {"format": ["csv", "json", "jsonl"], "x": ["on", "off"]}
    words = ["fetch", "format", "x"] if "command" in wanted.kinds else lists.get(wanted.within, [])
    return [Suggestion(word, "command") for _, word in Names(words).matching(wanted.prefix)]


def place() -> Place:
    catalog = Catalog(contents())
    catalog.add_result_columns(["seen_in_a_result", "name_of_a_result"])
    return Place(catalog, "local", "main", other)


def rows() -> Iterator[tuple[str, str]]:
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            text, _, choices = line.rpartition(" => ")
            yield text.replace("\\n", "\n"), choices


def chosen(text: str) -> list[str]:
    cursor = text.index("|")
    return [item.text for item in suggestions(text.replace("|", "", 1), cursor, place())[1]]


@pytest.mark.parametrize(("text", "choices"), list(rows()))
def test_first_choices(text: str, choices: str) -> None:
    found = chosen(text)
    if choices == "-":
        typed = text[: text.index("|")].split()[-1:] or [""]
        assert [item for item in found if item.lower() != typed[0].lower()] == [], text
        return
    if choices.endswith("!"):
        assert found == choices[:-1].split(", "), text
        return
    assert any(found[: len(wanted)] == wanted for wanted in (part.split(", ") for part in choices.split(" | "))), (
        text,
        choices,
        found[:6],
    )


def test_the_table_is_as_long_as_promised() -> None:
    assert len(list(rows())) >= 200


@pytest.mark.slow("many generated cases")
@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="selct from(),.'\"`$;/*-\\\né|x ", max_size=60), st.integers(0, 60))
def test_any_text_is_taken(text: str, at: int) -> None:
    cursor = min(at, len(text))
    start, found = suggestions(text, cursor, place())
    assert 0 <= start <= cursor
    assert all(item.text for item in found)


def test_without_a_catalog_there_are_keywords_and_seen_names() -> None:
    catalog = Catalog()
    catalog.add_result_columns(["seen_column", "Other"])
    text = "select se"
    found = [item.text for item in suggestions(text, len(text), Place(catalog))[1]]
    assert "seen_column" in found
    assert next(item.text for item in suggestions("sel", 3, Place(catalog))[1]) == "select"


def test_what_is_used_comes_first() -> None:
    there = place()
    there.catalog.note_use(["customers"])
    text = "select * from "
    assert suggestions(text, len(text), there)[1][0].text == "customers"


def test_names_of_a_service_are_quoted_whole() -> None:
    hostile = ['a"b', "a;drop table x", "a\nb", "select", "Ünïcode", "9lives", ""]
    catalog = Catalog(CachedCatalog([Relation("d", "s", name) for name in hostile]))
    text = "select * from "
    for item in suggestions(text, len(text), Place(catalog, "d", "s"))[1]:
        if item.kind == "relation":
            assert item.text.startswith('"')
            assert item.text.endswith('"')
            assert item.text[1:-1].count('"') % 2 == 0


def test_the_best_matches_come_first_and_no_more_than_are_shown() -> None:
    ranked = ["abc", "x_abc", "xabc", "axbxc", "yaxbxc", "none"]
    assert list(Names(reversed(ranked)).matching("ABC")) == [(rank, name) for rank, name in enumerate(ranked[:5])]
    many = [f"name{number}" for number in range(BLOCK + MOST)]
    for typed in ("", "name", "ame", "nm"):
        assert [name for _, name in Names(many).matching(typed)] == many[:MOST]
    # The one that begins with what was typed is far behind, and comes first.
    late = ["xab"] * 2 + [f"{number}ab" for number in range(BLOCK)] + ["ab"]
    found = list(Names(late).matching("ab"))
    assert (len(found), found[:3]) == (MOST, [(0, "ab"), (2, "xab"), (2, "0ab")])
