"""PostgreSQL: an external server, reached by the package psycopg; the queries of its catalog are in `sql/`."""
