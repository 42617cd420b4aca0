"""The dialect's own forms of SQL in DuckDB's words: types, functions, fields of structs, options of a FROM."""
