"""Results as bytes."""
