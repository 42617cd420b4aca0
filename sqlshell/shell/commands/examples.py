r"""Examples of backslash commands, by command. They run on the sample data of `\demo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "?": ("\\? start", "\\? copy", "\\? variables"),
    "bg": ("select status, count(*) from shop.orders group by status \\bg",),
    "browse": ("select * from shop.orders \\browse",),
    "chart": (
        "select date_trunc('month', ordered_at) as month, count(*) as n from shop.orders group by month \\chart",
        "select status, count(*) as n from shop.orders group by status \\chart bar",
    ),
    "clip": ("select * from shop.products limit 5 \\clip", "select * from shop.products limit 5 \\clip markdown"),
    "context": ("\\context", "\\context set schema shop", "\\context reset"),
    "copy": (
        "\\copy shop.products to stdout with (format csv, header)",
        "\\copy (select * from shop.customers limit 3) to stdout with (format json)",
        "\\copy shop.products (id, name, category, price, stock) from program 'echo 999,kettle,kitchen,29.90,7' "
        "with (format csv)",
    ),
    "crosstab": (
        "select country, newsletter, count(*) as n from shop.customers group by all order by country \\crosstab",
    ),
    "d": ("\\d shop.orders", "\\d+ shop.*"),
    "dt": ("\\dt shop.*", "\\dt *.order*"),
    "echo": ("\\echo :ROW_COUNT rows in :ELAPSED s",),
    "fetch": ("\\fetch",),
    "format": ("\\format", "\\format csv"),
    "g": (
        "select * from shop.orders limit 3 \\g (format=json)",
        "select * from shop.orders limit 20 \\g |head -5",
    ),
    "gdesc": ("select * from shop.orders \\gdesc",),
    "gexec": ("select 'select count(*) from shop.' || name from (values ('orders'), ('products')) t(name) \\gexec",),
    "gset": ("select max(id) as newest from shop.orders \\gset",),
    "gx": ("select * from shop.customers limit 1 \\gx",),
    "h": ("\\h select", "\\h create table"),
    "jobs": ("\\jobs", "\\jobs 3"),
    "local": ("select * from shop.orders limit 1000;\n\\local select status, count(*) from _ group by status",),
    "n+": ("\\n+ largest select * from shop.order_items order by quantity * price desc limit $1",),
    "pset": ("\\pset", "\\pset null -", "\\pset maxwidth 20"),
    "schema": ("\\schema shop.orders",),
    "set": ("\\set status returned\nselect count(*) from shop.orders where status = :'status';",),
    "t": ("\\t on", "\\t off"),
    "theme": ("\\theme",),
    "timing": ("\\timing on",),
    "watch": ("select count(*) from shop.orders \\watch 1 c=3",),
    "x": ("\\x on", "\\x auto"),
}
"""Each is what a person would type; the tests run all of them."""
