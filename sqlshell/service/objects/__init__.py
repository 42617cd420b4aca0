"""Kinds of objects, a file for each: its grammar, what its statements do, its rows in LIST and in `deltastream.sys`."""
