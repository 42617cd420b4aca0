"""The client of a service. It can be used without the shell."""
