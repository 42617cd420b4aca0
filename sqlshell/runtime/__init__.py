"""This process: its event loop, its temporary files, its descriptors, its shutdown, and reports of bugs."""
