"""From the command line to a running shell, `serve`, `doctor` or `config`."""
