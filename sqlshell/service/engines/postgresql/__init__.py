"""PostgreSQL: a server elsewhere, reached by libpq (package psycopg)."""
