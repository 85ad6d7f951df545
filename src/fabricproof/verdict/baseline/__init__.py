"""What known-good runs measured, kept in the site's folder, and what follows for a new number."""
