"""Where bytes go: stdout, a file, a command, the pager."""
