"""Values of every DuckDB type, alone and nested, as SQL."""

from __future__ import annotations

from tests.cases import lines

SCALARS = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "0"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "HUGEINT": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"],
    "UTINYINT": ["255"],
    "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"],
    "UBIGINT": ["18446744073709551615"],
    "UHUGEINT": ["340282366920938463463374607431768211455"],
    "BIGNUM": ["123456789012345678901234567890123456789012"],
    "DECIMAL(4,2)": ["1.50", "-99.99"],
    "DECIMAL(3,3)": ["0.5", "-0.5", "0"],
    "DECIMAL(38,38)": ["-0.5"],
    "DECIMAL(18,3)": ["123456789012345.678"],
    "DECIMAL(38,10)": ["1234567890123456789012345678.0000000001", "0.1"],
    "FLOAT": ["0.1", "3.4028235e38", "nan", "inf", "-inf", "-0.0"],
    "DOUBLE": ["0.1", "1.7976931348623157e308", "5e-324", "nan", "inf", "-inf", "123456789"],
    "DATE": ["2024-02-29", "infinity", "-infinity", "0044-03-15 (BC)", "12345-01-01"],
    "TIME": ["00:00:00", "23:59:59.999999", "12:34:56.5"],
    "TIME_NS": ["12:34:56.123456789"],
    "TIMETZ": ["12:34:56.5+05:30"],
    "TIMESTAMP": [
        "2023-12-30 03:37:45",
        "2023-12-30 03:37:45.12",
        "infinity",
        "0044-03-15 (BC) 10:00:00.5",
        "12345-01-01",
    ],
    "TIMESTAMP_S": ["2023-12-30 03:37:45"],
    "TIMESTAMP_MS": ["2023-12-30 03:37:45.120"],
    "TIMESTAMP_NS": ["2023-12-30 03:37:45.123456789"],
    "TIMESTAMPTZ": [
        "2023-12-30 03:37:45+00",
        "2023-07-30 23:37:45.12+00",
        "infinity",
        "0044-03-15 (BC) 10:00:00.5+00",
        "0001-01-01 00:00:00+00",
        "12345-07-01 23:59:59.000001+00",
        "9999-12-31 23:59:59+00",
    ],
    "TIMESTAMPTZ_NS": ["2023-12-30 23:37:45.123456789+00"],
    "INTERVAL": ["1 month 2 days 00:00:00.5", "-1 year", "00:00:00"],
    "VARCHAR": ["", "é\U0001f600", 'quote " comma , back \\ slash', "line\nbreak\ttab", "2023-12-30 03:37:45Z", "null"],
    "JSON": ['{"a":  1.00, "b": [null]}', '"text"', "null", "123456789012345678901234567890"],
    "BLOB": ["", "ab\\xFF\\x00", "\\x22\\x5C"],
    "BIT": ["0101", "1"],
    "UUID": ["00000000-0000-4000-8000-000000000001"],
    "ENUM('a', 'b c', 'quote\"')": ["a", 'quote"'],
    "GEOMETRY": ["POINT (1 2)"],
    "VARIANT": ["text"],
}
"""Texts by the type that they are cast to."""

OTHERS = lines("values", "others")

WRAPPED = (
    "[{0}, NULL]",
    "[{0}]::{1}[1]",
    "{{'f': {0}}}",
    "({0}, 1)",
    "MAP {{'k': {0}}}",
    "MAP {{{0}: 1}}",
    "union_value(m := {0})",
)
"""What a value is put into; {1} is its type."""

DEEPER = (
    "[{{'l': [{0}], 't': ({0}, NULL)}}]",
    "MAP {{[{0}]: {{'f': {0}}}}}",
    "{{'m': MAP {{'k': ({0}, [{0}])}}, 'u': [union_value(m := {0})]}}",
)


PLAIN = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "TIMESTAMP_S"})
"""Types whose values nest as they are."""


def every_value() -> list[str]:
    """Each value as SQL."""
    found = list(OTHERS)
    for kind, texts in SCALARS.items():
        values = ["'" + text.replace("'", "''") + f"'::{kind}" for text in texts]
        found += values
        if kind in PLAIN:
            found.append(f"[{values[0]}]")
            continue
        # The first value says how the type nests, all together what its special values become there.
        found += [form.format(values[0], kind) for form in WRAPPED + DEEPER]
        found.append(f"[{', '.join(values)}]")
        found.append(f"MAP {{{', '.join(f'{value}: {value}' for value in values)}}}")
    return found
