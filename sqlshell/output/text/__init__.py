"""What tables and records for people have in common: safe text, widths, shortening, fitting the screen."""
