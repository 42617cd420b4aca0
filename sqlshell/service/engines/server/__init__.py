"""Shared by engines that are external servers."""
