"""The DB-API: the real service on a real socket, and the embedded one."""
