"""Values of the interface as Python objects, and Python objects as SQL literals."""
