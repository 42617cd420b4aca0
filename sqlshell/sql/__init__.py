"""SQL as text: keywords, identifiers, highlighting and syntax help. Nothing here needs a service."""
