"""Runs a notebook with JupySQL's %sql without a browser, and prints its outputs; argv[1] is the engine's URL."""

from __future__ import annotations

import json
import sys

import nbformat
from nbclient import NotebookClient

CELLS = (
    f"%load_ext sql\n%sql {sys.argv[1]}\n%config SqlMagic.displaycon = False",
    "%sql create table notes (id integer, body varchar)",
    "%%sql\ninsert into notes values (1, 'it''s'), (2, 'two')",
    "result = %sql select * from notes order by id\nprint(list(result))",
    "chosen = 2\nfound = %sql select body from notes where id = {{chosen}}\nprint(found[0][0])",
    "frame = %sql select count(*) as n from notes\nprint(frame.DataFrame().to_dict('records'))",
    "names = %sqlcmd tables\nprint(names)",
    "large = %sql select * from range(100000) t(i)\nprint(large.DataFrame()['i'].sum())",
    "import pandas\nmany = pandas.DataFrame({'i': range(5000)})\n%sql --persist --no-index many\n"
    "stored = %sql select sum(i) from many\nprint(stored[0][0])",
    "import sqlshell\nwith sqlshell.connect(':memory:') as connection:\n"
    "    print(connection.execute('select 1 as one').fetch_df().to_dict('records'))",
)
notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
outputs = [
    "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
    for cell in notebook.cells
]
sys.stdout.write(json.dumps(outputs))
