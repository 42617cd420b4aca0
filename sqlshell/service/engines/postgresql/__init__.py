"""PostgreSQL: an external server, reached by libpq (package psycopg)."""
