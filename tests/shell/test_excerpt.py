"""The position of an error in a statement, and suggestions for an unknown name."""

from __future__ import annotations

import pytest

from sqlshell.diagnostics import Excerpt
from sqlshell.errors import StatementError, Where
from sqlshell.shell.running.excerpt import MessageParts, cause, excerpt, misspelled, suggested


def drawn(found: Excerpt | None) -> list[str]:
    return found.lines("|", lambda text, role: text) if found is not None else []


@pytest.mark.parametrize(
    ("sql", "message", "expected"),
    [
        ("selec 1", 'syntax error at or near "selec"', [" 1 | selec 1", "   | ^^^^^"]),
        ("select 1\nfrom\nwhere x", 'syntax error at or near "where"', [" 3 | where x", "   | ^^^^^"]),
        ("select a\n  from nope", "Table with name nope does not exist!", [" 2 |   from nope", "   |        ^^^^"]),
        (
            "select 'ü', bad from t",
            'column "bad" not found',
            [" 1 | select 'ü', bad from t", "   |" + " " * 13 + "^^^"],
        ),
        (
            "select '日本', bad from t",
            'column "bad" not found',
            [" 1 | select '日本', bad from t", "   |" + " " * 16 + "^^^"],
        ),
        ("select a.b from t", "unknown column t.b", [" 1 | select a.b from t", "   |" + " " * 8 + "^^^"]),
        (
            "drop table d.s.nope",
            'table "nope" does not exist',
            [" 1 | drop table d.s.nope", "   |" + " " * 12 + "^" * 8],
        ),
        ("select 1\nfrom a.b", "error at line 2, column 6", [" 2 | from a.b", "   |      ^^^"]),
        (
            "insert into m.t values (1)",
            "no table\n\nLINE 1: insert into m.t values (1)\n                      ^",
            [" 1 | insert into m.t values (1)", "   |" + " " * 13 + "^^^"],
        ),
        ("select 1\n+ x", "error at line 2, column 3: what", [" 2 | + x", "   |   ^"]),
        ("select x", "wrong at position 8", [" 1 | select x", "   |" + " " * 8 + "^"]),
        ("select 1", "something else went wrong", []),
        ("select 1", "error at line 99, column 3", []),
        ("select\t\tbad", 'column "bad" not found', [" 1 | select  bad", "   |" + " " * 9 + "^^^"]),
    ],
)
def test_the_line_and_the_mark(sql: str, message: str, expected: list[str]) -> None:
    assert drawn(excerpt(sql, StatementError(message, where=Where("42703")))) == expected


@pytest.mark.parametrize(
    ("state", "marked"), [("3D020", True), ("42P01", True), ("42883", True), ("22012", False), ("", False)]
)
def test_a_name_is_marked_if_the_code_says_that_it_is_unknown(state: str, marked: bool) -> None:
    error = StatementError('relation "ordrs" does not exist', where=Where(state))
    assert bool(excerpt("select * from ordrs", error)) == marked
    assert bool(suggested(error, ["orders"])) == marked


def test_an_offset_that_is_known() -> None:
    error = StatementError("wrong", where=Where(offset=9))
    assert drawn(excerpt("select 1, wrong", error)) == [" 1 | select 1, wrong", "   |" + " " * 10 + "^"]
    assert excerpt("x", StatementError("wrong", where=Where(offset=99)))


def test_long_lines_are_cut_around_the_mark() -> None:
    sql = "select " + ", ".join(f"column{number}" for number in range(500)) + ", bad, more from t"
    line, mark = drawn(excerpt(sql, StatementError('column "bad" not found', where=Where("42703"))))
    assert len(line) < 120
    assert line[mark.index("^") : mark.index("^") + 3] == "bad"
    assert (line[4:6], line[-1]) == (" …", "t")


@pytest.mark.parametrize(
    ("sql", "near", "expected"),
    [
        ("selct 1", "selct", 'did you mean "select"?'),
        ("select * form t", "t", 'did you mean "from"?'),
        ("select a from t grop by a", "by", 'did you mean "group"?'),
        ("select count(*) total foo", "foo", ""),
        ("select 1 2", "2", ""),
        ("insert into t (a) valeus (1)", "valeus", 'did you mean "values"?'),
        ("insert into orders valeus (1)", "valeus", 'did you mean "values"?'),
        ("copy orders too 'x.csv'", "too", 'did you mean "to"?'),
        ("update orders ste a = 1", "ste", 'did you mean "set"?'),
        ("orders", "orders", ""),
    ],
    ids=["first", "before", "clause", "alias", "number", "middle", "table", "short", "mixed", "name"],
)
def test_a_misspelled_keyword_is_told(sql: str, near: str, expected: str) -> None:
    assert (
        misspelled(sql, StatementError(f'syntax error at or near "{near}"', where=Where("42601")), ["orders"])
        == expected
    )
    assert misspelled(sql, StatementError(f'syntax error at or near "{near}"', where=Where("42703")), []) == ""


