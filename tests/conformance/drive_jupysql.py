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
)
notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
outputs = [
    "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
    for cell in notebook.cells
]
sys.stdout.write(json.dumps(outputs))
