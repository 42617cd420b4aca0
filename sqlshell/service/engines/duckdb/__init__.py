"""DuckDB: an instance, its sessions, its errors."""