@pytest.mark.parametrize(
    ("message", "known", "expected"),
    [
        ("Table with name ordrs does not exist!", ["orders", "customers"], 'did you mean "orders"?'),
        ('column "custmer_id" not found', ["customer_id", "id"], 'did you mean "customer_id"?'),
        ("unknown relation sales.ordes", ["Orders"], 'did you mean "Orders"?'),
        ('column "zzz" not found', ["customer_id"], ""),
        ('relation "x" does not exist. Did you mean "y"?', ["xx", "y"], ""),
        ('relation "orders" does not exist', ["orders"], ""),
        ('Table with name t does not exist!\nDid you mean "pg_tables"?', ["pg_type"], ""),
        (
            'Table with name tabl does not exist!\nDid you mean "pg_tables"?',
            ["table", "pg_tabl"],
            'did you mean "table"?',
        ),
        ('Table with name ordrs does not exist!\nDid you mean "orders"?', [], 'did you mean "orders"?'),
        (
            'Table with name tt does not exist!\nDid you mean "t1 or t2"?',
            [],
            'did you mean "t1" or "t2"?',
        ),
        ('Table with name pg_tabels does not exist!\nDid you mean "pg_tables"?', [], 'did you mean "pg_tables"?'),
    ],
)
def test_the_nearest_names(message: str, known: list[str], expected: str) -> None:
    assert suggested(StatementError(message, where=Where("3D020")), known) == expected


BINDER = 'Binder Error: Table "o" does not have a column named "totl"\n'


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            f'{BINDER}Candidate bindings: : "total", "a ""b"""\n\nLINE 2: o.totl\n        ^^^^^^',
            MessageParts('table "o" does not have a column named "totl"', candidates=["total", 'a ""b""']),
        ),
        (
            'Catalog Error: Table with name ordrs does not exist!\nDid you mean "orders"?\nLINE 1: x\n        ^',
            MessageParts('table "ordrs" does not exist', '"orders"'),
        ),
        (
            "Binder Error: No function matches\n\tCandidate functions:\n\tabs(DOUBLE) -> DOUBLE\n",
            MessageParts("no function matches", functions=["abs(DOUBLE) -> DOUBLE"]),
        ),
        ("INTERNAL Error: broken", MessageParts("INTERNAL Error: broken")),
        ("Some Error: in words", MessageParts("Some Error: in words")),
        ("the line LINE 1: is not one", MessageParts("the line LINE 1: is not one")),
        ("Parser Error: ", MessageParts("Parser Error: ")),
        ("", MessageParts("")),
    ],
)
def test_the_cause_without_what_is_shown_elsewhere(message: str, expected: MessageParts) -> None:
    assert cause(message) == expected


@pytest.mark.parametrize(
    ("sql", "shown", "column", "expected"),
    [
        ("select\n  o.totl", "LINE 2:   o.totl\n          ^^^^^^", 3, [" 2 |   o.totl", "   |   ^^^^^^"]),
        ("select\n  o.totl", "LINE 2:   o.totl\n          ^", 3, [" 2 |   o.totl", "   |   ^^^^^^"]),
        ("select nope", "LINE 1: select nope\n               ^", 8, [" 1 | select nope", "   |        ^^^^"]),
        ("select '日本', x", "LINE 1: ...'日本', x\n                   ^", 14, None),
        ("other", "LINE 7: select nope\n               ^^^^", 0, [" 7 | select nope", "   |        ^^^^"]),
        ("other", "LINE 1: select nope\n ^^^^", 0, [" 1 | select nope", "   | ^^^^"]),
    ],
)
def test_the_place_that_a_message_shows(sql: str, shown: str, column: int, expected: list[str] | None) -> None:
    found = excerpt(sql, StatementError(f"Binder Error: wrong\n\n{shown}", where=Where("42000")))
    assert found is not None
    assert found.column == column
    assert expected is None or drawn(found) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, "candidates: f(a T0) -> R"),
        (2, "candidates: f(a T0) -> R, f(a T1) -> R"),
        (3, "candidates: f(a T0) -> R, f(a T1) -> R; \\df f lists all 3"),
    ],
)
def test_the_forms_of_a_function_are_a_hint(number: int, expected: str) -> None:
    forms = "".join(f"\tf(a T{form}, /) -> R\n" for form in range(number))
    message = (
        f"Binder Error: No function matches.\n\tCandidate functions:\n{forms}\nLINE 1: select f('x')\n               ^"
    )
    error = StatementError(message, where=Where("42883"))
    assert cause(message).words == "no function matches"
    assert suggested(error, ["g"]) == expected


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ('"note", "total"', 'did you mean "total"?'),
        (': "o.note", "o.total"', 'did you mean "total"?'),
        ('"x", "y"', ""),
    ],
)
def test_names_that_the_service_knows_there_come_first(candidates: str, expected: str) -> None:
    error = StatementError(f"{BINDER}Candidate bindings: {candidates}", where=Where("42703"))
    assert suggested(error, ["totl_of_another"]) == expected
