"""Reports for other programs: one module per format, all written from the results alone."""
