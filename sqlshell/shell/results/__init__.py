"""Where results are shown, and results that the shell makes itself."""
