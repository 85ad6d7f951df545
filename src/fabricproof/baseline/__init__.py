"""The file of a baseline in a site folder, and the reference it gives to a quantity."""
