"""The published tests of PEP 249 on sqlshell.dbapi; argv[1] is the folder that has them."""

from __future__ import annotations

import sys
import unittest

sys.path.append(sys.argv.pop(1))

import dbapi20

import sqlshell.dbapi


class Compliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    driver = sqlshell.dbapi
    connect_args = (":memory:",)
    connect_kw_args: dict[str, object] = {}  # noqa: RUF012

    def test_nextset(self) -> None:
        """Theirs is for procedures."""
        with self._connect() as connection:
            cursor = connection.cursor()
            cursor.execute("select 1; select 2")
            assert cursor.fetchall() == [(1,)]
            assert cursor.nextset()
            assert cursor.fetchall() == [(2,)]
            assert not cursor.nextset()

    def test_non_idempotent_close(self) -> None:
        """A second close() does nothing, as in other drivers; theirs asks for an error, which the PEP does not."""
        connection = self._connect()
        connection.close()
        connection.close()
        self.assertRaises(self.driver.Error, connection.cursor)

    def test_setoutputsize(self) -> None:
        """It has no effect: values have their whole length."""
        with self._connect() as connection:
            cursor = connection.cursor()
            cursor.setoutputsize(2)
            cursor.execute("select 'a long text'")
            assert cursor.fetchone() == ("a long text",)


if __name__ == "__main__":
    unittest.main()
