"""Look at a machine and write a first site folder from what it shows, guesses marked."""
