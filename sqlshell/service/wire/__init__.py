"""Connections under uvicorn: limits, deadlines, memory budgets, fair turns."""
