"""Python's values as parameters on Spark Connect."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import sqlshell
from tests.service.spark import needs_spark

pytestmark = needs_spark

TWO_HOURS = datetime.timezone(datetime.timedelta(hours=2))
VALUES = {
    "boolean": True,
    "int": -5,
    "bigint": 2**40,
    "double": -1.5e300,
    "decimal(3,2)": Decimal("1.10"),
    "string": "it's \\' \\x41 \n",
    "binary": b"\0\xff\\'",
    "date": datetime.date(2024, 1, 2),
    "timestamp_ntz": datetime.datetime(2024, 1, 2, 3, 4, 5, 6),
    "timestamp": datetime.datetime(2024, 1, 2, 3, 4, 5, 6, TWO_HOURS),
    "interval day to second": datetime.timedelta(-1, 5, 6),
    "array<int>": [1, None],
    "array<string>": ["a", "b'\\"],
    "map<string,int>": {"a": 1},
}


def test_a_parameter_has_the_type_of_spark_and_comes_back(spark_url: str) -> None:
    found: dict[Any, Any] = {}
    with sqlshell.connect(spark_url, autocommit=True) as connection:
        for value in VALUES.values():
            row = connection.execute("select typeof(?), ?", [value, value]).fetchone()
            assert row is not None
            found[row[0]] = row[1]
    assert found == VALUES
