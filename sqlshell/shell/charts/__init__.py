"""Charts of results, as text and as SVG."""
