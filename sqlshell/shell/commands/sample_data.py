"""The sample data of `\\demo`: a small shop with 100,000 orders, made by the SQL of the local service.

It is the same each time: numbers are spread by arithmetic, not by random().
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = "shop"
TABLES: Final = ("customers", "products", "orders", "order_items")
"""In the order in which they are made; a table refers only to those before it."""

MARK: Final = "sample data of \\demo"
"""The comment of each table, by which `\\demo off` recognizes its own."""

EXISTING: Final = (
    "SELECT s.schema_name, t.name, t.comment FROM duckdb_schemas() s LEFT JOIN (SELECT database_name, schema_name, "
    "table_name AS name, comment FROM duckdb_tables() UNION ALL SELECT database_name, schema_name, view_name, comment "
    "FROM duckdb_views()) t USING (database_name, schema_name) "
    f"WHERE s.schema_name = '{SCHEMA}' AND s.database_name = current_database()"
)
"""The existing contents of the schema: its name, and the name and comment of each relation, NULL if there is none."""


def _pick(of: str, salt: int, most: int) -> str:
    """SQL for a number from 0 to `most` - 1 that depends on `of`, without a visible pattern."""
    return f"((({of}) + {salt}) * 2654435761 % 4294967296 // 65536 % {most})"


_FIRST = (
    "['Ada','Ben','Chloe','Diego','Elif','Farid','Grace','Hana','Ivan','Julia','Kofi','Lena','Mateo','Nora','Omar',"
    "'Priya','Quentin','Rosa','Sven','Tomoko','Uma','Viktor','Wanda','Yusuf','Zoe']"
)
_LAST = (
    "['Andersson','Baker','Castillo','Dubois','Eriksen','Fischer','Garcia','Haddad','Ito','Jansen','Kowalski',"
    "'Larsson','Moreau','Novak','Okafor','Petrov','Quinn','Rossi','Silva','Tanaka','Ueda','Vargas','Weber','Yilmaz']"
)
_CITIES = (
    "[['Berlin','Germany'],['Paris','France'],['Madrid','Spain'],['Oslo','Norway'],['Kyoto','Japan'],"
    "['Lagos','Nigeria'],['Lima','Peru'],['Austin','United States'],['Toronto','Canada'],['Pune','India'],"
    "['Turin','Italy'],['Perth','Australia']]"
)
_KINDS = "['Classic','Compact','Organic','Deluxe','Handmade','Lightweight','Vintage','Waterproof']"
_ITEMS = (
    "[['teapot','kitchen','38'],['coffee grinder','kitchen','55'],['bread knife','kitchen','24'],"
    "['apron','kitchen','19'],['desk lamp','home','64'],['wool blanket','home','89'],['candle','home','12'],"
    "['wall clock','home','45'],['notebook','office','9'],['fountain pen','office','31'],['backpack','travel','99'],"
    "['water bottle','travel','22'],['umbrella','travel','27'],['tent','outdoors','240'],['headlamp','outdoors','34'],"
    "['hammock','outdoors','72'],['chess set','games','58'],['puzzle','games','21'],['card deck','games','8'],"
    "['kite','games','29']]"
)

_COLUMNS = {
    "customers": "id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, email VARCHAR NOT NULL, city VARCHAR NOT NULL, "
    "country VARCHAR NOT NULL, since DATE NOT NULL, phone VARCHAR, newsletter BOOLEAN NOT NULL",
    "products": "id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, category VARCHAR NOT NULL, "
    "price DECIMAL(8,2) NOT NULL, stock INTEGER NOT NULL, tags VARCHAR[]",
    "orders": f"id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES {SCHEMA}.customers(id), "
    "ordered_at TIMESTAMP NOT NULL, shipped_at TIMESTAMP, status VARCHAR NOT NULL, shipping DECIMAL(6,2) NOT NULL",
    "order_items": f"order_id INTEGER NOT NULL REFERENCES {SCHEMA}.orders(id), line INTEGER NOT NULL, "
    "product_id INTEGER NOT NULL, quantity INTEGER NOT NULL, price DECIMAL(8,2) NOT NULL",
}
"""A further index, for a reference from order_items to products, would take half a second."""

_ROWS = {
    "customers": f"""
SELECT i, first || ' ' || last, lower(first) || '.' || lower(last) || i || '@example.com', city[1], city[2],
  DATE '2021-01-01' + (i * 7919 % 1400)::INTEGER,
  CASE WHEN i % 4 > 0 THEN '+1 555 ' || lpad((i * 48271 % 10000)::VARCHAR, 4, '0') END, i * 31 % 5 < 2
FROM (SELECT i, {_FIRST}[1 + i * 17 % 25] AS first, {_LAST}[1 + i // 25 * 7 % 24] AS last,
  {_CITIES}[1 + (i * 5 + i // 24) % 12] AS city FROM range(1, 2001) t(i))""",
    "products": f"""
SELECT i, {_KINDS}[1 + i * 5 % 8] || ' ' || item[1], item[2],
  (item[3]::INTEGER * (80 + i * 37 % 60) // 100)::DECIMAL(8,2) + [0.0, 0.49, 0.9, 0.95, 0.99][1 + i % 5],
  i * 7919 % 400, CASE WHEN i % 6 = 0 THEN NULL WHEN i % 3 = 0 THEN ['new'] WHEN i % 7 = 0 THEN ['sale', 'last chance']
  ELSE [] END
FROM (SELECT i, {_ITEMS}[1 + i % 20] AS item FROM range(1, 161) t(i))""",
    "orders": f"""
SELECT id, customer_id, ordered_at,
  CASE WHEN status IN ('shipped', 'returned') THEN ordered_at + to_minutes(360 + id * 48271 % 5400) END, status,
  [0.0, 4.9, 4.9, 7.5, 12.0][1 + id * 31 % 5]
FROM (SELECT i AS id, 1 + {_pick("i", 7, 2000)} * {_pick("i", 99, 2000)} // 2000 AS customer_id,
  TIMESTAMP '2023-01-01' + to_seconds(i * 946 + {_pick("i", 3, 40000)}) AS ordered_at,
  CASE WHEN i > 99600 THEN ['new', 'paid', 'paid', 'shipped'][1 + i % 4] WHEN {_pick("i", 21, 25)} = 0 THEN 'returned'
  WHEN {_pick("i", 77, 40)} = 0 THEN 'canceled' ELSE 'shipped' END AS status
  FROM range(1, 100001) t(i))""",
    "order_items": f"""
SELECT o, line, p.id, quantity, p.price
FROM (SELECT i AS o, line, 1 + {_pick("i * 7 + line", 5, 160)} AS product,
  1 + {_pick("i + line", 11, 100)} // 60 + {_pick("i + line", 13, 100)} // 90 AS quantity
  FROM range(1, 100001) t(i), range(1, 5) l(line) WHERE line <= 1 + {_pick("i", 17, 4)})
JOIN {SCHEMA}.products p ON p.id = product""",
}


def creating_statements() -> list[str]:
    """The statements that make the schema and its tables, without a final `;`."""
    statements = [f"CREATE SCHEMA {SCHEMA}"]
    for name in TABLES:
        statements += [
            f"CREATE TABLE {SCHEMA}.{name} ({_COLUMNS[name]})",
            # First, so that \demo off recognizes a table whose rows could not be made.
            f"COMMENT ON TABLE {SCHEMA}.{name} IS '{MARK}'",
            f"INSERT INTO {SCHEMA}.{name}{_ROWS[name]}",
        ]
    return statements
