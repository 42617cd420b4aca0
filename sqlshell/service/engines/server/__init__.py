"""What engines that are servers elsewhere have in common."""
