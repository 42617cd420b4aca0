"""The output formats, a module for each; CSV and TSV share `delimited.py`."""
