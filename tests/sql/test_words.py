"""The tables that completion and colors read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sqlshell.sql import keywords

PLURALS = {"ENTITY": "ENTITIES", "QUERY": "QUERIES", "SCHEMA_REGISTRY": "SCHEMA_REGISTRIES"}
LISTED_ALONE = {"INVITATIONS"}
NOT_LISTED = {"INDEX", "MATERIALIZED VIEW", "METRICS INTEGRATION", "SECURITY INTEGRATION", "TABLE"}


@pytest.mark.parametrize("name", [name for name in vars(keywords) if name.isupper() and name != "KEYWORDS"])
def test_tables_name_nothing_twice(name: str) -> None:
    table = getattr(keywords, name)
    assert table
    assert len(set(table)) == len(table)


def test_upper_case_but_for_functions() -> None:
    assert all(name == name.upper() for name in keywords.KEYWORDS | set(keywords.TYPES) | set(keywords.STATEMENTS))
    assert all(name == name.lower() for name in keywords.FUNCTIONS)


def test_what_is_listed_can_be_dropped_or_described() -> None:
    known = {*keywords.DROP_OBJECTS, *keywords.DESCRIBE_OBJECTS}
    assert {PLURALS.get(name, name + "S") for name in known - NOT_LISTED} | LISTED_ALONE == set(keywords.LIST_OBJECTS)


def test_what_is_created_can_be_dropped() -> None:
    assert set(keywords.CREATE_OBJECTS) < set(keywords.DROP_OBJECTS)


def test_context_is_made_of_what_can_be_dropped() -> None:
    assert set(keywords.CONTEXT_PARTS) < set(keywords.DROP_OBJECTS)


def test_parts_belong_to_what_can_be_described() -> None:
    assert set(keywords.DESCRIBE_PARTS) < set(keywords.DESCRIBE_OBJECTS)


def test_keywords_are_single_words_and_no_types() -> None:
    assert {"SELECT", "MATERIALIZED", "COMPUTE_POOLS", "TERMINATE", "NULL"} < keywords.KEYWORDS
    assert not any(" " in word for word in keywords.KEYWORDS)
    assert not keywords.KEYWORDS & set(keywords.TYPES)


def test_splitting_and_words_load_no_colors() -> None:
    program = "import sys, sqlshell.sql.script.scanner, sqlshell.sql.keywords; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules = done.stdout.split()
    assert "sqlshell.sql.script.scanner" in modules
    assert "pygments" not in modules
