"""From the command line to a running shell, `serve`, `doctor` or `config`: options, targets, tokens and passwords."""
