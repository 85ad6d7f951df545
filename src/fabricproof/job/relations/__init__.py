"""What is to hold between the legs of one job, measured in rounds."""
