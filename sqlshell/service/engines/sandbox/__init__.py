"""What such a process gives up: files, network, system calls."""
