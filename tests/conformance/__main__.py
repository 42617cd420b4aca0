"""`python -m tests.conformance` writes the tables of clients.md from what the tests expect."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conformance import more_of_dbt, test_connector, test_dbt, test_described, test_sdk, test_terraform
from tests.conformance.outcomes import table

PAGE = Path(__file__).parent / "clients.md"

TABLES = {
    "connector": test_connector.ROWS,
    "sdk": test_sdk.ROWS,
    "dbt": [*test_dbt.ROWS, *more_of_dbt.ROWS],
    "terraform": test_terraform.ROWS,
    "described": test_described.ROWS,
}


def page(text: str) -> str:
    """Replace the tables between the marks of a text."""
    for name, rows in TABLES.items():
        made = f"<!-- table: {name} -->\n{table(rows)}<!-- /table -->"
        (before,) = re.findall(rf"<!-- table: {name} -->.*?<!-- /table -->", text, re.S)
        text = text.replace(before, made)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
