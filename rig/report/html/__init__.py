"""The report as one HTML file that opens anywhere, also without a network."""
