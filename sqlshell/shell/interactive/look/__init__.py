"""How the prompt looks: themes, highlighting, toolbar, spinner."""
