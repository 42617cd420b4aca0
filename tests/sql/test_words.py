"""The tables that completion and colours read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sqlshell.sql import words

PLURALS = {"ENTITY": "ENTITIES", "QUERY": "QUERIES", "SCHEMA_REGISTRY": "SCHEMA_REGISTRIES"}
LISTED_ALONE = {"INVITATIONS"}
NOT_LISTED = {"INDEX", "MATERIALIZED VIEW", "METRICS INTEGRATION", "SECURITY INTEGRATION", "TABLE"}


@pytest.mark.parametrize("name", [name for name in vars(words) if name.isupper() and name != "KEYWORDS"])
def test_tables_name_nothing_twice(name: str) -> None:
    table = getattr(words, name)
    assert table
    assert len(set(table)) == len(table)


def test_upper_case_but_for_functions() -> None:
    assert all(name == name.upper() for name in words.KEYWORDS | set(words.TYPES) | set(words.STATEMENTS))
    assert all(name == name.lower() for name in words.FUNCTIONS)


def test_what_is_listed_can_be_dropped_or_described() -> None:
    known = {*words.DROP_OBJECTS, *words.DESCRIBE_OBJECTS}
    assert {PLURALS.get(name, name + "S") for name in known - NOT_LISTED} | LISTED_ALONE == set(words.LIST_OBJECTS)


def test_what_is_created_can_be_dropped() -> None:
    assert set(words.CREATE_OBJECTS) < set(words.DROP_OBJECTS)


def test_context_is_made_of_what_can_be_dropped() -> None:
    assert set(words.CONTEXT_PARTS) < set(words.DROP_OBJECTS)


def test_parts_belong_to_what_can_be_described() -> None:
    assert set(words.DESCRIBE_PARTS) < set(words.DESCRIBE_OBJECTS)


def test_keywords_are_single_words_and_no_types() -> None:
    assert {"SELECT", "MATERIALIZED", "COMPUTE_POOLS", "TERMINATE", "NULL"} < words.KEYWORDS
    assert not any(" " in word for word in words.KEYWORDS)
    assert not words.KEYWORDS & set(words.TYPES)


def test_splitting_and_words_load_no_colours() -> None:
    program = "import sys, sqlshell.sql.scanner, sqlshell.sql.words; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules = done.stdout.split()
    assert "sqlshell.sql.scanner" in modules
    assert "pygments" not in modules
