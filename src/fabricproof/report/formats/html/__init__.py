"""The report as one HTML file that opens offline and asks nothing of any network."""
