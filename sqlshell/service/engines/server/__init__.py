"""Shared by engines that are external servers: sessions on one event loop, and the rows of results."""
