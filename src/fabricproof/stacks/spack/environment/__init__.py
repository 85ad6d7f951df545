"""What is to be built: recipe, site and externals brought together, and the lock that they give."""
