"""Functions that no service lists with their parameters."""

from __future__ import annotations

from typing import Final

SIGNATURES: Final = {
    "array_join": "(array, separator) -> VARCHAR",
    "array_max": "(array) -> T",
    "array_min": "(array) -> T",
    "array_remove": "(array, value) -> T[]",
    "convert_tz": "(text, from_zone, to_zone) -> VARCHAR",
    "current_row_timestamp": "() -> TIMESTAMPTZ",
    "date_format": "(time, pattern) -> VARCHAR",
    "e": "() -> DOUBLE",
    "element": "(array) -> T",
    "from_unixtime": "(seconds[, pattern]) -> VARCHAR",
    "initcap": "(text) -> VARCHAR",
    "is_alpha": "(text) -> BOOLEAN",
    "is_decimal": "(text) -> BOOLEAN",
    "is_digit": "(text) -> BOOLEAN",
    "json_query": "(json, path) -> VARCHAR",
    "json_string": "(value) -> VARCHAR",
    "locate": "(part, text) -> BIGINT",
    "map_from_arrays": "(keys, values) -> MAP(K, V)",
    "map_union": "(map, other) -> MAP(K, V)",
    "nvl": "(value, default) -> T",
    "rand": "() -> DOUBLE",
    "rand_integer": "(bound) -> INTEGER",
    "regexp": "(text, regex) -> BOOLEAN",
    "split_index": "(text, separator, index) -> VARCHAR",
    "timestampadd": "(unit, count, time) -> TIMESTAMP",
    "timestampdiff": "(unit, start, end) -> BIGINT",
    "to_date": "(text[, pattern]) -> DATE",
    "to_timestamp_ltz": "(text[, pattern[, zone]]) -> TIMESTAMPTZ (+1 overload)",
    "truncate": "(number[, digits]) -> T",
    "unix_timestamp": "([text[, pattern]]) -> BIGINT",
}
"""The interface's own functions."""

UNLISTED: Final = SIGNATURES | {"coalesce": "(value, ...) -> T", "ifnull": "(value, default) -> T"}
"""Those, and functions that are part of SQL's grammar."""

IN_GRAMMAR: Final = {
    "coalesce": "(value, ...)",
    "greatest": "(value, ...)",
    "least": "(value, ...)",
    "nullif": "(value, other)",
}
"""Functions that are part of SQL's grammar on a server, which does not list them."""
