"""The output formats, and the table of them in `formats.py`."""
