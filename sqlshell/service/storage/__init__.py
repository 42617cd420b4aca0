"""The service's own records, as opposed to users' data: in an SQLite file, or in PostgreSQL for several processes."""
