"""The short-lived process that copies a store's files into a database."""
