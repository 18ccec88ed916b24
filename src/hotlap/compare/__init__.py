"""Two runs, or two plans, side by side: documents in, a comparison out. Pure: no files, no clock, no torch."""
