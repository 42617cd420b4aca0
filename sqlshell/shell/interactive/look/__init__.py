"""How the prompt looks: themes, highlighting, toolbar, the line that shows progress."""
