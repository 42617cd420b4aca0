"""An organization at run time: sessions, compute pools, streams, threads, memory, copies of store files."""
